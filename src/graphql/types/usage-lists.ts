/** Usage lists and summaries of an account and of a key: filters, orders and groups (docs/spec/usage.md). */
import type { InputShapeFromFields } from "@pothos/core";
import type { GraphQLResolveInfo } from "graphql";
import { formatNanocredits } from "../../lib/money.js";
import type { Page } from "../../lib/pagination.js";
import type { UsageFilter } from "../../services/usage/usage-filter.js";
import type { SelectedUsage, UsageOrder } from "../../services/usage/usage-lists.js";
import type { UsageHistograms } from "../../services/usage/usage-roll-ups.js";
import {
  USAGE_GROUPS_DEFAULT,
  USAGE_GROUPS_MAX,
  USAGE_SUMMARY_DAYS_MAX,
  USAGE_SUMMARY_HOURLY_DAYS_MAX,
  type UsageGroup as UsageGroupRow,
  type UsageTimes as UsageTimesRow,
} from "../../services/usage/usage-summaries.js";
import { builder } from "../builder.js";
import { readId } from "../global-ids.js";
import { edgesBatchedBy } from "../loaders.js";
import { OrderDirection, pageArgs, pageCost, toConnection, toPageRequest } from "../pages.js";
import { connectionSelectionOf, fieldsOf, selectionOf } from "../selection.js";
import { Account } from "./accounts.js";
import { ApiKey } from "./api-keys.js";
import { Modality, Model } from "./models.js";
import { apiKeyOf, UsageRecord, UsageStatusEnum } from "./usage.js";

/** The query cost of a summary besides its groups: it reads thousands of roll-up rows. */
const SUMMARY_COST = 20;

const UsageFilterInput = builder.inputType("UsageFilter", {
  description:
    "Filters for generations. A generation must match all of them. IDs that do not exist, or belong to another account, match nothing.",
  fields: (t) => ({
    apiKeyIds: t.idList({ description: "Generations paid by one of these keys, 1 to 100." }),
    modelIds: t.idList({ description: "Generations that requested one of these models, by canonical ID, 1 to 100." }),
    runId: t.id({ description: "Generations of this run and of the runs below it." }),
    modalities: t.field({ type: [Modality], description: "Generations of one of these modalities. A moderation counts as TEXT." }),
    statuses: t.field({ type: [UsageStatusEnum], description: "Generations with one of these statuses." }),
    from: t.field({ type: "DateTime", description: "Generations at or after this time. Defaults to 30 days before the end." }),
    to: t.field({ type: "DateTime", description: "Generations before this time. Defaults to now." }),
    minCost: t.field({ type: "Credits", description: "Generations that cost at least this much." }),
    search: t.string({
      description:
        "A part of the model ID or of the key's current name, case-insensitive; or the REST ID of the generation. At most 200 characters.",
    }),
  }),
});

const UsageOrderField = builder.enumType("UsageOrderField", {
  description: "The field to sort generations by.",
  values: {
    TIMESTAMP: { value: "timestamp", description: "The time when they ended." },
    COST: { value: "cost", description: "The charge. At most 100,000 generations can be sorted by it." },
    RESPONSE_TIME: { value: "response_time", description: "The response time. At most 100,000 generations can be sorted by it." },
    TOKENS: { value: "tokens", description: "Input and output tokens of all kinds. At most 100,000 generations can be sorted by them." },
  } as const,
});

const UsageOrderInput = builder.inputType("UsageOrder", {
  description: "The sort order of generations.",
  fields: (t) => ({
    field: t.field({ type: UsageOrderField, required: true, defaultValue: "timestamp", description: "The field to sort by." }),
    direction: t.field({ type: OrderDirection, required: true, defaultValue: "desc", description: "The direction." }),
  }),
});

const UsageGrouping = builder.enumType("UsageGrouping", {
  description: "A dimension to group generations by.",
  values: {
    HOUR: { value: "hour", description: `By hour, in UTC; at most ${USAGE_SUMMARY_HOURLY_DAYS_MAX} days.` },
    DAY: { value: "day", description: "By day, in UTC." },
    MODEL: { value: "model", description: "By requested model." },
    KEY: { value: "key", description: "By the key that paid." },
    STATUS: { value: "status", description: "By status." },
    MODALITY: { value: "modality", description: "By modality." },
  } as const,
});

export const UsageTimes = builder.objectRef<UsageTimesRow>("UsageTimes").implement({
  description: "Percentiles of a duration in milliseconds, accurate to 5%.",
  fields: (t) => ({
    p50: t.exposeInt("p50", { description: "The median." }),
    p95: t.exposeInt("p95", { description: "The 95th percentile." }),
    p99: t.exposeInt("p99", { description: "The 99th percentile." }),
  }),
});

