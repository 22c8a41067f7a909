/**
 * Endpoints for OAuth clients: bodies as JSON or as a form, uncached answers, and errors as `{ error, error_description }` (RFC 6749 5, RFC
 * 8628 3.5) instead of the envelope of other routes (docs/spec/errors.md#oauth-errors). They read no key: the body holds the credential, and the body or `Authorization: Basic` the client.
 */
import type * as z from "zod";
import type { Caller, RequestContext } from "../context.js";
import type { AppError } from "../errors.js";
import { BodyAborted, readJsonBody } from "../http/body.js";
import { HttpRequestContext } from "../http/context.js";
import { explain, headersOf, sendRefusal, statusOf } from "../http/errors.js";
import type { Exchange } from "../http/exchange.js";
import { clientAddressOf } from "../lib/client-address.js";
import { OAuthError, type OAuthErrorName } from "../services/authorizations/oauth-error.js";
import type { BodyAllowance, BodyBudget } from "../services/requests/body-budget.js";
import { parseInput } from "../services/requests/input.js";
import { withBasicClient } from "./basic-client.js";
import type { JsonAnswer, ResultOf } from "./openapi/answer.js";
import type { Described } from "./openapi/contract.js";
import { isUrlencoded, readFormFields } from "./pages/form.js";
import { type RouteHandler, withContract } from "./route.js";

export type OAuthEndpointOptions<A extends JsonAnswer, Body> = Described<A> & {
  readonly body: z.ZodType<Body>;
  /** A body with lists, which a form does not hold. */
  readonly isJsonOnly?: true;
  /** The name of a refused body, by the wrong field. Default: `invalid_request`. */
  readonly refusedAs?: (param: string | undefined) => OAuthErrorName;
  /** Resolves to the JSON value of a 200. */
  readonly handler: (ctx: RequestContext, body: Body) => ResultOf<A> | Promise<ResultOf<A>>;
};

export type OAuthEndpoint = <A extends JsonAnswer = never, Body = never>(options: OAuthEndpointOptions<A, Body>) => RouteHandler;

/** Counts anonymous requests; rejects with RATE_LIMITED. */
export interface AnonymousAccess {
  authenticate(token: null, clientAddress: string): Caller | Promise<Caller>;
}

/** RFC 6749 5.1. */
const UNKEPT = { "Cache-Control": "no-store", Pragma: "no-cache" };

export function createOAuthEndpoint(access: AnonymousAccess, trustProxyHops: number, bodies: BodyBudget): OAuthEndpoint {
  return (options) => {
    const { body, isJsonOnly = false, answer: promised, refusedAs, handler } = options;
    const answer = async (exchange: Exchange): Promise<void> => {
      let allowance: BodyAllowance | null = null;
      try {
        const clientAddress = clientAddressOf(exchange.req, trustProxyHops);
        const caller = await access.authenticate(null, clientAddress);
        const ctx = new HttpRequestContext(caller, exchange, clientAddress);
        const { req } = exchange;
        allowance = bodies.allow(caller, clientAddress);
        const fields = isUrlencoded(req) && !isJsonOnly ? await readFormFields(req, allowance) : await readJsonBody(req, allowance);
        const value = await handler(ctx, parseInput(body, withBasicClient(req.headers.authorization, fields)));
        exchange.setHeaders(UNKEPT);
        exchange.sendJson(value, promised?.status);
      } catch (error) {
        sendOAuthError(exchange, error, refusedAs);
      } finally {
        allowance?.release();
      }
    };
    return withContract(answer, { ...options, isPublic: true, readsKey: false, isOAuth: true });
  };
}

function sendOAuthError(exchange: Exchange, error: unknown, refusedAs?: (param: string | undefined) => OAuthErrorName): void {
  if (error instanceof BodyAborted || exchange.isGone) return;
  const reported = explain(error, exchange);
  const body = Buffer.from(JSON.stringify({ error: nameOf(reported, refusedAs), error_description: reported.message }));
  exchange.clearHeaders();
  const headers = { ...headersOf(reported), ...UNKEPT, "Content-Type": "application/json; charset=utf-8" };
  sendRefusal(exchange, statusOf(reported.code), headers, body);
}

/** RFC 6749 has no names for server errors at this endpoint; these are from 4.1.2.1. */
function nameOf(error: AppError, refusedAs?: (param: string | undefined) => OAuthErrorName): string {
  if (error instanceof OAuthError) return error.error;
  if (refusedAs && error.code === "BAD_REQUEST") return refusedAs(error.param);
  if (error.code === "ACCOUNT_SUSPENDED") return "access_denied";
  const status = statusOf(error.code);
  if (status === 429 || status === 503) return "temporarily_unavailable";
  return status >= 500 ? "server_error" : "invalid_request";
}
