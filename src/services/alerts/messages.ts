/** The texts of alerts, and their webhook messages. */
import { isRecord } from "../../lib/json.js";
import type { WebhookMessage } from "../webhooks/messages.js";
import type { AlertKind } from "./rules.js";

/** Flat JSON. Amounts are decimal credits, times are ISO 8601. */
export type AlertDetails = Readonly<Record<string, string | number | null>>;

interface Described {
  readonly subjectId: string;
  readonly subjectName: string | null;
  readonly details: unknown;
}

/** One sentence for people. */
export function describeAlert(kind: AlertKind, { subjectId, subjectName, details }: Described): string {
  const { percent, creditBudget, spent, usual, hour, days, retiresAt, reason } = isRecord(details) ? details : {};
  const name = subjectName ?? subjectId;
  switch (kind) {
    case "spend_unusual":
      return `${String(spent)} credits were spent in the hour from ${String(hour)}; ${String(usual)} are usual at this hour of this weekday.`;
    case "budget_reached":
      return `The key ${name} has spent ${String(percent)} % of its budget of ${String(creditBudget)} credits.`;
    case "top_up_failed":
      return `A top-up failed${typeof reason === "string" && reason !== "" ? `: ${reason}` : "."}`;
    case "key_unused":
      return `The key ${name} was not used for ${String(days)} days. Revoke it if no program needs it.`;
    case "model_deprecated":
      return `The model ${name}, which this account uses, is retired on ${String(retiresAt).slice(0, 10)}. Move to another model.`;
  }
}

interface Message extends Described {
  readonly id: string;
  readonly kind: AlertKind;
  readonly createdAt: Date;
  readonly details: AlertDetails;
  readonly text: string;
}

export function alertMessage({ id, kind, subjectId, subjectName, details, text, createdAt }: Message): WebhookMessage {
  const data = { id, kind, subject_id: subjectId === "" ? null : subjectId, subject_name: subjectName, message: text, ...details };
  return { event: "alert.raised", key: id, timestamp: createdAt, data };
}
