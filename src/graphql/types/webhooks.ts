/** Webhooks: endpoints of the account, and the log of what they were sent. */

import { parsePermitted, requireKeyManager } from "../../services/access/permissions.js";
import { WEBHOOK_EVENTS, type WebhookEvent } from "../../services/webhooks/messages.js";
import type { DisabledReason } from "../../services/webhooks/queue.js";
import {
  createWebhookEndpointInput,
  updateWebhookEndpointInput,
  type WebhookDeliveryRow,
  type WebhookEndpointRow,
} from "../../services/webhooks/webhooks.js";
import { builder, enumValues } from "../builder.js";
import { createdPosition, pageArgs, pageCost, toConnection, toPageRequest } from "../pages.js";

const NEEDS_KEYS = "Needs a secret key with the permission KEYS.";

const WebhookEventEnum = builder.enumType("WebhookEvent", {
  description: "What an endpoint can listen to: `USAGE_RECORDED` comes as the type `usage.recorded`, and so on.",
  values: Object.fromEntries(WEBHOOK_EVENTS.map((value) => [value.toUpperCase().replace(".", "_"), { value }])) as Record<
    string,
    { readonly value: WebhookEvent }
  >,
});

const WebhookDisabledReason = builder.enumType("WebhookDisabledReason", {
  description: "GONE: it answered 410. FAILING: every try has failed for three days.",
  values: enumValues<DisabledReason>(["gone", "failing"]),
});

const WebhookDeliveryStatus = builder.enumType("WebhookDeliveryStatus", {
  description: "PENDING: still to be sent, or to be tried again. FAILED: nothing more is tried.",
  values: enumValues<WebhookDeliveryRow["status"]>(["pending", "delivered", "failed"]),
});

const WebhookEndpoint = builder.objectRef<WebhookEndpointRow>("WebhookEndpoint").implement({
  description: "An address that is told what happens to the account.",
  fields: (t) => ({
    id: t.exposeID("id"),
    url: t.exposeString("url"),
    events: t.field({ type: [WebhookEventEnum], resolve: ({ events }) => [...events] }),
    isEnabled: t.exposeBoolean("isEnabled"),
    disabledReason: t.expose("disabledReason", {
      type: WebhookDisabledReason,
      nullable: true,
      description: "Why the gateway disabled it; null when it did not.",
    }),
    failingSince: t.expose("failingSince", {
      type: "DateTime",
      nullable: true,
      description: "Since when every try has failed; null when the last one did not.",
    }),
    createdAt: t.expose("createdAt", { type: "DateTime" }),
  }),
});

const WebhookDelivery = builder.objectRef<WebhookDeliveryRow>("WebhookDelivery").implement({
  description: "A message to an endpoint, and how its delivery goes.",
  fields: (t) => ({
    id: t.exposeID("id", { description: "The message's id: `webhook-id`, the same at every try." }),
    event: t.exposeString("event", { description: "The message's type: `usage.recorded`, `webhook.test`, ..." }),
    status: t.expose("status", { type: WebhookDeliveryStatus }),
    attempts: t.exposeInt("attempts", { description: "Tries that were begun since it was queued or sent anew." }),
    nextAttemptAt: t.expose("nextAttemptAt", { type: "DateTime", nullable: true, description: "Null when nothing more is tried." }),
    lastStatus: t.exposeInt("lastStatus", {
      nullable: true,
      description: "The status that the last try was answered; null without an answer.",
    }),
    lastError: t.exposeString("lastError", { nullable: true }),
    message: t.string({ description: "The body as it is sent: JSON text.", resolve: ({ message }) => JSON.stringify(message) }),
    createdAt: t.expose("createdAt", { type: "DateTime" }),
    finishedAt: t.expose("finishedAt", { type: "DateTime", nullable: true }),
  }),
});

interface EndpointWithSecret {
  readonly endpoint: WebhookEndpointRow;
  readonly secret: string;
}

const WebhookEndpointSecret = builder.objectRef<EndpointWithSecret>("WebhookEndpointSecret").implement({
  fields: (t) => ({
    endpoint: t.field({ type: WebhookEndpoint, resolve: ({ endpoint }) => endpoint }),
    secret: t.exposeString("secret", { description: "`whsec_...`: what messages are signed with. It is shown this once." }),
  }),
});

builder.queryField("webhookEndpoints", (t) =>
  t.field({
    type: [WebhookEndpoint],
    nullable: true,
    description: `The account's endpoints, oldest first. ${NEEDS_KEYS}`,
    resolve: async (_root, _args, ctx) => [...(await ctx.services.webhooks.listEndpoints(ctx))],
  }),
);

