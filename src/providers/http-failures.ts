/**
 * What went wrong on the way to an upstream or back, in our terms. The words depend on how far a request had come: only what was never
 * connected "could not be reached", and an answer that had begun "ended early".
 */
import { errors } from "undici";
import { ProviderError } from "./provider.js";

const TIMEOUT_CODES = new Set(["UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT", "ETIMEDOUT"]);
/** Of connections that stood. */
const HANG_UP_CODES = new Set(["ECONNRESET", "EPIPE", "UND_ERR_SOCKET"]);

/** How far a request has come: what breaks then means something else, and is told in other words. */
export type Stage = "connecting" | "asked" | "answering";

/** An error of undici or of the socket, in our terms. */
export function toProviderError(cause: Error, stage: Stage): ProviderError {
  const code = codeOf(cause);
  if (code === "UND_ERR_CONNECT_TIMEOUT") return tookTooLong("connecting", cause);
  if (TIMEOUT_CODES.has(code)) return tookTooLong(stage, cause);
  if (code === "UND_ERR_HEADERS_OVERFLOW" || isNotHttp(cause)) {
    return new ProviderError("invalid-response", "The upstream's answer is not HTTP.", { cause });
  }
  return BROKEN[stage](cause);
}

/** For clients that do not say how far they had come before an answer began. */
export function stageOf(cause: Error): Stage {
  const isHandshake = cause.message.includes("before secure TLS connection");
  return HANG_UP_CODES.has(codeOf(cause)) && !isHandshake ? "asked" : "connecting";
}

function codeOf(error: Error): string {
  return "code" in error && typeof error.code === "string" ? error.code : "";
}

/** What a connection that broke, or was never made, is called. */
const BROKEN: Readonly<Record<Stage, (cause: unknown) => ProviderError>> = {
  connecting: unreachable,
  asked: (cause) => new ProviderError("closed", "The upstream closed the connection without an answer.", { cause }),
  answering: (cause) =>
    new ProviderError("cut", "The upstream's answer ended early: the connection broke before all of it had come.", { cause }),
};

/** Alike for every reason, so that nobody learns which hosts and ports there are. */
export function unreachable(cause: unknown): ProviderError {
  return new ProviderError("network", "The upstream could not be reached.", { cause });
}

/** Also for packages that keep the clock by other means. */
export function tookTooLong(stage: Stage, cause?: unknown): ProviderError {
  if (stage === "connecting") return new ProviderError("timeout", "The upstream could not be reached in time.", { cause });
  if (stage === "asked") return new ProviderError("timeout", "The upstream did not answer in time.", { cause });
  return new ProviderError("timeout", "The upstream began its answer and did not finish it in time.", { cause, hasBegun: true });
}

/** undici's parser also complains of a body that just ends; only then has it no bytes to complain of. */
function isNotHttp(error: Error): boolean {
  return error instanceof errors.HTTPParserError && "data" in error && error.data !== "";
}
