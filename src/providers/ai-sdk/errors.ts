/** Translates errors of a vendor's package to ProviderErrors. Classes are recognized by name, because copies of several versions exist. */

import { redactSecrets, toEmbeddedError, toStatusError } from "../../formats/openai-chat/errors.js";
import { ProviderError } from "../../formats/upstream-error.js";
import { unreachable } from "../http.js";

/** The package rejected the request without sending it. */
const REFUSALS = new Set([
  "AI_InvalidArgumentError",
  "AI_InvalidPromptError",
  "AI_NoSuchModelError",
  "AI_TooManyEmbeddingValuesForCallError",
  "AI_UnsupportedFunctionalityError",
]);
/** The package could not read the answer. */
const UNREADABLE = new Set([
  "AI_EmptyResponseBodyError",
  "AI_InvalidResponseDataError",
  "AI_JSONParseError",
  "AI_NoContentGeneratedError",
  "AI_TypeValidationError",
]);
const CAUSES_MAX = 5;

interface ApiCallError extends Error {
  readonly statusCode?: number;
  readonly responseBody?: string;
  readonly responseHeaders?: Readonly<Record<string, string>>;
}

/** `hasSent`: whether a request was sent before the error. */
export function toError(error: unknown, apiKey: string | null, hasSent: boolean): unknown {
  const own = findOwn(error);
  if (own !== null) return own;
  if (!(error instanceof Error)) return new ProviderError("invalid-response", "The upstream's answer cannot be read.", { cause: error });
  if (error.name === "AI_APICallError") return toCallError(error, apiKey);
  if (UNREADABLE.has(error.name)) return new ProviderError("invalid-response", "The upstream's answer cannot be read.", { cause: error });
  const isRefusal = REFUSALS.has(error.name) || (!hasSent && error.name === "Error");
  if (!isRefusal && !hasSent) return error;
  const said = redactSecrets(error.message, apiKey);
  return new ProviderError("status", said, { status: isRefusal ? 400 : 502, upstreamMessage: said, cause: error });
}

export function toStreamError(error: unknown, apiKey: string | null): unknown {
  if (error instanceof Error) return toError(error, apiKey, true);
  return toEmbeddedError(error, apiKey);
}

/** Finds our own `fetch`'s error, or an abort's reason, inside the package's wrapper. */
function findOwn(error: unknown): unknown {
  let current = error;
  for (let level = 0; level < CAUSES_MAX && current instanceof Error; level += 1) {
    if (current instanceof ProviderError) return current;
    current = current.cause;
  }
  return null;
}

function toCallError(error: ApiCallError, apiKey: string | null): ProviderError {
  const { statusCode: status, responseBody = "", responseHeaders = {} } = error;
  if (status === undefined) return unreachable(error);
  if (status < 400) return new ProviderError("invalid-response", "The upstream's answer cannot be read.", { cause: error });
  return toStatusError(status, responseHeaders, responseBody, apiKey);
}
