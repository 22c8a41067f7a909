/** Webhook events and their messages, with the field names of the REST face. They never hold a prompt, an answer or a key's value. */
import { toCreditsNumber } from "../../lib/money.js";
import type { EventChannels } from "../../store/events.js";
import type { Prisma } from "../../store/generated/prisma/client.js";
import type { ApiKeyRow } from "../api-keys/api-key-rows.js";
import type { LowBalanceNotice } from "../credits/low-balance.js";
import { toJsonRow, USAGE_COLUMNS, type UsageRow } from "../usage/usage.js";

export const WEBHOOK_EVENTS = [
  "usage.recorded",
  "balance.low",
  "api_key.created",
  "api_key.revoked",
  "run.asked",
  "alert.raised",
  "limit.reached",
  "top_up.completed",
  "top_up.failed",
  "top_up.refunded",
  "top_up.disputed",
] as const;
export type WebhookEvent = (typeof WEBHOOK_EVENTS)[number];
/** Sent when the owner asks for it, also to an endpoint that listens to other events. */
export const TEST_EVENT = "webhook.test";

export const ASKING_RUN = {
  ...{ id: true, accountId: true, label: true, askedNanocredits: true, askedAt: true },
  key: { select: { budgetNanocredits: true, spentNanocredits: true } },
} as const satisfies Prisma.RunSelect;
type AskingRun = Prisma.RunGetPayload<{ select: typeof ASKING_RUN }>;

type JsonValue = string | number | boolean | null | readonly string[];

export interface WebhookMessage {
  readonly event: WebhookEvent | typeof TEST_EVENT;
  /** Identifies the event, so that it is queued once per endpoint. */
  readonly key: string;
  /** Time of the event. */
  readonly timestamp: Date;
  readonly data: Readonly<Record<string, JsonValue>>;
}

/** The stored body, the same for every attempt (Standard Webhooks, "Payload structure"). */
export interface WebhookBody {
  readonly type: string;
  readonly timestamp: string;
  readonly data: Readonly<Record<string, JsonValue>>;
}

export function toBody({ event, timestamp, data }: WebhookMessage): WebhookBody {
  return { type: event, timestamp: timestamp.toISOString(), data };
}

/** As in GET /account/usage. */
export function usageMessage(row: UsageRow): WebhookMessage {
  return { event: "usage.recorded", key: row.id, timestamp: row.timestamp, data: toJsonRow(USAGE_COLUMNS, row) };
}

/** The key without its value. */
export function apiKeyMessage(event: "api_key.created" | "api_key.revoked", row: ApiKeyRow): WebhookMessage {
  const { id, name, type, prefix, start, permissions, allowedModels, creditBudget, expiresAt, createdAt, revokedAt } = row;
  const data = {
    ...{ id, name, type, prefix, start, permissions, allowedModels },
    creditBudget: creditBudget === null ? null : toCreditsNumber(creditBudget),
    expiresAt: expiresAt?.toISOString() ?? null,
    createdAt: createdAt.toISOString(),
    ...(event === "api_key.revoked" && { revokedAt: revokedAt?.toISOString() ?? null }),
  };
  return { event, key: id, timestamp: event === "api_key.created" ? createdAt : (revokedAt ?? createdAt), data };
}

export function lowBalanceMessage({ balance, threshold, since }: LowBalanceNotice): WebhookMessage {
  const data = { balance: toCreditsNumber(balance), threshold: toCreditsNumber(threshold) };
  return { event: "balance.low", key: since.toISOString(), timestamp: since, data };
}

/** `null` columns: the run does not ask any more. */
export function runMessage({ id, label, askedNanocredits, askedAt, key }: AskingRun): WebhookMessage | null {
  if (askedNanocredits === null || askedAt === null) return null;
  const data = {
    ...{ id, label, asked: toCreditsNumber(askedNanocredits) },
    max_cost: toCreditsNumber(key.budgetNanocredits ?? 0n),
    spent: toCreditsNumber(key.spentNanocredits),
  };
  return { event: "run.asked", key: `${id} ${askedAt.toISOString()}`, timestamp: askedAt, data };
}

/** `limit`: the ID of the limit. */
export function limitMessage(reached: EventChannels["usage-limit-reached"]): WebhookMessage {
  const { limitId, apiKeyId, model, metric, percent, amount, spent, at } = reached;
  const data = { limit: limitId, apiKeyId, model, metric, percent, amount, spent };
  return { event: "limit.reached", key: `${limitId} ${percent} ${at}`, timestamp: new Date(at), data };
}

export function testMessage(id: string, endpointId: string, timestamp: Date): WebhookMessage {
  return { event: TEST_EVENT, key: id, timestamp, data: { endpointId } };
}
