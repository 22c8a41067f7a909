/** A stream whose first chunk has warnings about the request. */
import type { SseEvent } from "../../lib/sse.js";
import { type ChatChunk, type StreamFormat, toChunk } from "./stream.js";

export class WarnedEvents implements StreamFormat {
  private isTold = false;

  constructor(
    private readonly events: StreamFormat,
    private readonly warnings: readonly string[],
  ) {}

  get isWhole(): boolean {
    return this.events.isWhole;
  }

  take(event: SseEvent, batch: ChatChunk[]): boolean {
    const isLast = this.events.take(event, batch);
    this.tell(batch);
    return isLast;
  }

  end(batch: ChatChunk[]): void {
    this.events.end?.(batch);
    this.tell(batch);
  }

  private tell(batch: ChatChunk[]): void {
    const [first] = batch;
    if (this.isTold || !first) return;
    this.isTold = true;
    batch[0] = withWarnings(first, this.warnings);
  }
}

export function withWarnings({ object, bytes, usage, report, text }: ChatChunk, warnings: readonly string[]): ChatChunk {
  return { object, bytes, usage, report, warnings, ...(text !== undefined && { text }) };
}

/** A chunk whose warnings clients read in its object as well. */
export function warnedChunk(object: ChatChunk["object"], warnings: readonly string[]): ChatChunk {
  return warnings.length === 0 ? toChunk(object) : { ...toChunk({ ...object, warnings }), warnings };
}
