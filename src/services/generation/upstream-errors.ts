/**
 * What a caller is told of an upstream's failure, and whether another upstream may be tried
 * (docs/spec/errors.md#upstream-errors, docs/spec/generation.md#fallbacks).
 */
import { AppError, type ErrorCode, upstreamFailed, upstreamTimedOut } from "../../errors.js";
import { ProviderError } from "../../providers/provider.js";
import { inCallersWords, type Served } from "./upstream-words.js";

/** The caller's own mistakes, found by the upstream: passed on in its words. */
const CALLER_FAULTS: ReadonlyMap<number, ErrorCode> = new Map([
  [400, "BAD_REQUEST"],
  [413, "PAYLOAD_TOO_LARGE"],
  [415, "UNSUPPORTED_MEDIA_TYPE"],
  [422, "BAD_REQUEST"],
]);
const TIMEOUT_STATUSES = new Set([408, 524]);
const CREDENTIAL_STATUSES = new Set([401, 402, 403]);
const REFUSED_CREDENTIAL =
  "The upstream refused the credential of the model, which is not your key: whoever runs the model has to put it right";
const FALLBACK_STATUSES = new Set([401, 402, 403, 404, 408, 409, 429]);

/**
 * A provider's trouble must never look like the caller's key: everything but the caller's fault is 502 or 504. `served` is whose upstream
 * it was. What happened is said where it is known, in the error's own message.
 */
export function toCallerError(error: unknown, served: Served): unknown {
  if (!(error instanceof ProviderError)) return error;
  switch (error.kind) {
    case "network":
    case "closed":
      return upstreamFailed(error.message, { cause: error });
    case "timeout":
      return upstreamTimedOut(error.message, { cause: error, isFinal: error.hasBegun });
    case "invalid-response":
    case "cut":
      return upstreamFailed(error.message, { cause: error, isFinal: true });
    case "status":
      return toStatusError(error, served);
  }
}

function toStatusError(error: ProviderError, served: Served): AppError {
  const { status = 500, upstreamParam: param, retryAfterSeconds } = error;
  const details = upstreamDetails(error);
  const code = CALLER_FAULTS.get(status);
  if (code) {
    const said = inCallersWords(error.upstreamMessage ?? "it gave no reason", served);
    return new AppError(code, `The upstream refused the request: ${said}`, {
      cause: error,
      details,
      ...(param !== undefined && { param }),
    });
  }
  const told = { cause: error, details, ...(retryAfterSeconds !== undefined && { retryAfterSeconds }) };
  if (TIMEOUT_STATUSES.has(status)) return upstreamTimedOut("The upstream ran out of time.", told);
  return upstreamFailed(
    isCredentialRefused(error) ? `${REFUSED_CREDENTIAL} (status ${status}).` : `The upstream failed with status ${status}.`,
    told,
  );
}

/** What a caller is told of an upstream's refusal beside our own words, wherever it is told: numbers, and a code out of our own list. */
export function upstreamDetails({ status, upstreamCode, retryAfterSeconds }: ProviderError): Readonly<Record<string, unknown>> {
  return {
    upstreamStatus: status ?? 500,
    ...(upstreamCode !== undefined && { upstreamCode }),
    // An event of a stream and a job have no header.
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  };
}

/** The credential that the upstream was called with, or the account behind it, is refused: whoever runs the model has to see to that. */
export function isCredentialRefused(error: unknown): error is ProviderError {
  return error instanceof ProviderError && error.kind === "status" && CREDENTIAL_STATUSES.has(error.status ?? 500);
}

/** Only before the first byte, and never for a request that every upstream would refuse. */
export function mayFallBack(error: unknown): boolean {
  if (!(error instanceof ProviderError)) return false;
  if (error.kind !== "status") return true;
  const status = error.status ?? 500;
  return status >= 500 || FALLBACK_STATUSES.has(status);
}
