/** A queue of texts between a pushing source and one pulling reader, which pauses the source while too much is unread. */

export interface Backpressure {
  pause(): void;
  resume(): void;
}

export class TextQueue implements AsyncIterableIterator<string> {
  private texts: string[] = [];
  private unread = 0;
  private isPaused = false;
  private isEnded = false;
  private failure: { readonly reason: unknown } | null = null;
  private wake: (() => void) | null = null;

  constructor(
    private readonly charsMax: number,
    private readonly backpressure: Backpressure,
  ) {}

  push(text: string): void {
    if (this.isEnded) return;
    this.texts.push(text);
    this.unread += text.length;
    if (this.unread > this.charsMax && !this.isPaused) {
      this.isPaused = true;
      this.backpressure.pause();
    }
    this.wake?.();
  }

  /** Ends the queue; queued texts are still read. With a failure, `next` throws it once after them. */
  end(failure?: unknown): void {
    if (this.isEnded) return;
    this.isEnded = true;
    if (failure !== undefined) this.failure = { reason: failure };
    this.wake?.();
  }

  async next(): Promise<IteratorResult<string, undefined>> {
    while (this.texts.length === 0 && !this.isEnded) {
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
      this.wake = null;
    }
    const text = this.texts.shift();
    if (text !== undefined) {
      this.release(text.length);
      return { done: false, value: text };
    }
    const { failure } = this;
    this.failure = null;
    if (failure) throw failure.reason;
    return { done: true, value: undefined };
  }

  /** Drops the unread texts, and resumes the source. */
  async return(): Promise<IteratorResult<string, undefined>> {
    this.texts = [];
    this.failure = null;
    this.end();
    this.release(this.unread);
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  private release(chars: number): void {
    this.unread -= chars;
    if (this.isPaused && this.unread <= this.charsMax) {
      this.isPaused = false;
      this.backpressure.resume();
    }
  }
}