const UsageGroup = builder.objectRef<UsageGroupRow>("UsageGroup").implement({
  description: "Totals of a group of generations. Dimensions that are not grouped by are null.",
  fields: (t) => ({
    from: t.expose("from", { type: "DateTime", nullable: true, description: "The start of the hour or day." }),
    modelId: t.exposeID("model", { nullable: true, description: "The canonical ID of the requested model." }),
    model: t.field({
      type: Model,
      nullable: true,
      description: "The requested model. Also null when it is no longer offered to the caller.",
      resolve: ({ model }, _args, ctx) => (model === null ? null : ctx.services.catalog.shown(ctx, model)),
    }),
    apiKeyId: t.exposeID("apiKeyId", {
      nullable: true,
      description: "The REST ID of the key that paid. Also null for requests by sessions.",
    }),
    apiKey: t.field({
      type: ApiKey,
      nullable: true,
      description:
        "The key that paid. Also null for requests by sessions. Keys other than the calling one need a secret key with the permission KEYS.",
      resolve: ({ apiKeyId }, _args, ctx, info) => (apiKeyId === null ? null : apiKeyOf(ctx, apiKeyId, info)),
    }),
    status: t.expose("status", { type: UsageStatusEnum, nullable: true, description: "The status of the generations." }),
    modality: t.expose("modality", { type: Modality, nullable: true, description: "The modality of the generations." }),
    requests: t.exposeInt("requests", { description: "The number of generations, without failed ones." }),
    cost: t.field({
      type: "Credits",
      description: "The total charge.",
      resolve: ({ costNanocredits }) => formatNanocredits(costNanocredits),
    }),
    inputTokens: t.exposeFloat("inputTokens", { description: "Input tokens of all kinds, as a whole number." }),
    outputTokens: t.exposeFloat("outputTokens", { description: "Output tokens of all kinds, as a whole number." }),
    responseTimeMs: t.expose("responseTimeMs", {
      type: UsageTimes,
      nullable: true,
      description: "The time from the request to the end of its answer. Null when there are no generations.",
    }),
    timeToFirstTokenMs: t.expose("timeToFirstTokenMs", {
      type: UsageTimes,
      nullable: true,
      description: "The time from the request to the first token. Null when no answer was streamed.",
    }),
    failedRequests: t.exposeInt("failedRequests", {
      description:
        "Generations that failed on all candidates, not because of the caller. They cost nothing. Resolved by the hour, and 0 when grouped or filtered by status or cost.",
    }),
    errorRate: t.exposeFloat("errorRate", {
      nullable: true,
      description:
        "The share of failed generations, 0 to 1. Null when there are no generations, or when grouped or filtered by status or cost.",
    }),
  }),
});

interface FilterInput extends Omit<UsageFilter, "modalities"> {
  readonly modalities?: readonly string[] | null | undefined;
}

/** The service checks everything else. */
function toFilter(filter: FilterInput | null | undefined): UsageFilter | undefined {
  if (!filter) return undefined;
  const ids = (texts: readonly string[] | null | undefined, type: string, param: string) =>
    texts?.map((text, index) => readId(text, type, `${param}.${index}`));
  return {
    ...filter,
    modalities: filter.modalities as UsageFilter["modalities"],
    apiKeyIds: ids(filter.apiKeyIds, "ApiKey", "apiKeyIds"),
    modelIds: ids(filter.modelIds, "Model", "modelIds"),
    runId: filter.runId ? readId(filter.runId, "Run", "runId") : undefined,
  };
}

interface OrderInput {
  readonly field: UsageOrder["field"];
  readonly direction: "asc" | "desc";
}

function toOrder(order: OrderInput | null | undefined): UsageOrder {
  return { field: order?.field ?? "timestamp", isAscending: order?.direction === "asc" };
}

/** A cursor is valid only for its own sort order. */
function listOf({ field, isAscending }: UsageOrder): string {
  return (
    { timestamp: "usage", cost: "usageByCost", response_time: "usageByResponseTime", tokens: "usageByTokens" }[field] +
    (isAscending ? "Upwards" : "")
  );
}

const listArgs = builder.args((t) => ({
  ...pageArgs,
  filter: t.field({ type: UsageFilterInput, description: "Filters. Defaults to the last 30 days." }),
  orderBy: t.field({ type: UsageOrderInput, description: "The sort order. Defaults to newest first." }),
}));

