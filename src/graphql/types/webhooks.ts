/** Webhook endpoints of the account, and the log of their deliveries. */

import type { Page, PageRequest } from "../../lib/pagination.js";
import { parsePermitted, requireKeyManager } from "../../services/access/permissions.js";
import type { SelectedDelivery } from "../../services/webhooks/deliveries.js";
import { WEBHOOK_EVENTS, type WebhookEvent } from "../../services/webhooks/messages.js";
import type { DisabledReason } from "../../services/webhooks/queue.js";
import {
  createWebhookEndpointInput,
  type SelectedEndpoint,
  toMessage,
  updateWebhookEndpointInput,
} from "../../services/webhooks/webhooks.js";
import { builder } from "../builder.js";
import { readId } from "../global-ids.js";
import { edgesBatchedBy, rowsBatchedBy } from "../loaders.js";
import { byId, Node, nodesReadBy } from "../nodes.js";
import { createdPosition, pageArgs, pageCost, toConnection, toPageRequest } from "../pages.js";
import { connectionSelectionOf, selectionOf } from "../selection.js";
import { Account } from "./accounts.js";

const NEEDS_KEYS = "Needs a secret key with the permission KEYS.";

const WebhookEventEnum = builder.enumType("WebhookEvent", {
  description: "An event that an endpoint can subscribe to.",
  values: Object.fromEntries(
    WEBHOOK_EVENTS.map((value) => [value.toUpperCase().replace(".", "_"), { value, description: `Sent as the type \`${value}\`.` }]),
  ) as Record<string, { readonly value: WebhookEvent }>,
});

const WebhookDisabledReason = builder.enumType("WebhookDisabledReason", {
  description: "The reason why the gateway disabled an endpoint.",
  values: {
    GONE: { value: "gone", description: "The endpoint answered 410." },
    FAILING: { value: "failing", description: "All attempts failed for three days." },
  } as const,
});

const WebhookDeliveryStatus = builder.enumType("WebhookDeliveryStatus", {
  description: "The status of a delivery.",
  values: {
    PENDING: { value: "pending", description: "Waits for its first or next attempt." },
    DELIVERED: { value: "delivered", description: "The endpoint accepted the message." },
    FAILED: { value: "failed", description: "No more attempts are made." },
  } as const,
});

const WebhookDelivery = builder.prismaObject("WebhookDelivery", {
  description: "A message to an endpoint and its delivery. The `restId` is the ID of the message: `webhook-id`, the same in every attempt.",
  interfaces: [Node],
  select: { id: true, createdAt: true },
  extensions: nodesReadBy(async (ctx, ids, info) =>
    byId(await ctx.services.webhooks.getDeliveries(ctx, ids, selectionOf(ctx, info, [], "WebhookDelivery"))),
  ),
  fields: (t) => ({
    event: t.exposeString("event", { description: "The type of the message: `usage.recorded`, `webhook.test`, ..." }),
    status: t.field({
      type: WebhookDeliveryStatus,
      description: "The status of the delivery.",
      select: { status: true },
      resolve: ({ status }) => status,
    }),
    attempts: t.exposeInt("attempts", { description: "The number of attempts since the message was queued or redelivered." }),
    nextAttemptAt: t.field({
      type: "DateTime",
      nullable: true,
      description: "When the next attempt is made. Null when no more attempts are made.",
      select: { status: true, nextAttemptAt: true },
      resolve: ({ status, nextAttemptAt }) => (status === "pending" ? nextAttemptAt : null),
    }),
    lastStatus: t.exposeInt("lastStatus", { nullable: true, description: "The HTTP status of the last attempt. Null without a response." }),
    lastError: t.exposeString("lastError", { nullable: true, description: "Why the last attempt failed. Null when it succeeded." }),
    message: t.string({
      description: "The body of the message, as JSON text.",
      select: { payload: true },
      resolve: ({ payload }) => JSON.stringify(toMessage(payload)),
    }),
    createdAt: t.expose("createdAt", { type: "DateTime", description: "When the message was queued." }),
    finishedAt: t.expose("finishedAt", { type: "DateTime", nullable: true, description: "When the message was delivered or given up." }),
  }),
});

