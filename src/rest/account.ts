/** The account behind the caller: profile and balance (Spec 2.3, 2.4, 4.5). */
import type { Services } from "../services/services.js";
import type { Endpoint } from "./endpoint.js";
import { toBalance, toProfile } from "./presenters/account.js";
import type { Route } from "./route.js";

export function addAccountRoutes(route: Route, endpoint: Endpoint, { accounts }: Pick<Services, "accounts">): void {
  route("/profile", { GET: endpoint({ handler: async (ctx) => toProfile(await accounts.profile(ctx)) }) });
  route("/balance", { GET: endpoint({ handler: async (ctx) => toBalance(await accounts.balance(ctx)) }) });
}
