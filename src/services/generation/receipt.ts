/** What a finished generation cost and how it went: both faces present it, as headers, usage fields or GraphQL fields. */
import type { UsageQuantities } from "../../lib/usage.js";
import type { SafetyReport } from "../safety/safety.js";

export type MeterSource = "tier" | "crypto" | "pack";
export type UsageStatus = "ok" | "cancelled";
export type UsageSource = "provider" | "estimated" | "partial" | "bounded";

/**
 * What becomes of a generation whose caller leaves once its upstream has begun
 * (docs/spec/credits.md#callers-who-leave): it is finished and charged whole; it is stopped and charged for what was
 * delivered; or it is read on to the report of its usage and charged for that.
 */
export type CancelPolicy = "finish" | "stop" | "read-to-usage";

export interface Receipt {
  /** The generation's own id: X-Generation-Id, and `request_id` in usage. */
  readonly generationId: string;
  /** Canonical id of the model asked for; its prices apply. */
  readonly model: string;
  /** Canonical id of the model that answered; differs when a fallback served. */
  readonly modelUsed: string;
  readonly usage: UsageQuantities;
  readonly usageSource: UsageSource;
  readonly status: UsageStatus;
  /** What was charged. */
  readonly costNanocredits: bigint;
  /** Of an agent: what was charged for all that it asked for until its answer was finished. */
  readonly childCostNanocredits?: bigint | undefined;
  /** What was set aside before the upstream was called. */
  readonly heldNanocredits: bigint;
  readonly meterSource: MeterSource;
  /** Milliseconds that the gateway itself took: the whole less the upstream's. */
  readonly gatewayMs: number;
  /** Milliseconds from the upstream call to its last byte. */
  readonly upstreamMs: number;
  readonly responseMs: number;
  readonly firstTokenMs: number | null;
  /** What was asked for and had no effect, one sentence each. */
  readonly warnings: readonly string[];
  readonly cancelPolicy?: CancelPolicy | undefined;
  /** It ended where the hold did, not where the model or the caller would have ended it. */
  readonly isCut?: boolean | undefined;
  /** Null when no safety feature applied. */
  readonly safety: SafetyReport | null;
}

/**
 * `receipt` of a stream's last chunk: what the headers of a whole answer tell and those of a stream could not yet, because a fallback
 * may be found and time goes by after they have left. The names are those of usage rows.
 */
export function toStreamReceipt(receipt: Receipt): Readonly<Record<string, unknown>> {
  const { generationId, model, modelUsed, gatewayMs, upstreamMs, responseMs, firstTokenMs, warnings } = receipt;
  return {
    generation_id: generationId,
    model_used: modelUsed,
    fallback: modelUsed === model ? null : modelUsed,
    gateway_ms: toMicroseconds(gatewayMs),
    upstream_ms: toMicroseconds(upstreamMs),
    response_time_ms: Math.round(responseMs),
    time_to_first_token_ms: firstTokenMs === null ? null : Math.round(firstTokenMs),
    ...(warnings.length > 0 && { warnings }),
  };
}

/** As exact as `Server-Timing`. */
function toMicroseconds(milliseconds: number): number {
  return Math.round(milliseconds * 1000) / 1000;
}

type Amount = "costNanocredits" | "heldNanocredits";

/**
 * As JSON columns hold it: amounts are decimal strings of nanocredits. What an agent asked for was charged once: no answer that is kept
 * tells it again.
 */
export type StoredReceipt = Omit<Receipt, Amount | "childCostNanocredits"> & Readonly<Record<Amount, string>>;

export function toStoredReceipt({ childCostNanocredits: _, ...receipt }: Receipt): StoredReceipt {
  return { ...receipt, costNanocredits: receipt.costNanocredits.toString(), heldNanocredits: receipt.heldNanocredits.toString() };
}

/** `stored` is what `toStoredReceipt` made, as it came out of the database. */
export function fromStoredReceipt(stored: unknown): Receipt {
  const receipt = stored as StoredReceipt;
  return { ...receipt, costNanocredits: BigInt(receipt.costNanocredits), heldNanocredits: BigInt(receipt.heldNanocredits) };
}

// What had no effect, or had another one than was asked for, in sentences to the caller: `X-Warnings` over REST, `receipt.warnings` over
// GraphQL. Whoever makes a receipt joins its warnings here, where they are bounded: some repeat what a caller or an upstream wrote, and
// proxies on the way refuse an answer whose headers are too long.

/** Unspecified: how many warnings one answer has, and how long each and all of them together may be. */
const WARNINGS_MAX = 16;
const WARNING_CHARS_MAX = 400;
const ALL_CHARS_MAX = 2_000;
export const NO_WARNINGS: readonly string[] = [];

/** Each once, in order. */
export function joinWarnings(...lists: readonly (readonly string[])[]): readonly string[] {
  if (lists.every(({ length }) => length === 0)) return NO_WARNINGS;
  const all = new Set(lists.flat());
  const told: string[] = [];
  let chars = 0;
  for (const warning of all) {
    const text = quoteStart(warning, WARNING_CHARS_MAX);
    chars += text.length;
    if (told.length >= WARNINGS_MAX || chars > ALL_CHARS_MAX) break;
    told.push(text);
  }
  return told.length < all.size ? [...told, `There are ${all.size - told.length} more warnings.`] : told;
}

/** The beginning of what somebody else wrote. */
export function quoteStart(text: string, charsMax: number): string {
  return text.length > charsMax ? `${text.slice(0, charsMax - 1)}…` : text;
}