const WebhookDeliveryConnection = builder.connectionObject(
  { type: WebhookDelivery, name: "WebhookDeliveryConnection", description: "A page of deliveries." },
  { name: "WebhookDeliveryEdge", description: "A delivery and its cursor." },
);

const deliveriesOf = edgesBatchedBy<PageRequest, Page<SelectedDelivery>>((ctx, ids, page, select) =>
  ctx.services.webhooks.listDeliveriesOf(ctx, ids, page, select),
);

export const WebhookEndpoint = builder.prismaObject("WebhookEndpoint", {
  description: "A URL that receives events of the account.",
  interfaces: [Node],
  select: { id: true, createdAt: true },
  extensions: nodesReadBy(async (ctx, ids, info) =>
    byId(await ctx.services.webhooks.getMany(ctx, ids, selectionOf(ctx, info, [], "WebhookEndpoint"))),
  ),
  fields: (t) => ({
    url: t.exposeString("url", { description: "The URL that messages are sent to." }),
    events: t.field({
      type: [WebhookEventEnum],
      description: "The events that are sent.",
      select: { events: true },
      resolve: ({ events }) => events as WebhookEvent[],
    }),
    isEnabled: t.exposeBoolean("isEnabled", { description: "Whether messages are sent to the endpoint." }),
    disabledReason: t.field({
      type: WebhookDisabledReason,
      nullable: true,
      description: "The reason why the gateway disabled the endpoint. Null when it did not.",
      select: { disabledReason: true },
      resolve: ({ disabledReason }) => disabledReason as DisabledReason | null,
    }),
    failingSince: t.expose("failingSince", { type: "DateTime", nullable: true, description: "Since when all attempts fail, or null." }),
    createdAt: t.expose("createdAt", { type: "DateTime", description: "When the endpoint was added." }),
    deliveries: t.field({
      type: WebhookDeliveryConnection,
      nullable: true,
      description: "Deliveries of the last month, newest first.",
      args: pageArgs,
      complexity: pageCost,
      resolve: async ({ id }, args, ctx, info) => {
        const deliveries = await deliveriesOf(ctx, id, toPageRequest(args, "webhookDeliveries"), connectionSelectionOf(ctx, info));
        return deliveries && toConnection(deliveries, "webhookDeliveries", createdPosition);
      },
    }),
  }),
});

const endpointOf = rowsBatchedBy((ctx, ids, select) => ctx.services.webhooks.getMany(ctx, ids, select));

builder.prismaObjectField(WebhookDelivery, "endpoint", (t) =>
  t.field({
    type: WebhookEndpoint,
    nullable: true,
    description: "The endpoint of this delivery.",
    select: { endpointId: true },
    resolve: ({ endpointId }, _args, ctx, info) => endpointOf(ctx, endpointId, info),
  }),
);

builder.prismaObjectField(Account, "webhookEndpoints", (t) =>
  t.field({
    type: builder.connectionObject(
      { type: WebhookEndpoint, name: "WebhookEndpointConnection", description: "A page of webhook endpoints." },
      { name: "WebhookEndpointEdge", description: "A webhook endpoint and its cursor." },
    ),
    nullable: true,
    description: `Webhook endpoints of the account, newest first. ${NEEDS_KEYS}`,
    args: pageArgs,
    complexity: pageCost,
    resolve: async ({ id }, args, ctx, info) => {
      ctx.services.accounts.assertOwn(ctx, id);
      const page = toPageRequest(args, "webhookEndpoints");
      const endpoints = await ctx.services.webhooks.listSelected(ctx, page, connectionSelectionOf(ctx, info));
      return toConnection(endpoints, "webhookEndpoints", createdPosition);
    },
  }),
);

interface EndpointPayload {
  readonly webhookEndpoint: SelectedEndpoint;
}

interface SecretPayload extends EndpointPayload {
  readonly secret: string;
}

const SECRET = "The signing secret, `whsec_...`. It is shown only once.";

