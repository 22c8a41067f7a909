/** The bytes of a streamed generateContent: server-sent events without names, or one JSON array. */
import { formatSseEvent } from "../../lib/sse.js";

export interface AnswerWriting {
  readonly contentType: "text/event-stream" | "application/json";
  write(answers: readonly object[]): Buffer;
  /** `error` is in Google's format. Nothing follows. */
  writeError(error: object): Buffer;
  /** After the last answer. */
  readonly done: Buffer;
  /** What readers skip, for long silences. */
  readonly filler: Buffer;
}

const NOTHING = Buffer.alloc(0);

export class EventWriting implements AnswerWriting {
  readonly contentType = "text/event-stream";
  readonly done = NOTHING;
  readonly filler = Buffer.from(": keep-alive\n\n");

  write(answers: readonly object[]): Buffer {
    return Buffer.concat(answers.map((answer) => formatSseEvent(JSON.stringify(answer))));
  }

  writeError(error: object): Buffer {
    return this.write([{ error }]);
  }
}

const END = Buffer.from("\n]\n");

/** One for each stream. */
export class ArrayWriting implements AnswerWriting {
  readonly contentType = "application/json";
  readonly filler = Buffer.from("\n");
  private isBegun = false;

  get done(): Buffer {
    return this.isBegun ? END : Buffer.from("[]\n");
  }

  write(answers: readonly object[]): Buffer {
    const lines = answers.map((answer) => `${this.next()}${JSON.stringify(answer)}`);
    return Buffer.from(lines.join(""));
  }

  writeError(error: object): Buffer {
    return Buffer.concat([this.write([{ error }]), END]);
  }

  private next(): string {
    const { isBegun } = this;
    this.isBegun = true;
    return isBegun ? ",\n" : "[";
  }
}
