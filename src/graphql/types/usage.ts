/** Usage: what each generation consumed and cost, and the daily roll-up (docs/spec/usage.md). */
import type { GraphQLResolveInfo } from "graphql";
import { wrongField } from "../../errors.js";
import { formatNanocredits } from "../../lib/money.js";
import type { UsageQuantities } from "../../lib/usage.js";
import { USAGE_DAILY_DAYS_DEFAULT, USAGE_DAYS_MAX } from "../../limits.js";
import type { SelectedApiKey } from "../../services/api-keys/api-keys.js";
import type { MeterSource, UsageSource, UsageStatus } from "../../services/generation/receipt.js";
import type { UsageDailyRow } from "../../services/usage/usage.js";
import { builder, describedValues } from "../builder.js";
import type { GraphQLContext } from "../context.js";
import { edgesBatchedBy } from "../loaders.js";
import { byId, Node, nodesReadBy } from "../nodes.js";
import { selectionOf } from "../selection.js";
import { Account } from "./accounts.js";
import { ApiKey, ApiKeyType } from "./api-keys.js";
import { Modality, Model } from "./models.js";

const MILLISECONDS_PER_SECOND = 1000;
const MICROSECONDS_PER_MILLISECOND = 1000;

export const MeterSourceEnum = builder.enumType("MeterSource", {
  description: "A bucket of credits. A charge draws TIER, then CRYPTO, then PACK.",
  values: describedValues<MeterSource>({
    tier: "What the account's tier gives, and refills.",
    crypto: "What was paid in with crypto.",
    pack: "What was bought.",
  }),
});

export const UsageStatusEnum = builder.enumType("UsageStatus", {
  description: "How a generation ended that was charged.",
  values: describedValues<UsageStatus>({
    ok: "It was answered whole.",
    cancelled: "The caller left, or the answer broke off. What had been made was charged.",
  }),
});

export const UsageSourceEnum = builder.enumType("UsageSource", {
  description: "Who counted what was consumed and made.",
  values: describedValues<UsageSource>({
    provider: "The upstream reported it.",
    estimated: "The gateway counted, because the upstream reported nothing, or less than it delivered.",
    partial: "The gateway counted up to where the answer was cut.",
    bounded: "The upstream reported more than is plausible for the request. The most that is plausible was charged.",
  }),
});

