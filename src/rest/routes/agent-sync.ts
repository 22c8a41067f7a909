/** Bringing a code agent to its repository's latest commit. Open to all, so that a host of code can ask for it (docs/spec/agents.md#sync). */
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import type { Route } from "../route.js";

export function addAgentSyncRoutes(route: Route, endpoint: Endpoint, { agentSync }: Pick<Services, "agentSync">): void {
  route("/agents/:agent/sync", {
    POST: endpoint({ isPublic: true, handler: (ctx, { exchange }) => agentSync.sync(ctx, exchange.parameter("agent")) }),
  });
}
