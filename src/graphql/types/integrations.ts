/** Connected apps: the account's connections, what can be connected, and connecting (docs/spec/connected-apps.md). */

import { parsePermitted, requireKeyManager } from "../../services/access/permissions.js";
import { CONNECTED_APP_STATUSES, type ConnectedApp, type NewConnection, type Toolkit } from "../../services/integrations/broker.js";
import { connectIntegrationInput, listToolkitsInput } from "../../services/integrations/integrations.js";
import { builder, enumValues } from "../builder.js";
import { Account } from "./accounts.js";

const NEEDS_KEYS = "Needs a secret key with the permission KEYS.";

const ConnectedAppStatus = builder.enumType("ConnectedAppStatus", {
  description: "INITIATED: a person has yet to approve it. FAILED: refused, or gone wrong. INACTIVE: switched off, or ended by the app.",
  values: enumValues(CONNECTED_APP_STATUSES),
});

const ConnectedAppType = builder.objectRef<ConnectedApp>("ConnectedApp").implement({
  description: "A connection to an outside app.",
  fields: (t) => ({
    id: t.exposeID("id"),
    toolkit: t.exposeString("toolkit", { description: "The toolkit's slug." }),
    name: t.exposeString("name", { nullable: true }),
    description: t.exposeString("description"),
    logo: t.exposeString("logo", { nullable: true, description: "The address of a picture." }),
    alias: t.exposeString("alias", { nullable: true, description: "What the person calls this connection." }),
    status: t.expose("status", { type: ConnectedAppStatus }),
  }),
});

const ToolkitType = builder.objectRef<Toolkit>("Toolkit").implement({
  description: "An outside app that can be connected.",
  fields: (t) => ({
    slug: t.exposeString("slug"),
    name: t.exposeString("name"),
    description: t.exposeString("description"),
    logo: t.exposeString("logo", { nullable: true, description: "The address of a picture." }),
  }),
});

builder.objectField(Account, "integrations", (t) =>
  t.field({
    type: [ConnectedAppType],
    nullable: true,
    description: `The account's connections to outside apps. ${NEEDS_KEYS}`,
    resolve: async (_row, _args, ctx) => [...(await ctx.services.integrations.list(ctx))],
  }),
);

builder.queryField("integrationToolkits", (t) =>
  t.field({
    type: [ToolkitType],
    nullable: true,
    description: `What can be connected. ${NEEDS_KEYS}`,
    args: { search: t.arg.string({ description: "At most 100 characters." }) },
    resolve: async (_root, { search }, ctx) => [
      ...(await ctx.services.integrations.listToolkits(
        ctx,
        parsePermitted(ctx, requireKeyManager, listToolkitsInput, { search: search ?? undefined }),
      )),
    ],
  }),
);

const ConnectIntegrationInput = builder.inputType("ConnectIntegrationInput", {
  fields: (t) => ({ toolkit: t.string({ required: true, description: "A toolkit's slug." }) }),
});

const ConnectIntegrationPayload = builder.objectRef<NewConnection>("ConnectIntegrationPayload").implement({
  fields: (t) => ({
    id: t.exposeID("id"),
    url: t.exposeString("url", { description: "The page on which a person signs in to the app and approves. Send a browser there." }),
  }),
});

builder.mutationField("connectIntegration", (t) =>
  t.field({
    type: ConnectIntegrationPayload,
    nullable: true,
    description: `Begins a connection, which is ACTIVE once a person has approved it. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: ConnectIntegrationInput, required: true }) },
    resolve: (_root, { input }, ctx) =>
      ctx.services.integrations.connect(ctx, parsePermitted(ctx, requireKeyManager, connectIntegrationInput, input)),
  }),
);

const DeleteIntegrationInput = builder.inputType("DeleteIntegrationInput", {
  fields: (t) => ({ id: t.id({ required: true }) }),
});

const DeleteIntegrationPayload = builder.objectRef<{ readonly id: string }>("DeleteIntegrationPayload").implement({
  fields: (t) => ({ id: t.exposeID("id") }),
});

builder.mutationField("deleteIntegration", (t) =>
  t.field({
    type: DeleteIntegrationPayload,
    nullable: true,
    description: `Ends a connection. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: DeleteIntegrationInput, required: true }) },
    resolve: async (_root, { input }, ctx) => ({ id: await ctx.services.integrations.delete(ctx, input.id) }),
  }),
);
