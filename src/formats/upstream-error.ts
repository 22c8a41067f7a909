/** Failures of an upstream, in the words of this gateway. */

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
  /** Fields that the upstream refused for themselves, of those that may be left out (openai-chat/refused-fields.ts). */
  readonly refusedFields?: readonly string[];
  /** They were read from the words of a message, which may repeat the caller's. */
  readonly isRefusedInWords?: boolean;
  /** The upstream's retry time: 1 second to a day. */
  readonly retryAfterSeconds?: number;
  readonly cause?: unknown;
}

const NO_FIELDS: readonly string[] = [];

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
  readonly refusedFields: readonly string[];
  readonly isRefusedInWords: boolean;
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
    this.refusedFields = options.refusedFields ?? NO_FIELDS;
    this.isRefusedInWords = options.isRefusedInWords ?? false;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
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

/** The stream ended normally, but the answer is incomplete. */
export function cut(): ProviderError {
  return new ProviderError("cut", "The upstream's answer ended early: it stopped without saying that it was finished.");
}
