/** Usage in lists and in sums, of an account and of a key: filters, orders, groups (docs/spec/usage.md). */
import type { InputShapeFromFields } from "@pothos/core";
import type { GraphQLResolveInfo } from "graphql";
import { formatNanocredits } from "../../lib/money.js";
import type { Page } from "../../lib/pagination.js";
import { USAGE_DAYS_MAX } from "../../limits.js";
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
import { apiKeyOf, toDays, UsageRecord, UsageStatusEnum } from "./usage.js";

/** What a summary costs beside its groups: it reads thousands of rows of roll-ups. */
const SUMMARY_COST = 20;

const UsageFilterInput = builder.inputType("UsageFilter", {
  description: "Which generations: those that answer to all of it. Ids of what is not there, or is another account's, find nothing.",
  fields: (t) => ({
    apiKeyIds: t.idList({ description: "Paid by one of these keys, 1 to 100." }),
    modelIds: t.idList({ description: "That asked for one of these models, by canonical id, 1 to 100." }),
    modalities: t.field({ type: [Modality], description: "That made one of these. A moderation is TEXT." }),
    statuses: t.field({ type: [UsageStatusEnum], description: "That ended so." }),
    from: t.field({ type: "DateTime", description: "Of this moment or later. Unless stated, 30 days before the end." }),
    to: t.field({ type: "DateTime", description: "Earlier than this moment. Unless stated, up to now." }),
    minCost: t.field({ type: "Credits", description: "That cost as much or more." }),
    search: t.string({
      description:
        "A part of the model's id or of the key's present name, in any case; or the generation's REST id. At most 200 characters.",
    }),
  }),
});

const UsageOrderField = builder.enumType("UsageOrderField", {
  description: "What generations are sorted by.",
  values: {
    TIMESTAMP: { value: "timestamp", description: "When they ended." },
    COST: { value: "cost", description: "What was charged. At most 100,000 generations are sorted by it." },
    RESPONSE_TIME: { value: "response_time", description: "How long they took. At most 100,000 generations are sorted by it." },
  } as const,
});

const UsageOrderInput = builder.inputType("UsageOrder", {
  description: "How generations are sorted.",
  fields: (t) => ({
    field: t.field({ type: UsageOrderField, required: true, defaultValue: "timestamp", description: "By what." }),
    direction: t.field({ type: OrderDirection, required: true, defaultValue: "desc", description: "Which way." }),
  }),
});

const UsageGrouping = builder.enumType("UsageGrouping", {
  description: "What generations are summed up by.",
  values: {
    HOUR: { value: "hour", description: `By the hour, UTC; of ${USAGE_SUMMARY_HOURLY_DAYS_MAX} days at most.` },
    DAY: { value: "day", description: "By the day, UTC." },
    MODEL: { value: "model", description: "By the model that was asked for." },
    KEY: { value: "key", description: "By the key that paid." },
    STATUS: { value: "status", description: "By how they ended." },
    MODALITY: { value: "modality", description: "By what was made." },
  } as const,
});

const UsageTimes = builder.objectRef<UsageTimesRow>("UsageTimes").implement({
  description: "How long generations took, in milliseconds, to 5%.",
  fields: (t) => ({
    p50: t.exposeInt("p50", { description: "Half of them took no longer." }),
    p95: t.exposeInt("p95", { description: "95 of 100 took no longer." }),
    p99: t.exposeInt("p99", { description: "99 of 100 took no longer." }),
  }),
});

const UsageGroup = builder.objectRef<UsageGroupRow>("UsageGroup").implement({
  description: "Generations in sum. What they are not grouped by is null.",
  fields: (t) => ({
    from: t.expose("from", { type: "DateTime", nullable: true, description: "Where the hour or the day begins." }),
    modelId: t.exposeID("model", { nullable: true, description: "The canonical id of the model that was asked for." }),
    model: t.field({
      type: Model,
      nullable: true,
      description: "The model that was asked for. Null, too: it is no longer offered to the caller.",
      resolve: ({ model }, _args, ctx) => (model === null ? null : ctx.services.catalog.shown(ctx, model)),
    }),
    apiKeyId: t.exposeID("apiKeyId", { nullable: true, description: "The REST id of the key that paid. Null, too: sessions asked." }),
    apiKey: t.field({
      type: ApiKey,
      nullable: true,
      description:
        "The key that paid. Null, too: sessions asked. Of other keys than the calling one it needs a secret key with the permission KEYS.",
      resolve: ({ apiKeyId }, _args, ctx, info) => (apiKeyId === null ? null : apiKeyOf(ctx, apiKeyId, info)),
    }),
    status: t.expose("status", { type: UsageStatusEnum, nullable: true, description: "How they ended." }),
    modality: t.expose("modality", { type: Modality, nullable: true, description: "What was made." }),
    requests: t.exposeInt("requests", { description: "How many there are. Those that failed are not among them." }),
    cost: t.field({
      type: "Credits",
      description: "What was charged.",
      resolve: ({ costNanocredits }) => formatNanocredits(costNanocredits),
    }),
    inputTokens: t.exposeFloat("inputTokens", { description: "Tokens of all kinds that went in: a whole number." }),
    outputTokens: t.exposeFloat("outputTokens", { description: "Tokens of all kinds that came out: a whole number." }),
    responseTimeMs: t.expose("responseTimeMs", {
      type: UsageTimes,
      nullable: true,
      description: "From the request to the end of its answer. Null: there is none.",
    }),
    timeToFirstTokenMs: t.expose("timeToFirstTokenMs", {
      type: UsageTimes,
      nullable: true,
      description: "From the request to the first piece of a streamed answer. Null: none was streamed.",
    }),
    failedRequests: t.exposeInt("failedRequests", {
      description:
        "Generations that nobody served, by no fault of the caller's: they cost nothing. Told apart by hours, and 0 where status or cost are asked for.",
    }),
    errorRate: t.exposeFloat("errorRate", {
      nullable: true,
      description: "The failed ones among all, 0 to 1. Null: there are none, or status or cost are asked for.",
    }),
  }),
});

