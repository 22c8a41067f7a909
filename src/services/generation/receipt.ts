/** The receipt of a finished generation, its cost and course: presented by both faces as headers, usage fields or GraphQL fields. */
import { toCreditsNumber } from "../../lib/money.js";
import { quoteStart } from "../../lib/quote-start.js";
import type { UsageQuantities } from "../../lib/usage.js";
import type { SafetyReport } from "../safety/safety.js";
import { type Attempt, NO_ATTEMPTS } from "./routing/candidate.js";

export type MeterSource = "tier" | "crypto" | "pack";
export type UsageStatus = "ok" | "cancelled";
export type UsageSource = "provider" | "estimated" | "partial" | "bounded";

/**
 * The effect of a disconnect after an upstream has begun (docs/spec/credits.md#callers-who-leave): the generation is finished and charged
 * in full; stopped and charged for the delivered part; or read to its usage report and charged by that.
 */
export type CancelPolicy = "finish" | "stop" | "read-to-usage";

export type CutReason = "max_cost";

export interface Receipt {
  /** The generation's id: X-Generation-Id, and `request_id` in usage. */
  readonly generationId: string;
  readonly model: string;
  readonly modelUsed: string;
  /** The upstream that served, as shown to callers; null: not known, as of generations from before upstreams were recorded. */
  readonly upstream: string | null;
  /** The id of its route within the model, for operators; null as there. */
  readonly route: string | null;
  /** The account's vendor key that served; null: a key of the operator. */
  readonly vendorKeyId: string | null;
  /** What the operator pays; null: unknown. For operators. */
  readonly upstreamCostNanocredits: bigint | null;
  /** Candidates that were left before, in order. */
  readonly attempts: readonly Attempt[];
  readonly usage: UsageQuantities;
  readonly usageSource: UsageSource;
  readonly status: UsageStatus;
  readonly costNanocredits: bigint;
  /** The part of the cost that is the margin of the key's app; absent: none. */
  readonly marginNanocredits?: bigint | undefined;
  /** Of an agent: the charges of all its generations until its answer was finished. */
  readonly childCostNanocredits?: bigint | undefined;
  /** The hold before the upstream was called. */
  readonly heldNanocredits: bigint;
  readonly meterSource: MeterSource;
  /** The total less the upstream's. */
  readonly gatewayMs: number;
  /** To its last byte. */
  readonly upstreamMs: number;
  readonly responseMs: number;
  readonly firstTokenMs: number | null;
  readonly warnings: readonly string[];
  readonly cancelPolicy?: CancelPolicy | undefined;
  /** It was cut at its hold, not ended by the model or the request. */
  readonly isCut?: boolean | undefined;
  /** The limit of the request at which it was cut. */
  readonly cut?: CutReason | undefined;
  /** Null when no safety feature applied. */
  readonly safety: SafetyReport | null;
}

/**
 * `receipt` of a stream's last chunk: the data that whole answers have in headers, and that is not known when a stream's headers are sent.
 * Named as in usage rows.
 */
export function toStreamReceipt(receipt: Receipt): Readonly<Record<string, unknown>> {
  const { generationId, model, modelUsed, upstream, vendorKeyId, attempts, gatewayMs, upstreamMs, responseMs } = receipt;
  const { firstTokenMs, warnings, cut, marginNanocredits } = receipt;
  return {
    generation_id: generationId,
    model_used: modelUsed,
    fallback: modelUsed === model ? null : modelUsed,
    upstream,
    ...(vendorKeyId !== null && { vendor_key_id: vendorKeyId }),
    ...(marginNanocredits !== undefined && { app_margin_usd: toCreditsNumber(marginNanocredits) }),
    ...(attempts.length > 0 && { attempts: attempts.map(toShownAttempt) }),
    gateway_ms: toMicroseconds(gatewayMs),
    upstream_ms: toMicroseconds(upstreamMs),
    response_time_ms: Math.round(responseMs),
    time_to_first_token_ms: firstTokenMs === null ? null : Math.round(firstTokenMs),
    ...(cut && { cut }),
    ...(warnings.length > 0 && { warnings }),
  };
}

/** Routes name the operator's keys, so callers get the upstream alone. */
export function toShownAttempt({ upstream, code, ms, vendorKeyId }: Attempt): Readonly<Record<string, unknown>> {
  return { upstream, code, ms, ...(vendorKeyId !== undefined && { vendor_key_id: vendorKeyId }) };
}

/** The precision of `Server-Timing`. */
function toMicroseconds(milliseconds: number): number {
  return Math.round(milliseconds * 1000) / 1000;
}

type Amount = "costNanocredits" | "heldNanocredits";
/** Left out of stored receipts: the operator's cost, which callers do not see, and the cost of an agent's generations. */
type Unstored = "childCostNanocredits" | "upstreamCostNanocredits" | "route";

/**
 * The form in JSON columns: amounts are decimal strings of nanocredits. The cost of an agent's generations is left out, as it was charged
 * once and a stored answer must not repeat it.
 */
export type StoredReceipt = Omit<Receipt, Amount | Unstored | "marginNanocredits"> &
  Readonly<Record<Amount, string>> & { readonly marginNanocredits?: string | undefined };

export function toStoredReceipt(all: Receipt): StoredReceipt {
  const { childCostNanocredits: _, upstreamCostNanocredits: __, route: ___, marginNanocredits, ...receipt } = all;
  return {
    ...receipt,
    costNanocredits: receipt.costNanocredits.toString(),
    heldNanocredits: receipt.heldNanocredits.toString(),
    ...(marginNanocredits !== undefined && { marginNanocredits: marginNanocredits.toString() }),
  };
}

/** `stored` is a result of `toStoredReceipt` read from the database. */
export function fromStoredReceipt(stored: unknown): Receipt {
  const { marginNanocredits, ...receipt } = stored as StoredReceipt;
  const { upstream = null, vendorKeyId = null, attempts = NO_ATTEMPTS } = receipt as Partial<StoredReceipt>;
  const serving = { upstream, vendorKeyId, attempts, route: null, upstreamCostNanocredits: null };
  return {
    ...receipt,
    ...serving,
    costNanocredits: BigInt(receipt.costNanocredits),
    heldNanocredits: BigInt(receipt.heldNanocredits),
    ...(marginNanocredits !== undefined && { marginNanocredits: BigInt(marginNanocredits) }),
  };
}

// Warnings about options without effect or with another one: `X-Warnings` over REST, `receipt.warnings` over GraphQL. Every receipt joins
// its warnings here, where they are bounded: some quote clients or upstreams, and proxies refuse answers with long headers.

/** Unspecified: number of warnings of one answer, and their lengths, each and in total. */
const WARNINGS_MAX = 16;
const WARNING_CHARS_MAX = 400;
const ALL_CHARS_MAX = 2_000;
export const NO_WARNINGS: readonly string[] = [];

/** Without duplicates, in order. */
export function joinWarnings(...lists: readonly (readonly string[])[]): readonly string[] {
  if (lists.every(({ length }) => length === 0)) return NO_WARNINGS;
  const all = new Set(lists.flat());
  const kept: string[] = [];
  let chars = 0;
  for (const warning of all) {
    const text = quoteStart(warning, WARNING_CHARS_MAX);
    chars += text.length;
    if (kept.length >= WARNINGS_MAX || chars > ALL_CHARS_MAX) break;
    kept.push(text);
  }
  return kept.length < all.size ? [...kept, `There are ${all.size - kept.length} more warnings.`] : kept;
}
