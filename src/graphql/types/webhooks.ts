/** Webhooks: endpoints of the account, and the log of what they were sent. */

import type { Page, PageRequest } from "../../lib/pagination.js";
import { parsePermitted, requireKeyManager } from "../../services/access/permissions.js";
import type { SelectedDelivery } from "../../services/webhooks/deliveries.js";
import { WEBHOOK_ENDPOINTS_PER_ACCOUNT_MAX } from "../../services/webhooks/limits.js";
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
  description: "What an endpoint can listen to.",
  values: Object.fromEntries(
    WEBHOOK_EVENTS.map((value) => [value.toUpperCase().replace(".", "_"), { value, description: `Comes as the type \`${value}\`.` }]),
  ) as Record<string, { readonly value: WebhookEvent }>,
});

const WebhookDisabledReason = builder.enumType("WebhookDisabledReason", {
  description: "Why the gateway disabled an endpoint.",
  values: {
    GONE: { value: "gone", description: "It answered 410." },
    FAILING: { value: "failing", description: "Every try has failed for three days." },
  } as const,
});

const WebhookDeliveryStatus = builder.enumType("WebhookDeliveryStatus", {
  description: "How a delivery goes.",
  values: {
    PENDING: { value: "pending", description: "Still to be sent, or to be tried again." },
    DELIVERED: { value: "delivered", description: "The endpoint has taken it." },
    FAILED: { value: "failed", description: "Nothing more is tried." },
  } as const,
});

const WebhookDelivery = builder.prismaObject("WebhookDelivery", {
  description:
    "A message to an endpoint, and how its delivery goes. Its `restId` is the message's id: `webhook-id`, the same at every try.",
  interfaces: [Node],
  select: { id: true, createdAt: true },
  extensions: nodesReadBy(async (ctx, ids, info) =>
    byId(await ctx.services.webhooks.getDeliveries(ctx, ids, selectionOf(ctx, info, [], "WebhookDelivery"))),
  ),
  fields: (t) => ({
    event: t.exposeString("event", { description: "The message's type: `usage.recorded`, `webhook.test`, ..." }),
    status: t.field({
      type: WebhookDeliveryStatus,
      description: "How it goes.",
      select: { status: true },
      resolve: ({ status }) => status,
    }),
    attempts: t.exposeInt("attempts", { description: "Tries that were begun since it was queued or sent anew." }),
    nextAttemptAt: t.field({
      type: "DateTime",
      nullable: true,
      description: "When it is tried next. Null when nothing more is tried.",
      select: { status: true, nextAttemptAt: true },
      resolve: ({ status, nextAttemptAt }) => (status === "pending" ? nextAttemptAt : null),
    }),
    lastStatus: t.exposeInt("lastStatus", {
      nullable: true,
      description: "The status that the last try was answered; null without an answer.",
    }),
    lastError: t.exposeString("lastError", { nullable: true, description: "Why the last try failed; null when it did not." }),
    message: t.string({
      description: "The body as it is sent: JSON text.",
      select: { payload: true },
      resolve: ({ payload }) => JSON.stringify(toMessage(payload)),
    }),
    createdAt: t.expose("createdAt", { type: "DateTime", description: "When it was queued." }),
    finishedAt: t.expose("finishedAt", { type: "DateTime", nullable: true, description: "When it was delivered or given up." }),
  }),
});

const WebhookDeliveryConnection = builder.connectionObject(
  { type: WebhookDelivery, name: "WebhookDeliveryConnection", description: "Deliveries, page by page." },
  { name: "WebhookDeliveryEdge", description: "A delivery, and its place in the list." },
);

const deliveriesOf = edgesBatchedBy<PageRequest, Page<SelectedDelivery>>((ctx, ids, page, select) =>
  ctx.services.webhooks.listDeliveriesOf(ctx, ids, page, select),
);

