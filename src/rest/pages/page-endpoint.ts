/**
 * The common work of every page: session, input, form token, errors as pages. A handler calls a service and presents the result; it has no
 * `try`.
 *
 * Forms are accepted from our own pages only: browsers state a request's origin, and a token bound to the session (or, before sign-in, to a
 * cookie of its own) is required (docs/spec/sessions.md#pages).
 */
import { randomBytes } from "node:crypto";
import type * as z from "zod";
import type { Caller, RequestContext, SessionCaller } from "../../context.js";
import { AppError, permissionDenied } from "../../errors.js";
import { HttpRequestContext } from "../../http/context.js";
import { statusOf } from "../../http/errors.js";
import type { Exchange } from "../../http/exchange.js";
import { clientAddressOf } from "../../lib/client-address.js";
import type { BrowserRequest } from "../../services/access/access.js";
import type { BodyAllowance, BodyBudget } from "../../services/requests/body-budget.js";
import { parseInput } from "../../services/requests/input.js";
import type { CsrfTokens } from "../../services/sessions/csrf-tokens.js";
import type { Answer } from "../openapi/answer.js";
import type { Operation } from "../openapi/contract.js";
import { type RouteHandler, withContract } from "../route.js";
import { headersOfPage, sendErrorPage } from "./error-page.js";
import { type FormFields, readFormFields } from "./form.js";
import { type Page, type PageAnswer, sendPageAnswer } from "./page.js";

export interface PageRequest<Form, Query> {
  readonly form: Form;
  readonly query: Query;
  /** The caller's session, or null. */
  readonly session: SessionCaller | null;
  /** Every form has it as the hidden field `form_token`. */
  readonly formToken: string;
  /** Address of the pages, without a trailing slash: prefix of links and form targets. */
  readonly base: string;
  readonly isSecure: boolean;
  readonly exchange: Exchange;
}

export interface PageOptions<Form, Query> {
  /** Only of pages that apps open: others are not in the contract. */
  readonly operation?: Operation<Answer<"sent">>;
  /** Fields of the posted form, other than `form_token`. */
  readonly form?: z.ZodType<Form>;
  readonly query?: z.ZodType<Query>;
  /** True: visitors without a session are sent to sign in, and return to this page. */
  readonly isSignedIn?: boolean;
  /** True: a suspended account gets its error, as it does where `isSignedIn`. Else it counts as no session. */
  readonly refusesSuspended?: boolean;
  /** False: the page has no form, so that visitors without a session get no cookie. */
  readonly hasForms?: boolean;
  readonly handler: (ctx: RequestContext, request: PageRequest<Form, Query>) => PageAnswer | Promise<PageAnswer>;
  /** Renders the page again with an error that the person can correct. Absent: errors have a page of their own. */
  readonly onRefused?: (
    ctx: RequestContext,
    refusal: { readonly error: AppError; readonly fields: FormFields; readonly request: Omit<PageRequest<unknown, unknown>, "form"> },
  ) => Page | Promise<Page>;
}

export type PageEndpoint = <Form = undefined, Query = undefined>(options: PageOptions<Form, Query>) => RouteHandler;

/** Reads the session cookie, and the origin of a form. */
export interface SessionReader {
  identifySession(cookies: string | undefined, clientAddress: string): Promise<Caller>;
  isFromOtherOrigin(request: Pick<BrowserRequest, "headers">): boolean;
}

export interface PageSettings {
  readonly sessions: SessionReader;
  readonly csrfTokens: CsrfTokens;
  readonly bodies: BodyBudget;
  readonly trustProxyHops: number;
  /** Cookies are set as secure: the pages are on https. */
  readonly isSecure: () => boolean;
}

/** Errors that the person can correct in the form. */
const CORRECTABLE: ReadonlySet<AppError["code"]> = new Set([
  "BAD_REQUEST",
  "UNAUTHORIZED",
  "FORBIDDEN",
  "ACCOUNT_SUSPENDED",
  "INSUFFICIENT_BALANCE",
  "CONFLICT",
  "NOT_FOUND",
  "RATE_LIMITED",
]);

const ANONYMOUS: Caller = { kind: "anonymous" };

