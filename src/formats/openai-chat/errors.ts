/** Translates refusals and failures of an upstream to ProviderErrors: by status, in a 200, or in a stream. */
import { isRecord } from "../../lib/json.js";
import { ownValue } from "../../lib/own-values.js";
import { ProviderError, type ProviderErrorOptions, toUpstreamCode } from "../upstream-error.js";
import { isRefusal, refusedFieldsIn } from "./refused-fields.js";

/** Longer messages are cut; above any real one. */
const MESSAGE_CHARS_MAX = 1_000;
const PARAM_CHARS_MAX = 200;
const REDACTED = "[redacted]";
/** Fields with messages, and their depth. */
const MESSAGE_NAMES = ["error", "message", "detail", "msg", "err_msg", "errors", "error_description"];
const MESSAGE_LEVELS_MAX = 5;
/** A shorter key could be part of any word. */
const API_KEY_CHARS_MIN = 6;

/**
 * Patterns of credentials: Sluice's keys and run tokens, vendors' keys (also partly masked, as some upstreams echo them), and text after
 * "Bearer".
 */
const SECRETS = [
  /\b(?:sk|pk|ag)_[A-Za-z0-9._*-]{8,}/g,
  /\b(?:sk|rk|xai|gsk|pplx|hf|key)[-_][A-Za-z0-9._*-]{8,}/g,
  /\bAIza[A-Za-z0-9_-]{20,}/g,
  /\bBearer\s+[^\s"',;]+/gi,
];

/** Configured secrets of an upstream: its key, or more. */
export type Secrets = string | readonly string[] | null;

/** Statuses for types and codes of errors that have no status. */
const STATUS_OF_TYPE: Readonly<Record<string, number>> = {
  invalid_request_error: 400,
  context_length_exceeded: 400,
  invalid_prompt: 400,
  content_filter: 400,
  authentication_error: 401,
  invalid_api_key: 401,
  permission_error: 403,
  permission_denied: 403,
  not_found_error: 404,
  model_not_found: 404,
  timeout: 504,
  rate_limit_error: 429,
  rate_limit_exceeded: 429,
  insufficient_quota: 429,
  overloaded_error: 503,
};

/** Statuses that blame the request. */
const REFUSALS: ReadonlySet<number> = new Set([400, 413, 415, 422]);

/** Headers of an answer that describe its error. */
export interface ErrorHeaders {
  readonly "content-type"?: string | undefined;
  readonly "retry-after"?: string | undefined;
}

/** An answer with an error status. `body` is the part that was read. */
export function toStatusError(answered: number, headers: ErrorHeaders, body: string, secrets: Secrets): ProviderError {
  const contentType = headers["content-type"]?.trim().toLowerCase() ?? "";
  const retryAfterSeconds = parseRetryAfter(headers["retry-after"]);
  const parsed = parseBody(contentType, body);
  const status = answered === 400 && refusesKey(parsed) ? 401 : answered;
  const description = describe(parsed, status, secrets);
  const { upstreamMessage, upstreamParam } = description;
  return new ProviderError("status", `The upstream answered ${status}.`, {
    status,
    ...description,
    ...(isRefusal(status) && refusedFieldsIn(parsed, upstreamMessage, upstreamParam)),
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  });
}

/**
 * An `error` in a stream, or in an answer with a success status. `error` is its value; 502 without a status. Beside or in choices it is the
 * upstream's failure, with any status, because the upstream accepted the request and began to answer.
 */
export function toEmbeddedError(error: unknown, secrets: Secrets, isBesideChoices = false): ProviderError {
  const stated = embeddedStatus(error);
  const status = isBesideChoices && REFUSALS.has(stated) ? 502 : stated;
  return new ProviderError("status", "The upstream reported an error in its answer.", {
    status,
    ...describe({ error }, status, secrets),
  });
}

/** Replaces configured secrets and everything that looks like a credential. */
export function redactSecrets(text: string, secrets: Secrets): string {
  let redacted = text;
  for (const secret of typeof secrets === "string" ? [secrets] : (secrets ?? [])) {
    if (secret.length >= API_KEY_CHARS_MIN) redacted = redacted.replaceAll(secret, REDACTED);
  }
  for (const pattern of SECRETS) redacted = redacted.replace(pattern, REDACTED);
  return redacted;
}

/** Depth to which an `error` is searched for a value; deeper ones count as content. */
const CONTENT_LEVELS_MAX = 4;

/**
 * Whether an `error` reports a failure. Many servers send the field in successful answers too: `null`, `false`, `""`, `{}`, or an object of
 * such values and `0` (`{ code: "", message: "" }`).
 */
export function hasErrorContent(error: unknown, levels = CONTENT_LEVELS_MAX): boolean {
  if (typeof error === "string") return error.trim() !== "";
  if (typeof error !== "object" || error === null) return Boolean(error);
  if (levels === 0) return true;
  return Object.values(error).some((value) => hasErrorContent(value, levels - 1));
}

/** How a choice ends that the upstream gave up: OpenRouter's word and others', Z.ai's. */
const FAILED: ReadonlySet<unknown> = new Set(["error", "network_error"]);

/** Throws the failure in a choice of an answer or chunk, or Groq's note that it stopped a stream early. */
export function assertNotFailed({ choices, x_groq: groq }: Readonly<Record<string, unknown>>, secrets: Secrets): void {
  if (Array.isArray(choices)) {
    for (const choice of choices) {
      if (!isRecord(choice) || (!FAILED.has(choice.finish_reason) && !hasErrorContent(choice.error))) continue;
      throw toEmbeddedError(
        hasErrorContent(choice.error) ? choice.error : { message: "The upstream gave up on its answer." },
        secrets,
        true,
      );
    }
  }
  if (isRecord(groq) && hasErrorContent(groq.error)) throw toEmbeddedError(groq.error, secrets, true);
}

/** Whether an answer has choices. */
export function hasChoices({ choices }: Readonly<Record<string, unknown>>): boolean {
  return Array.isArray(choices) && choices.length > 0;
}

type Description = Pick<ProviderErrorOptions, "upstreamMessage" | "upstreamParam" | "upstreamCode">;

function describe(body: unknown, status: number, secrets: Secrets): Description {
  const message = findMessage(body);
  const whole = Array.isArray(body) ? body[0] : body;
  const error = isRecord(whole) && isRecord(whole.error) ? whole.error : whole;
  const { param, code, type, status: said } = isRecord(error) ? error : {};
  const upstreamCode = toUpstreamCode([code, type, said], status, message?.slice(0, MESSAGE_CHARS_MAX));
  return {
    ...(upstreamCode !== undefined && { upstreamCode }),
    ...(message !== undefined && message.trim() !== "" && { upstreamMessage: clean(message, secrets, MESSAGE_CHARS_MAX) }),
    ...(typeof param === "string" && param !== "" && { upstreamParam: clean(param, secrets, PARAM_CHARS_MAX) }),
  };
}

/** Redacts before cutting, so that no secret escapes by being cut in half. */
function clean(text: string, secrets: Secrets, charsMax: number): string {
  const redacted = redactSecrets(text.trim(), secrets);
  return redacted.length > charsMax ? `${redacted.slice(0, charsMax - 1)}…` : redacted;
}

/** Parsed JSON, or plain text; nothing for an HTML page. */
function parseBody(contentType: string, body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return contentType.startsWith("text/plain") && !body.trimStart().startsWith("<") ? body : undefined;
  }
}

