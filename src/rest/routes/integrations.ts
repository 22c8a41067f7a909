/** Connected apps of the account (docs/spec/connected-apps.md#operations). */
import * as z from "zod";
import { requireKeyManager } from "../../services/access/permissions.js";
import { CONNECTED_APP_STATUSES, type ConnectedApp, type Toolkit } from "../../services/integrations/broker.js";
import { connectIntegrationInput, listToolkitsInput } from "../../services/integrations/integrations.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { json, NO_CONTENT } from "../openapi/answer.js";
import { nullableText, pathId } from "../openapi/schemas.js";
import type { Route } from "../route.js";

const connectedApp = z.object({
  id: z.string(),
  toolkit: z.string().describe("The slug of the toolkit."),
  name: nullableText,
  description: z.string(),
  logo: nullableText.describe("The URL of the logo."),
  alias: nullableText.describe("The person's own name for the connection."),
  status: z.enum(CONNECTED_APP_STATUSES),
});

const toolkit = z.object({ slug: z.string(), name: z.string(), description: z.string(), logo: nullableText });

const newConnection = json(
  "NewConnection",
  z.object({
    url: z.string().describe("The URL at which a person signs in to the app and approves the connection. Open it in a browser."),
    id: z.string(),
  }),
);

/** Of the broker. */
const BROKER_ERRORS = ["502", "504"];

export function addIntegrationRoutes(route: Route, endpoint: Endpoint, { integrations }: Pick<Services, "integrations">): void {
  route("/integrations", {
    GET: endpoint({
      id: "listIntegrations",
      tag: "Connected apps",
      summary: "Lists the account's connections to external apps.",
      answer: json("ConnectedAppList", z.object({ data: z.array(connectedApp) })),
      errors: BROKER_ERRORS,
      handler: async (ctx) => ({ data: (await integrations.list(ctx)).map(toConnectedApp) }),
    }),
    POST: endpoint({
      id: "connectIntegration",
      tag: "Connected apps",
      summary: "Creates a connection.",
      description: "Open `url` in the person's browser, where they sign in to the app and approve. The connection then becomes `active`.",
      answer: newConnection,
      errors: ["409", ...BROKER_ERRORS],
      example: { body: { toolkit: "notes" } },
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
      id: "listToolkits",
      tag: "Connected apps",
      summary: "Lists external apps that can be connected.",
      answer: json("ToolkitList", z.object({ data: z.array(toolkit) })),
      errors: BROKER_ERRORS,
      requires: requireKeyManager,
      query: listToolkitsInput,
      handler: async (ctx, { query }) => ({ data: (await integrations.listToolkits(ctx, query)).map(toToolkit) }),
    }),
  });
  route("/integrations/:integration", {
    DELETE: endpoint({
      id: "deleteIntegration",
      tag: "Connected apps",
      summary: "Deletes a connection.",
      answer: NO_CONTENT,
      errors: BROKER_ERRORS,
      params: z.object({ integration: pathId("The id of a connected app.") }),
      handler: async (ctx, { params, exchange }) => {
        await integrations.delete(ctx, params.integration);
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
