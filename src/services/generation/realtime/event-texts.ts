/** Walks the content of a client's realtime event that a model reads, for the meter and for the safety features. */
import type { Holder } from "../../../formats/openai-chat/prompt.js";
import { isRecord } from "../../../lib/json.js";
import { ownValue } from "../../../lib/own-values.js";

type Fields = Readonly<Record<string, unknown>>;

export interface EventReader {
  text(text: string, holder: Holder, key: string): void;
  /** Tools, whose schemas are read with every response. */
  declarations(declared: readonly unknown[], holder: Holder, key: string): void;
  /** An image or its address as `image_url`; audio as `audio`. */
  media(part: Fields, key: string): void;
  /** Everything else. `isName`: other parts refer to it. */
  field(value: unknown, holder: Holder, key: string, isName: boolean): void;
}

const TEXTS: ReadonlySet<string> = new Set(["text", "instructions", "transcript", "arguments", "output", "prompt"]);
/** Fields of events, sessions, responses and items that contain others. */
const HOLDERS: ReadonlySet<string> = new Set(["session", "response", "item", "input", "content"]);
const NAMES: ReadonlySet<string> = new Set(["name", "tool_choice"]);
/** Enums. */
const KINDS: ReadonlySet<string> = new Set(["type", "role", "object", "status"]);
const WORD = /^[a-z_.]{1,40}$/;

export function readEvent(event: Fields, reader: EventReader): void {
  for (const name of Object.keys(event)) {
    const value = ownValue(event, name);
    if (value === undefined || value === null || isKind(name, value)) continue;
    if (typeof value === "string" && TEXTS.has(name)) reader.text(value, event, name);
    else if (name === "tools" && Array.isArray(value)) reader.declarations(value, event, name);
    else if (name === "image_url" || (name === "audio" && typeof value === "string")) reader.media(event, name);
    else if (HOLDERS.has(name) && isRecord(value)) readEvent(value, reader);
    else if (HOLDERS.has(name) && Array.isArray(value)) readList(value, event, name, reader);
    else reader.field(value, event, name, NAMES.has(name));
  }
}

function readList(list: readonly unknown[], holder: Fields, name: string, reader: EventReader): void {
  if (list.every(isRecord)) for (const each of list) readEvent(each, reader);
  else reader.field(list, holder, name, false);
}

function isKind(name: string, value: unknown): boolean {
  return KINDS.has(name) && typeof value === "string" && WORD.test(value);
}
