/** Webhook endpoints of the account, and the log of their deliveries. */
import * as z from "zod";
import type { Exchange } from "../../http/exchange.js";
import type { Page } from "../../lib/pagination.js";
import { PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX } from "../../limits.js";
import { requireKeyManager } from "../../services/access/permissions.js";
import { queryInteger } from "../../services/requests/query-values.js";
import type { Services } from "../../services/services.js";
import {
  createWebhookEndpointInput,
  updateWebhookEndpointInput,
  type WebhookDeliveryRow,
  type WebhookEndpointRow,
} from "../../services/webhooks/webhooks.js";
import type { Endpoint } from "../endpoint.js";
import { json } from "../openapi/answer.js";
import { cursorText, nullableText, pathId, time, timeText } from "../openapi/schemas.js";
import { nextCursorOf, queryCursor } from "../query.js";
import type { Route } from "../route.js";

const deliveriesQuery = z.object({
  limit: queryInteger(z.int().min(1).max(PAGE_SIZE_MAX)).default(PAGE_SIZE_DEFAULT).describe("The maximum number of rows."),
  cursor: queryCursor("webhookDeliveries").optional().describe(cursorText),
});

const webhookEndpoint = json(
  "WebhookEndpoint",
  z.object({
    id: z.string(),
    url: z.string(),
    events: z.array(z.string()),
    isEnabled: z.boolean(),
    disabledReason: z.enum(["gone", "failing"]).nullable().describe("The reason why the gateway disabled the endpoint."),
    failingSince: time.nullable().describe("Since when all attempts have failed."),
    createdAt: time,
  }),
);

const webhookEndpointWithSecret = json(
  "WebhookEndpointWithSecret",
  z.object({
    ...webhookEndpoint.schema.shape,
    secret: z.string().describe("The signing secret, `whsec_...`. It is shown only once."),
  }),
);

const webhookDelivery = json(
  "WebhookDelivery",
  z.object({
    id: z.string().describe("The ID of the message: `webhook-id`."),
    event: z.string(),
    status: z.enum(["pending", "delivered", "failed"]),
    attempts: z.int().min(0),
    nextAttemptAt: time.nullable(),
    lastStatus: z.int().nullable(),
    lastError: nullableText,
    message: z.object({ type: z.string(), timestamp: timeText, data: z.looseObject({}) }).describe("The body of the message."),
    createdAt: time,
    finishedAt: time.nullable(),
  }),
);

const webhookId = pathId("The id of a webhook endpoint.");
const byWebhook = z.object({ webhook: webhookId });
const byDelivery = z.object({
  webhook: webhookId,
  delivery: pathId("The ID of a message, the `webhook-id` that the receiver got."),
});

