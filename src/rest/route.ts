/** One path and its methods. Answers other methods with 405, and preflight requests. */
import type { ErrorRequestHandler, Request, RequestHandler, Response, Router } from "express";
import type { Logger } from "pino";
import type { MaxCost, RequestContext, RequestWishes } from "../context.js";
import { AppError, invalidInput } from "../errors.js";
import { isFromAgent } from "../http/context.js";
import { preflightHeaders } from "../http/cors.js";
import { codeOfRefusal } from "../http/errors.js";
import { Exchange } from "../http/exchange.js";
import { beyondAgents } from "../services/access/permissions.js";
import { parseInput } from "../services/requests/input.js";
import type { Contract, ParamsSchema } from "./openapi/contract.js";
import { sendNegotiatedError } from "./pages/error-page.js";

export interface RouteHandler {
  (exchange: Exchange): void | Promise<void>;
  /** An agent run may call it only if it says `isForAgents` (docs/spec/agents.md#run-tokens). */
  readonly contract: Contract;
  /** The quote of the request. Absent: the route generates nothing. */
  readonly quote?: ((request: QuotedRequest) => Promise<void>) | undefined;
}

/** Its limit is read from the input, too. */
export type BoundedContext = Omit<RequestContext, "maxCost" | "wishes"> & {
  maxCost?: MaxCost | undefined;
  wishes?: RequestWishes | undefined;
  unfilled?: unknown;
};

/** A request as data, for its quote. */
export interface QuotedRequest {
  /** With `quoting`, which gets the quote. */
  readonly ctx: BoundedContext;
  /** Without its answer, which is never written. */
  readonly exchange: Exchange;
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  readonly body: unknown;
}

export type RouteMethods = Partial<Record<"GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE", RouteHandler>>;

export type Route = (path: string, methods: RouteMethods) => void;

export function withContract(
  answer: (exchange: Exchange) => void | Promise<void>,
  contract: Contract,
  quote?: RouteHandler["quote"],
): RouteHandler {
  return Object.assign(answer, { contract, quote });
}

/** The path's parameters, which Express has decoded. Without a schema undefined, the default of the type parameter. Throws BAD_REQUEST. */
export function readParams<Params>(schema: ParamsSchema<Params> | undefined, exchange: Exchange): Params {
  if (schema === undefined) return undefined as Params;
  return parseInput(schema, statedParams(schema, exchange));
}

/** The path's parameters before they are parsed. */
export function statedParams(schema: ParamsSchema<unknown> | undefined, exchange: Exchange): Record<string, string> {
  return Object.fromEntries(Object.keys(schema?.shape ?? {}).map((name) => [name, exchange.parameter(name)]));
}

/** Hints for clients about unknown paths or methods; may be empty. */
export interface RouteHints {
  hint(method: string, path: string): string;
  methodHint(method: string, path: string): string;
}

/** Further receivers of a router's paths, in Express's order. */
export interface RouteIndex {
  add(path: string, answer: (req: Request, res: Response) => unknown): void;
}

/**
 * Adds paths to `router`. A path with GET also answers HEAD; Node drops the body. `prefix` is the router's mount path, which makes the
 * route's name in the access log and metrics independent of deployment. `direct` gets the paths at the root of every host that Express
 * serves.
 */
export function createRoute(router: Router, log: Logger, prefix = "", unknown?: RouteHints, direct?: RouteIndex): Route {
  return (path, methods) => {
    const handlers = new Map(Object.entries(methods));
    const get = handlers.get("GET");
    if (get !== undefined && !handlers.has("HEAD")) handlers.set("HEAD", get);
    const allow = [...handlers.keys(), "OPTIONS"];
    const name = toTemplate(prefix + path);
    const answer = (req: Request, res: Response) => {
      const exchange = new Exchange(req, res, log);
      exchange.note.route = name;
      const handler = handlers.get(req.method);
      if (handler !== undefined) {
        if (!handler.contract.isForAgents && isFromAgent(exchange)) return sendNegotiatedError(exchange, beyondAgents(), "/");
        return handler(exchange);
      }
      if (req.method === "OPTIONS") return answerOptions(exchange, allow);
      const message = sentences(`This path answers ${allow.join(", ")}.`, unknown?.methodHint(req.method, exchange.path));
      return sendNegotiatedError(exchange, new AppError("METHOD_NOT_ALLOWED", message, { allow }), "/");
    };
    router.all(path, answer);
    direct?.add(path, answer);
  };
}

/** The handler of a whole router: 404 for unknown paths, and errors of Express like our own. Browsers get pages with a link to `home`. */
export function toRequestHandler(router: Router, log: Logger, home: () => string = toStart, unknown?: RouteHints): RequestHandler {
  const refuseWith = refuser(log, home);
  return (req, res) => {
    const refuse = (error: unknown) => refuseWith(req, res, error);
    const notThere = () => new AppError("NOT_FOUND", sentences("No such path.", unknown?.hint(req.method, req.path)));
    if (isMalformed(req.url)) return refuse(invalidInput("The path holds a malformed percent escape."));
    return router(req, res, (error: unknown) => refuse(error ?? notThere()));
  };
}

export function refuser(log: Logger, home: () => string = toStart): (req: Request, res: Response, error: unknown) => unknown {
  return (req, res, error) => sendNegotiatedError(new Exchange(req, res, log), fromExpress(error), home());
}

function toStart(): string {
  return "/";
}

/** For errors before REST, which Express would answer in HTML. */
export function toErrorRequestHandler(log: Logger): ErrorRequestHandler {
  return (error, req, res, _next) => sendNegotiatedError(new Exchange(req, res, log), fromExpress(error), "/");
}

/** Express's own errors carry a status (a path that cannot be decoded). */
function fromExpress(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof AppError || !("status" in error) || typeof error.status !== "number") return error;
  const code = codeOfRefusal(error.status);
  return code === null ? error : new AppError(code, error.message);
}

/** A path that cannot be decoded, or contains a NUL. */
function isMalformed(url: string): boolean {
  if (!url.includes("%")) return false;
  const mark = url.indexOf("?");
  try {
    return decodeURIComponent(mark === -1 ? url : url.slice(0, mark)).includes("\0");
  } catch {
    return true;
  }
}

/** Express's `/keys/:id` and `/text/*prompt` in OpenAPI's form: `/keys/{id}`. A colon of the path itself has a backslash before it. */
export function toTemplate(path: string): string {
  return path.replace(/\\:|[:*](\w+)/g, (found, name?: string) => (name === undefined ? found.slice(1) : `{${name}}`));
}

function sentences(first: string, ...others: readonly (string | undefined)[]): string {
  return [first, ...others].filter(Boolean).join(" ");
}

function answerOptions(exchange: Exchange, allow: readonly string[]): void {
  exchange.writeHead(204, preflightHeaders(allow, exchange.req.headers["access-control-request-headers"]));
  exchange.res.end();
}
