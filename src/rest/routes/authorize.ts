/** The redirect flow as a person sees it: the consent page, and the decision (docs/spec/authorization.md#redirect-flow). */
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { grantFormFields, toGrantChoice } from "../../services/api-keys/grant-terms.js";
import type { AuthorizationRequest } from "../../services/authorizations/authorizations.js";
import { authorizationQuery } from "../../services/authorizations/request-input.js";
import type { Services } from "../../services/services.js";
import { type Consent, consentPage } from "../pages/consent.js";
import { type PageEndpoint, toSignIn } from "../pages/page-endpoint.js";
import { returnToInput } from "../pages/return-to.js";
import type { Route } from "../route.js";

const requestFields = { request_id: z.uuid(), return_to: returnToInput };

/** Whoever denies need not have filled in the rest. */
const decisionForm = z.discriminatedUnion("decision", [
  z.object({ decision: z.literal("approve"), ...requestFields, ...grantFormFields }),
  z.object({ decision: z.literal("deny"), ...requestFields }),
]);

type Needed = Pick<Services, "authorizations" | "accounts" | "catalog">;

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
      query: authorizationQuery,
      handler: async (ctx, { query, session, exchange, formToken, base }) => {
        if (session) return show(ctx, await authorizations.create(ctx, query), { formToken, base, returnTo: exchange.req.originalUrl });
        // Before anybody signs in for it: a request that is not in order comes to nothing.
        await authorizations.check(ctx, query);
        return toSignIn(exchange);
      },
    }),
    POST: page({
      form: decisionForm,
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
