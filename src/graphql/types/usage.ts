/** Usage records, and the daily roll-up (docs/spec/usage.md). */
import type { GraphQLResolveInfo } from "graphql";
import { wrongField } from "../../errors.js";
import { formatNanocredits } from "../../lib/money.js";
import type { UsageQuantities } from "../../lib/usage.js";
import { USAGE_DAILY_DAYS_DEFAULT, USAGE_DAYS_MAX } from "../../limits.js";
import { isOperatorReading } from "../../services/access/permissions.js";
import type { SelectedApiKey } from "../../services/api-keys/api-keys.js";
import { vendorKeyIdOf } from "../../services/catalog/route.js";
import type { MeterSource, UsageSource, UsageStatus } from "../../services/generation/receipt.js";
import { attemptsIn } from "../../services/generation/routing/candidate.js";
import type { UsageDailyRow } from "../../services/usage/usage.js";
import { builder, describedValues } from "../builder.js";
import type { GraphQLContext } from "../context.js";
import { edgesBatchedBy } from "../loaders.js";
import { byId, Node, nodesReadBy } from "../nodes.js";
import { selectionOf } from "../selection.js";
import { Account } from "./accounts.js";
import { ApiKey, ApiKeyType } from "./api-keys.js";
import { Modality, Model } from "./models.js";
import { ATTEMPTS, shownCost, UPSTREAM, UPSTREAM_COST, UsageAttempt, VENDOR_KEY } from "./served-routes.js";

const MILLISECONDS_PER_SECOND = 1000;
const MICROSECONDS_PER_MILLISECOND = 1000;

export const MeterSourceEnum = builder.enumType("MeterSource", {
  description: "A bucket of credits. A charge draws TIER, then CRYPTO, then PACK.",
  values: describedValues<MeterSource>({
    tier: "Credits that the account's tier refills.",
    crypto: "Credits paid in with crypto.",
    pack: "Credits bought in packs.",
  }),
});

export const UsageStatusEnum = builder.enumType("UsageStatus", {
  description: "The status of a charged generation.",
  values: describedValues<UsageStatus>({
    ok: "The answer was complete.",
    cancelled: "The caller left, or the answer broke off. The generated part was charged.",
  }),
});

export const UsageSourceEnum = builder.enumType("UsageSource", {
  description: "How the usage was determined.",
  values: describedValues<UsageSource>({
    provider: "Reported by the upstream.",
    estimated: "Counted by the gateway, because the upstream reported nothing, or less than it delivered.",
    partial: "Counted by the gateway up to the point where the answer was cut.",
    bounded:
      "Limited by the gateway: the upstream reported more than is plausible for the request, and the highest plausible amount was charged.",
  }),
});

export const UsageAmounts = builder.objectRef<UsageQuantities>("UsageAmounts").implement({
  description: "Metered amounts. The kinds do not overlap: text tokens exclude tokens that another kind counts.",
  fields: (t) => ({
    inputTextTokens: t.exposeInt("inputTextTokens", { description: "Input text tokens that were not cached." }),
    inputCachedTokens: t.exposeInt("inputCachedTokens", { description: "Tokens read from the upstream's prompt cache." }),
    inputCacheWriteTokens: t.exposeInt("inputCacheWriteTokens", { description: "Tokens written to the upstream's prompt cache." }),
    inputAudioTokens: t.exposeInt("inputAudioTokens", { description: "Input audio tokens." }),
    inputImageTokens: t.exposeInt("inputImageTokens", { description: "Input image tokens." }),
    outputTextTokens: t.exposeInt("outputTextTokens", { description: "Output text tokens." }),
    outputReasoningTokens: t.exposeInt("outputReasoningTokens", { description: "Reasoning tokens, shown or hidden." }),
    outputAudioTokens: t.exposeInt("outputAudioTokens", { description: "Output audio tokens." }),
    outputImageTokens: t.exposeInt("outputImageTokens", { description: "Output image tokens." }),
    outputVideoSeconds: t.float({
      description: "Seconds of output video, where it is metered in seconds.",
      resolve: (usage) => usage.outputVideoMilliseconds / MILLISECONDS_PER_SECOND,
    }),
    outputAudioSeconds: t.float({
      description: "Seconds of output audio, where it is metered in seconds.",
      resolve: (usage) => usage.outputAudioMilliseconds / MILLISECONDS_PER_SECOND,
    }),
  }),
});

const AMOUNT_COLUMNS = {
  inputTextTokens: true,
  inputCachedTokens: true,
  inputCacheWriteTokens: true,
  inputAudioTokens: true,
  inputImageTokens: true,
  outputTextTokens: true,
  outputReasoningTokens: true,
  outputAudioTokens: true,
  outputImageTokens: true,
  outputVideoMilliseconds: true,
  outputAudioMilliseconds: true,
} as const;

