/** What somebody is asked to sign in for, as the address says it that they came for: on the pages to sign in and up. */
import type { RequestContext } from "../../context.js";
import { AppError } from "../../errors.js";
import { parseQuery } from "../../http/query.js";
import { authorizationQuery } from "../../services/authorizations/request-input.js";
import { parseInput } from "../../services/requests/input.js";
import type { Services } from "../../services/services.js";
import { nameOf, whoAsks } from "./asking-app.js";
import { type Html, html } from "./html.js";

export type PurposeServices = Pick<Services, "authorizations" | "developmentBroker">;

/** Nothing for an address that says nothing, and for a request that is not in order: its own page says what is wrong with it. */
export async function purposeOf(
  ctx: RequestContext,
  base: string,
  returnTo: string | undefined,
  services: PurposeServices,
): Promise<Html | ""> {
  if (!returnTo?.startsWith(`${base}/`)) return "";
  try {
    return await tell(ctx, returnTo.slice(base.length), services);
  } catch (error) {
    if (error instanceof AppError) return "";
    throw error;
  }
}

async function tell(ctx: RequestContext, address: string, { authorizations, developmentBroker }: PurposeServices): Promise<Html | ""> {
  const { parameters } = parseQuery(address);
  switch (address.split("?", 1)[0]) {
    case "/authorize": {
      const asking = await authorizations.check(ctx, parseInput(authorizationQuery, parameters));
      return html`<div class="purpose"><p><strong><bdi>${nameOf(asking)}</bdi></strong> has sent you here. It asks to spend your credits: once you are signed in, you decide whether it may, and how much.</p>
${whoAsks(asking)}</div>`;
    }
    case "/device":
      return html`<p class="purpose">You are about to connect a device, so that it can spend your credits. Once you are signed in, you see what it is and decide.</p>`;
    case "/integrations/connect": {
      const { app } = await developmentBroker.view(ctx, typeof parameters.token === "string" ? parameters.token : "");
      return html`<p class="purpose">You are about to connect <strong><bdi>${app.name ?? app.toolkit}</bdi></strong> to your account.</p>`;
    }
    default:
      return "";
  }
}
