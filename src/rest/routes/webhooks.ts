/** Webhook endpoints of the account, and the log of their deliveries. */
import * as z from "zod";
import type { Exchange } from "../../http/exchange.js";
import { encodeCursor, type Page } from "../../lib/pagination.js";
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
import { queryCursor } from "../query.js";
import type { Route } from "../route.js";

const deliveriesQuery = z.object({
  limit: queryInteger(z.int().min(1).max(PAGE_SIZE_MAX)).default(PAGE_SIZE_DEFAULT),
  cursor: queryCursor("webhookDeliveries").optional(),
});

export function addWebhookRoutes(route: Route, endpoint: Endpoint, { webhooks }: Pick<Services, "webhooks">): void {
  route("/webhooks", {
    GET: endpoint({ handler: async (ctx) => ({ data: (await webhooks.listEndpoints(ctx)).map(toWebhookEndpoint) }) }),
    POST: endpoint({
      requires: requireKeyManager,
      body: createWebhookEndpointInput,
      handler: async (ctx, { body, exchange }) => withSecret(exchange, await webhooks.createEndpoint(ctx, body)),
    }),
  });
  route("/webhooks/:webhook", {
    PATCH: endpoint({
      requires: requireKeyManager,
      body: updateWebhookEndpointInput,
      handler: async (ctx, { body, exchange }) => toWebhookEndpoint(await webhooks.updateEndpoint(ctx, idOf(exchange), body)),
    }),
    DELETE: endpoint({
      handler: async (ctx, { exchange }) => ({ id: await webhooks.deleteEndpoint(ctx, idOf(exchange)), deleted: true }),
    }),
  });
  route("/webhooks/:webhook/rotate-secret", {
    POST: endpoint({ handler: async (ctx, { exchange }) => withSecret(exchange, await webhooks.rotateSecret(ctx, idOf(exchange))) }),
  });
  route("/webhooks/:webhook/test", {
    POST: endpoint({ handler: async (ctx, { exchange }) => toWebhookDelivery(await webhooks.sendTest(ctx, idOf(exchange))) }),
  });
  route("/webhooks/:webhook/deliveries", {
    GET: endpoint({
      requires: requireKeyManager,
      query: deliveriesQuery,
      handler: async (ctx, { query: { limit, cursor }, exchange }) =>
        toList(await webhooks.listDeliveries(ctx, idOf(exchange), { first: limit, after: cursor })),
    }),
  });
  route("/webhooks/:webhook/deliveries/:delivery/redeliver", {
    POST: endpoint({
      handler: async (ctx, { exchange }) =>
        toWebhookDelivery(await webhooks.redeliver(ctx, idOf(exchange), exchange.parameter("delivery"))),
    }),
  });
}

function idOf(exchange: Exchange): string {
  return exchange.parameter("webhook");
}

/** The only answer with the secret. */
function withSecret(exchange: Exchange, { endpoint, secret }: { endpoint: WebhookEndpointRow; secret: string }) {
  exchange.setHeaders({ "Cache-Control": "no-store" });
  return { ...toWebhookEndpoint(endpoint), secret };
}

function toList({ items, hasNextPage }: Page<WebhookDeliveryRow>) {
  const last = hasNextPage ? items.at(-1) : undefined;
  const nextCursor = last === undefined ? null : encodeCursor({ timestamp: last.createdAt, id: last.id }, "webhookDeliveries");
  return { data: items.map(toWebhookDelivery), nextCursor, hasMore: hasNextPage };
}

function toWebhookEndpoint({ id, url, events, isEnabled, disabledReason, failingSince, createdAt }: WebhookEndpointRow) {
  return { id, url, events, isEnabled, disabledReason, failingSince, createdAt };
}

function toWebhookDelivery(row: WebhookDeliveryRow) {
  const { id, event, status, attempts, nextAttemptAt, lastStatus, lastError, message, createdAt, finishedAt } = row;
  return { id, event, status, attempts, nextAttemptAt, lastStatus, lastError, message, createdAt, finishedAt };
}
