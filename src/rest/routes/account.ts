/** The caller's account: profile, balance, and low-balance threshold (docs/spec/accounts.md). */

import { toCreditsNumber } from "../../lib/money.js";
import { requireKeyManager, requireSession } from "../../services/access/permissions.js";
import type { AccountRow } from "../../services/accounts/accounts.js";
import { updateProfileInput } from "../../services/accounts/profiles.js";
import { type LowBalanceRow, setLowBalanceThresholdInput } from "../../services/credits/low-balance.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
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

export function addLowBalanceRoutes(route: Route, endpoint: Endpoint, { lowBalance }: Pick<Services, "lowBalance">): void {
  route("/balance/threshold", {
    GET: endpoint({ handler: async (ctx) => toLowBalance(await lowBalance.get(ctx)) }),
    PATCH: endpoint({
      requires: requireKeyManager,
      body: setLowBalanceThresholdInput,
      handler: async (ctx, { body }) => toLowBalance(await lowBalance.setThreshold(ctx, body)),
    }),
  });
}

function toLowBalance({ threshold, since }: LowBalanceRow) {
  return { threshold: threshold === null ? null : toCreditsNumber(threshold), since };
}

function toProfile({ name, email, githubUsername, image, tier, createdAt, nextResetAt }: AccountRow) {
  return { name, email, githubUsername, image, tier, createdAt, nextResetAt };
}

/** In credits. */
function toBalance({ balance }: { readonly balance: bigint }) {
  return { balance: toCreditsNumber(balance) };
}
