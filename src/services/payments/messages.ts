/** Webhook messages of top-ups (docs/webhooks.md). */
import { toCreditsNumber } from "../../lib/money.js";
import type { TopUpModel } from "../../store/generated/prisma/models.js";
import type { WebhookMessage } from "../webhooks/messages.js";
import type { ClaimStep } from "./claims.js";
import { formatCents } from "./money.js";

function factsOf({ id, nanocredits, amountCents, currency, processor, isAutomatic }: TopUpModel) {
  const price = { credits: toCreditsNumber(nanocredits), amount: formatCents(amountCents), currency };
  return { id, ...price, processor, is_automatic: isAutomatic };
}

export function completedMessage(row: TopUpModel, timestamp: Date): WebhookMessage {
  return { event: "top_up.completed", key: row.id, timestamp, data: factsOf(row) };
}

/** `failure`: for the payer. */
export function failedMessage(row: TopUpModel, failure: string, timestamp: Date): WebhookMessage {
  return { event: "top_up.failed", key: row.id, timestamp, data: { ...factsOf(row), failure } };
}

export interface ReversedTopUp {
  /** The id of the reversal. */
  readonly id: string;
  readonly kind: ClaimStep["kind"];
  /** Nanocredits: of the refund or dispute; taken from the balance, or returned to it; lost by the top-up in all. */
  readonly nanocredits: bigint;
  readonly moved: bigint;
  readonly lost: bigint;
}

export function reversedMessage(row: TopUpModel, { id, kind, nanocredits, moved, lost }: ReversedTopUp, timestamp: Date): WebhookMessage {
  const amounts = {
    change_credits: toCreditsNumber(nanocredits),
    moved_credits: toCreditsNumber(moved),
    lost_credits: toCreditsNumber(lost),
  };
  const event = kind === "refund" || kind === "refund_failed" ? "top_up.refunded" : "top_up.disputed";
  return { event, key: id, timestamp, data: { ...factsOf(row), change: kind, ...amounts } };
}
