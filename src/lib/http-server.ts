/** Taking a port, and what to tell an operator when that fails. */
import type { Server, ServerResponse } from "node:http";
import { StartError } from "./start-error.js";

/** Resolves when connections are accepted. Rejects with a StartError that says what to do. */
export function listenAt(http: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (error: NodeJS.ErrnoException) => reject(new StartError(sentenceOf(error, host, port), { cause: error }));
    http.once("error", onError);
    http.listen(port, host, () => {
      http.off("error", onError);
      resolve();
    });
  });
}

function sentenceOf({ code, message }: NodeJS.ErrnoException, host: string, port: number): string {
  switch (code) {
    case "EADDRINUSE":
      return `Port ${port} is in use: stop what listens there, or set PORT to another one.`;
    case "EACCES":
      return `Port ${port} may not be listened on by this user: set PORT to one from 1024 on, or allow it (on Linux: CAP_NET_BIND_SERVICE).`;
    case "EADDRNOTAVAIL":
      return `HOST ${host} is no address of this machine: set it to 127.0.0.1, to 0.0.0.0 for every network, or to an address that it has.`;
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `HOST ${host} is no address, and no name that this machine can resolve: set it to 127.0.0.1, or to 0.0.0.0 for every network.`;
    default:
      return `Cannot listen on port ${port} of ${host}: ${message}. Set PORT and HOST to an address that can be listened on.`;
  }
}

// Draining an HTTP server: what is under way may finish, what only waits is hung up on.

/**
 * Call before the server takes requests. The returned function stops it: no new connections, and resolves when the last answer
 * is out, at the latest after `timeoutMs`. Node alone would go on waiting for connections on which nothing was ever asked.
 */
export function trackRequests(http: Server): (timeoutMs: number) => Promise<void> {
  let underWay = 0;
  let isStopping = false;
  const hangUpWhenIdle = () => {
    if (isStopping && underWay === 0) http.closeAllConnections();
  };
  const onAnswered = () => {
    underWay -= 1;
    hangUpWhenIdle();
  };
  http.on("request", (_req, res: ServerResponse) => {
    underWay += 1;
    res.on("close", onAnswered);
  });
  return async (timeoutMs) => {
    const closed = new Promise<void>((resolve) => {
      http.close(() => resolve());
    });
    isStopping = true;
    http.closeIdleConnections();
    hangUpWhenIdle();
    const deadline = setTimeout(() => http.closeAllConnections(), timeoutMs);
    await closed;
    clearTimeout(deadline);
  };
}