export const WebhookEndpoint = builder.prismaObject("WebhookEndpoint", {
  description: "An address that is told what happens to the account.",
  interfaces: [Node],
  select: { id: true, createdAt: true },
  extensions: nodesReadBy(async (ctx, ids, info) =>
    byId(await ctx.services.webhooks.getMany(ctx, ids, selectionOf(ctx, info, [], "WebhookEndpoint"))),
  ),
  fields: (t) => ({
    url: t.exposeString("url", { description: "Where messages are sent." }),
    events: t.field({
      type: [WebhookEventEnum],
      description: "What it is told.",
      select: { events: true },
      resolve: ({ events }) => events as WebhookEvent[],
    }),
    isEnabled: t.exposeBoolean("isEnabled", { description: "Whether anything is sent to it." }),
    disabledReason: t.field({
      type: WebhookDisabledReason,
      nullable: true,
      description: "Why the gateway disabled it; null when it did not.",
      select: { disabledReason: true },
      resolve: ({ disabledReason }) => disabledReason as DisabledReason | null,
    }),
    failingSince: t.expose("failingSince", {
      type: "DateTime",
      nullable: true,
      description: "Since when every try has failed; null when the last one did not.",
    }),
    createdAt: t.expose("createdAt", { type: "DateTime", description: "When it was added." }),
    deliveries: t.field({
      type: WebhookDeliveryConnection,
      nullable: true,
      description: "What it was sent, newest first, for a month.",
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
    description: "Where it goes.",
    select: { endpointId: true },
    resolve: ({ endpointId }, _args, ctx, info) => endpointOf(ctx, endpointId, info),
  }),
);

builder.prismaObjectField(Account, "webhookEndpoints", (t) =>
  t.field({
    type: builder.connectionObject(
      { type: WebhookEndpoint, name: "WebhookEndpointConnection", description: "Webhook endpoints, page by page." },
      { name: "WebhookEndpointEdge", description: "A webhook endpoint, and its place in the list." },
    ),
    nullable: true,
    description: `Addresses that are told what happens to the account, newest first. ${NEEDS_KEYS}`,
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

builder.queryField("webhookEndpoints", (t) =>
  t.field({
    type: [WebhookEndpoint],
    nullable: true,
    description: `The account's endpoints, newest first. ${NEEDS_KEYS}`,
    deprecationReason: "Use `me { webhookEndpoints }`.",
    resolve: async (_root, _args, ctx, info) => [
      ...(await ctx.services.webhooks.listSelected(ctx, { first: WEBHOOK_ENDPOINTS_PER_ACCOUNT_MAX }, selectionOf(ctx, info))).items,
    ],
  }),
);

builder.queryField("webhookDeliveries", (t) =>
  t.field({
    type: WebhookDeliveryConnection,
    nullable: true,
    description: `What an endpoint was sent, newest first, for a month. ${NEEDS_KEYS}`,
    deprecationReason: "Use `WebhookEndpoint.deliveries`, of `me { webhookEndpoints }` or of `node`.",
    args: { ...pageArgs, endpointId: t.arg.id({ required: true, description: "Which endpoint." }) },
    complexity: pageCost,
    resolve: async (_root, { endpointId, ...args }, ctx, info) => {
      const id = readId(endpointId, "WebhookEndpoint", "endpointId");
      const page = toPageRequest(args, "webhookDeliveries");
      const deliveries = await ctx.services.webhooks.listDeliveriesSelected(ctx, id, page, connectionSelectionOf(ctx, info));
      return toConnection(deliveries, "webhookDeliveries", createdPosition);
    },
  }),
);

interface EndpointPayload {
  readonly webhookEndpoint: SelectedEndpoint;
}

interface SecretPayload extends EndpointPayload {
  readonly secret: string;
}

const SECRET = "`whsec_...`: what messages are signed with. It is shown this once.";

const CreateWebhookEndpointPayload = builder.objectRef<SecretPayload>("CreateWebhookEndpointPayload").implement({
  description: "A new endpoint.",
  fields: (t) => ({
    webhookEndpoint: t.field({ type: WebhookEndpoint, description: "The endpoint.", resolve: (made) => made.webhookEndpoint }),
    secret: t.exposeString("secret", { description: SECRET }),
  }),
});

const CreateWebhookEndpointInput = builder.inputType("CreateWebhookEndpointInput", {
  description: "The endpoint to be added.",
  fields: (t) => ({
    url: t.string({ required: true, description: "https, and of a public host." }),
    events: t.field({ type: [WebhookEventEnum], required: true, description: "What it is told; at least one." }),
  }),
});

builder.mutationField("createWebhookEndpoint", (t) =>
  t.field({
    type: CreateWebhookEndpointPayload,
    nullable: true,
    description: `Adds an endpoint; an account has at most ten. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: CreateWebhookEndpointInput, required: true, description: "The endpoint to be added." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const { webhooks } = ctx.services;
      const made = await webhooks.createEndpoint(ctx, parsePermitted(ctx, requireKeyManager, createWebhookEndpointInput, input));
      const webhookEndpoint = await webhooks.get(ctx, made.endpoint.id, selectionOf(ctx, info, ["webhookEndpoint"]));
      return { webhookEndpoint, secret: made.secret };
    },
  }),
);

const UpdateWebhookEndpointInput = builder.inputType("UpdateWebhookEndpointInput", {
  description: "Only the fields that are sent change.",
  fields: (t) => ({
    id: t.id({ required: true, description: "Which endpoint." }),
    url: t.string({ description: "https, and of a public host." }),
    events: t.field({ type: [WebhookEventEnum], description: "What it is told; at least one." }),
    isEnabled: t.boolean({ description: "Disabled, it is sent nothing, and what waited for it has failed." }),
  }),
});

const UpdateWebhookEndpointPayload = builder.objectRef<EndpointPayload>("UpdateWebhookEndpointPayload").implement({
  description: "An endpoint that has been changed.",
  fields: (t) => ({
    webhookEndpoint: t.field({ type: WebhookEndpoint, description: "As it now is.", resolve: (changed) => changed.webhookEndpoint }),
  }),
});

builder.mutationField("updateWebhookEndpoint", (t) =>
  t.field({
    type: UpdateWebhookEndpointPayload,
    nullable: true,
    description: `Changes an endpoint. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: UpdateWebhookEndpointInput, required: true, description: "Which endpoint, and what changes." }) },
    resolve: async (_root, { input: { id, ...changes } }, ctx, info) => {
      const { webhooks } = ctx.services;
      const input = parsePermitted(ctx, requireKeyManager, updateWebhookEndpointInput, changes);
      const changed = await webhooks.updateEndpoint(ctx, readId(id, "WebhookEndpoint", "id"), input);
      return { webhookEndpoint: await webhooks.get(ctx, changed.id, selectionOf(ctx, info, ["webhookEndpoint"])) };
    },
  }),
);

const DeleteWebhookEndpointPayload = builder.objectRef<{ readonly id: string }>("DeleteWebhookEndpointPayload").implement({
  description: "An endpoint that is no more.",
  fields: (t) => ({ deletedId: t.exposeID("id", { description: "The id that REST showed." }) }),
});

builder.mutationField("deleteWebhookEndpoint", (t) =>
  t.field({
    type: DeleteWebhookEndpointPayload,
    nullable: true,
    description: `Removes an endpoint with its log. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: {
      input: t.arg({
        type: builder.inputType("DeleteWebhookEndpointInput", {
          description: "The endpoint to be removed.",
          fields: (f) => ({ id: f.id({ required: true, description: "Which endpoint." }) }),
        }),
        required: true,
        description: "The endpoint to be removed.",
      }),
    },
    resolve: async (_root, { input }, ctx) => ({
      id: await ctx.services.webhooks.deleteEndpoint(ctx, readId(input.id, "WebhookEndpoint", "id")),
    }),
  }),
);

const RotateWebhookSecretPayload = builder.objectRef<SecretPayload>("RotateWebhookSecretPayload").implement({
  description: "An endpoint with another secret.",
  fields: (t) => ({
    webhookEndpoint: t.field({ type: WebhookEndpoint, description: "The endpoint.", resolve: (rotated) => rotated.webhookEndpoint }),
    secret: t.exposeString("secret", { description: SECRET }),
  }),
});

builder.mutationField("rotateWebhookSecret", (t) =>
  t.field({
    type: RotateWebhookSecretPayload,
    nullable: true,
    description: `Makes another secret. For 24 hours messages are signed with the one before it too. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: {
      input: t.arg({
        type: builder.inputType("RotateWebhookSecretInput", {
          description: "Whose secret to replace.",
          fields: (f) => ({ id: f.id({ required: true, description: "Which endpoint." }) }),
        }),
        required: true,
        description: "Whose secret to replace.",
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
  description: "A test message.",
  fields: (t) => ({
    webhookDelivery: t.field({ type: WebhookDelivery, description: "Its delivery.", resolve: (sent) => sent.webhookDelivery }),
  }),
});

builder.mutationField("sendTestWebhook", (t) =>
  t.field({
    type: SendTestWebhookPayload,
    nullable: true,
    description: `Sends the event \`webhook.test\`. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: {
      input: t.arg({
        type: builder.inputType("SendTestWebhookInput", {
          description: "Where to send a test message.",
          fields: (f) => ({ endpointId: f.id({ required: true, description: "Which endpoint." }) }),
        }),
        required: true,
        description: "Where to send a test message.",
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
  description: "The message to be sent anew.",
  fields: (t) => ({
    endpointId: t.id({ required: true, description: "Which endpoint." }),
    deliveryId: t.id({ required: true, description: "Which of its deliveries." }),
  }),
});

const RedeliverWebhookPayload = builder.objectRef<DeliveryPayload>("RedeliverWebhookPayload").implement({
  description: "A message that is sent anew.",
  fields: (t) => ({
    webhookDelivery: t.field({ type: WebhookDelivery, description: "Its delivery.", resolve: (sent) => sent.webhookDelivery }),
  }),
});

builder.mutationField("redeliverWebhook", (t) =>
  t.field({
    type: RedeliverWebhookPayload,
    nullable: true,
    description: `Sends a message anew, under the same id. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: RedeliverWebhookInput, required: true, description: "The message to be sent anew." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const { webhooks } = ctx.services;
      const endpointId = readId(input.endpointId, "WebhookEndpoint", "endpointId");
      const { id } = await webhooks.redeliver(ctx, endpointId, readId(input.deliveryId, "WebhookDelivery", "deliveryId"));
      return { webhookDelivery: await webhooks.getDelivery(ctx, id, selectionOf(ctx, info, ["webhookDelivery"])) };
    },
  }),
);
