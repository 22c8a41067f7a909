/**
 * Answers between listening and readiness: the process is alive, and not ready. Uses no service, and loads nothing that would delay the
 * start.
 */
import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { serviceUnavailable } from "../errors.js";
import { headersOf, lastHeadersOf, toErrorEnvelope } from "./errors.js";

export const STARTING_MESSAGE = "The gateway is starting. Try again in a moment.";

export function answerWhileStarting(req: IncomingMessage, res: ServerResponse): void {
  const requestId = randomUUID();
  const [path] = (req.url ?? "").split("?", 1);
  const error = serviceUnavailable(STARTING_MESSAGE);
  const envelope = toErrorEnvelope(error, requestId);
  const isAlive = path === "/healthz" && (req.method === "GET" || req.method === "HEAD");
  const body = JSON.stringify(isAlive ? { status: "ok" } : path === "/graphql" ? toGraphQL(envelope.error) : envelope);
  // The connection is closed, so that the next request reaches the gateway itself.
  res.writeHead(isAlive ? 200 : envelope.status, { ...(isAlive ? {} : headersOf(error)), ...lastHeadersOf(body, requestId) });
  res.end(body);
  req.resume();
}

/** GraphQL's form of errors, whose module is not loaded yet. */
function toGraphQL({ message, code, requestId, timestamp }: ReturnType<typeof toErrorEnvelope>["error"]): object {
  return { errors: [{ message, extensions: { code, retryAfterSeconds: 1, requestId, timestamp } }] };
}