/** Google answers 400 to a wrong key, with this reason. */
function refusesKey(body: unknown): boolean {
  const first = Array.isArray(body) ? body[0] : body;
  const error = isRecord(first) ? first.error : undefined;
  const details = isRecord(error) ? error.details : undefined;
  return Array.isArray(details) && details.some((detail) => isRecord(detail) && detail.reason === "API_KEY_INVALID");
}

/**
 * Finds the message in any of the usual shapes: OpenAI's `{ error: { message } }`, `{ error: "..." }`, `{ message }`, `{ detail }` as a
 * text or as a list of `{ msg }`, `{ errors: [...] }`, and any of them as the first item of a list.
 */
function findMessage(body: unknown, levels = MESSAGE_LEVELS_MAX): string | undefined {
  if (typeof body === "string") return body;
  if (levels === 0) return undefined;
  if (Array.isArray(body)) return findMessage(body[0], levels - 1);
  if (!isRecord(body)) return undefined;
  for (const name of MESSAGE_NAMES) {
    const found = findMessage(ownValue(body, name), levels - 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

function embeddedStatus(error: unknown): number {
  if (!isRecord(error)) return 502;
  for (const value of [error.status, error.code]) {
    const status = Number(value);
    if (Number.isInteger(status) && status >= 400 && status <= 599) return status;
  }
  for (const value of [error.code, error.type]) {
    const status = typeof value === "string" ? ownValue(STATUS_OF_TYPE, value) : undefined;
    if (status !== undefined) return status;
  }
  return 502;
}

// Parses `Retry-After` (RFC 9110, 10.2.3): whole seconds, or an HTTP date.

/** Longer waits are ignored: a client would not wait more than a day. */
const SECONDS_MAX = 86_400;
const SECONDS = /^\d{1,5}$/;
/** `Sun, 06 Nov 1994 08:49:37 GMT`, the only form still in use. */
const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/** Whole seconds, 1 to a day; undefined when malformed, past or too long. */
function parseRetryAfter(header: string | null | undefined, now = Date.now()): number | undefined {
  const text = header?.trim() ?? "";
  const seconds = SECONDS.test(text) ? Number(text) : HTTP_DATE.test(text) ? Math.ceil((Date.parse(text) - now) / 1000) : Number.NaN;
  return seconds >= 1 && seconds <= SECONDS_MAX ? seconds : undefined;
}
