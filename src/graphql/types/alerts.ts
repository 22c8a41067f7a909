/** Alerts (docs/spec/alerts.md). */
import { formatNanocredits } from "../../lib/money.js";
import { parsePermitted, requireKeyManager } from "../../services/access/permissions.js";
import type { AlertRow, AlertSilenceRow } from "../../services/alerts/alerts.js";
import { describeAlert } from "../../services/alerts/messages.js";
import {
  type AlertKind,
  type AlertRule as Rule,
  silenceAlertsInput,
  unsilenceAlertsInput,
  updateAlertRuleInput,
} from "../../services/alerts/rules.js";
import { builder, describedValues } from "../builder.js";
import { cancellable } from "../cancellable.js";
import { readId } from "../global-ids.js";
import { byId, Node, nodesReadBy } from "../nodes.js";
import { createdPosition, pageArgs, pageCost, toConnection, toPageRequest } from "../pages.js";
import { Account } from "./accounts.js";

const AlertKindEnum = builder.enumType("AlertKind", {
  description: "The rule that has raised an alert.",
  values: describedValues<AlertKind>({
    spend_unusual: "Spend of an hour that is unusual for the hour and weekday. At most one a day.",
    budget_reached: "A key has spent a percentage of its budget.",
    top_up_failed: "A payment of credits has failed.",
    key_unused: "Nothing has used a key for days.",
    model_deprecated: "The upstream of a model that the account has used retires it.",
  }),
});

const NEEDS_MANAGER = "Needs a session or a key with the permission KEYS.";

const Alert = builder.objectRef<AlertRow>("Alert").implement({
  description: "An occurrence that a rule of the account has found. Each is raised once.",
  interfaces: [Node],
  extensions: nodesReadBy(async (ctx, ids) => byId(await ctx.services.alerts.getMany(ctx, ids))),
  fields: (t) => ({
    kind: t.field({ type: AlertKindEnum, description: "The rule.", resolve: ({ kind }) => kind }),
    message: t.string({ description: "One sentence for people.", resolve: (row) => describeAlert(row.kind, row) }),
    subjectId: t.id({
      nullable: true,
      description: "The REST ID of the key, model or top-up. Null: the account.",
      resolve: ({ subjectId }) => subjectId || null,
    }),
    subjectName: t.exposeString("subjectName", { nullable: true, description: "The name of the key or model at that time." }),
    details: t.field({ type: "JSON", description: "The figures, by the kind. Amounts are credits.", resolve: ({ details }) => details }),
    isSilenced: t.exposeBoolean("isSilenced", { description: "Whether it was raised during a silence, and so not delivered." }),
    createdAt: t.expose("createdAt", { type: "DateTime", description: "When it was raised." }),
    acknowledgedAt: t.expose("acknowledgedAt", { type: "DateTime", nullable: true, description: "When it was first acknowledged." }),
  }),
});

const AlertRule = builder.objectRef<Rule>("AlertRule").implement({
  description: "The rule of one kind of alerts. Rules are on unless they were switched off.",
  fields: (t) => ({
    kind: t.field({ type: AlertKindEnum, description: "The kind of its alerts.", resolve: ({ kind }) => kind }),
    isEnabled: t.exposeBoolean("isEnabled", { description: "Whether it raises alerts." }),
    percents: t.intList({
      nullable: true,
      description: "Of BUDGET_REACHED: percentages of a key's budget. Null for other kinds.",
      resolve: ({ percents }) => percents && [...percents],
    }),
    days: t.exposeInt("days", {
      nullable: true,
      description: "Of KEY_UNUSED: days without use. Of MODEL_DEPRECATED: days before the model is retired. Null for other kinds.",
    }),
    minimumSpend: t.field({
      type: "Credits",
      nullable: true,
      description: "Of SPEND_UNUSUAL: credits an hour below which nothing is unusual. Null for other kinds.",
      resolve: ({ minimumSpend }) => (minimumSpend === null ? null : formatNanocredits(minimumSpend)),
    }),
  }),
});

