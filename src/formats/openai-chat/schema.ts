/** OpenAI's chat-completions format, as lenient as upstreams are: only fields that we read are named. */
import { isRecord } from "../../lib/json.js";

/** A validated chat-completions request; unknown fields are the client's and are passed on. */
export type ChatBody = Readonly<Record<string, unknown>>;

/** A `chat.completion` object. */
export interface ChatCompletion {
  readonly id?: string;
  readonly choices?: readonly ChatChoice[] | null;
  readonly usage?: unknown;
  readonly [field: string]: unknown;
}

export interface ChatChoice {
  readonly index?: number;
  readonly message?: ChatDelta | null;
  readonly finish_reason?: string | null;
  readonly [field: string]: unknown;
}

/** A message or a piece of one: everything that an upstream bills as output. */
export interface ChatDelta {
  readonly role?: string;
  readonly content?: unknown;
  readonly reasoning_content?: unknown;
  readonly reasoning?: unknown;
  readonly reasoning_text?: unknown;
  readonly thinking?: unknown;
  readonly reasoning_details?: unknown;
  readonly refusal?: unknown;
  readonly tool_calls?:
    | readonly {
        readonly function?: { readonly name?: string; readonly arguments?: string };
        readonly custom?: { readonly name?: string; readonly input?: string };
      }[]
    | null;
  /** OpenAI's tool call before there were several. */
  readonly function_call?: unknown;
  readonly [field: string]: unknown;
}

export interface ChatChunkObject {
  readonly id?: string;
  readonly choices?: readonly ChatChunkChoice[] | null;
  readonly usage?: unknown;
  readonly [field: string]: unknown;
}

export interface ChatChunkChoice {
  readonly index?: number;
  readonly delta?: ChatDelta | null;
  readonly finish_reason?: string | null;
  readonly [field: string]: unknown;
}

/** The names of reasoning: DeepSeek's, OpenRouter's, GitHub's, and that of servers that translate Anthropic's. */
export const REASONING_NAMES = ["reasoning_content", "reasoning", "reasoning_text", "thinking"] as const;

/** The reasoning, by the first name with any: some servers send two names, alike or one of them empty. Null when there is none. */
export function reasoningIn(delta: ChatDelta): string | readonly unknown[] | null {
  for (const name of REASONING_NAMES) {
    const reasoning = delta[name];
    if ((typeof reasoning === "string" || Array.isArray(reasoning)) && reasoning.length > 0) return reasoning;
  }
  const { reasoning_details: details } = delta;
  if (!Array.isArray(details)) return null;
  // One with what its vendor signed repeats a thought that was sent in pieces.
  const texts = details.map((detail) => (isRecord(detail) && detail.extra_content === undefined ? (detail.text ?? detail.summary) : null));
  return texts.filter((text) => typeof text === "string").join("") || null;
}

/** The text of a message's content, a string or parts of which some are text. */
export function plainText(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((part) => (part && typeof part === "object" && typeof part.text === "string" ? part.text : "")).join("");
}

/** Above any stop sequence that a vendor takes. */
const STOPPED_CHARS_MAX = 4_096;

/** The stop sequence that ended a choice, where its upstream reports it: vLLM's `stop_reason`, SGLang's `matched_stop`. Tokens have numbers. */
export function stopSequenceIn(choice: Readonly<Record<string, unknown>>): string | null {
  const stopped = [choice.stop_reason, choice.matched_stop].find((value) => typeof value === "string" && value !== "");
  return typeof stopped === "string" && stopped.length <= STOPPED_CHARS_MAX ? stopped : null;
}
