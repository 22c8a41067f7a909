/** A REST application of a test's own routes on a real socket, and requests written byte by byte. */
import { once } from "node:events";
import { createServer, type ServerOptions } from "node:http";
import { type AddressInfo, connect } from "node:net";
import express, { type Request, type Response, Router } from "express";
import { type Logger, pino } from "pino";
import { DirectRoutes } from "../../src/fast/direct-routes.js";
import { answerClientError } from "../../src/http/client-error.js";
import type { Authenticator } from "../../src/http/context.js";
import { createMessageClasses } from "../../src/http/server.js";
import { REQUEST_BODIES_BYTES_DEFAULT } from "../../src/limits.js";
import { createEndpoint, type Endpoint } from "../../src/rest/endpoint.js";
import { createRoute, type Route, refuser, toRequestHandler } from "../../src/rest/route.js";
import { BodyBudget } from "../../src/services/requests/body-budget.js";

export interface TestServer {
  readonly baseUrl: string;
  readonly port: number;
  /** Every line logged, parsed. */
  readonly logged: readonly Record<string, unknown>[];
  readonly close: () => Promise<void>;
}

/** Takes every caller as anonymous, with any token. */
export const anonymous: Authenticator = { authenticate: () => ({ kind: "anonymous" }) };

export async function serve(
  addRoutes: (route: Route, endpoint: Endpoint) => void,
  authenticator: Authenticator = anonymous,
  options: ServerOptions = {},
  bodies = new BodyBudget(REQUEST_BODIES_BYTES_DEFAULT),
  /** False: every route is found by Express. */
  hasDirectRoutes = true,
): Promise<TestServer> {
  const logged: Record<string, unknown>[] = [];
  const log: Logger = pino({ level: "debug" }, { write: (line: string) => void logged.push(JSON.parse(line)) });
  const router = Router({ caseSensitive: true });
  const direct = hasDirectRoutes ? new DirectRoutes(refuser(log)) : undefined;
  addRoutes(createRoute(router, log, "", undefined, direct), createEndpoint(authenticator, 0, bodies));
  const app = express().disable("x-powered-by").use(toRequestHandler(router, log));
  const { adopt, ...classes } = createMessageClasses();
  adopt(app);
  const server = createServer({ ...classes, ...options });
  server.on("request", (req: Request, res: Response) => direct?.answer(req, res) || app(req, res));
  server.on("clientError", answerClientError);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    baseUrl: `http://127.0.0.1:${port}`,
    port,
    logged,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** Sends these bytes on a connection of their own; resolves with all that comes until the server closes it. */
export async function sendRaw(port: number, ...pieces: (string | Uint8Array)[]): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  const received: Buffer[] = [];
  socket.on("data", (bytes) => received.push(bytes));
  // A server that refuses a body may reset the connection; its answer before that counts.
  socket.on("error", () => {});
  for (const piece of pieces) socket.write(piece);
  await new Promise((resolve) => socket.once("close", resolve));
  return Buffer.concat(received).toString("latin1");
}

/** The JSON body of a raw answer. */
export function bodyOf(answer: string): { status: number; success: boolean; error: Record<string, unknown> } {
  return JSON.parse(answer.slice(answer.indexOf("\r\n\r\n") + 4));
}
