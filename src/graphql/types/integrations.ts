/** Connected apps: the account's connections, the toolkits, and connecting (docs/spec/connected-apps.md). */

import { parsePermitted, requireKeyManager } from "../../services/access/permissions.js";
import type { ConnectedApp, ConnectedAppStatus, NewConnection, Toolkit as ToolkitRow } from "../../services/integrations/broker.js";
import { connectIntegrationInput, listToolkitsInput } from "../../services/integrations/integrations.js";
import { CONNECTED_APPS_PER_ACCOUNT_MAX } from "../../services/integrations/limits.js";
import { builder, describedValues } from "../builder.js";
import { readId } from "../global-ids.js";
import { byId, Node, nodesReadBy } from "../nodes.js";
import { Account } from "./accounts.js";

const NEEDS_KEYS = "Needs a secret key with the permission KEYS.";

const IntegrationStatus = builder.enumType("IntegrationStatus", {
  description: "The status of a connection.",
  values: describedValues<ConnectedAppStatus>({
    initiated: "Waits for a person's approval.",
    active: "The connection can be used.",
    failed: "The connection was denied, or failed.",
    expired: "The connection was not approved in time, or the approval has expired.",
    inactive: "The connection was switched off, or ended by the app.",
  }),
});

const Integration = builder.objectRef<ConnectedApp>("Integration").implement({
  description: `A connection of the account to an external app. ${NEEDS_KEYS}`,
  interfaces: [Node],
  extensions: nodesReadBy(async (ctx, ids) => byId(await ctx.services.integrations.getMany(ctx, ids))),
  fields: (t) => ({
    toolkit: t.exposeString("toolkit", { description: "The slug of the connected toolkit." }),
    name: t.exposeString("name", { nullable: true, description: "The name of the external app. Null when the broker does not report it." }),
    description: t.exposeString("description", { description: "A description of the external app." }),
    logo: t.exposeString("logo", { nullable: true, description: "The URL of the logo. Null when there is none." }),
    alias: t.exposeString("alias", { nullable: true, description: "The person's own name for the connection. Null when there is none." }),
    status: t.expose("status", { type: IntegrationStatus, description: "The status of the connection." }),
  }),
});

const Toolkit = builder.objectRef<ToolkitRow>("Toolkit").implement({
  description: "An external app that can be connected.",
  fields: (t) => ({
    slug: t.exposeString("slug", { description: "The identifier to pass to `connectIntegration`." }),
    name: t.exposeString("name", { description: "The name of the app." }),
    description: t.exposeString("description", { description: "A description of the app." }),
    logo: t.exposeString("logo", { nullable: true, description: "The URL of the logo. Null when there is none." }),
  }),
});

builder.prismaObjectField(Account, "integrations", (t) =>
  t.field({
    type: [Integration],
    nullable: true,
    description: `The account's connections to external apps, at most ${CONNECTED_APPS_PER_ACCOUNT_MAX}. ${NEEDS_KEYS}`,
    resolve: async ({ id }, _args, ctx) => {
      ctx.services.accounts.assertOwn(ctx, id);
      return [...(await ctx.services.integrations.list(ctx))];
    },
  }),
);

builder.queryField("integrationToolkits", (t) =>
  t.field({
    type: [Toolkit],
    nullable: true,
    description: `External apps that can be connected. ${NEEDS_KEYS}`,
    args: {
      search: t.arg.string({ description: "Text to find in the name or description, at most 100 characters. Defaults to all toolkits." }),
    },
    resolve: async (_root, { search }, ctx) => [
      ...(await ctx.services.integrations.listToolkits(
        ctx,
        parsePermitted(ctx, requireKeyManager, listToolkitsInput, { search: search ?? undefined }),
      )),
    ],
  }),
);

const ConnectIntegrationInput = builder.inputType("ConnectIntegrationInput", {
  description: "Parameters of `connectIntegration`.",
  fields: (t) => ({ toolkit: t.string({ required: true, description: "The slug of a toolkit." }) }),
});

const ConnectIntegrationPayload = builder.objectRef<NewConnection>("ConnectIntegrationPayload").implement({
  description: "The result of `connectIntegration`: a connection that waits for a person's approval.",
  fields: (t) => ({
    integration: t.field({
      type: Integration,
      nullable: true,
      description: "The connection. Null when the broker does not list it yet.",
      resolve: async ({ id }, _args, ctx) => (await ctx.services.integrations.getMany(ctx, [id]))[0] ?? null,
    }),
    integrationId: t.exposeID("id", { description: "The REST ID of the connection." }),
    url: t.exposeString("url", {
      description: "The URL at which a person signs in to the app and approves the connection. Open it in a browser.",
    }),
  }),
});

builder.mutationField("connectIntegration", (t) =>
  t.field({
    type: ConnectIntegrationPayload,
    nullable: true,
    description: `Creates a connection. It becomes ACTIVE when a person approves it. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: ConnectIntegrationInput, required: true, description: "The toolkit to connect." }) },
    resolve: (_root, { input }, ctx) =>
      ctx.services.integrations.connect(ctx, parsePermitted(ctx, requireKeyManager, connectIntegrationInput, input)),
  }),
);

const DeleteIntegrationInput = builder.inputType("DeleteIntegrationInput", {
  description: "Parameters of `deleteIntegration`.",
  fields: (t) => ({ id: t.id({ required: true, description: "The ID of the connection." }) }),
});

const DeleteIntegrationPayload = builder.objectRef<{ readonly integration: ConnectedApp }>("DeleteIntegrationPayload").implement({
  description: "The result of `deleteIntegration`.",
  fields: (t) => ({ integration: t.expose("integration", { type: Integration, description: "The connection before its deletion." }) }),
});

builder.mutationField("deleteIntegration", (t) =>
  t.field({
    type: DeleteIntegrationPayload,
    nullable: true,
    description: `Deletes a connection. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: DeleteIntegrationInput, required: true, description: "The connection to delete." }) },
    resolve: async (_root, { input }, ctx) => ({
      integration: await ctx.services.integrations.delete(ctx, readId(input.id, "Integration", "id")),
    }),
  }),
);
