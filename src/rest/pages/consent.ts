/** The consent page: the app, its request, the redirect address, and the signed-in account (docs/spec/authorization.md). */

import * as z from "zod";
import type { RequestContext } from "../../context.js";
import type { AccountRow } from "../../services/accounts/accounts.js";
import { grantFormFields, toGrantChoice } from "../../services/api-keys/grant-terms.js";
import type { RedirectUrl } from "../../services/api-keys/redirect-url.js";
import type { AuthorizationRequest } from "../../services/authorizations/authorizations.js";
import { authorizationQuery } from "../../services/authorizations/request-input.js";
import type { Services } from "../../services/services.js";
import { sentOrRedirect } from "../openapi/answer.js";
import type { Route } from "../route.js";
import { decisionFields, type Refused } from "./decision-fields.js";
import { type Html, html } from "./html.js";
import type { ListedModel } from "./model-choice.js";
import type { Page } from "./page.js";
import { type PageEndpoint, toSignIn } from "./page-endpoint.js";
import { appSection, nameOf } from "./requesting-app.js";
import { returnToInput } from "./return-to.js";
import { hiddenFields } from "./sign-in.js";

interface Consent {
  readonly request: AuthorizationRequest;
  readonly person: AccountRow;
  /** Nanocredits of the account. */
  readonly balance: bigint;
  readonly models: readonly ListedModel[];
  readonly formToken: string;
  readonly base: string;
  /** The path of this page, to return to after signing in to another account. */
  readonly returnTo: string | undefined;
  /** Entered values and their errors. */
  readonly refused?: Refused;
}

function consentPage({ request, person, balance, models, formToken, base, returnTo, refused }: Consent): Page {
  const { client, redirect, asked, creditBudgetMax } = request;
  const name = nameOf(request);
  const body = html`<h1>Allow <bdi>${name}</bdi> to spend your credits?</h1>
<div class="who"><span>Signed in as ${personSection(person)}</span>
<form method="post" action="${base}/sign-out">${hiddenFields(formToken, returnTo)}<button type="submit" class="small">Switch account</button></form></div>
${appSection(request)}
<form method="post" action="${base}/authorize">
${hiddenFields(formToken, returnTo)}
<input type="hidden" name="request_id" value="${request.id}">
${decisionFields({ asked, isUnverified: client !== null, creditBudgetMax, balance, person, models, refused })}
</form>`;
  return { title: `Allow ${name} to spend your credits?`, body, formTargets: formTargetsOf(redirect) };
}

/**
 * `form-action` also applies to later redirects, so an app that redirects to another of its origins would fail
 * (docs/decisions/consent-form-targets.md).
 */
function formTargetsOf({ origin, isLoopback }: RedirectUrl): string[] {
  return [origin, "https:", ...(isLoopback ? ["http:"] : [])];
}

function personSection({ handle, email }: AccountRow): Html {
  return html`<strong>${handle}</strong>${email === null ? "" : html` <small>${email}</small>`}`;
}

// Routes of the page and the decision (docs/spec/authorization.md#redirect-flow).

const requestFields = { request_id: z.uuid(), return_to: returnToInput };

/** Denying needs no other fields. */
const decisionForm = z.discriminatedUnion("decision", [
  z.object({ decision: z.literal("approve"), ...requestFields, ...grantFormFields }),
  z.object({ decision: z.literal("deny"), ...requestFields }),
]);

type Needed = Pick<Services, "authorizations" | "accounts" | "catalog">;

const AUTHORIZE = {
  id: "authorize",
  tag: "Authorization",
  summary: "Shows the consent page, on which a person lets an app spend their credits. Open it in a browser.",
  description:
    "The browser is redirected with `#api_key=...&state=...`, or with `?code=...&state=...&iss=...` when a challenge was sent. A denial is redirected with `error=access_denied`. An invalid request is answered with an error page of the gateway.",
  answer: sentOrRedirect({ status: "303", why: "To the sign-in page, when no one is signed in." }, "text/html"),
  example: { parameters: { redirect_url: "https://example.com/callback" } },
} as const;

export function addAuthorizeRoutes(route: Route, page: PageEndpoint, services: Needed): void {
  const { authorizations } = services;
  const show = async (
    ctx: RequestContext,
    request: AuthorizationRequest,
    rest: Omit<Consent, "request" | "person" | "balance" | "models">,
  ) => {
    const { accounts, catalog } = services;
    const [person, { balance }, models] = await Promise.all([accounts.me(ctx), accounts.balance(ctx), catalog.list(ctx, {})]);
    return consentPage({ request, person, balance, models, ...rest });
  };
  route("/authorize", {
    GET: page({
      operation: AUTHORIZE,
      query: authorizationQuery,
      handler: async (ctx, { query, session, exchange, formToken, base }) => {
        if (session) return show(ctx, await authorizations.create(ctx, query), { formToken, base, returnTo: exchange.req.originalUrl });
        // Before sign-in, because an invalid request can never succeed.
        await authorizations.check(ctx, query);
        return toSignIn(exchange);
      },
    }),
    POST: page({
      form: decisionForm,
      refusesSuspended: true,
      handler: (ctx, { form }) => {
        if (form.decision === "deny") return authorizations.deny(ctx, { id: form.request_id });
        return authorizations.approve(ctx, { id: form.request_id, ...toGrantChoice(form) });
      },
      onRefused: async (ctx, { error, fields, request: { formToken, base } }) => {
        if (error.code !== "BAD_REQUEST" && error.code !== "INSUFFICIENT_BALANCE") throw error;
        const request = await authorizations.get(ctx, String(fields.request_id)).catch(() => {
          throw error;
        });
        return show(ctx, request, {
          formToken,
          base,
          returnTo: returnToInput.parse(fields.return_to),
          refused: { error, fields },
        });
      },
    }),
  });
}