export function addWebhookRoutes(route: Route, endpoint: Endpoint, { webhooks }: Pick<Services, "webhooks">): void {
  route("/webhooks", {
    GET: endpoint({
      id: "listWebhooks",
      tag: "Webhooks",
      summary: "Lists the account's webhook endpoints.",
      answer: json("WebhookEndpointList", z.object({ data: z.array(webhookEndpoint.schema) })),
      handler: async (ctx) => ({ data: (await webhooks.listEndpoints(ctx)).map(toWebhookEndpoint) }),
    }),
    POST: endpoint({
      id: "createWebhook",
      tag: "Webhooks",
      summary: "Adds an endpoint. Its secret is shown only once.",
      answer: webhookEndpointWithSecret,
      example: { body: { url: "https://example.com/sluice", events: ["balance.low"] } },
      requires: requireKeyManager,
      body: createWebhookEndpointInput,
      handler: async (ctx, { body, exchange }) => withSecret(exchange, await webhooks.createEndpoint(ctx, body)),
    }),
  });
  route("/webhooks/:webhook", {
    PATCH: endpoint({
      id: "updateWebhook",
      tag: "Webhooks",
      summary: "Updates an endpoint.",
      description: "After it is enabled again, or its events change, the endpoint receives only later events.",
      answer: webhookEndpoint,
      example: { body: { isEnabled: true } },
      requires: requireKeyManager,
      params: byWebhook,
      body: updateWebhookEndpointInput,
      handler: async (ctx, { params, body }) => toWebhookEndpoint(await webhooks.updateEndpoint(ctx, params.webhook, body)),
    }),
    DELETE: endpoint({
      id: "deleteWebhook",
      tag: "Webhooks",
      summary: "Deletes an endpoint and its log.",
      answer: json("DeletedWebhookEndpoint", z.object({ id: z.string(), deleted: z.literal(true) })),
      params: byWebhook,
      handler: async (ctx, { params }) => ({ id: await webhooks.deleteEndpoint(ctx, params.webhook), deleted: true as const }),
    }),
  });
  route("/webhooks/:webhook/rotate-secret", {
    POST: endpoint({
      id: "rotateWebhookSecret",
      tag: "Webhooks",
      summary: "Replaces the signing secret. The new secret is shown only once.",
      description: "For 24 hours, messages are also signed with the old secret.",
      answer: webhookEndpointWithSecret,
      params: byWebhook,
      handler: async (ctx, { params, exchange }) => withSecret(exchange, await webhooks.rotateSecret(ctx, params.webhook)),
    }),
  });
  route("/webhooks/:webhook/test", {
    POST: endpoint({
      id: "testWebhook",
      tag: "Webhooks",
      summary: "Sends the test event `webhook.test`.",
      answer: webhookDelivery,
      params: byWebhook,
      handler: async (ctx, { params }) => toWebhookDelivery(await webhooks.sendTest(ctx, params.webhook)),
    }),
  });
  route("/webhooks/:webhook/deliveries", {
    GET: endpoint({
      id: "listWebhookDeliveries",
      tag: "Webhooks",
      summary: "Lists deliveries and their status, newest first.",
      answer: json(
        "WebhookDeliveryList",
        z.object({ data: z.array(webhookDelivery.schema), nextCursor: nullableText, hasMore: z.boolean() }),
      ),
      requires: requireKeyManager,
      params: byWebhook,
      query: deliveriesQuery,
      handler: async (ctx, { params, query: { limit, cursor } }) =>
        toList(await webhooks.listDeliveries(ctx, params.webhook, { first: limit, after: cursor })),
    }),
  });
  route("/webhooks/:webhook/deliveries/:delivery/redeliver", {
    POST: endpoint({
      id: "redeliverWebhook",
      tag: "Webhooks",
      summary: "Sends a message again with the same ID.",
      answer: webhookDelivery,
      params: byDelivery,
      handler: async (ctx, { params }) => toWebhookDelivery(await webhooks.redeliver(ctx, params.webhook, params.delivery)),
    }),
  });
}

/** The only answer with the secret. */
function withSecret(exchange: Exchange, { endpoint, secret }: { endpoint: WebhookEndpointRow; secret: string }) {
  exchange.setHeaders({ "Cache-Control": "no-store" });
  return { ...toWebhookEndpoint(endpoint), secret };
}

function toList(page: Page<WebhookDeliveryRow>) {
  return { data: page.items.map(toWebhookDelivery), nextCursor: nextCursorOf(page, "webhookDeliveries"), hasMore: page.hasNextPage };
}

function toWebhookEndpoint({ id, url, events, isEnabled, disabledReason, failingSince, createdAt }: WebhookEndpointRow) {
  return { id, url, events, isEnabled, disabledReason, failingSince, createdAt };
}

function toWebhookDelivery(row: WebhookDeliveryRow) {
  const { id, event, status, attempts, nextAttemptAt, lastStatus, lastError, message, createdAt, finishedAt } = row;
  return { id, event, status, attempts, nextAttemptAt, lastStatus, lastError, message, createdAt, finishedAt };
}
