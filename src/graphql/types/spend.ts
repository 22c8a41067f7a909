/** Spend of all accounts, for operators (docs/spec/usage.md#spend). */
import { formatNanocredits } from "../../lib/money.js";
import { parsePermitted, requireOperator } from "../../services/access/permissions.js";
import {
  type SpendGrouping as Grouping,
  type SpendOrder as Order,
  SPEND_GROUPS_DEFAULT,
  SPEND_GROUPS_MAX,
  type Spend as SpendReport,
  type SpendRow as SpendReportRow,
  type SpendSums,
  spendInput,
} from "../../services/usage/spend.js";
import { builder, describedValues } from "../builder.js";
import { readId } from "../global-ids.js";
import { OrderDirection } from "../pages.js";

const SpendGrouping = builder.enumType("SpendGrouping", {
  description: "A dimension to group spend by.",
  values: describedValues<Grouping>({
    account: "By account.",
    key: "By key. Requests of sessions are one group for each account.",
    model: "By requested model.",
  }),
});

const SpendOrderField = builder.enumType("SpendOrderField", {
  description: "The field to sort groups by.",
  values: describedValues<Order>({
    cost: "The credits charged.",
    requests: "The number of requests.",
    input_tokens: "The number of input tokens.",
    output_tokens: "The number of output tokens.",
    name: "The handle of the account, the name of the key, or the ID of the model.",
  }),
});

const SpendOrderInput = builder.inputType("SpendOrder", {
  description: "The sort order of groups.",
  fields: (t) => ({
    field: t.field({ type: SpendOrderField, required: true, defaultValue: "cost", description: "The field to sort by." }),
    direction: t.field({ type: OrderDirection, required: true, defaultValue: "desc", description: "The direction." }),
  }),
});

const SpendTotal = builder.objectRef<SpendSums>("SpendTotal").implement({
  description: "Sums over all groups.",
  fields: (t) => ({
    requests: t.exposeFloat("requests", { description: "The number of charged generations, free ones included, as a whole number." }),
    failedRequests: t.exposeFloat("failedRequests", {
      description: "Generations that failed through no fault of the caller, as a whole number.",
    }),
    inputTokens: t.exposeFloat("inputTokens", { description: "Input tokens of all kinds, as a whole number." }),
    outputTokens: t.exposeFloat("outputTokens", { description: "Output tokens of all kinds, as a whole number." }),
    cost: t.field({
      type: "Credits",
      description: "The credits charged.",
      resolve: ({ costNanocredits }) => formatNanocredits(costNanocredits),
    }),
  }),
});

const SpendGroup = builder.objectRef<SpendReportRow>("SpendGroup").implement({
  description: "The spend of one account, key or model. Fields that are not grouped by are null.",
  fields: (t) => ({
    accountId: t.exposeID("accountId", { nullable: true, description: "The REST ID of the account." }),
    handle: t.exposeString("handle", { nullable: true, description: "The handle of the account." }),
    email: t.exposeString("email", { nullable: true, description: "The e-mail address of the account's owner. Null when there is none." }),
    apiKeyId: t.exposeID("apiKeyId", { nullable: true, description: "The REST ID of the key. Null for requests of sessions." }),
    apiKeyName: t.exposeString("apiKeyName", {
      nullable: true,
      description: "The name of the key. Null for requests of sessions, and for keys of deleted accounts.",
    }),
    modelId: t.exposeID("model", { nullable: true, description: "The canonical ID of the requested model." }),
    requests: t.exposeFloat("requests", { description: "The number of charged generations, free ones included, as a whole number." }),
    failedRequests: t.exposeFloat("failedRequests", {
      description: "Generations that failed through no fault of the caller, as a whole number.",
    }),
    inputTokens: t.exposeFloat("inputTokens", { description: "Input tokens of all kinds, as a whole number." }),
    outputTokens: t.exposeFloat("outputTokens", { description: "Output tokens of all kinds, as a whole number." }),
    cost: t.field({
      type: "Credits",
      description: "The credits charged.",
      resolve: ({ costNanocredits }) => formatNanocredits(costNanocredits),
    }),
  }),
});

const Spend = builder.objectRef<SpendReport>("Spend").implement({
  description: "The spend of a month (UTC), in groups.",
  fields: (t) => ({
    month: t.exposeString("month", { description: "The month, such as 2026-11." }),
    groups: t.field({
      type: [SpendGroup],
      description: "The groups, in the requested order.",
      // `first` of the query multiplies all of it.
      complexity: { field: 1, multiplier: 1 },
      resolve: ({ rows }) => [...rows],
    }),
    groupCount: t.exposeInt("groups", { description: "The number of all groups, including those that are not in `groups`." }),
    total: t.field({ type: SpendTotal, description: "Sums over all groups.", resolve: ({ total }) => total }),
  }),
});

builder.queryField("spend", (t) =>
  t.field({
    type: Spend,
    nullable: true,
    description:
      "The spend of all accounts in a month (UTC), by account, key or model. It includes the charges of the last second. Operators only.",
    args: {
      by: t.arg({ type: SpendGrouping, required: true, description: "The dimension to group by." }),
      month: t.arg.string({ description: "The month, such as 2026-11. Defaults to the current month." }),
      accountId: t.arg.id({ description: "Only the spend of this account." }),
      orderBy: t.arg({ type: SpendOrderInput, description: "The sort order. Defaults to the highest cost first." }),
      first: t.arg.int({
        required: true,
        defaultValue: SPEND_GROUPS_DEFAULT,
        description: `The number of groups, 1 to ${SPEND_GROUPS_MAX}.`,
      }),
    },
    complexity: ({ first }) => ({ field: 1, multiplier: Math.max(1, first) }),
    resolve: (_root, { by, month, accountId, orderBy, first }, ctx) => {
      const input = () => ({
        ...{ by, month, first },
        ...(accountId && { accountId: readId(accountId, "Account", "accountId") }),
        ...(orderBy && { order: orderBy.field, isAscending: orderBy.direction === "asc" }),
      });
      return ctx.services.spendReports.read(ctx, parsePermitted(ctx, requireOperator, spendInput, input));
    },
  }),
);