interface FilterInput extends Omit<UsageFilter, "modalities"> {
  readonly modalities?: readonly string[] | null | undefined;
}

/** The service looks at the rest of it. */
function toFilter(filter: FilterInput | null | undefined): UsageFilter | undefined {
  if (!filter) return undefined;
  const ids = (texts: readonly string[] | null | undefined, type: string, param: string) =>
    texts?.map((text, index) => readId(text, type, `${param}.${index}`));
  return {
    ...filter,
    modalities: filter.modalities as UsageFilter["modalities"],
    apiKeyIds: ids(filter.apiKeyIds, "ApiKey", "apiKeyIds"),
    modelIds: ids(filter.modelIds, "Model", "modelIds"),
  };
}

interface OrderInput {
  readonly field: UsageOrder["field"];
  readonly direction: "asc" | "desc";
}

function toOrder(order: OrderInput | null | undefined): UsageOrder {
  return { field: order?.field ?? "timestamp", isAscending: order?.direction === "asc" };
}

/** Each order is a list of its own: a place in one is none in another. */
function listOf({ field, isAscending }: UsageOrder): string {
  return { timestamp: "usage", cost: "usageByCost", response_time: "usageByResponseTime" }[field] + (isAscending ? "Upwards" : "");
}

const listArgs = builder.args((t) => ({
  ...pageArgs,
  filter: t.field({ type: UsageFilterInput, description: "Which of them; unless stated, those of the last 30 days." }),
  orderBy: t.field({ type: UsageOrderInput, description: "Unless stated, the newest first." }),
  days: t.int({
    description: `How many days back from the end: 1 to ${USAGE_DAYS_MAX}.`,
    deprecationReason: "Use `filter: { from: ... }`.",
  }),
}));

const summaryArgs = builder.args((t) => ({
  filter: t.field({
    type: UsageFilterInput,
    description: `Which of them, of ${USAGE_SUMMARY_DAYS_MAX} days at most; unless stated, those of the last 30 days.`,
  }),
  groupBy: t.field({ type: [UsageGrouping], required: true, defaultValue: [], description: "By what. Empty: all in one." }),
  first: t.int({
    required: true,
    defaultValue: USAGE_GROUPS_DEFAULT,
    description: `How many groups at most, 1 to ${USAGE_GROUPS_MAX}: the most expensive ones.`,
  }),
}));

const summaryCost = ({ first }: { readonly first?: number }) => ({
  field: SUMMARY_COST,
  multiplier: Math.max(1, first ?? USAGE_GROUPS_DEFAULT),
});

const UsageRecordConnection = builder.connectionObject(
  { type: UsageRecord, name: "UsageRecordConnection", description: "Usage, page by page." },
  { name: "UsageRecordEdge", description: "A finished generation, and its place in the list." },
);

type ListArgs = InputShapeFromFields<typeof listArgs>;

function toQuery(args: ListArgs) {
  const orderBy = toOrder(args.orderBy);
  return { page: toPageRequest(args, listOf(orderBy)), filter: toFilter(args.filter), orderBy, days: toDays(args) };
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
    description: "What the account has generated. Permission USAGE.",
    args: listArgs,
    complexity: pageCost,
    resolve: async ({ id }, args, ctx, info) => {
      ctx.services.accounts.assertOwn(ctx, id);
      const page = await ctx.services.usage.list(ctx, toQuery(args), connectionSelectionOf(ctx, info));
      return toConnection(page, listOf(toOrder(args.orderBy)), (row) => row);
    },
  }),
);

builder.prismaObjectField(Account, "usageRecord", (t) =>
  t.field({
    type: UsageRecord,
    nullable: true,
    description: "One generation of the account, once it has been charged. Permission USAGE.",
    args: { id: t.arg.id({ required: true, description: "Which one." }) },
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
    description: "What the account has generated, in sum: by time, and then the most expensive group first. Permission USAGE.",
    args: summaryArgs,
    complexity: summaryCost,
    resolve: ({ id }, args, ctx, info) => {
      ctx.services.accounts.assertOwn(ctx, id);
      return ctx.services.usageSummaries.summary(ctx, toSummaryQuery(args, histogramsOf(info)));
    },
  }),
);

const usageOfKey = edgesBatchedBy<ListArgs, Page<SelectedUsage>>((ctx, ids, args, select) =>
  ctx.services.usage.listsOfKeys(ctx, ids, toQuery(args), select),
);

const summaryOfKey = edgesBatchedBy<readonly [SummaryArgs, UsageHistograms], UsageGroupRow[]>((ctx, ids, asked) =>
  ctx.services.usageSummaries.summariesOfKeys(ctx, ids, toSummaryQuery(...asked)),
);

builder.prismaObjectField(ApiKey, "usage", (t) =>
  t.field({
    type: UsageRecordConnection,
    nullable: true,
    description: "What was generated with this key. Permission USAGE, but for the calling key's own.",
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
    description: "What was generated with this key, in sum. Permission USAGE, but for the calling key's own.",
    args: summaryArgs,
    complexity: summaryCost,
    resolve: ({ id }, args, ctx, info) => summaryOfKey(ctx, id, [args, histogramsOf(info)], {}),
  }),
);
