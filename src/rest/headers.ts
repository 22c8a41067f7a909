/** Headers of generation answers (decisions "Generation"): what was used, what it cost, where the time went. */
import type { OutgoingHttpHeaders } from "node:http";
import { formatNanocredits } from "../lib/money.js";
import { setOwnValue } from "../lib/own-values.js";
import { USAGE_KINDS, type UsageKind } from "../lib/usage.js";
import type { Receipt } from "../services/generation/receipt.js";

const MILLISECONDS = "Milliseconds";

/** `inputTextTokens` is `X-Usage-Input-Text-Tokens`; milliseconds are told in seconds. */
const USAGE_HEADERS: readonly { readonly kind: UsageKind; readonly name: string; readonly divisor: number }[] = USAGE_KINDS.map((kind) => {
  const isTime = kind.endsWith(MILLISECONDS);
  const words = isTime ? `${kind.slice(0, -MILLISECONDS.length)}Seconds` : kind;
  const name = words.replace(/^./, (letter) => letter.toUpperCase()).replace(/(?<=[a-z])(?=[A-Z])/g, "-");
  return { kind, name: `X-Usage-${name}`, divisor: isTime ? 1000 : 1 };
});

/** Amounts are credits as plain decimals. Which bucket pays is not among them, so that they may come before the charge. */
export function receiptHeaders(receipt: Omit<Receipt, "meterSource">): OutgoingHttpHeaders {
  const headers = generationHeaders(receipt);
  headers["X-Cost"] = formatNanocredits(receipt.costNanocredits);
  if (receipt.childCostNanocredits !== undefined) headers["X-Child-Cost"] = formatNanocredits(receipt.childCostNanocredits);
  headers["X-Held"] = formatNanocredits(receipt.heldNanocredits);
  for (const { kind, name, divisor } of USAGE_HEADERS) {
    const amount = receipt.usage[kind];
    if (amount !== 0) setOwnValue(headers, name, String(amount / divisor));
  }
  headers["Server-Timing"] = `gateway;dur=${milliseconds(receipt.gatewayMs)}, upstream;dur=${milliseconds(receipt.upstreamMs)}`;
  return headers;
}

/** What is known before the answer is finished: a stream's headers. */
export function generationHeaders(
  generation: Pick<Receipt, "generationId" | "model" | "modelUsed" | "cancelPolicy"> & Partial<Pick<Receipt, "safety" | "warnings">>,
): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = { "X-Generation-Id": generation.generationId, "X-Model-Used": generation.modelUsed };
  if (generation.modelUsed !== generation.model) headers["X-Fallback"] = generation.modelUsed;
  if (generation.cancelPolicy) headers["X-Cancel-Policy"] = generation.cancelPolicy;
  if (generation.safety) {
    headers["X-Safety-Applied"] = generation.safety.applied.join(",");
    headers["X-Safety-Redacted"] = generation.safety.redacted.join(",");
  }
  if (generation.warnings && generation.warnings.length > 0) headers["X-Warnings"] = toWarningsHeader(generation.warnings);
  return headers;
}

/** What comes of a receipt is bounded already (services/generation/warnings.ts). Headers are Latin-1, on one line. */
export function toWarningsHeader(warnings: readonly string[]): string {
  return warnings.join("; ").replace(/[^\x20-\x7e]/g, "?");
}

function milliseconds(value: number): string {
  return String(Math.round(value * 1000) / 1000);
}
