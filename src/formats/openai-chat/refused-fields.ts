/**
 * Fields that an upstream refuses, read from its error: OpenAI's `param`, a list of pydantic (`{ detail: [{ loc, msg }] }`, also within a
 * message), or the words of its message. Only fields of a closed list are read: those that the gateway adds itself, and those that may be
 * left out without another answer.
 */
import { isRecord, recordsOf } from "../../lib/json.js";
import { ownValue } from "../../lib/own-values.js";
import { type ChatDialect, mayLeaveOut } from "./dialect.js";
import { type ChatBody, type ChatDelta, reasoningIn } from "./schema.js";

/** What an upstream refused, and is asked again without: a field of the body or of messages, a role, or thoughts that are missing. */
export const REFUSABLE = [
  "stream_options",
  "max_tokens",
  "max_completion_tokens",
  "response_format",
  "parallel_tool_calls",
  "store",
  "metadata",
  "user",
  "safety_identifier",
  "prompt_cache_key",
  "prompt_cache_retention",
  "developer",
  "reasoning_content",
  "reasoning",
  "reasoning_details",
  "annotations",
  "extra_content",
  "missing reasoning_content",
] as const;
export type Refusable = (typeof REFUSABLE)[number];

const NAMES: ReadonlyMap<string, Refusable> = new Map(REFUSABLE.map((name) => [name, name]));
const MESSAGE_FIELDS: ReadonlySet<Refusable> = new Set([
  "reasoning_content",
  "reasoning",
  "reasoning_details",
  "annotations",
  "extra_content",
]);

/** Statuses of a request that an upstream does not understand. */
export function isRefusal(status: number | undefined): boolean {
  return status === 400 || status === 422;
}

/** Words of a message that refuses a field or a role for itself, not for its value. */
const REFUSING = [
  "unknown",
  "unrecognized",
  "unrecognised",
  "unsupported",
  "unexpected",
  "not supported",
  "not permitted",
  "not allowed",
  "not recognized",
  "not accepted",
  "does not support",
  "doesn't support",
  "extra fields",
  "extra inputs",
  "additional properties",
  "no such parameter",
  "not one of",
  "expected one of",
  "must be one of",
  "invalid value: 'developer'",
  "invalid role",
];
/** Words about thoughts that a turn must have (DeepSeek, Moonshot). */
const MISSING = ["is missing", "missing `reasoning_content`", "must be passed back"];
const WORD = /[A-Za-z_][A-Za-z0-9_]*/g;
/** Characters of an error that are read; entries of a list. */
const CHARS_MAX = 4_000;
const LEVELS_MAX = 5;
const ITEMS_MAX = 64;

export interface RefusedFields {
  /** In no order. */
  readonly refusedFields: readonly Refusable[];
  /** By the words of a message, which may repeat the caller's: see `remediable`. */
  readonly isRefusedInWords: boolean;
}

/** The fields that an error's body refuses. `body` is parsed JSON, or plain text. */
export function refusedFieldsIn(body: unknown, message: string | undefined, param: string | undefined): RefusedFields {
  const found = new Set<Refusable>();
  readLists(body, found, LEVELS_MAX);
  if (found.size > 0) return { refusedFields: [...found], isRefusedInWords: false };
  const said = (message ?? "").slice(0, CHARS_MAX).toLowerCase();
  if (said.includes("reasoning_content") && MISSING.some((words) => said.includes(words))) {
    return { refusedFields: ["missing reasoning_content"], isRefusedInWords: true };
  }
  if (!REFUSING.some((words) => said.includes(words))) return NOTHING_REFUSED;
  const names = (param ?? "").match(WORD) ?? [];
  // A parameter names one field; the message may name another one as the remedy, or repeat the caller's words.
  addName(String(names[0] === "messages" ? names.at(-1) : names[0]), found);
  if (found.size > 0) return { refusedFields: [...found], isRefusedInWords: false };
  for (const word of said.match(WORD) ?? []) if (word.includes("_") || isQuoted(word, said)) addName(word, found);
  return { refusedFields: [...found], isRefusedInWords: true };
}

const NOTHING_REFUSED: RefusedFields = { refusedFields: [], isRefusedInWords: false };

/** Names that are words of English, too, count between quotes and in paths. */
function isQuoted(word: string, said: string): boolean {
  return [`'${word}'`, `"${word}"`, `\`${word}\``, `.${word}`].some((written) => said.includes(written));
}

/** Entries of pydantic's lists, wherever they are. */
function readLists(value: unknown, found: Set<Refusable>, levels: number): void {
  if (levels === 0) return;
  if (typeof value === "string") {
    if (value.startsWith("{") && value.length <= CHARS_MAX) readLists(parsed(value), found, levels - 1);
    return;
  }
  if (Array.isArray(value)) {
    for (const item of value.slice(0, ITEMS_MAX)) readLists(item, found, levels - 1);
    return;
  }
  if (!isRecord(value)) return;
  if (Array.isArray(value.loc)) readEntry(value, value.loc, found);
  else for (const inner of [value.detail, value.message, value.error]) if (inner !== undefined) readLists(inner, found, levels - 1);
}

