/** What a caller is told of an upstream's failure, and whether another upstream may be tried (decisions "Errors", "Generation"). */
import { AppError, type ErrorCode, upstreamFailed, upstreamTimedOut } from "../../errors.js";
import { ProviderError } from "../../providers/provider.js";

/** The caller's own mistakes, found by the upstream: passed on in its words. */
const CALLER_FAULTS: ReadonlyMap<number, ErrorCode> = new Map([
  [400, "BAD_REQUEST"],
  [413, "PAYLOAD_TOO_LARGE"],
  [415, "UNSUPPORTED_MEDIA_TYPE"],
  [422, "BAD_REQUEST"],
]);
const TIMEOUT_STATUSES = new Set([408, 524]);
const FALLBACK_STATUSES = new Set([401, 402, 403, 404, 408, 409, 429]);

/** A provider's trouble must never look like the caller's key: everything but the caller's fault is 502 or 504. */
export function toCallerError(error: unknown): unknown {
  if (!(error instanceof ProviderError)) return error;
  switch (error.kind) {
    case "network":
      return upstreamFailed("The upstream could not be reached.", { cause: error });
    case "timeout":
      return upstreamTimedOut("The upstream did not answer in time.", { cause: error });
    case "invalid-response":
      return upstreamFailed("The upstream answered something that is not its wire format.", { cause: error, isFinal: true });
    case "cut":
      return upstreamFailed("The upstream ended its answer before it was finished.", { cause: error, isFinal: true });
    case "status":
      return toStatusError(error);
  }
}

function toStatusError(error: ProviderError): AppError {
  const status = error.status ?? 500;
  const code = CALLER_FAULTS.get(status);
  const said = error.upstreamMessage ?? "it gave no reason";
  if (code) {
    const param = error.upstreamParam;
    return new AppError(code, `The upstream refused the request: ${said}`, { cause: error, ...(param !== undefined && { param }) });
  }
  if (TIMEOUT_STATUSES.has(status)) return upstreamTimedOut("The upstream ran out of time.", { cause: error });
  return upstreamFailed(`The upstream failed with status ${status}.`, { cause: error });
}

/** Only before the first byte, and never for a request that every upstream would refuse. */
export function mayFallBack(error: unknown): boolean {
  if (!(error instanceof ProviderError)) return false;
  if (error.kind !== "status") return true;
  const status = error.status ?? 500;
  return status >= 500 || FALLBACK_STATUSES.has(status);
}
