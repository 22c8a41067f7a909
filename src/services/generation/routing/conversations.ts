/** Conversations and the routes that served them, so that an upstream's prompt cache is used (docs/spec/routing.md#conversations). */
import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Clock } from "../../../lib/clock.js";
import { isRecord } from "../../../lib/json.js";
import { ownValue } from "../../../lib/own-values.js";
import type { RequestFields } from "../../catalog/request-rates.js";

/** From the last call. */
const STICKY_MS = 600_000;
/** Unspecified: conversations of one process, and characters of the messages and names by which they are known. */
const CONVERSATIONS_MAX = 10_000;
const CHARS_MAX = 4_096;
const NAMES = ["prompt_cache_key", "session_id"] as const;

interface Served {
  readonly routeId: string;
  readonly at: number;
}

export class Conversations {
  private readonly served = new LRUCache<string, Served>({ max: CONVERSATIONS_MAX });

  constructor(private readonly clock: Clock) {}

  /** The id of the route that served it last; null: none in the last minutes. */
  routeOf(conversation: string): string | null {
    const served = this.served.get(conversation);
    return served && this.now() - served.at < STICKY_MS ? served.routeId : null;
  }

  note(conversation: string, routeId: string): void {
    this.served.set(conversation, { routeId, at: this.now() });
  }

  private now(): number {
    return this.clock.now().getTime();
  }
}

/** A name for the conversation of a chat, by the client's name for it or else by its first messages; null: not a conversation. */
export function conversationOf(accountId: string, modelId: string, fields: RequestFields): string | null {
  const start = namedStart(fields) ?? firstMessages(fields);
  if (start === null) return null;
  return createHash("sha256")
    .update(JSON.stringify([accountId, modelId]))
    .update(start)
    .digest("base64url");
}

function namedStart(fields: RequestFields): string | null {
  for (const name of NAMES) {
    const value = ownValue(fields, name);
    if (typeof value === "string" && value !== "") return `${name} ${value.slice(0, CHARS_MAX)}`;
  }
  return null;
}

/** To the first message of the user: those before it are the instructions, and all of them are repeated in every turn. */
function firstMessages({ messages }: RequestFields): string | null {
  if (!Array.isArray(messages)) return null;
  let start = "";
  for (const message of messages) {
    if (!isRecord(message)) return null;
    start += `${String(message.role)} ${contentStart(message.content)}\n`;
    if (message.role === "user" || start.length >= CHARS_MAX) break;
  }
  return start === "" ? null : start.slice(0, CHARS_MAX);
}

function contentStart(content: unknown): string {
  if (typeof content === "string") return content.slice(0, CHARS_MAX);
  if (!Array.isArray(content)) return "";
  const [first] = content;
  return isRecord(first) && typeof first.text === "string" ? first.text.slice(0, CHARS_MAX) : "";
}
