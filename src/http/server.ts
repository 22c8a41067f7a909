/** The HTTP server: classes of its messages, and draining. */
import { IncomingMessage, type Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Express } from "express";
import { adoptPrototypes, type MessageClasses } from "../fast/express-prototypes.js";
import type { StopListening } from "../fast/shared-port.js";

// Drains an HTTP server: requests under way may finish, idle connections are closed.

/**
 * Call before the server takes requests. The returned function stops accepting connections, and resolves when the last answer is sent, at
 * the latest after `timeoutMs`. Node alone would wait for connections without a request. `stopListening` closes all listening sockets.
 */
export function trackRequests(http: Server, stopListening: StopListening): (timeoutMs: number) => Promise<void> {
  let underWay = 0;
  let isStopping = false;
  // A server waits for connections that it accepted itself, not for those handed to it.
  const open = new Set<Socket>();
  let onNoneOpen = () => {};
  const hangUpWhenIdle = () => {
    if (isStopping && underWay === 0) http.closeAllConnections();
  };
  const onAnswered = () => {
    underWay -= 1;
    hangUpWhenIdle();
  };
  http.on("connection", (socket: Socket) => {
    open.add(socket);
    socket.on("close", () => {
      open.delete(socket);
      if (open.size === 0) onNoneOpen();
    });
  });
  http.on("request", (_req, res: ServerResponse) => {
    underWay += 1;
    res.on("close", onAnswered);
  });
  return async (timeoutMs) => {
    const closed = new Promise<void>((resolve) => {
      stopListening(resolve);
    });
    isStopping = true;
    http.closeIdleConnections();
    hangUpWhenIdle();
    const deadline = setTimeout(() => http.closeAllConnections(), timeoutMs);
    await closed;
    if (open.size > 0) {
      await new Promise<void>((resolve) => {
        onNoneOpen = resolve;
      });
    }
    clearTimeout(deadline);
  };
}

/** From now on every answer closes its connection, so that clients with long-lived connections reconnect elsewhere. */
export function endConnectionsWithAnswers(http: Server): void {
  http.prependListener("request", (_req, res: ServerResponse) => {
    res.shouldKeepAlive = false;
  });
}

/** Whether a request's Connection header names Upgrade: clients offer HTTP/2 so, and expect a normal answer without it (RFC 9110, 7.8). */
const UPGRADE = Symbol("upgrade");

/**
 * For the options of `http.createServer`. The server listens before Express is loaded: call `adopt` once with its application before the
 * first request.
 */
export function createMessageClasses(): MessageClasses & { adopt(app: Express): void } {
  class AppRequest extends IncomingMessage {
    /** Node's own flag, read after the headers: a request with an unsupported upgrade is handled as a normal one. */
    get upgrade(): boolean {
      return this[UPGRADE] === true && this.headers.upgrade?.toLowerCase() === "websocket";
    }

    set upgrade(isRequested: boolean) {
      this[UPGRADE] = isRequested;
    }

    declare private [UPGRADE]: boolean | undefined;
  }
  class AppResponse<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {}
  return {
    IncomingMessage: AppRequest,
    ServerResponse: AppResponse,
    adopt(app) {
      adoptPrototypes({ IncomingMessage: AppRequest, ServerResponse: AppResponse }, app);
    },
  };
}
