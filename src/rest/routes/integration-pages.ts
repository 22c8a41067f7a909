/** The pages of connected apps: where a connection of the development broker is approved, and where every broker sends people back to. */
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { ownValue } from "../../lib/own-values.js";
import { connectionChoice } from "../../services/integrations/development-broker.js";
import { CONNECTION_ALIAS_CHARS_MAX, SIGNED_LINK_CHARS_MAX } from "../../services/integrations/limits.js";
import type { Services } from "../../services/services.js";
import type { FormFields } from "../pages/form.js";
import { type ConnectionPage, connectionPage, outcomePage } from "../pages/integrations.js";
import type { PageEndpoint } from "../pages/page-endpoint.js";
import type { Route } from "../route.js";

/** What is no link is as good as a wrong one. */
const link = z.string().max(SIGNED_LINK_CHARS_MAX).catch("");
const connectQuery = z.object({ token: link });
const callbackQuery = z.object({ state: link, connection: z.string().max(SIGNED_LINK_CHARS_MAX).optional().catch(undefined) });
/** Whoever refuses need not have filled in the rest. */
const decisionForm = z.discriminatedUnion("decision", [
  z.object({ decision: z.literal("approve"), token: link, alias: connectionChoice.shape.alias }),
  z.object({ decision: z.literal("refuse"), token: link }),
  z.object({ decision: z.literal("switch-on"), token: link }),
  z.object({ decision: z.literal("switch-off"), token: link }),
]);

type Needed = Pick<Services, "accounts" | "developmentBroker" | "integrations">;
type Shown = Omit<ConnectionPage, "view">;

export function addIntegrationPages(route: Route, page: PageEndpoint, { accounts, developmentBroker, integrations }: Needed): void {
  const show = async (ctx: RequestContext, shown: Shown) =>
    connectionPage({ ...shown, view: await developmentBroker.view(ctx, shown.token) });
  const personOf = async (ctx: RequestContext) => (ctx.caller.kind === "session" ? await accounts.me(ctx) : null);

  route("/integrations/connect", {
    GET: page({
      query: connectQuery,
      handler: async (ctx, { query: { token }, formToken, base }) => show(ctx, { token, formToken, base, person: await personOf(ctx) }),
    }),
    POST: page({
      form: decisionForm,
      handler: async (ctx, { form, base }) => {
        const { decision, token } = form;
        if (decision === "switch-on" || decision === "switch-off") {
          await developmentBroker.switchTo(ctx, token, decision === "switch-on" ? "active" : "inactive");
          return { redirectTo: `${base}/integrations/connect?token=${token}` };
        }
        const choice = decision === "approve" ? { isApproved: true, alias: form.alias } : { isApproved: false };
        return { redirectTo: await developmentBroker.decide(ctx, token, choice) };
      },
      onRefused: async (ctx, { error, fields, request: { formToken, base } }) => {
        if (error.code === "NOT_FOUND") throw error;
        const refused = { message: messageOf(error.param, error.message), alias: textOf(fields, "alias") };
        return show(ctx, { token: textOf(fields, "token"), formToken, base, person: await personOf(ctx), refused });
      },
    }),
  });
  route("/integrations/callback", {
    GET: page({
      query: callbackQuery,
      handler: async (ctx, { query }) => outcomePage(await integrations.outcome(ctx, query), await personOf(ctx)),
    }),
  });
}

function messageOf(param: string | undefined, message: string): string {
  return param === "alias" ? `A name has at most ${CONNECTION_ALIAS_CHARS_MAX} characters.` : message;
}

function textOf(fields: FormFields, name: string): string {
  const value = ownValue(fields, name);
  return typeof value === "string" ? value : "";
}
