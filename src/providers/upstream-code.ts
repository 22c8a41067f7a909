/**
 * Why an upstream refused, as callers are told it (`details.upstreamCode`): a closed list of ours. Upstreams are hostile, so nothing of
 * theirs is passed on; what they say is looked up, and what is not known is nothing. What is wrong with the credential that an upstream
 * is called with is no word of this list: that is not its caller's affair, and the status tells it.
 */
export const UPSTREAM_CODES = [
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
