/** Input items in the form in which clients read them back. */
import { createItemId } from "./answer.js";
import type { ResponseInput, ResponseInputItem } from "./request.js";

export interface StoredItem {
  readonly id: string;
  readonly type: string;
  readonly [field: string]: unknown;
}

type Prefix = Parameters<typeof createItemId>[0];

const PREFIXES: ReadonlyMap<string, Prefix> = new Map([
  ["message", "msg"],
  ["reasoning", "rs"],
  ["function_call", "fc"],
  ["function_call_output", "fco"],
  ["custom_tool_call", "ctc"],
  ["custom_tool_call_output", "fco"],
  ["compaction", "cmp"],
]);
/** Longer than any id of a vendor. */
const ID_CHARS_MAX = 200;

/** Each item has an id afterwards, and each message lists its parts. */
export function toStoredItems(input: ResponseInput["input"]): StoredItem[] {
  return typeof input === "string" ? [toMessage({ role: "user", content: input })] : input.map(toStoredItem);
}

export function toStoredItem(item: ResponseInputItem): StoredItem {
  if (item.type === null) return withId(item.item);
  return isMessage(item) ? toMessage(item) : withId(item);
}

type Message = Extract<ResponseInputItem, { readonly role: string }>;

function isMessage(item: Exclude<ResponseInputItem, { readonly type: null }>): item is Message {
  return item.type === undefined || item.type === "message";
}

/** The same item under an id of its own. */
export function withNewId({ id: _, ...item }: StoredItem): StoredItem {
  const { type } = item;
  return { ...item, type: String(type), id: createItemId(PREFIXES.get(String(type)) ?? "item") };
}

function toMessage({ content, ...message }: { readonly role: string; readonly content: unknown; readonly [field: string]: unknown }) {
  const parts = typeof content === "string" ? [toPart(message.role, content)] : content;
  return withId({ status: "completed", ...message, type: "message", content: parts });
}

function toPart(role: string, text: string) {
  return role === "assistant" ? { type: "output_text", text, annotations: [] } : { type: "input_text", text };
}

function withId(item: { readonly type: string; readonly [field: string]: unknown }): StoredItem {
  const { id } = item;
  const isGiven = typeof id === "string" && id !== "" && id.length <= ID_CHARS_MAX;
  return { ...item, id: isGiven ? id : createItemId(PREFIXES.get(item.type) ?? "item") };
}
