/**
 * Fields of a message's end that chats lack: an upstream of Anthropic's format states them, and a Messages answer has them again. A chat
 * carries them as `ending` in its `extra_content.anthropic`.
 */
import { isRecord } from "../../lib/json.js";
import { ownValue, setOwnValue } from "../../lib/own-values.js";

type Loose = Readonly<Record<string, unknown>>;

/** Names of the format, by their place in an answer. */
const PLACES = {
  /** Of a message, and of the delta at the end of a stream. */
  delta: ["stop_details", "container"],
  /** Of a message, and of the event at the end of a stream. */
  message: ["context_management"],
  /** Counts of calls beside the amounts of tokens. */
  usage: ["server_tool_use"],
} as const;

type Place = keyof typeof PLACES;
export type OwnEnding = Readonly<Record<Place, Loose>>;

export const NO_ENDING: OwnEnding = Object.freeze({ delta: {}, message: {}, usage: {} });

/** The fields that an upstream stated; null without any. Of a stream, `message` has the fields of both places. */
export function endingIn(message: Loose, usage: Loose): Partial<OwnEnding> | null {
  const ending = { delta: stated(PLACES.delta, message), message: stated(PLACES.message, message), usage: stated(PLACES.usage, usage) };
  const given = Object.entries(ending).filter(([, fields]) => Object.keys(fields).length > 0);
  return given.length === 0 ? null : Object.fromEntries(given);
}

/** The `ending` of a chat's extra content, with the known names only. */
export function readEnding(ending: unknown): OwnEnding {
  if (!isRecord(ending)) return NO_ENDING;
  const read = (place: Place) => (isRecord(ending[place]) ? stated(PLACES[place], ending[place]) : {});
  return { delta: read("delta"), message: read("message"), usage: read("usage") };
}

function stated(names: readonly string[], holder: Loose): Loose {
  const fields: Record<string, unknown> = {};
  for (const name of names) {
    const value = ownValue(holder, name);
    if (value !== undefined && value !== null) setOwnValue(fields, name, value);
  }
  return fields;
}