const summaryArgs = builder.args((t) => ({
  filter: t.field({
    type: UsageFilterInput,
    description: `Filters, at most ${USAGE_SUMMARY_DAYS_MAX} days. Defaults to the last 30 days.`,
  }),
  groupBy: t.field({
    type: [UsageGrouping],
    required: true,
    defaultValue: [],
    description: "The dimensions to group by. Empty: one group of all.",
  }),
  first: t.int({
    required: true,
    defaultValue: USAGE_GROUPS_DEFAULT,
    description: `The number of groups, 1 to ${USAGE_GROUPS_MAX}: the most expensive ones.`,
  }),
}));

const summaryCost = ({ first }: { readonly first?: number }) => ({
  field: SUMMARY_COST,
  multiplier: Math.max(1, first ?? USAGE_GROUPS_DEFAULT),
});

const UsageRecordConnection = builder.connectionObject(
  { type: UsageRecord, name: "UsageRecordConnection", description: "A page of usage records." },
  { name: "UsageRecordEdge", description: "A finished generation and its cursor." },
);

type ListArgs = InputShapeFromFields<typeof listArgs>;

function toQuery(args: ListArgs) {
  const orderBy = toOrder(args.orderBy);
  return { page: toPageRequest(args, listOf(orderBy)), filter: toFilter(args.filter), orderBy };
}

type SummaryArgs = InputShapeFromFields<typeof summaryArgs>;

function toSummaryQuery({ filter, groupBy, first }: SummaryArgs, histograms: UsageHistograms) {
  return { filter: toFilter(filter), groupBy, first, histograms };
}

function histogramsOf(info: GraphQLResolveInfo): UsageHistograms {
  const fields = fieldsOf(info);
  return { responseTimes: fields.has("responseTimeMs"), firstTokenTimes: fields.has("timeToFirstTokenMs") };
}

builder.prismaObjectField(Account, "usage", (t) =>
  t.field({
    type: UsageRecordConnection,
    nullable: true,
    description: "The account's usage records. Permission USAGE. Operators see those of any account.",
    args: listArgs,
    complexity: pageCost,
    resolve: async ({ id }, args, ctx, info) => {
      const page = await ctx.services.usage.list(ctx, { ...toQuery(args), accountId: id }, connectionSelectionOf(ctx, info));
      return toConnection(page, listOf(toOrder(args.orderBy)), (row) => row);
    },
  }),
);

builder.prismaObjectField(Account, "usageRecord", (t) =>
  t.field({
    type: UsageRecord,
    nullable: true,
    description: "A usage record of the account, once the generation has been charged. Permission USAGE.",
    args: { id: t.arg.id({ required: true, description: "The ID of the usage record." }) },
    resolve: (account, { id }, ctx, info) => {
      ctx.services.accounts.assertOwn(ctx, account.id);
      return ctx.services.usage.getSelected(ctx, readId(id, "UsageRecord", "id"), selectionOf(ctx, info));
    },
  }),
);

builder.prismaObjectField(Account, "usageSummary", (t) =>
  t.field({
    type: [UsageGroup],
    nullable: true,
    description:
      "Usage totals of the account, by time, then the most expensive group first. Permission USAGE. Operators see those of any account.",
    args: summaryArgs,
    complexity: summaryCost,
    resolve: ({ id }, args, ctx, info) =>
      ctx.services.usageSummaries.summary(ctx, { ...toSummaryQuery(args, histogramsOf(info)), accountId: id }),
  }),
);

const usageOfKey = edgesBatchedBy<ListArgs, Page<SelectedUsage>>((ctx, ids, args, select) =>
  ctx.services.usage.listsOfKeys(ctx, ids, toQuery(args), select),
);

const summaryOfKey = edgesBatchedBy<readonly [SummaryArgs, UsageHistograms], UsageGroupRow[]>((ctx, ids, args) =>
  ctx.services.usageSummaries.summariesOfKeys(ctx, ids, toSummaryQuery(...args)),
);

builder.prismaObjectField(ApiKey, "usage", (t) =>
  t.field({
    type: UsageRecordConnection,
    nullable: true,
    description: "Usage records of this key. Permission USAGE, except for the calling key's own.",
    args: listArgs,
    complexity: pageCost,
    resolve: async ({ id }, args, ctx, info) => {
      const page = await usageOfKey(ctx, id, args, connectionSelectionOf(ctx, info));
      return page && toConnection(page, listOf(toOrder(args.orderBy)), (row) => row);
    },
  }),
);

builder.prismaObjectField(ApiKey, "usageSummary", (t) =>
  t.field({
    type: [UsageGroup],
    nullable: true,
    description: "Usage totals of this key. Permission USAGE, except for the calling key's own.",
    args: summaryArgs,
    complexity: summaryCost,
    resolve: ({ id }, args, ctx, info) => summaryOfKey(ctx, id, [args, histogramsOf(info)], {}),
  }),
);