const readApiKeyOf = edgesBatchedBy<null, SelectedApiKey>((ctx, ids, _args, select) => ctx.services.apiKeys.getEach(ctx, ids, select));

export function apiKeyOf(ctx: GraphQLContext, id: string, info: GraphQLResolveInfo): Promise<SelectedApiKey | null> {
  return readApiKeyOf(ctx, id, null, selectionOf(ctx, info));
}

export const UsageRecord = builder.prismaObject("UsageRecord", {
  description: "The usage record of a finished generation.",
  interfaces: [Node],
  select: { id: true, timestamp: true },
  extensions: nodesReadBy(async (ctx, ids, info) =>
    byId(await ctx.services.usage.getMany(ctx, ids, selectionOf(ctx, info, [], "UsageRecord"))),
  ),
  fields: (t) => ({
    timestamp: t.expose("timestamp", { type: "DateTime", description: "When the generation ended." }),
    modality: t.field({
      type: Modality,
      description: "The modality of the generation.",
      select: { modality: true },
      resolve: ({ modality }) => modality,
    }),
    modelId: t.exposeID("model", { description: "The canonical ID of the requested model, whose prices applied." }),
    model: t.field({
      type: Model,
      nullable: true,
      description: "The requested model. Null when it is no longer offered to the caller.",
      select: { model: true },
      resolve: ({ model }, _args, ctx) => ctx.services.catalog.shown(ctx, model),
    }),
    modelUsedId: t.exposeID("modelUsed", {
      description: "The canonical ID of the model that answered. It differs from `modelId` after a fallback.",
    }),
    modelUsed: t.field({
      type: Model,
      nullable: true,
      description: "The model that answered. Null when it is no longer offered to the caller.",
      select: { modelUsed: true },
      resolve: ({ modelUsed }, _args, ctx) => ctx.services.catalog.shown(ctx, modelUsed),
    }),
    apiKeyId: t.exposeID("apiKeyId", {
      nullable: true,
      description: "The REST ID of the key that paid. Null when a session made the request.",
    }),
    apiKey: t.field({
      type: ApiKey,
      nullable: true,
      description:
        "The key that paid. Null when a session made the request. Keys other than the calling one need a secret key with the permission KEYS.",
      select: { apiKeyId: true },
      resolve: ({ apiKeyId }, _args, ctx, info) => (apiKeyId === null ? null : apiKeyOf(ctx, apiKeyId, info)),
    }),
    apiKeyName: t.exposeString("apiKeyName", { nullable: true, description: "The name of the key at that time." }),
    apiKeyType: t.field({
      type: ApiKeyType,
      nullable: true,
      description: "The type of the key.",
      select: { apiKeyType: true },
      resolve: ({ apiKeyType }) => apiKeyType,
    }),
    meterSource: t.field({
      type: MeterSourceEnum,
      description: "The bucket that paid the largest share.",
      select: { meterSource: true },
      resolve: ({ meterSource }) => meterSource,
    }),
    usage: t.field({ type: UsageAmounts, description: "The metered usage.", select: AMOUNT_COLUMNS, resolve: (row) => row }),
    cost: t.field({
      type: "Credits",
      description: "The amount charged.",
      select: { costNanocredits: true },
      resolve: ({ costNanocredits }) => formatNanocredits(costNanocredits),
    }),
    responseTimeMs: t.exposeInt("responseTimeMs", { description: "Milliseconds from the request to the end of its answer." }),
    timeToFirstTokenMs: t.exposeInt("timeToFirstTokenMs", {
      nullable: true,
      description: "Milliseconds from the request to the first token. Null for answers that are not streamed.",
    }),
    held: t.field({
      type: "Credits",
      nullable: true,
      description: "The total credits held before the charge. Null when unknown.",
      select: { heldNanocredits: true },
      resolve: ({ heldNanocredits }) => (heldNanocredits === null ? null : formatNanocredits(heldNanocredits)),
    }),
    upstreamMs: t.float({
      nullable: true,
      description: "Milliseconds that the upstream took. Null when unknown.",
      select: { upstreamUs: true },
      resolve: ({ upstreamUs }) => toMilliseconds(upstreamUs),
    }),
    gatewayMs: t.float({
      nullable: true,
      description: "Milliseconds that the gateway itself took until the charge. Null when unknown.",
      select: { gatewayUs: true },
      resolve: ({ gatewayUs }) => toMilliseconds(gatewayUs),
    }),
    status: t.field({
      type: UsageStatusEnum,
      description: "How the generation ended.",
      select: { status: true },
      resolve: ({ status }) => status,
    }),
    usageSource: t.field({
      type: UsageSourceEnum,
      description: "How the usage was determined.",
      select: { usageSource: true },
      resolve: ({ usageSource }) => usageSource,
    }),
    parentRequestId: t.exposeID("parentRequestId", {
      nullable: true,
      description: "The REST ID of the agent's generation that made this one.",
    }),
    upstream: t.exposeString("upstream", { nullable: true, description: UPSTREAM }),
    vendorKeyId: t.id({
      nullable: true,
      description: VENDOR_KEY,
      select: { route: true },
      resolve: ({ route }) => vendorKeyIdOf(route),
    }),
    attempts: t.field({
      type: [UsageAttempt],
      description: ATTEMPTS,
      select: { attempts: true },
      resolve: ({ attempts }) => attemptsIn(attempts),
    }),
    appMargin: t.field({
      type: "Credits",
      nullable: true,
      description: "The part of the cost that is the margin of the app that the key was granted to. Null: none, or not recorded.",
      select: { appMarginNanocredits: true },
      resolve: ({ appMarginNanocredits: margin }) => (margin === null ? null : formatNanocredits(margin)),
    }),
    upstreamCost: t.field({
      type: "Credits",
      nullable: true,
      description: UPSTREAM_COST,
      select: { upstreamCostNanocredits: true },
      resolve: ({ upstreamCostNanocredits: cost }, _args, ctx) => shownCost(ctx, cost),
    }),
    route: t.string({
      nullable: true,
      description: "The ID of the route that served. For operators; null for other callers and when unknown.",
      select: { route: true },
      resolve: ({ route }, _args, ctx) => (isOperatorReading(ctx) ? route : null),
    }),
  }),
});

