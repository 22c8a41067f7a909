/**
 * `sexual`, `violence` and `shield`: a moderation model reads the texts, and its flags decide (docs/spec/safety.md#moderation-model). The
 * gateway pays for the call. Without an answer the request is refused.
 */
import type { Logger } from "pino";
import { serviceUnavailable, upstreamFailed } from "../../errors.js";
import { ProviderError } from "../../formats/upstream-error.js";
import { ownValue } from "../../lib/own-values.js";
import {
  SAFETY_MODERATED_CHARS_MAX,
  SAFETY_MODERATED_OVERLAP_CHARS,
  SAFETY_MODERATED_PIECES_MAX,
  SAFETY_MODERATION_CALLS_MAX,
  SAFETY_MODERATION_TIMEOUT_MS,
} from "../../limits.js";
import type { ModerationProvider } from "../../providers/media.js";
import type { SafetyFeature } from "../catalog/model.js";

/** The models to ask, in order; none when no moderation model is configured. */
export type FindModerators = () => readonly Moderator[];

export interface Moderator {
  readonly provider: ModerationProvider;
  readonly upstreamModel: string;
}

export type BlockingFeature = Extract<SafetyFeature, "sexual" | "violence" | "shield">;

/** The flagged categories that each feature blocks (docs/spec/safety.md#moderation-model). */
const BLOCKS: Readonly<Record<BlockingFeature, (category: string) => boolean>> = {
  sexual: (category) => category.startsWith("sexual"),
  violence: (category) => ["violence", "hate", "harassment"].some((name) => category.startsWith(name)),
  shield: (category) => ["prompt_injection", "jailbreak", "illicit"].includes(category),
};

export function isBlocking(feature: SafetyFeature): feature is BlockingFeature {
  return Object.hasOwn(BLOCKS, feature);
}

export function triggeredBy(categories: ReadonlySet<string>, features: readonly BlockingFeature[]): readonly BlockingFeature[] {
  return features.filter((feature) => [...categories].some(BLOCKS[feature]));
}

export class Moderation {
  constructor(private readonly findModerators: FindModerators) {}

  /** All categories flagged for any text. Rejects with SERVICE_UNAVAILABLE without an answer. */
  async flaggedCategories(texts: readonly string[], signal: AbortSignal, log: Logger): Promise<ReadonlySet<string>> {
    const moderators = this.moderators();
    const calls = toCalls(texts);
    const flagged = new Set<string>();
    const timeout = AbortSignal.timeout(SAFETY_MODERATION_TIMEOUT_MS);
    const either = AbortSignal.any([signal, timeout]);
    const askNext = async (): Promise<void> => {
      for (let pieces = calls.shift(); pieces !== undefined; pieces = calls.shift()) {
        for (const category of await ask(moderators, pieces, either)) flagged.add(category);
      }
    };
    try {
      await Promise.all(Array.from({ length: Math.min(SAFETY_MODERATION_CALLS_MAX, calls.length) }, askNext));
      return flagged;
    } catch (error) {
      calls.length = 0;
      if (signal.aborted) throw upstreamFailed("The caller left before the answer came.", { cause: error });
      log.warn({ err: error }, "the moderation model does not answer");
      throw unavailable("The safety check that this request requires did not answer.", error);
    }
  }

  private moderators(): readonly Moderator[] {
    let moderators: readonly Moderator[];
    try {
      moderators = this.findModerators();
    } catch (error) {
      throw unavailable("The configured moderation model cannot be asked.", error);
    }
    if (moderators.length === 0) throw unavailable("No moderation model is configured (MODERATION_MODEL), and this request requires one.");
    return moderators;
  }
}

/** The first valid answer. */
async function ask(moderators: readonly Moderator[], inputs: readonly string[], signal: AbortSignal): Promise<readonly string[]> {
  let failure: unknown;
  for (const { provider, upstreamModel } of moderators) {
    try {
      const { results } = await provider.moderate({ upstreamModel, inputs, signal, extra: {} });
      if (results.length !== inputs.length) throw new ProviderError("invalid-response", "The moderation model did not judge every text.");
      return results.flatMap(({ categories }) => Object.keys(categories).filter((category) => ownValue(categories, category) === true));
    } catch (error) {
      failure = error;
      if (signal.aborted) break;
    }
  }
  throw failure;
}

/** Distinct texts, long ones in pieces, grouped into as few calls as possible. */
function toCalls(texts: readonly string[]): string[][] {
  const pieces = [...new Set(texts.flatMap(toPieces))];
  const calls: string[][] = [];
  for (let start = 0; start < pieces.length; start += SAFETY_MODERATED_PIECES_MAX) {
    calls.push(pieces.slice(start, start + SAFETY_MODERATED_PIECES_MAX));
  }
  return calls;
}

function toPieces(text: string): string[] {
  if (text.trim() === "") return [];
  const pieces: string[] = [];
  const step = SAFETY_MODERATED_CHARS_MAX - SAFETY_MODERATED_OVERLAP_CHARS;
  for (let start = 0; start === 0 || start + SAFETY_MODERATED_OVERLAP_CHARS < text.length; start += step) {
    const piece = text.slice(start, start + SAFETY_MODERATED_CHARS_MAX);
    if (piece.trim() !== "") pieces.push(piece.replace(/\p{Surrogate}/gu, "\ufffd"));
  }
  return pieces;
}

function unavailable(message: string, cause?: unknown): Error {
  return serviceUnavailable(message, { cause });
}
