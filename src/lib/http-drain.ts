/** Draining an HTTP server: what is under way may finish, what only waits is hung up on. */
import type { Server, ServerResponse } from "node:http";

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
