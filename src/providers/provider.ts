/**
 * What an upstream can do for us, one interface per modality. A provider knows a wire format and nothing of accounts,
 * prices or retries: those live in `services/generation`.
 */

import type { ChatBody, ChatChunkObject, ChatCompletion } from "../lib/chat-format.js";
import type { Framed } from "../lib/chunk-frame.js";
import { withFields } from "../lib/own-values.js";
import type { PulledIterator } from "../lib/pull.js";
import type { ReportedUsage } from "../lib/usage.js";
import type {
  EmbeddingProvider,
  ImageProvider,
  ModerationProvider,
  MusicProvider,
  RealtimeProvider,
  SpeechProvider,
  TranscriptionProvider,
  VideoProvider,
} from "./media.js";

/** What ends a call early: an AbortSignal, or what costs less than one where few listen. */
export interface CallEnd {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: "abort", listener: EndListener): void;
  removeEventListener(type: "abort", listener: EndListener): void;
}

export interface EndListener {
  handleEvent(): void;
}

/** For those who pass it on to what knows AbortSignals only. */
export function toSignal(end: CallEnd): AbortSignal {
  if (end instanceof AbortSignal) return end;
  const controller = new AbortController();
  if (end.aborted) controller.abort(end.reason);
  else end.addEventListener("abort", { handleEvent: () => controller.abort(end.reason) });
  return controller.signal;
}

export interface ChatCall {
  /** The upstream's own name for the model; it replaces `body.model`. */
  readonly upstreamModel: string;
  readonly body: ChatBody;
  /** The gateway's own bound to each choice, in tokens, of a request that states none; null: none is needed. */
  readonly outputTokensMax?: number | null | undefined;
  /** Aborted when the caller has gone or the total time is up: the upstream's connection is closed at once. */
  readonly signal: CallEnd;
}

/** The body as the upstream is to have it: with the gateway's own bound, by the name that the upstream knows it by. */
export function boundedBody({ body, outputTokensMax }: ChatCall, field: OutputCapField = "max_completion_tokens"): ChatBody {
  return outputTokensMax == null ? body : withFields(body, { [field]: outputTokensMax });
}

/** The older name, which every other server of OpenAI's format knows, and the one that OpenAI's own reasoning models insist on. */
export type OutputCapField = "max_tokens" | "max_completion_tokens";

export interface ChatAnswer {
  /** The JSON document of a `chat.completion`, as it came. */
  readonly bytes: Uint8Array;
  readonly completion: ChatCompletion;
  /** Null when the upstream reported none, or none that can be believed (negative, fractional, out of range). */
  readonly usage: ReportedUsage | null;
  /** One sentence for each option that had no effect, where the gateway itself writes the upstream's format. */
  readonly warnings?: readonly string[];
}

/** One `chat.completion.chunk`. */
export interface ChatChunk {
  readonly object: ChatChunkObject;
  /** The whole event as it goes on to the caller: `data: <json>\n\n`. */
  readonly bytes: Uint8Array;
  /** What the upstream reports in it: it covers what came up to here. */
  readonly usage: ReportedUsage | null;
  /** The same as it came, to go on to the caller. */
  readonly report?: unknown;
  /** All that it says, of one that says a text and nothing else; the others are looked at. */
  readonly text?: string;
  /** How its event differs from others of its frame; `bytes` and `object` are made for whoever asks. */
  readonly framed?: Framed | undefined;
  /** On the first chunk, as in a ChatAnswer. */
  readonly warnings?: readonly string[];
}

/** What one read from the upstream brought: forwarded in one write. */
export type ChatChunkBatch = readonly ChatChunk[];

export interface ChatBatches {
  [Symbol.asyncIterator](): PulledIterator<ChatChunkBatch>;
}

export interface ChatProvider {
  /** Rejects with a ProviderError, or with the signal's reason when that is aborted. */
  complete(call: ChatCall): Promise<ChatAnswer>;
  /**
   * Resolves when the upstream has accepted the request (a 2xx status and a usable content type); rejects with a
   * ProviderError. The iterable ends after `[DONE]`, or after a finish_reason and the end of the body; it throws a
   * ProviderError on anything else, and stops reading when it is not pulled. `return()` closes the connection.
   */
  stream(call: ChatCall): Promise<ChatBatches>;
}

/** Everything that one upstream can do over its wire format. */
export interface Provider {
  readonly chat?: ChatProvider;
  readonly image?: ImageProvider;
  readonly video?: VideoProvider;
  readonly speech?: SpeechProvider;
  readonly music?: MusicProvider;
  readonly transcription?: TranscriptionProvider;
  readonly embedding?: EmbeddingProvider;
  readonly moderation?: ModerationProvider;
  readonly realtime?: RealtimeProvider;
  /** Refuses new calls, waits for running ones. */
  close(): Promise<void>;
}

export type ProviderErrorKind =
  /** It could not be reached: no connection was made. */
  | "network"
  /** It was reached, and hung up without having answered anything. */
  | "closed"
  /** Nothing, or nothing more, within the time allowed. */
  | "timeout"
  /** The upstream answered with an error status, or with an error event in a stream. */
  | "status"
  /** The upstream answered something that is not its wire format, or too much of it. */
  | "invalid-response"
  /** Its answer began and ended early: it said no more, or its connection broke. */
  | "cut";