export function createPageEndpoint(settings: PageSettings): PageEndpoint {
  return ({
    operation = { id: null },
    form,
    query,
    isSignedIn = false,
    refusesSuspended = isSignedIn,
    hasForms = true,
    handler,
    onRefused,
  }) => {
    const answerPage = async (exchange: Exchange): Promise<void> => {
      let allowance: BodyAllowance | null = null;
      try {
        const clientAddress = clientAddressOf(exchange.req, settings.trustProxyHops);
        const caller = await settings.sessions.identifySession(exchange.req.headers.cookie, clientAddress).catch((error: unknown) => {
          // Another person may sign in with the same browser.
          if (refusesSuspended || !(error instanceof AppError) || error.code !== "ACCOUNT_SUSPENDED") throw error;
          return ANONYMOUS;
        });
        const session = caller.kind === "session" ? caller : null;
        const ctx = new HttpRequestContext(caller, exchange, clientAddress);
        if (isSignedIn && !session) return await sendPageAnswer(exchange, toSignIn(exchange));
        const binding = session || !hasForms ? (session?.sessionId ?? "") : formCookieOf(exchange, settings.isSecure());
        const base = {
          session,
          formToken: hasForms ? settings.csrfTokens.create(binding) : "",
          base: exchange.req.baseUrl,
          isSecure: settings.isSecure(),
          exchange,
        };
        allowance = settings.bodies.allow(caller, clientAddress);
        const fields = form ? await readOwnForm(exchange, allowance, settings, binding) : {};
        const parsedQuery = (query ? parseInput(query, exchange.query.parameters) : undefined) as never;
        const refused = (error: unknown): Promise<Page> | Page => {
          if (!onRefused || !(error instanceof AppError) || !CORRECTABLE.has(error.code)) throw error;
          return onRefused(ctx, { error, fields, request: { ...base, query: parsedQuery } });
        };
        const answer = await answerOf(() => handler(ctx, { ...base, form: parseForm(form, fields), query: parsedQuery })).catch(
          async (error: unknown) => withStatus(await refused(error), error),
        );
        await sendPageAnswer(exchange, answer);
      } catch (error) {
        await sendErrorPage(exchange, error);
      } finally {
        allowance?.release();
      }
    };
    return withContract(answerPage, { ...operation, isPublic: true, readsKey: false, isPage: true, ...(query && { query }) });
  };
}

async function answerOf(answer: () => PageAnswer | Promise<PageAnswer>): Promise<PageAnswer> {
  return answer();
}

function parseForm<Form>(schema: z.ZodType<Form> | undefined, fields: FormFields): Form {
  return schema ? parseInput(schema, fields) : (undefined as Form);
}

function withStatus(page: Page, error: unknown): Page {
  return error instanceof AppError
    ? { status: statusOf(error.code), ...page, headers: { ...headersOfPage(error), ...page.headers } }
    : page;
}

/** Redirects to sign-in, and from there back to this page. */
export function toSignIn(exchange: Exchange): PageAnswer {
  const { baseUrl, method, originalUrl } = exchange.req;
  const back = method === "GET" || method === "HEAD" ? `?return_to=${encodeURIComponent(originalUrl)}` : "";
  return { redirectTo: `${baseUrl}/sign-in${back}` };
}

/** Checks the token regardless of the stated origin. */
async function readOwnForm(
  exchange: Exchange,
  allowance: BodyAllowance,
  { sessions, csrfTokens }: PageSettings,
  binding: string,
): Promise<FormFields> {
  if (sessions.isFromOtherOrigin(exchange.req)) throw permissionDenied("This form was sent from another site.");
  const { form_token: token, ...fields } = await readFormFields(exchange.req, allowance);
  csrfTokens.verify(binding, typeof token === "string" ? token : "");
  return fields;
}

const FORM_COOKIE = "sluice_form";
const FORM_COOKIE_PATTERN = /(?:^|;\s*)(?:__Host-)?sluice_form=([A-Za-z0-9_-]{22})(?:;|$)/;

/** Before sign-in the token is bound to a random cookie instead of a session. */
function formCookieOf(exchange: Exchange, isSecure: boolean): string {
  const known = FORM_COOKIE_PATTERN.exec(exchange.req.headers.cookie ?? "")?.[1];
  if (known !== undefined) return known;
  const made = randomBytes(16).toString("base64url");
  const [name, secure] = isSecure ? [`__Host-${FORM_COOKIE}`, "; Secure"] : [FORM_COOKIE, ""];
  exchange.addCookie(`${name}=${made}; Path=/; HttpOnly; SameSite=Lax${secure}`);
  return made;
}
