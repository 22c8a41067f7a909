/**
 * The events of one background response, written in pieces while it runs, for those who follow it through any process. Bounded: deltas
 * beyond are left out, but never the last event.
 */
import type { ResponseEvent } from "../../../formats/openai-responses/stream.js";
import { EVENTS_BYTES_MAX, EVENTS_WRITTEN_BYTES, EVENTS_WRITTEN_MS } from "./limits.js";

export type WriteEvents = (first: number, last: number, json: string) => Promise<void>;

export class EventLog {
  private waiting: ResponseEvent[] = [];
  private waitingBytes = 0;
  private bytes = 0;
  private timer: NodeJS.Timeout | undefined;
  private writing: Promise<void> = Promise.resolve();

  /** `write` does not reject. */
  constructor(
    private readonly write: WriteEvents,
    /** Leaves out what may not be stored. */
    private readonly hide: ((event: ResponseEvent) => ResponseEvent) | null,
  ) {}

  add(events: readonly ResponseEvent[]): void {
    for (const event of events) {
      const bytes = JSON.stringify(event).length;
      if (this.bytes + bytes > EVENTS_BYTES_MAX) continue;
      this.put(event, bytes);
    }
    if (this.waitingBytes > EVENTS_WRITTEN_BYTES) void this.flush();
    else if (this.waiting.length > 0) this.timer ??= setTimeout(() => void this.flush(), EVENTS_WRITTEN_MS);
  }

  /** Writes the last events at any length. */
  async end(events: readonly ResponseEvent[]): Promise<void> {
    for (const event of events) this.put(event, 0);
    await this.flush();
  }

  private put(event: ResponseEvent, bytes: number): void {
    this.waiting.push(this.hide === null ? event : this.hide(event));
    this.waitingBytes += bytes;
    this.bytes += bytes;
  }

  private flush(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    const events = this.waiting;
    const [first, last] = [events.at(0), events.at(-1)];
    if (first === undefined || last === undefined) return this.writing;
    this.waiting = [];
    this.waitingBytes = 0;
    const json = JSON.stringify(events);
    this.writing = this.writing.then(() => this.write(first.sequence_number, last.sequence_number, json));
    return this.writing;
  }
}