const CreateWebhookEndpointPayload = builder.objectRef<SecretPayload>("CreateWebhookEndpointPayload").implement({
  description: "The result of `createWebhookEndpoint`.",
  fields: (t) => ({
    webhookEndpoint: t.field({ type: WebhookEndpoint, description: "The new endpoint.", resolve: (made) => made.webhookEndpoint }),
    secret: t.exposeString("secret", { description: SECRET }),
  }),
});

const CreateWebhookEndpointInput = builder.inputType("CreateWebhookEndpointInput", {
  description: "Parameters of `createWebhookEndpoint`.",
  fields: (t) => ({
    url: t.string({ required: true, description: "An https URL on a public host." }),
    events: t.field({ type: [WebhookEventEnum], required: true, description: "The events to send, at least one." }),
  }),
});

builder.mutationField("createWebhookEndpoint", (t) =>
  t.field({
    type: CreateWebhookEndpointPayload,
    nullable: true,
    description: `Adds an endpoint. An account has at most ten. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: CreateWebhookEndpointInput, required: true, description: "The endpoint to add." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const { webhooks } = ctx.services;
      const made = await webhooks.createEndpoint(ctx, parsePermitted(ctx, requireKeyManager, createWebhookEndpointInput, input));
      const webhookEndpoint = await webhooks.get(ctx, made.endpoint.id, selectionOf(ctx, info, ["webhookEndpoint"]));
      return { webhookEndpoint, secret: made.secret };
    },
  }),
);

const UpdateWebhookEndpointInput = builder.inputType("UpdateWebhookEndpointInput", {
  description: "Parameters of `updateWebhookEndpoint`. Omitted fields do not change.",
  fields: (t) => ({
    id: t.id({ required: true, description: "The ID of the endpoint." }),
    url: t.string({ description: "An https URL on a public host." }),
    events: t.field({ type: [WebhookEventEnum], description: "The events to send, at least one." }),
    isEnabled: t.boolean({ description: "Whether messages are sent. Disabling the endpoint fails its pending deliveries." }),
  }),
});

const UpdateWebhookEndpointPayload = builder.objectRef<EndpointPayload>("UpdateWebhookEndpointPayload").implement({
  description: "The result of `updateWebhookEndpoint`.",
  fields: (t) => ({
    webhookEndpoint: t.field({
      type: WebhookEndpoint,
      description: "The endpoint after the change.",
      resolve: (changed) => changed.webhookEndpoint,
    }),
  }),
});

builder.mutationField("updateWebhookEndpoint", (t) =>
  t.field({
    type: UpdateWebhookEndpointPayload,
    nullable: true,
    description: `Updates an endpoint. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: UpdateWebhookEndpointInput, required: true, description: "The endpoint and its changes." }) },
    resolve: async (_root, { input: { id, ...changes } }, ctx, info) => {
      const { webhooks } = ctx.services;
      const input = parsePermitted(ctx, requireKeyManager, updateWebhookEndpointInput, changes);
      const changed = await webhooks.updateEndpoint(ctx, readId(id, "WebhookEndpoint", "id"), input);
      return { webhookEndpoint: await webhooks.get(ctx, changed.id, selectionOf(ctx, info, ["webhookEndpoint"])) };
    },
  }),
);

const DeleteWebhookEndpointPayload = builder.objectRef<{ readonly id: string }>("DeleteWebhookEndpointPayload").implement({
  description: "The result of `deleteWebhookEndpoint`.",
  fields: (t) => ({ deletedId: t.exposeID("id", { description: "The REST ID of the deleted endpoint." }) }),
});

