/** Home and the keys, as a signed-in person has them on pages without scripts. */
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import type { Exchange } from "../../http/exchange.js";
import { API_KEYS_PER_ACCOUNT_MAX, KEY_REVEAL_SECONDS, USAGE_DAYS_DEFAULT } from "../../limits.js";
import { apiKeyForm } from "../../services/api-keys/api-keys-input.js";
import type { Services } from "../../services/services.js";
import { homePage, keysPage } from "../pages/home.js";
import { madeKeyPage, newKeyPage } from "../pages/new-key.js";
import type { PageEndpoint } from "../pages/page-endpoint.js";
import type { GatewayInfo } from "../pages/start.js";
import { commandFor } from "../pages/try-it.js";
import type { Route } from "../route.js";

const KEYS_SHOWN = 20;
const USAGE_SHOWN = 10;
const MADE_PATH = "/home/keys/made";

const homeQuery = z.object({ done: z.literal("revoked").optional().catch(undefined) });
const newKeyForm = z.object({ new_key: z.string() }).and(apiKeyForm);
const nothing = z.object({});

type Needed = Pick<Services, "accounts" | "apiKeys" | "catalog" | "keyReveals" | "usage">;

export function addHomePages(route: Route, page: PageEndpoint, services: Needed, gateway: GatewayInfo): void {
  const { accounts, apiKeys, catalog, keyReveals, usage } = services;
  const modelsFor = async (ctx: RequestContext) => catalog.list(ctx, {});

  route("/home", {
    GET: page({
      isSignedIn: true,
      query: homeQuery,
      handler: async (ctx, { base, formToken, query }) => {
        const [person, balance, keys, used] = await Promise.all([
          accounts.me(ctx),
          accounts.balance(ctx),
          apiKeys.list(ctx, { first: KEYS_SHOWN }),
          usage.list(ctx, { page: { first: USAGE_SHOWN } }),
        ]);
        const lists = { keys: keys.items, hasMoreKeys: keys.hasNextPage, usage: used.items, usageDays: USAGE_DAYS_DEFAULT };
        return homePage({ base, formToken, gateway, person, balance, ...lists, now: new Date(), done: query.done });
      },
    }),
  });
  route("/home/keys", {
    GET: page({
      isSignedIn: true,
      handler: async (ctx, { base, formToken }) => {
        const { items } = await apiKeys.list(ctx, { first: API_KEYS_PER_ACCOUNT_MAX });
        return keysPage({ base, formToken, keys: items, now: new Date() });
      },
    }),
  });
  route("/home/keys/new", {
    GET: page({
      isSignedIn: true,
      handler: async (ctx, { base, formToken }) =>
        newKeyPage({ base, formToken, sealed: keyReveals.begin(ctx), models: await modelsFor(ctx) }),
    }),
    POST: page({
      isSignedIn: true,
      form: newKeyForm,
      handler: async (ctx, { form: { new_key, ...input }, base, exchange, isSecure }) => {
        const sealed = await keyReveals.create(ctx, new_key, input);
        // Neither the address nor the history holds it: a cookie that scripts cannot read and no other page is sent.
        exchange.addCookie(revealCookie(sealed, KEY_REVEAL_SECONDS, base, isSecure));
        return { redirectTo: base + MADE_PATH };
      },
      onRefused: async (ctx, { error, fields, request: { base, formToken } }) => {
        if (error.code !== "BAD_REQUEST") throw error;
        const sealed = typeof fields.new_key === "string" ? fields.new_key : "";
        return newKeyPage({ base, formToken, sealed, models: await modelsFor(ctx), refused: { error, fields } });
      },
    }),
  });
  route(MADE_PATH, {
    GET: page({
      isSignedIn: true,
      handler: async (ctx, { base, exchange, isSecure }) => {
        const sealed = readRevealCookie(exchange);
        if (sealed === null) return madeKeyPage({ base }, null);
        exchange.addCookie(revealCookie("", 0, base, isSecure));
        const made = await keyReveals.reveal(ctx, sealed);
        if (!made) return madeKeyPage({ base }, null);
        const command = commandFor(made.key, made.apiKey.allowedModels, await modelsFor(ctx), gateway.addresses().baseUrl);
        return madeKeyPage({ base }, { ...made, command });
      },
    }),
  });
  route("/home/keys/:id/revoke", {
    POST: page({
      isSignedIn: true,
      form: nothing,
      handler: async (ctx, { base, exchange }) => {
        await apiKeys.revoke(ctx, exchange.parameter("id"));
        return { redirectTo: `${base}/home?done=revoked` };
      },
    }),
  });
}

const REVEAL_COOKIE = "sluice_new_key";
const REVEAL_COOKIE_PATTERN = /(?:^|;\s*)(?:__Secure-)?sluice_new_key=([A-Za-z0-9_-]{1,1024})(?:;|$)/;

function revealCookie(value: string, seconds: number, base: string, isSecure: boolean): string {
  const [name, secure] = isSecure ? [`__Secure-${REVEAL_COOKIE}`, "; Secure"] : [REVEAL_COOKIE, ""];
  return `${name}=${value}; Max-Age=${seconds}; Path=${base}${MADE_PATH}; HttpOnly; SameSite=Strict${secure}`;
}

function readRevealCookie({ req }: Exchange): string | null {
  return REVEAL_COOKIE_PATTERN.exec(req.headers.cookie ?? "")?.[1] ?? null;
}
