/** The account behind the caller: profile and balance (docs/spec/accounts.md). */

import { requireSession } from "../../services/access/permissions.js";
import { updateProfileInput } from "../../services/accounts/profiles.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { toBalance, toProfile } from "../presenters/account.js";
import type { Route } from "../route.js";

export function addAccountRoutes(route: Route, endpoint: Endpoint, { accounts, profiles }: Pick<Services, "accounts" | "profiles">): void {
  route("/profile", {
    GET: endpoint({ handler: async (ctx) => toProfile(await accounts.profile(ctx)) }),
    PATCH: endpoint({
      requires: requireSession,
      body: updateProfileInput,
      handler: async (ctx, { body }) => {
        await profiles.update(ctx, body);
        const account = await accounts.profile(ctx);
        return { ...toProfile(account), handle: account.handle };
      },
    }),
  });
  route("/balance", { GET: endpoint({ handler: async (ctx) => toBalance(await accounts.balance(ctx)) }) });
}
