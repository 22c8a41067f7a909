/** The HTTP server: the classes of its messages, how it takes a port and what an operator is told when that fails, and how it stops. */
import { IncomingMessage, type Server, ServerResponse } from "node:http";
import type { Server as NetServer, Socket } from "node:net";
import type { Express } from "express";
import { StartError } from "../lib/start-error.js";

/** Resolves when connections are accepted. Rejects with a StartError that says what to do. */
export function listenAt(server: NetServer, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (error: NodeJS.ErrnoException) => reject(new StartError(sentenceOf(error, host, port), { cause: error }));
    server.once("error", onError);
    server.listen(port, host, () => {
      server.off("error", onError);
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
      http.close(() => resolve());
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
