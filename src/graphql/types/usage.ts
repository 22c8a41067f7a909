/** Usage: what each generation consumed and cost, and the daily roll-up (docs/spec/usage.md). */
import { wrongField } from "../../errors.js";
import { formatNanocredits } from "../../lib/money.js";
import type { UsageQuantities } from "../../lib/usage.js";
import { USAGE_DAILY_DAYS_DEFAULT, USAGE_DAYS_DEFAULT, USAGE_DAYS_MAX } from "../../limits.js";
import type { MeterSource, UsageSource, UsageStatus } from "../../services/generation/receipt.js";
import type { UsageDailyRow, UsageRow } from "../../services/usage/usage.js";
import { builder, enumValues } from "../builder.js";
import { ApiKeyType } from "./api-keys.js";
import { Modality } from "./models.js";

const MILLISECONDS_PER_SECOND = 1000;

export const MeterSourceEnum = builder.enumType("MeterSource", {
  description: "A bucket of credits. A charge draws TIER (refilled), then CRYPTO, then PACK (bought).",
  values: enumValues<MeterSource>(["tier", "crypto", "pack"]),
});

export const UsageStatusEnum = builder.enumType("UsageStatus", {
  description: "CANCELLED: the caller left before the end and paid for what had been generated.",
  values: enumValues<UsageStatus>(["ok", "cancelled"]),
});

export const UsageSourceEnum = builder.enumType("UsageSource", {
  description: "PROVIDER: the upstream reported it. ESTIMATED: counted, because it reported nothing. PARTIAL: counted up to a cut.",
  values: enumValues<UsageSource>(["provider", "estimated", "partial"]),
});

export const UsageAmounts = builder.objectRef<UsageQuantities>("UsageAmounts").implement({
  description: "What was consumed and made. The kinds do not overlap: text tokens leave out what is counted in a kind of its own.",
  fields: (t) => ({
    inputTextTokens: t.exposeInt("inputTextTokens"),
    inputCachedTokens: t.exposeInt("inputCachedTokens", { description: "Read from the upstream's prompt cache." }),
    inputCacheWriteTokens: t.exposeInt("inputCacheWriteTokens", { description: "Written to the upstream's prompt cache." }),
    inputAudioTokens: t.exposeInt("inputAudioTokens"),
    inputImageTokens: t.exposeInt("inputImageTokens"),
    outputTextTokens: t.exposeInt("outputTextTokens"),
    outputReasoningTokens: t.exposeInt("outputReasoningTokens"),
    outputAudioTokens: t.exposeInt("outputAudioTokens"),
    outputImageTokens: t.exposeInt("outputImageTokens"),
    outputVideoSeconds: t.float({ resolve: (usage) => usage.outputVideoMilliseconds / MILLISECONDS_PER_SECOND }),
    outputAudioSeconds: t.float({ resolve: (usage) => usage.outputAudioMilliseconds / MILLISECONDS_PER_SECOND }),
  }),
});

export const UsageRecord = builder.objectRef<UsageRow>("UsageRecord").implement({
  description: "One finished generation.",
  fields: (t) => ({
    id: t.exposeID("id", { description: "The generation's id: `X-Generation-Id`, and `request_id` on REST." }),
    timestamp: t.expose("timestamp", { type: "DateTime" }),
    modality: t.expose("modality", { type: Modality }),
    model: t.exposeString("model", { description: "The canonical id of the model asked for; its prices applied." }),
    modelUsed: t.exposeString("modelUsed", {
      description: "The canonical id of the model that answered; another one when a fallback served.",
    }),
    apiKeyId: t.exposeID("apiKeyId", { nullable: true }),
    apiKeyName: t.exposeString("apiKeyName", { nullable: true }),
    apiKeyType: t.expose("apiKeyType", { type: ApiKeyType, nullable: true }),
    meterSource: t.expose("meterSource", { type: MeterSourceEnum, description: "The bucket that paid the most of it." }),
    usage: t.field({ type: UsageAmounts, resolve: (row) => row }),
    cost: t.field({ type: "Credits", description: "What was charged.", resolve: (row) => formatNanocredits(row.costNanocredits) }),
    responseTimeMs: t.exposeInt("responseTimeMs"),
    timeToFirstTokenMs: t.exposeInt("timeToFirstTokenMs", { nullable: true }),
    status: t.expose("status", { type: UsageStatusEnum }),
    usageSource: t.expose("usageSource", { type: UsageSourceEnum }),
    parentRequestId: t.exposeID("parentRequestId", { nullable: true, description: "The agent's generation that this one was part of." }),
  }),
});

const UsageDay = builder.objectRef<UsageDailyRow>("UsageDay").implement({
  description: "One day's use of one model paid from one bucket. Days are UTC.",
  fields: (t) => ({
    date: t.exposeString("date", { description: "`YYYY-MM-DD`." }),
    model: t.exposeString("model"),
    meterSource: t.expose("meterSource", { type: MeterSourceEnum }),
    requests: t.exposeInt("requests"),
    cost: t.field({ type: "Credits", resolve: (row) => formatNanocredits(row.costNanocredits) }),
  }),
});

export const UsageDaily = builder.objectRef<{ rows: readonly UsageDailyRow[]; asOf: Date }>("UsageDaily").implement({
  description: "Usage by day, model and bucket.",
  fields: (t) => ({
    days: t.field({ type: [UsageDay], complexity: { field: 1, multiplier: USAGE_DAYS_MAX }, resolve: (daily) => [...daily.rows] }),
    asOf: t.expose("asOf", { type: "DateTime" }),
  }),
});

export const usageDaysArg = builder.args((t) => ({
  days: t.int({ defaultValue: USAGE_DAYS_DEFAULT, description: `How many days back: 1 to ${USAGE_DAYS_MAX}.` }),
}));

export const usageDailyDaysArg = builder.args((t) => ({
  days: t.int({ defaultValue: USAGE_DAILY_DAYS_DEFAULT, description: `How many days back: 1 to ${USAGE_DAYS_MAX}.` }),
}));

/** Undefined: the service's own default. BAD_REQUEST with param `days` when it is out of bounds (docs/spec/limits.md). */
export function toDays({ days }: { readonly days?: number | null | undefined }): number | undefined {
  if (days === undefined || days === null) return undefined;
  if (days < 1 || days > USAGE_DAYS_MAX) throw wrongField("days", `must be from 1 to ${USAGE_DAYS_MAX} days`);
  return days;
}
