/** Alerts of the account, their rules and silences (docs/spec/alerts.md). */
import * as z from "zod";
import { toCreditsNumber } from "../../lib/money.js";
import { PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX } from "../../limits.js";
import { permissionOf, requireKeyManager } from "../../services/access/permissions.js";
import type { AlertRow, AlertSilenceRow } from "../../services/alerts/alerts.js";
import { describeAlert } from "../../services/alerts/messages.js";
import {
  ALERT_KINDS,
  type AlertRule,
  silenceAlertsInput,
  unsilenceAlertsInput,
  updateAlertRuleInput,
} from "../../services/alerts/rules.js";
import { queryInteger } from "../../services/requests/query-values.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { json } from "../openapi/answer.js";
import { amount, credits, cursorText, nullableText, pathId, time } from "../openapi/schemas.js";
import { nextCursorOf, queryCursor } from "../query.js";
import type { Route } from "../route.js";

const kind = z.enum(ALERT_KINDS);

const alert = z.object({
  id: z.string(),
  kind,
  subject_id: nullableText.describe("The ID of the key, model or top-up. Null: the account."),
  subject_name: nullableText,
  message: z.string().describe("One sentence for people."),
  details: z.looseObject({}).describe("The figures of the alert, by its kind. Amounts are credits."),
  silenced: z.boolean().describe("Whether it was raised during a silence, and so not delivered."),
  created_at: time,
  acknowledged_at: time.nullable(),
});

const rule = z.object({
  kind,
  enabled: z.boolean(),
  percents: z.array(amount).nullable().describe("Of `budget_reached`: the percents of a key's budget."),
  days: amount.nullable().describe("Of `key_unused`: days without use. Of `model_deprecated`: days before the model is retired."),
  minimum_spend: credits.nullable().describe("Of `spend_unusual`: credits an hour below which nothing is unusual."),
});

const silence = z.object({ kind, subject_id: nullableText, until: time.nullable().describe("Null: until it is ended.") });

const listQuery = z.object({
  limit: queryInteger(z.int().min(1).max(PAGE_SIZE_MAX)).default(PAGE_SIZE_DEFAULT).describe("The maximum number of alerts."),
  cursor: queryCursor("alerts").optional().describe(cursorText),
  kind: kind.optional().describe("Alerts of this kind."),
  acknowledged: z.enum(["true", "false"]).optional().describe("Alerts that are acknowledged, or that are not."),
});

/** The fields as REST names them, for the service. */
const ruleBody = z.strictObject({
  enabled: updateAlertRuleInput.shape.isEnabled,
  percents: updateAlertRuleInput.shape.percents,
  days: updateAlertRuleInput.shape.days,
  minimum_spend: updateAlertRuleInput.shape.minimumSpend,
});
const silenceBody = z.strictObject({
  kind: silenceAlertsInput.shape.kind,
  subject_id: silenceAlertsInput.shape.subjectId,
  until: silenceAlertsInput.shape.until,
});
const unsilenceBody = z.strictObject({ kind: unsilenceAlertsInput.shape.kind, subject_id: unsilenceAlertsInput.shape.subjectId });

export function addAlertRoutes(route: Route, endpoint: Endpoint, { alerts }: Pick<Services, "alerts">): void {
  route("/alerts", {
    GET: endpoint({
      id: "listAlerts",
      tag: "Alerts",
      summary: "Lists alerts, newest first, silenced ones included.",
      answer: json("AlertList", z.object({ data: z.array(alert), next_cursor: nullableText })),
      requires: permissionOf("usage"),
      query: listQuery,
      handler: async (ctx, { query }) => {
        const filter = {
          ...(query.kind && { kinds: [query.kind] }),
          ...(query.acknowledged && { isAcknowledged: query.acknowledged === "true" }),
        };
        const page = await alerts.list(ctx, { first: query.limit, after: query.cursor }, filter);
        return {
          data: page.items.map(toAlert),
          next_cursor: nextCursorOf(page, "alerts"),
        };
      },
    }),
  });
  route("/alerts/:id/acknowledge", {
    POST: endpoint({
      id: "acknowledgeAlert",
      tag: "Alerts",
      summary: "Marks an alert as seen. Repeating it changes nothing.",
      answer: json("Alert", alert),
      params: z.object({ id: pathId("The ID of the alert.") }),
      requires: requireKeyManager,
      handler: async (ctx, { params }) => toAlert(await alerts.acknowledge(ctx, params.id)),
    }),
  });
  addRules(route, endpoint, { alerts });
  addSilences(route, endpoint, { alerts });
}