function readEntry(entry: Readonly<Record<string, unknown>>, loc: readonly unknown[], found: Set<Refusable>): void {
  const said = `${String(entry.type ?? "")} ${String(entry.msg ?? "")}`.toLowerCase();
  if (said.includes("extra_forbidden") || said.includes("extra inputs") || said.includes("extra fields")) {
    const names = loc.filter((name) => typeof name === "string" && name !== "body");
    // A place within a message has the role before the field; an option within `stream_options` is that of the field.
    const isInMessage = names[0] === "messages";
    const name = NAMES.get(String(isInMessage ? names.at(-1) : names[0]));
    // A caller's own field of a message may have the name of a field of the body.
    if (name !== undefined && MESSAGE_FIELDS.has(name) === isInMessage) found.add(name);
  } else if (String(entry.msg ?? "").includes("developer") || entry.input === "developer") {
    found.add("developer");
  }
}

function addName(name: string, found: Set<Refusable>): void {
  const known = NAMES.get(name);
  if (known !== undefined) found.add(known);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * The refused fields that the request held and that may be left out of it: nothing else is worth another call. Words of a message count only
 * for names that the caller's own texts do not have: such a message may repeat them, and a caller must not teach the gateway.
 */
export function remediable({ refusedFields, isRefusedInWords }: RefusedFields, sent: ChatBody): readonly Refusable[] {
  const held = refusedFields.filter((name) => isHeld(name, sent));
  return isRefusedInWords ? held.filter((name) => !isMentioned(name, sent)) : held;
}

/** Whether a text of the request has the name, also as a URL or JSON within a text may write it. */
export function isMentioned(name: Refusable, { messages, ...fields }: Readonly<Record<string, unknown>>): boolean {
  const word = name.split(" ").at(-1) ?? name;
  return Object.values(fields).some((value) => mentions(value, word)) || recordsOf(messages).some((each) => isInMessage(each, word));
}

/** Names of fields of messages and calls are the format's, as are roles. */
function isInMessage({ role: _, tool_calls: calls, ...fields }: Readonly<Record<string, unknown>>, name: string): boolean {
  return (
    Object.values(fields).some((value) => mentions(value, name)) ||
    recordsOf(calls).some((call) => Object.values(call).some((value) => mentions(value, name)))
  );
}

/** An underscore as URLs and JSON within a text may write it. */
const UNDERSCORE = /%5f|\\u005f/gi;

function has(text: string, name: string): boolean {
  return text.replace(UNDERSCORE, "_").toLowerCase().includes(name);
}

function mentions(value: unknown, name: string): boolean {
  if (typeof value === "string") return has(value, name);
  if (Array.isArray(value)) return value.some((item) => mentions(item, name));
  return isRecord(value) && Object.entries(value).some(([key, inner]) => has(key, name) || mentions(inner, name));
}

function isHeld(name: Refusable, sent: ChatBody): boolean {
  const messages = recordsOf(sent.messages);
  switch (name) {
    case "developer":
      return messages.some(({ role }) => role === "developer");
    case "missing reasoning_content":
      return messages.some((message) => Array.isArray(message.tool_calls) && reasoningIn(message as ChatDelta) === null);
    case "extra_content":
      return messages.some(
        ({ extra_content: extra, tool_calls: calls, content }) =>
          extra !== undefined || [...recordsOf(calls), ...recordsOf(content)].some((inner) => inner.extra_content !== undefined),
      );
    case "response_format":
      return false;
    default: {
      if (MESSAGE_FIELDS.has(name)) return messages.some((message) => Object.hasOwn(message, name));
      const value = ownValue(sent, name);
      return value !== undefined && mayLeaveOut(name, value);
    }
  }
}

/** The dialect of an upstream that has refused these fields. */
export function withRefused(base: ChatDialect, refused: Iterable<Refusable>): ChatDialect {
  let dialect = base;
  for (const name of refused) dialect = withoutField(dialect, name);
  return dialect;
}

function withoutField(dialect: ChatDialect, name: Refusable): ChatDialect {
  switch (name) {
    case "stream_options":
      return { ...dialect, streamOptions: false };
    case "max_tokens":
      return { ...dialect, outputCap: "max_completion_tokens", renamesCap: true };
    case "max_completion_tokens":
      return { ...dialect, outputCap: "max_tokens", renamesCap: true };
    case "developer":
      return { ...dialect, developerRole: false };
    case "missing reasoning_content":
      return { ...dialect, needsThoughts: true };
    case "reasoning_content":
    case "reasoning":
      if (dialect.thoughts === name || dialect.thoughts === "sent") return { ...dialect, thoughts: "none" };
      return { ...dialect, refusedMessageFields: new Set([...dialect.refusedMessageFields, name]) };
    default:
      if (MESSAGE_FIELDS.has(name)) return { ...dialect, refusedMessageFields: new Set([...dialect.refusedMessageFields, name]) };
      return { ...dialect, refused: new Set([...dialect.refused, name]) };
  }
}