export const UsageAmounts = builder.objectRef<UsageQuantities>("UsageAmounts").implement({
  description: "What was consumed and made. The kinds do not overlap: text tokens leave out what is counted in a kind of its own.",
  fields: (t) => ({
    inputTextTokens: t.exposeInt("inputTextTokens", { description: "Text that went in and was not cached." }),
    inputCachedTokens: t.exposeInt("inputCachedTokens", { description: "Read from the upstream's prompt cache." }),
    inputCacheWriteTokens: t.exposeInt("inputCacheWriteTokens", { description: "Written to the upstream's prompt cache." }),
    inputAudioTokens: t.exposeInt("inputAudioTokens", { description: "Sound that went in." }),
    inputImageTokens: t.exposeInt("inputImageTokens", { description: "Pictures that went in." }),
    outputTextTokens: t.exposeInt("outputTextTokens", { description: "Text that came out." }),
    outputReasoningTokens: t.exposeInt("outputReasoningTokens", { description: "Thinking that came out or was kept." }),
    outputAudioTokens: t.exposeInt("outputAudioTokens", { description: "Sound that came out." }),
    outputImageTokens: t.exposeInt("outputImageTokens", { description: "Pictures that came out." }),
    outputVideoSeconds: t.float({
      description: "Video that came out, where it is counted in seconds.",
      resolve: (usage) => usage.outputVideoMilliseconds / MILLISECONDS_PER_SECOND,
    }),
    outputAudioSeconds: t.float({
      description: "Sound that came out, where it is counted in seconds.",
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

/** The key that something was paid with. */
export function apiKeyOf(ctx: GraphQLContext, id: string, info: GraphQLResolveInfo): Promise<SelectedApiKey | null> {
  return readApiKeyOf(ctx, id, null, selectionOf(ctx, info));
}

export const UsageRecord = builder.prismaObject("UsageRecord", {
  description: "One finished generation.",
  interfaces: [Node],
  select: { id: true, timestamp: true },
  extensions: nodesReadBy(async (ctx, ids, info) =>
    byId(await ctx.services.usage.getMany(ctx, ids, selectionOf(ctx, info, [], "UsageRecord"))),
  ),
  fields: (t) => ({
    timestamp: t.expose("timestamp", { type: "DateTime", description: "When it ended." }),
    modality: t.field({ type: Modality, description: "What was made.", select: { modality: true }, resolve: ({ modality }) => modality }),
    modelId: t.exposeID("model", { description: "The canonical id of the model asked for; its prices applied." }),
    model: t.field({
      type: Model,
      nullable: true,
      description: "The model asked for. Null: it is no longer offered to the caller.",
      select: { model: true },
      resolve: ({ model }, _args, ctx) => ctx.services.catalog.shown(ctx, model),
    }),
    modelUsedId: t.exposeID("modelUsed", {
      description: "The canonical id of the model that answered; another one when a fallback served.",
    }),
    modelUsed: t.field({
      type: Model,
      nullable: true,
      description: "The model that answered. Null: it is no longer offered to the caller.",
      select: { modelUsed: true },
      resolve: ({ modelUsed }, _args, ctx) => ctx.services.catalog.shown(ctx, modelUsed),
    }),
    apiKeyId: t.exposeID("apiKeyId", { nullable: true, description: "The REST id of the key that paid. Null: a session asked." }),
    apiKey: t.field({
      type: ApiKey,
      nullable: true,
      description:
        "The key that paid. Null: a session asked. Of other keys than the calling one it needs a secret key with the permission KEYS.",
      select: { apiKeyId: true },
      resolve: ({ apiKeyId }, _args, ctx, info) => (apiKeyId === null ? null : apiKeyOf(ctx, apiKeyId, info)),
    }),
    apiKeyName: t.exposeString("apiKeyName", { nullable: true, description: "What the key was called then." }),
    apiKeyType: t.field({
      type: ApiKeyType,
      nullable: true,
      description: "What the key was for.",
      select: { apiKeyType: true },
      resolve: ({ apiKeyType }) => apiKeyType,
    }),
    meterSource: t.field({
      type: MeterSourceEnum,
      description: "The bucket that paid the most of it.",
      select: { meterSource: true },
      resolve: ({ meterSource }) => meterSource,
    }),
    usage: t.field({ type: UsageAmounts, description: "What was consumed and made.", select: AMOUNT_COLUMNS, resolve: (row) => row }),
    cost: t.field({
      type: "Credits",
      description: "What was charged.",
      select: { costNanocredits: true },
      resolve: ({ costNanocredits }) => formatNanocredits(costNanocredits),
    }),
    responseTimeMs: t.exposeInt("responseTimeMs", { description: "Milliseconds from the request to the end of its answer." }),
    timeToFirstTokenMs: t.exposeInt("timeToFirstTokenMs", {
      nullable: true,
      description: "Milliseconds from the request to the first piece of a streamed answer.",
    }),
    held: t.field({
      type: "Credits",
      nullable: true,
      description: "What was set aside for it in all before it was charged. Null: not known.",
      select: { heldNanocredits: true },
      resolve: ({ heldNanocredits }) => (heldNanocredits === null ? null : formatNanocredits(heldNanocredits)),
    }),
    upstreamMs: t.float({
      nullable: true,
      description: "Milliseconds in which the upstream was at work. Null: not known.",
      select: { upstreamUs: true },
      resolve: ({ upstreamUs }) => toMilliseconds(upstreamUs),
    }),
    gatewayMs: t.float({
      nullable: true,
      description: "Milliseconds that the gateway itself took until it charged. Null: not known.",
      select: { gatewayUs: true },
      resolve: ({ gatewayUs }) => toMilliseconds(gatewayUs),
    }),
    status: t.field({ type: UsageStatusEnum, description: "How it ended.", select: { status: true }, resolve: ({ status }) => status }),
    usageSource: t.field({
      type: UsageSourceEnum,
      description: "Who counted.",
      select: { usageSource: true },
      resolve: ({ usageSource }) => usageSource,
    }),
    parentRequestId: t.exposeID("parentRequestId", {
      nullable: true,
      description: "The REST id of the agent's generation that this one was part of.",
    }),
  }),
});

function toMilliseconds(microseconds: bigint | null): number | null {
  return microseconds === null ? null : Number(microseconds) / MICROSECONDS_PER_MILLISECOND;
}

const UsageDay = builder.objectRef<UsageDailyRow>("UsageDay").implement({
  description: "One day's use of one model paid from one bucket. Days are UTC.",
  fields: (t) => ({
    date: t.exposeString("date", { description: "`YYYY-MM-DD`." }),
    modelId: t.exposeID("model", { description: "The canonical id of the model that was asked for." }),
    model: t.field({
      type: Model,
      nullable: true,
      description: "The model that was asked for. Null: it is no longer offered to the caller.",
      resolve: ({ model }, _args, ctx) => ctx.services.catalog.shown(ctx, model),
    }),
    meterSource: t.expose("meterSource", { type: MeterSourceEnum, description: "The bucket that paid the most of each." }),
    requests: t.exposeInt("requests", { description: "How many there were." }),
    cost: t.field({ type: "Credits", description: "What was charged.", resolve: (row) => formatNanocredits(row.costNanocredits) }),
  }),
});

export const UsageDaily = builder.objectRef<{ rows: readonly UsageDailyRow[]; asOf: Date }>("UsageDaily").implement({
  description: "Usage by day, model and bucket.",
  fields: (t) => ({
    days: t.field({
      type: [UsageDay],
      description: "The newest first.",
      complexity: { field: 1, multiplier: USAGE_DAYS_MAX },
      resolve: (daily) => [...daily.rows],
    }),
    asOf: t.expose("asOf", { type: "DateTime", description: "When it was read." }),
  }),
});

export const usageDailyDaysArg = builder.args((t) => ({
  days: t.int({ defaultValue: USAGE_DAILY_DAYS_DEFAULT, description: `How many days back: 1 to ${USAGE_DAYS_MAX}.` }),
}));

/** Undefined: the service's own default. BAD_REQUEST with param `days` when it is out of bounds (docs/spec/limits.md). */
export function toDays({ days }: { readonly days?: number | null | undefined }): number | undefined {
  if (days === undefined || days === null) return undefined;
  if (days < 1 || days > USAGE_DAYS_MAX) throw wrongField("days", `must be from 1 to ${USAGE_DAYS_MAX} days`);
  return days;
}

builder.prismaObjectField(Account, "usageDaily", (t) =>
  t.field({
    type: UsageDaily,
    nullable: true,
    description: "The account's use by day, model and bucket. Permission USAGE.",
    args: usageDailyDaysArg,
    resolve: ({ id }, args, ctx) => {
      ctx.services.accounts.assertOwn(ctx, id);
      return ctx.services.usage.daily(ctx, { days: toDays(args) });
    },
  }),
);
