/**
 * Fields of Anthropic's format that chats lack, in `extra_content.anthropic` of a chat's message, part, call or annotation. Chats that come
 * from a Messages request to an upstream of the same format carry it, so that nothing is lost on the way; other upstreams are sent none.
 */
import { isRecord } from "../../lib/json.js";

type Loose = Readonly<Record<string, unknown>>;

const NOTHING: Loose = Object.freeze({});

export function extraOf(holder: Loose): Loose {
  const extra = holder.extra_content;
  return isRecord(extra) && isRecord(extra.anthropic) ? extra.anthropic : NOTHING;
}

export function toExtra(anthropic: Loose): { readonly extra_content: { readonly anthropic: Loose } } {
  return { extra_content: { anthropic } };
}

/** Blocks of tools that Anthropic runs, which a chat holds unread: calls, results, and marks of compaction. */
const SERVER_BLOCKS = /^(?:server_tool_use|mcp_tool_use|compaction|(?!tool_result$)[a-z_]{1,40}_tool_result)$/;

export function isServerBlock(type: unknown): boolean {
  return typeof type === "string" && SERVER_BLOCKS.test(type);
}

/** Tools that the client runs and Anthropic describes: they cost their tokens. */
const CLIENT_TOOLS = /^(?:bash|text_editor|computer|memory)_\d{8}$/;

export function isClientTool(type: unknown): boolean {
  return typeof type === "string" && CLIENT_TOOLS.test(type);
}

/** The kinds of blocks of an answer in their order, which a chat's message does not tell; `server` is one of a tool that Anthropic ran. */
export type BlockKind = "thinking" | "text" | "call" | "server";
const RANKS: Readonly<Record<BlockKind, number>> = { thinking: 0, text: 1, call: 2, server: 3 };

function isBlockKind(kind: unknown): kind is BlockKind {
  return typeof kind === "string" && Object.hasOwn(RANKS, kind);
}

/** Null for the order that a chat has anyway: thoughts, text, calls. */
export function toOrder(kinds: readonly BlockKind[]): readonly BlockKind[] | null {
  if (kinds.includes("server")) return kinds;
  const isUsual = kinds.every((kind, index) => index === 0 || RANKS[kind] >= RANKS[kinds[index - 1] as BlockKind]);
  const hasOneText = kinds.filter((kind) => kind === "text").length <= 1;
  return isUsual && hasOneText ? null : kinds;
}

/** Values of each kind in the stated order; null where that does not name all of them. */
export function inOrder<Value>(values: Readonly<Record<BlockKind, readonly Value[]>>, order: unknown): Value[] | null {
  const count = values.thinking.length + values.text.length + values.call.length + values.server.length;
  if (!Array.isArray(order) || order.length !== count) return null;
  const places: Record<BlockKind, number> = { thinking: 0, text: 0, call: 0, server: 0 };
  const ordered: Value[] = [];
  for (const kind of order) {
    const value = isBlockKind(kind) ? values[kind][places[kind]++] : undefined;
    if (value === undefined) return null;
    ordered.push(value);
  }
  return ordered;
}

/** The texts of an answer's blocks, of which a chat's message has one; null where the lengths are not those of the text. */
export function splitTexts(text: string, lengths: unknown): readonly string[] | null {
  if (!Array.isArray(lengths)) return null;
  const texts: string[] = [];
  let at = 0;
  for (const length of lengths) {
    if (typeof length !== "number" || !(length >= 0)) return null;
    texts.push(text.slice(at, at + length));
    at += length;
  }
  return at === text.length ? texts : null;
}