function addRules(route: Route, endpoint: Endpoint, { alerts }: Pick<Services, "alerts">): void {
  route("/alert-rules", {
    GET: endpoint({
      id: "listAlertRules",
      tag: "Alerts",
      summary: "Lists the rule of each kind of alerts.",
      answer: json("AlertRuleList", z.object({ data: z.array(rule) })),
      requires: permissionOf("usage"),
      handler: async (ctx) => ({ data: (await alerts.rules(ctx)).map(toRule) }),
    }),
  });
  route("/alert-rules/:kind", {
    PATCH: endpoint({
      id: "updateAlertRule",
      tag: "Alerts",
      summary: "Switches a rule on or off, or changes its parameters.",
      answer: json("AlertRule", rule),
      example: { parameters: { kind: "budget_reached" }, body: { percents: [50, 90] } },
      params: z.object({ kind: kind.describe("The kind of the rule.") }),
      requires: requireKeyManager,
      body: ruleBody,
      handler: async (ctx, { params, body }) => {
        const { enabled: isEnabled, percents, days, minimum_spend: minimumSpend } = body;
        return toRule(await alerts.updateRule(ctx, params.kind, { isEnabled, percents, days, minimumSpend }));
      },
    }),
  });
}

function addSilences(route: Route, endpoint: Endpoint, { alerts }: Pick<Services, "alerts">): void {
  route("/alert-silences", {
    GET: endpoint({
      id: "listAlertSilences",
      tag: "Alerts",
      summary: "Lists the silences that have not ended.",
      answer: json("AlertSilenceList", z.object({ data: z.array(silence) })),
      requires: permissionOf("usage"),
      handler: async (ctx) => ({ data: (await alerts.silences(ctx)).map(toSilence) }),
    }),
    POST: endpoint({
      id: "silenceAlerts",
      tag: "Alerts",
      summary: "Lists alerts of a kind from now on without delivering them.",
      answer: json("AlertSilence", silence),
      errors: ["409"],
      example: { body: { kind: "key_unused" } },
      requires: requireKeyManager,
      body: silenceBody,
      handler: async (ctx, { body: { kind: silenced, subject_id: subjectId, until } }) =>
        toSilence(await alerts.silence(ctx, { kind: silenced, subjectId, until })),
    }),
  });
  route("/alert-silences/end", {
    POST: endpoint({
      id: "unsilenceAlerts",
      tag: "Alerts",
      summary: "Ends a silence.",
      answer: json("EndedAlertSilence", z.object({ ended: z.literal(true) })),
      errors: ["404"],
      example: { body: { kind: "key_unused" } },
      requires: requireKeyManager,
      body: unsilenceBody,
      handler: async (ctx, { body: { kind: silenced, subject_id: subjectId } }) => {
        await alerts.unsilence(ctx, { kind: silenced, subjectId });
        return { ended: true as const };
      },
    }),
  });
}

function toAlert(row: AlertRow) {
  const details = row.details as Readonly<Record<string, unknown>>;
  return {
    ...{ id: row.id, kind: row.kind, details, message: describeAlert(row.kind, row) },
    subject_id: row.subjectId === "" ? null : row.subjectId,
    subject_name: row.subjectName,
    silenced: row.isSilenced,
    created_at: row.createdAt,
    acknowledged_at: row.acknowledgedAt,
  };
}

function toRule({ kind: ruleKind, isEnabled, percents, days, minimumSpend }: AlertRule) {
  return {
    ...{ kind: ruleKind, enabled: isEnabled, days },
    percents: percents && [...percents],
    minimum_spend: minimumSpend === null ? null : toCreditsNumber(minimumSpend),
  };
}

function toSilence({ kind: silenced, subjectId, until }: AlertSilenceRow) {
  return { kind: silenced, subject_id: subjectId === "" ? null : subjectId, until };
}
