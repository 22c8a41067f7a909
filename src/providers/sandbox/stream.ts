/** A sandbox answer as a stream with delays and failures on request, which stops at once on return. */
import type { ChatChunk, ChatChunkBatch } from "../../formats/openai-chat/stream.js";
import { ProviderError } from "../../formats/upstream-error.js";
import type { UpstreamTimeouts } from "../provider.js";

export type SandboxStep =
  | { readonly do: "send"; readonly chunk: ChatChunk }
  | { readonly do: "wait"; readonly ms: number }
  | { readonly do: "hang" }
  | { readonly do: "fail"; readonly error: ProviderError };

/** Chunks without delay come in batches of this many, like reads from a socket. */
const BATCH_CHUNKS = 8;
const END: IteratorReturnResult<undefined> = { done: true, value: undefined };

export class SandboxStream implements AsyncIterableIterator<ChatChunkBatch, undefined> {
  private readonly deadline: number;
  /** A step that arrived within a batch, which is sent first. */
  private postponed: Exclude<SandboxStep, { do: "send" }> | null = null;
  private isOver = false;
  private stopWaiting: (() => void) | null = null;

  constructor(
    private readonly steps: Iterator<SandboxStep>,
    private readonly signal: AbortSignal,
    private readonly timeouts: UpstreamTimeouts,
  ) {
    this.deadline = performance.now() + timeouts.totalMs;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<ChatChunkBatch, undefined>> {
    // The event loop turns between batches, as between reads.
    await new Promise((resolve) => setImmediate(resolve));
    const batch: ChatChunk[] = [];
    try {
      while (!this.isOver && batch.length < BATCH_CHUNKS) {
        this.signal.throwIfAborted();
        const step = this.nextStep();
        if (step === null) this.isOver = true;
        else if (step.do === "send") batch.push(step.chunk);
        else if (batch.length === 0) await this.perform(step);
        else {
          this.postponed = step;
          break;
        }
      }
    } catch (error) {
      this.isOver = true;
      throw error;
    }
    return batch.length > 0 ? { done: false, value: batch } : END;
  }

  async return(): Promise<IteratorReturnResult<undefined>> {
    this.isOver = true;
    this.stopWaiting?.();
    return END;
  }

  private nextStep(): SandboxStep | null {
    const { postponed } = this;
    this.postponed = null;
    if (postponed !== null) return postponed;
    const next = this.steps.next();
    return next.done ? null : next.value;
  }

  private async perform(step: Exclude<SandboxStep, { do: "send" }>): Promise<void> {
    if (step.do === "fail") throw step.error;
    const ms = step.do === "hang" ? Number.POSITIVE_INFINITY : step.ms;
    const limitMs = Math.min(this.timeouts.idleMs, Math.max(0, this.deadline - performance.now()));
    const waiting = new Waiting(Math.min(ms, limitMs), this.signal);
    this.stopWaiting = () => waiting.stop();
    await waiting.over;
    this.stopWaiting = null;
    if (!this.isOver && ms > limitMs) throw silence();
  }
}

/** Waits; rejects with the signal's reason when that is aborted. Longer than `limitMs` is a timeout. */
export async function wait(ms: number, limitMs: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  if (ms > 0) await new Waiting(Math.min(ms, limitMs), signal).over;
  if (ms > limitMs) throw silence();
}

export function cutShort(): ProviderError {
  return new ProviderError("cut", "The sandbox's answer ended early, as it was told to.");
}

function silence(): ProviderError {
  return new ProviderError("timeout", "The sandbox was silent for too long, as it was told to be.");
}

class Waiting {
  readonly over: Promise<void>;
  private finish: () => void = () => {};

  constructor(ms: number, signal: AbortSignal) {
    this.over = new Promise((resolve, reject) => {
      const onAbort = () => {
        clearTimeout(timer);
        reject(signal.reason);
      };
      this.finish = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      const timer = setTimeout(this.finish, ms);
      signal.addEventListener("abort", onAbort, { once: true });
    });
  }

  stop(): void {
    this.finish();
  }
}
