/** The account's sessions (docs/spec/sessions.md#sessions). Only a session may list and end them. */
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import type { Route } from "../route.js";

export function addSessionRoutes(route: Route, endpoint: Endpoint, { sessions }: Pick<Services, "sessions">): void {
  route("/sessions", {
    GET: endpoint({ handler: async (ctx) => ({ data: await sessions.all(ctx) }) }),
    DELETE: endpoint({ handler: async (ctx) => ({ ended: (await sessions.revokeOthers(ctx)).length }) }),
  });
  route("/sessions/:id", {
    DELETE: endpoint({
      handler: async (ctx, { exchange }) => {
        const { id } = await sessions.revoke(ctx, exchange.parameter("id"));
        return { id, revoked: true };
      },
    }),
  });
}