export interface ProviderErrorOptions {
  /** The upstream's HTTP status, with kind `status`. */
  readonly status?: number;
  /** Of a time-out: some of the answer had come. */
  readonly hasBegun?: boolean;
  /** The upstream's own words, secrets redacted: shown to the caller only when the request itself was at fault. */
  readonly upstreamMessage?: string;
  /** The upstream's name for the parameter at fault. */
  readonly upstreamParam?: string;
  readonly upstreamCode?: UpstreamCode;
  /** When the upstream says that it may be asked again: 1 to a day. */
  readonly retryAfterSeconds?: number;
  readonly cause?: unknown;
}

/**
 * `message` is told to callers, but for the kind `status`: one sentence that says what happened as far as it is known here, in our
 * words, with nothing in it that the upstream wrote. Whatever else there is to know is the `cause`.
 */
export class ProviderError extends Error {
  override readonly name = "ProviderError";
  readonly status: number | undefined;
  readonly hasBegun: boolean;
  readonly upstreamMessage: string | undefined;
  readonly upstreamParam: string | undefined;
  readonly upstreamCode: UpstreamCode | undefined;
  readonly retryAfterSeconds: number | undefined;

  constructor(
    readonly kind: ProviderErrorKind,
    message: string,
    options: ProviderErrorOptions = {},
  ) {
    super(message, { cause: options.cause });
    this.status = options.status;
    this.hasBegun = options.hasBegun ?? false;
    this.upstreamMessage = options.upstreamMessage;
    this.upstreamParam = options.upstreamParam;
    this.upstreamCode = options.upstreamCode;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}

/** Where requests of one upstream go, and how long they may take. */
export interface UpstreamTimeouts {
  /** Until the connection stands. */
  readonly connectMs: number;
  /** Until the answer's headers, and between two bytes of a stream. */
  readonly idleMs: number;
  /** From the request to the last byte. */
  readonly totalMs: number;
}

/**
 * Why an upstream refused, as callers are told it (`details.upstreamCode`): a closed list of ours. Upstreams are hostile, so nothing of
 * theirs is passed on; what they say is looked up, and what is not known is nothing. What is wrong with the credential that an upstream
 * is called with is no word of this list: that is not its caller's affair, and the status tells it.
 */
const UPSTREAM_CODES = [
  "context_length_exceeded",
  "content_policy_violation",
  "model_not_found",
  "rate_limit_exceeded",
  "insufficient_quota",
  "overloaded",
  "server_error",
  "timeout",
  "unsupported_parameter",
  "unsupported_value",
  "invalid_image",
] as const;
export type UpstreamCode = (typeof UPSTREAM_CODES)[number];

/** What OpenAI, Anthropic, Google, Mistral, OpenRouter and others write as the code, the type or the status of an error; in lower case. */
const MEANINGS: ReadonlyMap<string, UpstreamCode> = new Map([
  ...UPSTREAM_CODES.map((code): [string, UpstreamCode] => [code, code]),
  ["context_window_exceeded", "context_length_exceeded"],
  ["string_above_max_length", "context_length_exceeded"],
  ["request_too_large", "context_length_exceeded"],
  ["content_filter", "content_policy_violation"],
  ["content_filtered", "content_policy_violation"],
  ["moderation_blocked", "content_policy_violation"],
  ["responsibleaipolicyviolation", "content_policy_violation"],
  ["unknown_model", "model_not_found"],
  ["rate_limit_error", "rate_limit_exceeded"],
  ["rate_limited", "rate_limit_exceeded"],
  ["too_many_requests", "rate_limit_exceeded"],
  ["resource_exhausted", "rate_limit_exceeded"],
  ["billing_hard_limit_reached", "insufficient_quota"],
  ["billing_error", "insufficient_quota"],
  ["overloaded_error", "overloaded"],
  ["engine_overloaded", "overloaded"],
  ["engine_overloaded_error", "overloaded"],
  ["server_overloaded", "overloaded"],
  ["unavailable", "overloaded"],
  ["internal_server_error", "server_error"],
  ["api_error", "server_error"],
  ["timeout_error", "timeout"],
  ["request_timeout", "timeout"],
  ["deadline_exceeded", "timeout"],
  ["invalid_image_format", "invalid_image"],
  ["invalid_image_url", "invalid_image"],
  ["image_parse_error", "invalid_image"],
] satisfies [string, UpstreamCode][]);
const CODE_CHARS_MAX = 64;

/** How those say it who have no code for a prompt that is too long; in lower case. */
const TOO_LONG = [
  "prompt is too long",
  "maximum context length",
  "exceeds the maximum number of tokens",
  "exceeds the context window",
  "too many tokens",
];
/** Only what refuses the request itself may be about its length. */
const REFUSALS: ReadonlySet<number> = new Set([400, 413, 422]);

/** `said` are the upstream's code, type and status, in the order in which they count. */
export function toUpstreamCode(said: readonly unknown[], status: number, message: string | undefined): UpstreamCode | undefined {
  const isTooLong = REFUSALS.has(status) && message !== undefined && TOO_LONG.some((words) => message.toLowerCase().includes(words));
  if (isTooLong) return "context_length_exceeded";
  for (const word of said) {
    const meaning = typeof word === "string" && word.length <= CODE_CHARS_MAX ? MEANINGS.get(word.toLowerCase()) : undefined;
    if (meaning !== undefined) return meaning;
  }
  return undefined;
}

// What a request asks for and the adapter cannot express: the caller's mistake, told as an upstream tells it.

export function refuse(message: string, param: string): ProviderError {
  return new ProviderError("status", `The request was refused: ${message}`, {
    status: 400,
    upstreamMessage: message,
    upstreamParam: param,
  });
}