const AlertSilence = builder.objectRef<AlertSilenceRow>("AlertSilence").implement({
  description: "Alerts that are listed and not delivered.",
  fields: (t) => ({
    kind: t.field({ type: AlertKindEnum, description: "The kind of the alerts.", resolve: ({ kind }) => kind }),
    subjectId: t.id({
      nullable: true,
      description: "The REST ID of the key, model or top-up. Null: all of the kind.",
      resolve: ({ subjectId }) => subjectId || null,
    }),
    until: t.expose("until", { type: "DateTime", nullable: true, description: "When it ends. Null: when it is ended." }),
  }),
});

const AlertFilter = builder.inputType("AlertFilter", {
  description: "Filters for alerts. An alert must match all of them.",
  fields: (t) => ({
    kinds: t.field({ type: [AlertKindEnum], description: "Alerts of one of these kinds." }),
    isAcknowledged: t.boolean({ description: "Alerts that are acknowledged, or that are not." }),
  }),
});

builder.prismaObjectField(Account, "alerts", (t) =>
  t.field({
    type: builder.connectionObject(
      { type: Alert, name: "AlertConnection", description: "A page of alerts." },
      { name: "AlertEdge", description: "An alert and its cursor." },
    ),
    nullable: true,
    description: "Alerts, newest first, silenced ones included. Permission USAGE.",
    args: { ...pageArgs, filter: t.arg({ type: AlertFilter, description: "The alerts to list. Omitted: all." }) },
    complexity: pageCost,
    resolve: async (_account, { filter, ...args }, ctx) =>
      toConnection(await ctx.services.alerts.list(ctx, toPageRequest(args, "alerts"), filter ?? {}), "alerts", createdPosition),
  }),
);

builder.prismaObjectField(Account, "alertRules", (t) =>
  t.field({
    type: [AlertRule],
    nullable: true,
    description: "The rule of each kind of alerts. Permission USAGE.",
    resolve: (_account, _args, ctx) => ctx.services.alerts.rules(ctx),
  }),
);

builder.prismaObjectField(Account, "alertSilences", (t) =>
  t.field({
    type: [AlertSilence],
    nullable: true,
    description: "The silences that have not ended. Permission USAGE.",
    resolve: (_account, _args, ctx) => ctx.services.alerts.silences(ctx),
  }),
);

const UpdateAlertRuleInput = builder.inputType("UpdateAlertRuleInput", {
  description: "Parameters of `updateAlertRule`. Omitted fields do not change.",
  fields: (t) => ({
    kind: t.field({ type: AlertKindEnum, required: true, description: "The rule." }),
    isEnabled: t.boolean({ description: "Whether it raises alerts." }),
    percents: t.intList({ description: "Of BUDGET_REACHED: percentages of a key's budget, from 1 to 100." }),
    days: t.int({ description: "Of KEY_UNUSED: days without use; of MODEL_DEPRECATED: days before the model is retired. From 1 to 365." }),
    minimumSpend: t.field({ type: "Credits", description: "Of SPEND_UNUSUAL: credits an hour below which nothing is unusual." }),
  }),
});

const UpdateAlertRulePayload = builder.objectRef<{ readonly alertRule: Rule }>("UpdateAlertRulePayload").implement({
  description: "The result of `updateAlertRule`.",
  fields: (t) => ({
    alertRule: t.field({ type: AlertRule, description: "The rule after the change.", resolve: ({ alertRule }) => alertRule }),
  }),
});

builder.mutationField("updateAlertRule", (t) =>
  t.field({
    type: UpdateAlertRulePayload,
    nullable: true,
    description: `Switches a rule on or off, or changes its parameters. ${NEEDS_MANAGER}`,
    args: { input: t.arg({ type: UpdateAlertRuleInput, required: true, description: "The rule and its changes." }) },
    resolve: async (_root, { input: { kind, ...changes } }, ctx) => ({
      alertRule: await ctx.services.alerts.updateRule(ctx, kind, parsePermitted(ctx, requireKeyManager, updateAlertRuleInput, changes)),
    }),
  }),
);

const AcknowledgeAlertInput = builder.inputType("AcknowledgeAlertInput", {
  description: "Parameters of `acknowledgeAlert`.",
  fields: (t) => ({ id: t.id({ required: true, description: "The ID of the alert." }) }),
});

