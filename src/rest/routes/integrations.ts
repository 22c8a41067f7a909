/** Connected apps of the account (docs/spec/connected-apps.md#operations). */
import { requireKeyManager } from "../../services/access/permissions.js";
import type { ConnectedApp, Toolkit } from "../../services/integrations/broker.js";
import { connectIntegrationInput, listToolkitsInput } from "../../services/integrations/integrations.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import type { Route } from "../route.js";

export function addIntegrationRoutes(route: Route, endpoint: Endpoint, { integrations }: Pick<Services, "integrations">): void {
  route("/integrations", {
    GET: endpoint({ handler: async (ctx) => ({ data: (await integrations.list(ctx)).map(toConnectedApp) }) }),
    POST: endpoint({
      requires: requireKeyManager,
      body: connectIntegrationInput,
      handler: async (ctx, { body, exchange }) => {
        const { url, id } = await integrations.connect(ctx, body);
        // The address is the credential for approving.
        exchange.setHeaders({ "Cache-Control": "no-store" });
        return { url, id };
      },
    }),
  });
  route("/integrations/toolkits", {
    GET: endpoint({
      requires: requireKeyManager,
      query: listToolkitsInput,
      handler: async (ctx, { query }) => ({ data: (await integrations.listToolkits(ctx, query)).map(toToolkit) }),
    }),
  });
  route("/integrations/:integration", {
    DELETE: endpoint({
      handler: async (ctx, { exchange }) => {
        await integrations.delete(ctx, exchange.parameter("integration"));
        exchange.sendNothing();
      },
    }),
  });
}

function toConnectedApp({ id, toolkit, name, description, logo, alias, status }: ConnectedApp) {
  return { id, toolkit, name, description, logo, alias, status };
}

function toToolkit({ slug, name, description, logo }: Toolkit) {
  return { slug, name, description, logo };
}
