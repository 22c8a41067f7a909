/**
 * Abilities of an upstream, one interface per modality. A provider knows a wire format, and no accounts, prices or retries: those are in
 * `services/generation`.
 */

import type { ChatBody, ChatChunkObject, ChatCompletion } from "../formats/openai-chat/schema.js";
import type { Framed } from "../formats/openai-chat/chunk-frame.js";
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

/** Ends a call early: an AbortSignal, or something cheaper where few listen. */
export interface CallEnd {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: "abort", listener: EndListener): void;
  removeEventListener(type: "abort", listener: EndListener): void;
}

export interface EndListener {
  handleEvent(): void;
}

/** Converts to an AbortSignal for code that needs one. */
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
  /** The gateway's own limit on each choice, in tokens, for a request without one; null: not needed. */
  readonly outputTokensMax?: number | null | undefined;
  /** Aborted when the client disconnects or the total time is up: the upstream's connection is closed at once. */
  readonly signal: CallEnd;
}

/** The body for the upstream, with the gateway's own limit under the upstream's field name. */
export function boundedBody({ body, outputTokensMax }: ChatCall, field: OutputCapField = "max_completion_tokens"): ChatBody {
  return outputTokensMax == null ? body : withFields(body, { [field]: outputTokensMax });
}

/** The older name, which all other servers accept, and the one that OpenAI's reasoning models require. */
export type OutputCapField = "max_tokens" | "max_completion_tokens";

export interface ChatAnswer {
  /** The JSON document of a `chat.completion` as received. */
  readonly bytes: Uint8Array;
  readonly completion: ChatCompletion;
  /** Null without a credible report (negative, fractional, out of range). */
  readonly usage: ReportedUsage | null;
  /** One sentence per option without effect, where the gateway writes the upstream's format. */
  readonly warnings?: readonly string[];
}

/** One `chat.completion.chunk`. */
export interface ChatChunk {
  readonly object: ChatChunkObject;
  /** The event as sent to the client: `data: <json>\n\n`. */
  readonly bytes: Uint8Array;
  /** Reported usage, which covers everything up to this chunk. */
  readonly usage: ReportedUsage | null;
  /** The report as received, for the client. */
  readonly report?: unknown;
  /** The text of a chunk that has nothing else; others are inspected. */
  readonly text?: string;
  /** Its difference from the frame; `bytes` and `object` are made on demand. */
  readonly framed?: Framed | undefined;
  /** On the first chunk, as in a ChatAnswer. */
  readonly warnings?: readonly string[];
}

/** The chunks of one read from the upstream, forwarded in one write. */
export type ChatChunkBatch = readonly ChatChunk[];

export interface ChatBatches {
  [Symbol.asyncIterator](): PulledIterator<ChatChunkBatch>;
}

export interface ChatProvider {
  /** Rejects with a ProviderError, or with the signal's reason when that is aborted. */
  complete(call: ChatCall): Promise<ChatAnswer>;
  /**
   * Resolves when the upstream has accepted the request (a 2xx status and a usable content type); rejects with a ProviderError. The
   * iterable ends after `[DONE]`, or after a finish_reason and the end of the body; otherwise it throws a ProviderError. It reads only when
   * pulled. `return()` closes the connection.
   */
  stream(call: ChatCall): Promise<ChatBatches>;
}

/** All abilities of one upstream over its wire format. */
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
  /** No connection was made. */
  | "network"
  /** The connection closed before any answer. */
  | "closed"
  /** No answer, or no further part of it, within the time allowed. */
  | "timeout"
  /** An error status, or an error event in a stream. */
  | "status"
  /** An answer that is not of the wire format, or too large. */
  | "invalid-response"
  /** An answer that began and ended early. */
  | "cut";

export interface ProviderErrorOptions {
  /** The upstream's HTTP status, with kind `status`. */
  readonly status?: number;
  /** Of a timeout: part of the answer had arrived. */
  readonly hasBegun?: boolean;
  /** The upstream's message with secrets redacted: shown only when the request was at fault. */
  readonly upstreamMessage?: string;
  /** The upstream's name of the wrong parameter. */
  readonly upstreamParam?: string;
  readonly upstreamCode?: UpstreamCode;
  /** The upstream's retry time: 1 second to a day. */
  readonly retryAfterSeconds?: number;
  readonly cause?: unknown;
}

/**
 * Callers see `message`, except for the kind `status`: one sentence in our words, without text of the upstream. Further details are in
 * `cause`.
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

export interface UpstreamTimeouts {
  /** Until the connection is established. */
  readonly connectMs: number;
  /** Until the answer's headers, and between two bytes of a stream. */
  readonly idleMs: number;
  /** From the request to the last byte. */
  readonly totalMs: number;
}

/**
 * Reasons of refusals as shown to callers (`details.upstreamCode`): our own closed list. Upstreams may be hostile, so their text is looked
 * up and never passed on. Faults of the gateway's credential are not in the list, as they do not concern the caller; the status shows them.
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

/** Codes, types and statuses of errors at OpenAI, Anthropic, Google, Mistral, OpenRouter and others; in lower case. */
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

/** Messages about a too long prompt from upstreams without a code for it; in lower case. */
const TOO_LONG = [
  "prompt is too long",
  "maximum context length",
  "exceeds the maximum number of tokens",
  "exceeds the context window",
  "too many tokens",
];
/** Only refusals of the request can be about its length. */
const REFUSALS: ReadonlySet<number> = new Set([400, 413, 422]);

/** `said` has the upstream's code, type and status, in order of precedence. */
export function toUpstreamCode(said: readonly unknown[], status: number, message: string | undefined): UpstreamCode | undefined {
  const isTooLong = REFUSALS.has(status) && message !== undefined && TOO_LONG.some((words) => message.toLowerCase().includes(words));
  if (isTooLong) return "context_length_exceeded";
  for (const word of said) {
    const meaning = typeof word === "string" && word.length <= CODE_CHARS_MAX ? MEANINGS.get(word.toLowerCase()) : undefined;
    if (meaning !== undefined) return meaning;
  }
  return undefined;
}

// A request that the adapter cannot express: the client's error, in the form of an upstream's refusal.

export function refuse(message: string, param: string): ProviderError {
  return new ProviderError("status", `The request was refused: ${message}`, {
    status: 400,
    upstreamMessage: message,
    upstreamParam: param,
  });
}
