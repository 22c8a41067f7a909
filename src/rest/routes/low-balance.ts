/** The balance below which the account wants to be told. */

import { requireKeyManager } from "../../services/access/permissions.js";
import { setLowBalanceThresholdInput } from "../../services/credits/low-balance.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { toLowBalance } from "../presenters/webhooks.js";
import type { Route } from "../route.js";

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
