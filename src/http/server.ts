/** The HTTP server: the classes of its messages, and how it stops. */
import { IncomingMessage, type Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Express } from "express";
import type { StopListening } from "./listening.js";

// Draining an HTTP server: what is under way may finish, what only waits is hung up on.

/**
 * Call before the server takes requests. The returned function stops it: no new connections, and resolves when the last answer
 * is out, at the latest after `timeoutMs`. Node alone would go on waiting for connections on which nothing was ever asked.
 * `stopListening` closes all sockets at which connections come.
 */
export function trackRequests(http: Server, stopListening: StopListening): (timeoutMs: number) => Promise<void> {
  let underWay = 0;
  let isStopping = false;
  // A server waits for the connections that it has accepted itself, and not for those that were handed to it.
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

/** Each answer from now on is the last on its connection: a client with a connection of long standing asks elsewhere next. */
export function endConnectionsWithAnswers(http: Server): void {
  http.prependListener("request", (_req, res: ServerResponse) => {
    res.shouldKeepAlive = false;
  });
}

// The classes of which an HTTP server makes its requests and answers. Express gives both its own prototypes as they
// come in, which takes them off every fast path of the engine (measured: 170 against 48 microseconds a request, for the
// smallest route). Made of these classes they have those prototypes from birth, and Express's assignment changes nothing.

export interface MessageClasses {
  readonly IncomingMessage: typeof IncomingMessage;
  readonly ServerResponse: typeof ServerResponse;
}

/** Whether a request's Connection header names Upgrade: clients ask for HTTP/2 so, and expect to be answered without it (RFC 9110, 7.8). */
const ASKED = Symbol("upgrade");

/**
 * For the options of `http.createServer`. The server listens before Express is loaded: `adopt` gives them the prototypes of its
 * application, once, before that is asked anything.
 */
export function createMessageClasses(): MessageClasses & { adopt(app: Express): void } {
  class AppRequest extends IncomingMessage {
    /** Node's own flag, read once the headers are there: an upgrade that nobody here can make is a request like any other. */
    get upgrade(): boolean {
      return this[ASKED] === true && this.headers.upgrade?.toLowerCase() === "websocket";
    }

    set upgrade(asked: boolean) {
      this[ASKED] = asked;
    }

    declare private [ASKED]: boolean | undefined;
  }
  class AppResponse<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {}
  return {
    IncomingMessage: AppRequest,
    ServerResponse: AppResponse,
    adopt(app) {
      Object.setPrototypeOf(AppRequest.prototype, app.request);
      Object.setPrototypeOf(AppResponse.prototype, app.response);
      Object.assign(app, { request: AppRequest.prototype, response: AppResponse.prototype });
    },
  };
}