builder.queryField("webhookDeliveries", (t) =>
  t.field({
    type: builder.connectionObject({ type: WebhookDelivery, name: "WebhookDeliveryConnection" }, { name: "WebhookDeliveryEdge" }),
    nullable: true,
    description: `What an endpoint was sent, newest first, for a month. ${NEEDS_KEYS}`,
    args: { ...pageArgs, endpointId: t.arg.id({ required: true }) },
    complexity: pageCost,
    resolve: async (_root, { endpointId, ...args }, ctx) =>
      toConnection(
        await ctx.services.webhooks.listDeliveries(ctx, endpointId, toPageRequest(args, "webhookDeliveries")),
        "webhookDeliveries",
        createdPosition,
      ),
  }),
);

const CreateWebhookEndpointInput = builder.inputType("CreateWebhookEndpointInput", {
  fields: (t) => ({
    url: t.string({ required: true, description: "https, and of a public host." }),
    events: t.field({ type: [WebhookEventEnum], required: true }),
  }),
});

builder.mutationField("createWebhookEndpoint", (t) =>
  t.field({
    type: WebhookEndpointSecret,
    nullable: true,
    description: `Adds an endpoint; an account has at most ten. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: CreateWebhookEndpointInput, required: true }) },
    resolve: (_root, { input }, ctx) =>
      ctx.services.webhooks.createEndpoint(ctx, parsePermitted(ctx, requireKeyManager, createWebhookEndpointInput, input)),
  }),
);

const UpdateWebhookEndpointInput = builder.inputType("UpdateWebhookEndpointInput", {
  description: "Only the fields that are sent change.",
  fields: (t) => ({
    id: t.id({ required: true }),
    url: t.string(),
    events: t.field({ type: [WebhookEventEnum] }),
    isEnabled: t.boolean({ description: "Disabled, it is sent nothing, and what waited for it has failed." }),
  }),
});

builder.mutationField("updateWebhookEndpoint", (t) =>
  t.field({
    type: WebhookEndpoint,
    nullable: true,
    description: `Changes an endpoint. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: UpdateWebhookEndpointInput, required: true }) },
    resolve: (_root, { input: { id, ...changes } }, ctx) =>
      ctx.services.webhooks.updateEndpoint(ctx, id, parsePermitted(ctx, requireKeyManager, updateWebhookEndpointInput, changes)),
  }),
);

interface DeletedWebhookEndpoint {
  readonly id: string;
}

const DeleteWebhookEndpointPayload = builder.objectRef<DeletedWebhookEndpoint>("DeleteWebhookEndpointPayload").implement({
  fields: (t) => ({ id: t.exposeID("id") }),
});

builder.mutationField("deleteWebhookEndpoint", (t) =>
  t.field({
    type: DeleteWebhookEndpointPayload,
    nullable: true,
    description: `Removes an endpoint with its log. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: {
      input: t.arg({
        type: builder.inputType("DeleteWebhookEndpointInput", { fields: (f) => ({ id: f.id({ required: true }) }) }),
        required: true,
      }),
    },
    resolve: async (_root, { input }, ctx) => ({ id: await ctx.services.webhooks.deleteEndpoint(ctx, input.id) }),
  }),
);

builder.mutationField("rotateWebhookSecret", (t) =>
  t.field({
    type: WebhookEndpointSecret,
    nullable: true,
    description: `Makes another secret. For 24 hours messages are signed with the one before it too. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: {
      input: t.arg({
        type: builder.inputType("RotateWebhookSecretInput", { fields: (f) => ({ id: f.id({ required: true }) }) }),
        required: true,
      }),
    },
    resolve: (_root, { input }, ctx) => ctx.services.webhooks.rotateSecret(ctx, input.id),
  }),
);

builder.mutationField("sendTestWebhook", (t) =>
  t.field({
    type: WebhookDelivery,
    nullable: true,
    description: `Sends the event \`webhook.test\`. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: {
      input: t.arg({
        type: builder.inputType("SendTestWebhookInput", { fields: (f) => ({ endpointId: f.id({ required: true }) }) }),
        required: true,
      }),
    },
    resolve: (_root, { input }, ctx) => ctx.services.webhooks.sendTest(ctx, input.endpointId),
  }),
);

const RedeliverWebhookInput = builder.inputType("RedeliverWebhookInput", {
  fields: (t) => ({ endpointId: t.id({ required: true }), deliveryId: t.id({ required: true }) }),
});

builder.mutationField("redeliverWebhook", (t) =>
  t.field({
    type: WebhookDelivery,
    nullable: true,
    description: `Sends a message anew, under the same id. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: RedeliverWebhookInput, required: true }) },
    resolve: (_root, { input }, ctx) => ctx.services.webhooks.redeliver(ctx, input.endpointId, input.deliveryId),
  }),
);