const AcknowledgeAlertPayload = builder.objectRef<{ readonly alert: AlertRow }>("AcknowledgeAlertPayload").implement({
  description: "The result of `acknowledgeAlert`.",
  fields: (t) => ({ alert: t.field({ type: Alert, description: "The acknowledged alert.", resolve: ({ alert }) => alert }) }),
});

builder.mutationField("acknowledgeAlert", (t) =>
  t.field({
    type: AcknowledgeAlertPayload,
    nullable: true,
    description: `Marks an alert as seen. Repeating it changes nothing. ${NEEDS_MANAGER}`,
    args: { input: t.arg({ type: AcknowledgeAlertInput, required: true, description: "The alert." }) },
    resolve: async (_root, { input }, ctx) => {
      requireKeyManager(ctx);
      return { alert: await ctx.services.alerts.acknowledge(ctx, readId(input.id, "Alert", "id")) };
    },
  }),
);

const SilenceAlertsInput = builder.inputType("SilenceAlertsInput", {
  description: "Parameters of `silenceAlerts`.",
  fields: (t) => ({
    kind: t.field({ type: AlertKindEnum, required: true, description: "The kind of the alerts." }),
    subjectId: t.id({ description: "The REST ID of a key, model or top-up. Omitted or null: all of the kind." }),
    until: t.field({ type: "DateTime", description: "When it ends. Omitted or null: when it is ended." }),
  }),
});

const SilenceAlertsPayload = builder.objectRef<{ readonly alertSilence: AlertSilenceRow }>("SilenceAlertsPayload").implement({
  description: "The result of `silenceAlerts`.",
  fields: (t) => ({
    alertSilence: t.field({ type: AlertSilence, description: "The silence.", resolve: ({ alertSilence }) => alertSilence }),
  }),
});

builder.mutationField("silenceAlerts", (t) =>
  t.field({
    type: SilenceAlertsPayload,
    nullable: true,
    description: `Lists alerts of a kind from now on without delivering them. A silence of the same subject is replaced. ${NEEDS_MANAGER}`,
    args: { input: t.arg({ type: SilenceAlertsInput, required: true, description: "The alerts." }) },
    resolve: async (_root, { input }, ctx) => {
      const silence = parsePermitted(ctx, requireKeyManager, silenceAlertsInput, () => ({ ...input, until: input.until?.toISOString() }));
      return { alertSilence: await ctx.services.alerts.silence(ctx, silence) };
    },
  }),
);

const UnsilenceAlertsInput = builder.inputType("UnsilenceAlertsInput", {
  description: "Parameters of `unsilenceAlerts`.",
  fields: (t) => ({
    kind: t.field({ type: AlertKindEnum, required: true, description: "The kind of the alerts." }),
    subjectId: t.id({ description: "The REST ID of the silence's key, model or top-up. Omitted or null: the silence of the kind." }),
  }),
});

const UnsilenceAlertsPayload = builder.objectRef<{ readonly kind: AlertKind }>("UnsilenceAlertsPayload").implement({
  description: "The result of `unsilenceAlerts`.",
  fields: (t) => ({
    kind: t.field({ type: AlertKindEnum, description: "The kind that is delivered again.", resolve: ({ kind }) => kind }),
  }),
});

builder.mutationField("unsilenceAlerts", (t) =>
  t.field({
    type: UnsilenceAlertsPayload,
    nullable: true,
    description: `Ends a silence. ${NEEDS_MANAGER}`,
    args: { input: t.arg({ type: UnsilenceAlertsInput, required: true, description: "The silence." }) },
    resolve: async (_root, { input }, ctx) => {
      const silence = parsePermitted(ctx, requireKeyManager, unsilenceAlertsInput, input);
      await ctx.services.alerts.unsilence(ctx, silence);
      return { kind: silence.kind };
    },
  }),
);

builder.subscriptionField("alertRaised", (t) =>
  t.field({
    type: Alert,
    description: "Each alert of the account that is raised and not silenced. Permission USAGE.",
    subscribe: (_root, _args, ctx) => cancellable(ctx, (live) => ctx.services.alerts.raised(live)),
    resolve: ({ alertId }, _args, ctx) => ctx.services.alerts.get(ctx, alertId),
  }),
);
