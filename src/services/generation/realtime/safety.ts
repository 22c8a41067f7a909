/**
 * Safety features of a realtime session (docs/spec/safety.md): each text of the client is checked before it is sent. Unspecified: speech
 * cannot be checked, so a session with any feature refuses audio.
 */
import { AppError } from "../../../errors.js";
import type { Holder } from "../../../formats/openai-chat/prompt.js";
import { copyJson } from "../../../lib/json.js";
import { ownValue, setOwnValue } from "../../../lib/own-values.js";
import type { Passages } from "../../safety/passages.js";
import type { Admission, GenerationTask } from "../admission.js";
import { type EventReader, readEvent } from "./event-texts.js";

type Fields = Readonly<Record<string, unknown>>;

/** Matches audio in an event: appended to the buffer, or a part of a message. */
const AUDIO = /"(?:input_audio_buffer\.append|input_audio|audio)"\s*:\s*"|"input_audio_buffer\.append"/;

export class RealtimeSafety {
  constructor(
    private readonly task: GenerationTask,
    private readonly safe: string | null,
    private readonly admission: Admission,
  ) {}

  /** The event to send. Throws CONTENT_BLOCKED, BAD_REQUEST or SERVICE_UNAVAILABLE. */
  async check(event: Fields): Promise<Fields> {
    if (AUDIO.test(JSON.stringify(event))) {
      throw new AppError("CONTENT_BLOCKED", "Safety features cannot read audio: send text, or choose a model that requires none.");
    }
    const copy = copyJson(event);
    await this.admission.check(this.task, (into) => readEvent(copy, new EventPassages(into)), this.safe);
    return copy;
  }
}

class EventPassages implements EventReader {
  constructor(private readonly into: Passages) {}

  text(text: string, holder: Holder, key: string): void {
    this.into.text(key, text, (after) => setOwnValue(holder as Record<string, unknown>, key, after));
  }

  declarations(declared: readonly unknown[], _holder: Holder, key: string): void {
    for (const [index, each] of declared.entries()) this.into.declaration(`${key}.${index}`, each, declared, index);
  }

  media(part: Fields, key: string): void {
    this.into.media(key, ownValue(part, key), part, key);
  }

  field(value: unknown, holder: Holder, key: string, isName: boolean): void {
    this.into.field(key, value, holder, key, isName);
  }
}
