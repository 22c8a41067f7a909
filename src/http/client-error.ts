/**
 * Answers requests that Node's parser rejects before routing, with the usual envelope: broken syntax, headers over the limit, a request
 * that timed out.
 */
import { randomUUID } from "node:crypto";
import type { Duplex } from "node:stream";
import { invalidInput } from "../errors.js";
import { INERT_POLICY, NO_SNIFFING } from "../lib/inert-answer.js";
import { ownValue } from "../lib/own-values.js";
import { toErrorEnvelope } from "./errors.js";

const MESSAGES: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: "The request line and the headers are too large.",
  ERR_HTTP_REQUEST_TIMEOUT: "The request did not arrive in time.",
};

/** Node's record of the answer under way on a connection. */
interface AnsweringSocket extends Duplex {
  readonly _httpMessage?: { readonly headersSent?: boolean } | null;
  readonly bytesRead?: number;
}

/** For an HTTP server's `clientError` event. */
export function answerClientError(error: NodeJS.ErrnoException, socket: AnsweringSocket): void {
  // A browser opens connections ahead. One that is unused until its time is up is closed without a word: an answer could cross the first
  // request on it, and would be taken for that request's.
  const isUnused = error.code === "ERR_HTTP_REQUEST_TIMEOUT" && socket.bytesRead === 0;
  if (isUnused || !socket.writable || error.code === "ECONNRESET" || socket._httpMessage?.headersSent) {
    socket.destroy();
    return;
  }
  const requestId = randomUUID();
  const envelope = toErrorEnvelope(invalidInput(ownValue(MESSAGES, error.code ?? "") ?? "The request is not well-formed HTTP."), requestId);
  const body = JSON.stringify(envelope);
  const head = [
    `HTTP/1.1 ${envelope.status} Bad Request`,
    "Content-Type: application/json; charset=utf-8",
    `X-Content-Type-Options: ${NO_SNIFFING}`,
    `Content-Security-Policy: ${INERT_POLICY}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${requestId}`,
    "Connection: close",
  ];
  socket.end(`${head.join("\r\n")}\r\n\r\n${body}`);
}
