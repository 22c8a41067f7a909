/** Connected apps: the account's connections, what can be connected, and connecting (docs/spec/connected-apps.md). */

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
  description: "Whether a connection can be used.",
  values: describedValues<ConnectedAppStatus>({
    initiated: "A person has yet to approve it.",
    active: "The app can be used.",
    failed: "It was refused, or something went wrong.",
    expired: "Nobody approved it in time, or what was approved has run out.",
    inactive: "It was switched off, or ended by the app.",
  }),
});

const Integration = builder.objectRef<ConnectedApp>("Integration").implement({
  description: `A connection of the account to an outside app. ${NEEDS_KEYS}`,
  interfaces: [Node],
  extensions: nodesReadBy(async (ctx, ids) => byId(await ctx.services.integrations.getMany(ctx, ids))),
  fields: (t) => ({
    toolkit: t.exposeString("toolkit", { description: "The slug of the toolkit that it is a connection to." }),
    name: t.exposeString("name", { nullable: true, description: "What the outside app is called. Null: its broker does not say." }),
    description: t.exposeString("description", { description: "What the outside app is for." }),
    logo: t.exposeString("logo", { nullable: true, description: "The address of a picture. Null: there is none." }),
    alias: t.exposeString("alias", { nullable: true, description: "What the person calls this connection. Null: nothing in particular." }),
    status: t.expose("status", { type: IntegrationStatus, description: "Whether it can be used." }),
  }),
});

const Toolkit = builder.objectRef<ToolkitRow>("Toolkit").implement({
  description: "An outside app that can be connected.",
  fields: (t) => ({
    slug: t.exposeString("slug", { description: "Names it, for `connectIntegration`." }),
    name: t.exposeString("name", { description: "What it is called." }),
    description: t.exposeString("description", { description: "What it is for." }),
    logo: t.exposeString("logo", { nullable: true, description: "The address of a picture. Null: there is none." }),
  }),
});

builder.prismaObjectField(Account, "integrations", (t) =>
  t.field({
    type: [Integration],
    nullable: true,
    description: `The account's connections to outside apps, at most ${CONNECTED_APPS_PER_ACCOUNT_MAX}. ${NEEDS_KEYS}`,
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
    description: `What can be connected. ${NEEDS_KEYS}`,
    args: { search: t.arg.string({ description: "Part of a name or description, at most 100 characters. Every toolkit unless stated." }) },
    resolve: async (_root, { search }, ctx) => [
      ...(await ctx.services.integrations.listToolkits(
        ctx,
        parsePermitted(ctx, requireKeyManager, listToolkitsInput, { search: search ?? undefined }),
      )),
    ],
  }),
);

const ConnectIntegrationInput = builder.inputType("ConnectIntegrationInput", {
  description: "What to connect.",
  fields: (t) => ({ toolkit: t.string({ required: true, description: "A toolkit's slug." }) }),
});

const ConnectIntegrationPayload = builder.objectRef<NewConnection>("ConnectIntegrationPayload").implement({
  description: "A connection that waits for a person's approval.",
  fields: (t) => ({
    integration: t.field({
      type: Integration,
      nullable: true,
      description: "The connection, as it stands. Null: the broker does not list it yet.",
      resolve: async ({ id }, _args, ctx) => (await ctx.services.integrations.getMany(ctx, [id]))[0] ?? null,
    }),
    integrationId: t.exposeID("id", { description: "The connection's REST id." }),
    url: t.exposeString("url", { description: "The page on which a person signs in to the app and approves. Send a browser there." }),
  }),
});

builder.mutationField("connectIntegration", (t) =>
  t.field({
    type: ConnectIntegrationPayload,
    nullable: true,
    description: `Begins a connection, which is ACTIVE once a person has approved it. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: ConnectIntegrationInput, required: true, description: "What to connect." }) },
    resolve: (_root, { input }, ctx) =>
      ctx.services.integrations.connect(ctx, parsePermitted(ctx, requireKeyManager, connectIntegrationInput, input)),
  }),
);

const DeleteIntegrationInput = builder.inputType("DeleteIntegrationInput", {
  description: "The connection to be ended.",
  fields: (t) => ({ id: t.id({ required: true, description: "Which connection." }) }),
});

const DeleteIntegrationPayload = builder.objectRef<{ readonly integration: ConnectedApp }>("DeleteIntegrationPayload").implement({
  description: "A connection that has been ended.",
  fields: (t) => ({ integration: t.expose("integration", { type: Integration, description: "What was known of it." }) }),
});

builder.mutationField("deleteIntegration", (t) =>
  t.field({
    type: DeleteIntegrationPayload,
    nullable: true,
    description: `Ends a connection. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: DeleteIntegrationInput, required: true, description: "Which connection." }) },
    resolve: async (_root, { input }, ctx) => ({
      integration: await ctx.services.integrations.delete(ctx, readId(input.id, "Integration", "id")),
    }),
  }),
);
