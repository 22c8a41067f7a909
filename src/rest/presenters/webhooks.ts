/** Webhook endpoints, their log, and the low balance, as REST shows them. */
import { toCreditsNumber } from "../../lib/money.js";
import type { LowBalanceRow } from "../../services/credits/low-balance.js";
import type { WebhookDeliveryRow, WebhookEndpointRow } from "../../services/webhooks/webhooks.js";

export function toWebhookEndpoint({ id, url, events, isEnabled, disabledReason, failingSince, createdAt }: WebhookEndpointRow) {
  return { id, url, events, isEnabled, disabledReason, failingSince, createdAt };
}

export function toWebhookDelivery(row: WebhookDeliveryRow) {
  const { id, event, status, attempts, nextAttemptAt, lastStatus, lastError, message, createdAt, finishedAt } = row;
  return { id, event, status, attempts, nextAttemptAt, lastStatus, lastError, message, createdAt, finishedAt };
}

export function toLowBalance({ threshold, since }: LowBalanceRow) {
  return { threshold: threshold === null ? null : toCreditsNumber(threshold), since };
}