function toMilliseconds(microseconds: bigint | null): number | null {
  return microseconds === null ? null : Number(microseconds) / MICROSECONDS_PER_MILLISECOND;
}

const UsageDay = builder.objectRef<UsageDailyRow>("UsageDay").implement({
  description: "One day's usage of one model from one bucket. Days are UTC.",
  fields: (t) => ({
    date: t.exposeString("date", { description: "`YYYY-MM-DD`." }),
    modelId: t.exposeID("model", { description: "The canonical ID of the requested model." }),
    model: t.field({
      type: Model,
      nullable: true,
      description: "The requested model. Null when it is no longer offered to the caller.",
      resolve: ({ model }, _args, ctx) => ctx.services.catalog.shown(ctx, model),
    }),
    meterSource: t.expose("meterSource", {
      type: MeterSourceEnum,
      description: "The bucket that paid the largest share of each generation.",
    }),
    requests: t.exposeInt("requests", { description: "The number of generations." }),
    cost: t.field({ type: "Credits", description: "The total charge.", resolve: (row) => formatNanocredits(row.costNanocredits) }),
  }),
});

export const UsageDaily = builder.objectRef<{ rows: readonly UsageDailyRow[]; asOf: Date }>("UsageDaily").implement({
  description: "Usage by day, model and bucket.",
  fields: (t) => ({
    days: t.field({
      type: [UsageDay],
      description: "Usage by day, newest first.",
      complexity: { field: 1, multiplier: USAGE_DAYS_MAX },
      resolve: (daily) => [...daily.rows],
    }),
    asOf: t.expose("asOf", { type: "DateTime", description: "When the figures were read." }),
  }),
});

export const usageDailyDaysArg = builder.args((t) => ({
  days: t.int({ defaultValue: USAGE_DAILY_DAYS_DEFAULT, description: `The number of days, 1 to ${USAGE_DAYS_MAX}.` }),
}));

/**
 * Returns undefined for the service's own default. Throws BAD_REQUEST with param `days` when the number is out of bounds
 * (docs/spec/limits.md).
 */
export function toDays({ days }: { readonly days?: number | null | undefined }): number | undefined {
  if (days === undefined || days === null) return undefined;
  if (days < 1 || days > USAGE_DAYS_MAX) throw wrongField("days", `must be from 1 to ${USAGE_DAYS_MAX} days`);
  return days;
}

builder.prismaObjectField(Account, "usageDaily", (t) =>
  t.field({
    type: UsageDaily,
    nullable: true,
    description: "The account's usage by day, model and bucket. Permission USAGE.",
    args: usageDailyDaysArg,
    resolve: ({ id }, args, ctx) => {
      ctx.services.accounts.assertOwn(ctx, id);
      return ctx.services.usage.daily(ctx, { days: toDays(args) });
    },
  }),
);
