/**
 * Streams that another route can still replace: they have begun only with their first token, so that a failure before it, or a silence
 * beyond the route's bound, leads to the next route (docs/spec/routing.md#streams).
 */
import { type Pulled, type PulledIterator, pullFrom } from "../../../fast/pull.js";
import type { ChatChunk, ChatChunkBatch } from "../../../formats/openai-chat/stream.js";
import { ProviderError } from "../../../formats/upstream-error.js";
import type { CallEnd, EndListener } from "../../../providers/provider.js";
import type { BegunStream } from "./answer.js";

/** Unspecified: batches without a token before the stream counts as begun. */
const BATCHES_MAX = 64;

/** Ends the call of one attempt: with its generation, or by itself when the bound is over. */
export class AttemptEnd {
  private readonly controller = new AbortController();
  private timer: NodeJS.Timeout | undefined;
  private isLate = false;

  constructor(
    readonly generation: CallEnd,
    private readonly boundMs: number | null,
  ) {
    if (boundMs === null) return;
    this.timer = setTimeout(() => {
      this.isLate = true;
      this.controller.abort(this.lateness);
    }, boundMs);
    if (generation.aborted) this.controller.abort(generation.reason);
    else generation.addEventListener("abort", this.onGenerationEnd);
  }

  /** Without a bound, that of the generation. */
  get end(): CallEnd {
    return this.boundMs === null ? this.generation : this.controller.signal;
  }

  /** Begins the stream with its first token. Rejects as the upstream does, or with a time-out. */
  async begun(open: (end: CallEnd) => Promise<BegunStream>): Promise<BegunStream> {
    try {
      return await withFirstToken(await open(this.end));
    } catch (error) {
      throw this.isLate && !this.generation.aborted ? this.lateness : error;
    } finally {
      clearTimeout(this.timer);
    }
  }

  private get lateness(): ProviderError {
    return new ProviderError("timeout", `The upstream sent nothing for ${this.boundMs} ms.`);
  }

  private readonly onGenerationEnd: EndListener = { handleEvent: () => this.controller.abort(this.generation.reason) };
}

async function withFirstToken({ first, rest, cap }: BegunStream): Promise<BegunStream> {
  if (hasToken(first)) return { first, rest, cap };
  const passed = [first];
  try {
    while (passed.length < BATCHES_MAX) {
      const next = await pullFrom(rest);
      passed.push(next);
      if (hasToken(next)) break;
    }
  } catch (error) {
    Promise.resolve(rest.return?.()).catch(() => undefined);
    throw error;
  }
  const replayed = new Replayed(passed, rest);
  return { first: replayed.pull() as Pulled<ChatChunkBatch>, rest: replayed, cap };
}

function hasToken({ done, value }: Pulled<ChatChunkBatch>): boolean {
  return done === true || value.some(isToken);
}

function isToken({ text, object }: ChatChunk): boolean {
  if (text !== undefined) return text !== "";
  return (object.choices ?? []).some(
    ({ delta, finish_reason: reason }) =>
      reason != null || Object.entries(delta ?? {}).some(([name, value]) => name !== "role" && isThere(value)),
  );
}

function isThere(value: unknown): boolean {
  return value !== null && value !== undefined && value !== "" && !(Array.isArray(value) && value.length === 0);
}

/** Batches that were read before, then the others. */
class Replayed implements PulledIterator<ChatChunkBatch> {
  private at = 0;

  constructor(
    private readonly passed: readonly Pulled<ChatChunkBatch>[],
    private readonly rest: PulledIterator<ChatChunkBatch>,
  ) {}

  pull(): Pulled<ChatChunkBatch> | Promise<Pulled<ChatChunkBatch>> {
    const next = this.passed[this.at];
    if (next === undefined) return pullFrom(this.rest);
    this.at += 1;
    return next;
  }

  async next(): Promise<Pulled<ChatChunkBatch>> {
    return this.pull();
  }

  async return(): Promise<IteratorResult<ChatChunkBatch>> {
    await this.rest.return?.();
    return { done: true, value: undefined };
  }
}
