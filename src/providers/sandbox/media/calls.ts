/** Common parts of the sandbox's media models: directives, paced steps, and reported usage. */

import { toUsage } from "../../../formats/openai-chat/usage.js";
import { ProviderError } from "../../../formats/upstream-error.js";
import { NO_USAGE, type UsageQuantities } from "../../../lib/usage.js";
import type { UpstreamTimeouts } from "../../provider.js";
import { type Directives, parseDirectives } from "../directives.js";
import { refuse } from "../refusal.js";
import { cutShort, wait } from "../stream.js";
import type { JobKind, JobOf, JobResults } from "./jobs.js";
import type { MediaPool } from "./pool.js";

export interface SandboxMedia {
  readonly pool: MediaPool;
  readonly timeouts: UpstreamTimeouts;
}

/** The prompt without directives; `[echo]` and `[repeat ...]` may dictate it. */
export function promptOf(directives: Directives): string {
  return directives.text ?? directives.prompt;
}

/** Reads the directives in `words`; `param` names their field. */
export function readDirectives(words: string, param: string): Directives {
  try {
    return parseDirectives(words);
  } catch (error) {
    if (error instanceof ProviderError && error.upstreamMessage !== undefined) throw refuse(error.upstreamMessage, param);
    throw error;
  }
}

/** Applies delays and failures of the directives before the work. */
export async function obey(directives: Directives, limitMs: number, signal: AbortSignal): Promise<void> {
  const hangs = directives.trouble?.kind === "hang" && directives.failStatus === null;
  await wait(hangs ? Number.POSITIVE_INFINITY : directives.delayMs, limitMs, signal);
  if (directives.failStatus !== null) {
    const upstreamMessage = `The sandbox was told to fail with status ${directives.failStatus}.`;
    throw new ProviderError("status", upstreamMessage, { status: directives.failStatus, upstreamMessage });
  }
}

/** The failure of an answer that is cut or fails on its way. */
export function troubleOf(kind: "cut" | "error"): ProviderError {
  if (kind === "cut") return cutShort();
  const upstreamMessage = "The sandbox was told to fail in the middle of its answer.";
  return new ProviderError("status", upstreamMessage, { status: 500, upstreamMessage });
}

/** Begins an answer that is not streamed, and applies its directives. */
export async function begin(words: string, param: string, signal: AbortSignal, timeouts: UpstreamTimeouts): Promise<Directives> {
  signal.throwIfAborted();
  const directives = readDirectives(words, param);
  await obey(directives, timeouts.totalMs, signal);
  const { trouble } = directives;
  if (trouble !== null && trouble.kind !== "hang") throw troubleOf(trouble.kind);
  return directives;
}

/** Runs a job to its end, with the wait between its steps that `[pace ...]` asks for. */
export async function runPaced<Kind extends JobKind>(
  { pool, timeouts }: SandboxMedia,
  job: JobOf<Kind>,
  { paceMs }: Directives,
  signal: AbortSignal,
  onProgress: (percent: number) => void = () => {},
): Promise<JobResults[Kind]> {
  const steps = pool.open<Kind>(job, signal);
  try {
    for (;;) {
      const next = await steps.next();
      if (next.done) return next.value;
      if ("percent" in next.value) onProgress(next.value.percent);
      if (paceMs > 0) await wait(paceMs, timeouts.totalMs, signal);
    }
  } finally {
    // Frees its place after an early return; otherwise does nothing.
    await steps.return(null as never);
  }
}

interface Counted {
  readonly inputText?: number;
  readonly inputImage?: number;
  readonly outputImage?: number;
}

/** Counted tokens, unless the prompt sets them; null when it asks for no report. */
export function reportTokens(
  { tokens, reportsUsage }: Directives,
  { inputText = 0, inputImage = 0, outputImage = 0 }: Counted,
): UsageQuantities | null {
  if (!reportsUsage) return null;
  if (Object.keys(tokens).length === 0) {
    return { ...NO_USAGE, inputTextTokens: inputText, inputImageTokens: inputImage, outputImageTokens: outputImage };
  }
  const image = tokens.image_out ?? outputImage;
  return toUsage({
    input_tokens: tokens.in ?? inputText + inputImage,
    output_tokens: tokens.out ?? image,
    input_tokens_details: {
      cached_tokens: tokens.cached ?? 0,
      cache_write_tokens: tokens.cache_write ?? 0,
      audio_tokens: tokens.audio_in ?? 0,
      image_tokens: tokens.image_in ?? inputImage,
    },
    output_tokens_details: { reasoning_tokens: tokens.reasoning ?? 0, audio_tokens: tokens.audio_out ?? 0, image_tokens: image },
  });
}
