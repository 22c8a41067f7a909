/** Headers of generation answers (docs/spec/generation.md#headers): usage, cost and times. */
import type { OutgoingHttpHeaders } from "node:http";
import { headerText } from "../lib/header-text.js";
import { formatNanocredits } from "../lib/money.js";
import { USAGE_KINDS, type UsageKind } from "../lib/usage.js";
import type { ChatCompletionStream } from "../services/generation/chat/stream.js";
import { joinWarnings, type Receipt } from "../services/generation/receipt.js";

/** Durations are in seconds. */
const USAGE_HEADERS = {
  inputTextTokens: "X-Usage-Input-Text-Tokens",
  inputCachedTokens: "X-Usage-Input-Cached-Tokens",
  inputCacheWriteTokens: "X-Usage-Input-Cache-Write-Tokens",
  inputAudioTokens: "X-Usage-Input-Audio-Tokens",
  inputImageTokens: "X-Usage-Input-Image-Tokens",
  outputTextTokens: "X-Usage-Output-Text-Tokens",
  outputReasoningTokens: "X-Usage-Output-Reasoning-Tokens",
  outputAudioTokens: "X-Usage-Output-Audio-Tokens",
  outputImageTokens: "X-Usage-Output-Image-Tokens",
  outputVideoMilliseconds: "X-Usage-Output-Video-Seconds",
  outputAudioMilliseconds: "X-Usage-Output-Audio-Seconds",
} as const satisfies Record<UsageKind, string>;

/**
 * Headers of a known cost, for every route. Amounts are credits as plain decimals. The paying bucket is left out, so that they can be sent
 * before the charge.
 */
export function receiptHeaders(receipt: Omit<Receipt, "meterSource">, isHit = false): OutgoingHttpHeaders {
  const headers = generationHeaders(receipt, receipt.generationId, isHit);
  headers["X-Cost"] = formatNanocredits(receipt.costNanocredits);
  if (receipt.childCostNanocredits !== undefined) headers["X-Child-Cost"] = formatNanocredits(receipt.childCostNanocredits);
  if (receipt.marginNanocredits !== undefined) headers["X-App-Margin"] = formatNanocredits(receipt.marginNanocredits);
  if (receipt.cut) headers["X-Cut"] = receipt.cut;
  headers["X-Held"] = formatNanocredits(receipt.heldNanocredits);
  for (const kind of USAGE_KINDS) {
    const amount = receipt.usage[kind];
    if (amount !== 0) headers[USAGE_HEADERS[kind]] = String(kind.endsWith("Milliseconds") ? amount / 1000 : amount);
  }
  headers["Server-Timing"] = toServerTiming(receipt);
  return headers;
}

/** For a GET, which only the gateway's own cache may keep: a hit needs a key that may use the model. */
export function cachedHeaders({ receipt, isHit }: { readonly receipt: Receipt; readonly isHit: boolean }): OutgoingHttpHeaders {
  return { ...receiptHeaders(receipt, isHit), "Cache-Control": CACHE_CONTROL };
}

export const CACHE_CONTROL = "private, no-store";

/** For a stream: data known at its start, including the request's warnings. Its last chunk has the rest (`toStreamReceipt`). */
export function streamHeaders(stream: HeadedStream, opened: Opened | null): OutgoingHttpHeaders {
  const { generationId, isHit, notes } = stream;
  const headers = opened ? generationHeaders(opened, generationId, isHit) : startedHeaders(generationId, isHit);
  if (!opened) setWarnings(headers, joinWarnings(notes ?? []));
  headers["Server-Timing"] = toServerTiming(stream.timing());
  return headers;
}

type HeadedStream = Pick<ChatCompletionStream, "generationId" | "isHit" | "notes" | "timing">;
type Opened = Awaited<ChatCompletionStream["opened"]>;

export function generationHeaders(generation: Opened, generationId: string, isHit = false): OutgoingHttpHeaders {
  const headers = startedHeaders(generationId, isHit);
  headers["X-Model-Used"] = generation.modelUsed;
  if (generation.modelUsed !== generation.model) headers["X-Fallback"] = generation.modelUsed;
  if (generation.upstream) headers["X-Upstream"] = generation.upstream;
  if (generation.vendorKeyId) headers["X-Vendor-Key"] = generation.vendorKeyId;
  if (generation.cancelPolicy) headers["X-Cancel-Policy"] = generation.cancelPolicy;
  if (generation.safety) {
    headers["X-Safety-Applied"] = generation.safety.applied.join(",");
    headers["X-Safety-Redacted"] = generation.safety.redacted.join(",");
  }
  setWarnings(headers, generation.warnings);
  return headers;
}

/** For a started generation. `X-Cache` is about the content cache only, which POSTs do not use. */
export function startedHeaders(generationId: string, isHit = false): OutgoingHttpHeaders {
  return { "X-Generation-Id": generationId, "X-Cache": isHit ? "HIT" : "MISS" };
}

function toServerTiming({ gatewayMs, upstreamMs }: Pick<Receipt, "gatewayMs" | "upstreamMs">): string {
  return `gateway;dur=${milliseconds(gatewayMs)}, upstream;dur=${milliseconds(upstreamMs)}`;
}

function setWarnings(headers: OutgoingHttpHeaders, warnings: readonly string[] = []): void {
  if (warnings.length > 0) headers["X-Warnings"] = toWarningsHeader(warnings);
}

/** Warnings of a receipt are already bounded (`joinWarnings`). */
export function toWarningsHeader(warnings: readonly string[]): string {
  return headerText("value", warnings.join("; "));
}

/** To the microsecond. Built from integers, because formatting a fraction takes ten times as long. */
function milliseconds(value: number): string {
  const microseconds = Math.round(value * 1000);
  const whole = Math.floor(microseconds / 1000);
  const rest = microseconds - whole * 1000;
  return rest === 0 ? String(whole) : `${whole}.${String(rest + 1000).slice(1)}`;
}