builder.mutationField("deleteWebhookEndpoint", (t) =>
  t.field({
    type: DeleteWebhookEndpointPayload,
    nullable: true,
    description: `Deletes an endpoint and its log. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: {
      input: t.arg({
        type: builder.inputType("DeleteWebhookEndpointInput", {
          description: "Parameters of `deleteWebhookEndpoint`.",
          fields: (f) => ({ id: f.id({ required: true, description: "The ID of the endpoint." }) }),
        }),
        required: true,
        description: "The endpoint to delete.",
      }),
    },
    resolve: async (_root, { input }, ctx) => ({
      id: await ctx.services.webhooks.deleteEndpoint(ctx, readId(input.id, "WebhookEndpoint", "id")),
    }),
  }),
);

const RotateWebhookSecretPayload = builder.objectRef<SecretPayload>("RotateWebhookSecretPayload").implement({
  description: "The result of `rotateWebhookSecret`.",
  fields: (t) => ({
    webhookEndpoint: t.field({ type: WebhookEndpoint, description: "The endpoint.", resolve: (rotated) => rotated.webhookEndpoint }),
    secret: t.exposeString("secret", { description: SECRET }),
  }),
});

builder.mutationField("rotateWebhookSecret", (t) =>
  t.field({
    type: RotateWebhookSecretPayload,
    nullable: true,
    description: `Replaces the signing secret. For 24 hours, messages are also signed with the old secret. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: {
      input: t.arg({
        type: builder.inputType("RotateWebhookSecretInput", {
          description: "Parameters of `rotateWebhookSecret`.",
          fields: (f) => ({ id: f.id({ required: true, description: "The ID of the endpoint." }) }),
        }),
        required: true,
        description: "The endpoint whose secret to replace.",
      }),
    },
    resolve: async (_root, { input }, ctx, info) => {
      const { webhooks } = ctx.services;
      const { endpoint, secret } = await webhooks.rotateSecret(ctx, readId(input.id, "WebhookEndpoint", "id"));
      return { webhookEndpoint: await webhooks.get(ctx, endpoint.id, selectionOf(ctx, info, ["webhookEndpoint"])), secret };
    },
  }),
);

interface DeliveryPayload {
  readonly webhookDelivery: SelectedDelivery;
}

const SendTestWebhookPayload = builder.objectRef<DeliveryPayload>("SendTestWebhookPayload").implement({
  description: "The result of `sendTestWebhook`.",
  fields: (t) => ({
    webhookDelivery: t.field({
      type: WebhookDelivery,
      description: "The delivery of the test message.",
      resolve: (sent) => sent.webhookDelivery,
    }),
  }),
});

builder.mutationField("sendTestWebhook", (t) =>
  t.field({
    type: SendTestWebhookPayload,
    nullable: true,
    description: `Sends the test event \`webhook.test\`. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: {
      input: t.arg({
        type: builder.inputType("SendTestWebhookInput", {
          description: "Parameters of `sendTestWebhook`.",
          fields: (f) => ({ endpointId: f.id({ required: true, description: "The ID of the endpoint." }) }),
        }),
        required: true,
        description: "The endpoint to test.",
      }),
    },
    resolve: async (_root, { input }, ctx, info) => {
      const { webhooks } = ctx.services;
      const { id } = await webhooks.sendTest(ctx, readId(input.endpointId, "WebhookEndpoint", "endpointId"));
      return { webhookDelivery: await webhooks.getDelivery(ctx, id, selectionOf(ctx, info, ["webhookDelivery"])) };
    },
  }),
);

const RedeliverWebhookInput = builder.inputType("RedeliverWebhookInput", {
  description: "Parameters of `redeliverWebhook`.",
  fields: (t) => ({
    endpointId: t.id({ required: true, description: "The ID of the endpoint." }),
    deliveryId: t.id({ required: true, description: "The ID of the delivery." }),
  }),
});

const RedeliverWebhookPayload = builder.objectRef<DeliveryPayload>("RedeliverWebhookPayload").implement({
  description: "The result of `redeliverWebhook`.",
  fields: (t) => ({
    webhookDelivery: t.field({ type: WebhookDelivery, description: "The redelivery.", resolve: (sent) => sent.webhookDelivery }),
  }),
});

builder.mutationField("redeliverWebhook", (t) =>
  t.field({
    type: RedeliverWebhookPayload,
    nullable: true,
    description: `Sends a message again with the same ID. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: RedeliverWebhookInput, required: true, description: "The message to send again." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const { webhooks } = ctx.services;
      const endpointId = readId(input.endpointId, "WebhookEndpoint", "endpointId");
      const { id } = await webhooks.redeliver(ctx, endpointId, readId(input.deliveryId, "WebhookDelivery", "deliveryId"));
      return { webhookDelivery: await webhooks.getDelivery(ctx, id, selectionOf(ctx, info, ["webhookDelivery"])) };
    },
  }),
);
