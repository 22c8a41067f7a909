/** Anthropic's report of usage under chat's names, each token in one kind. */
import { isRecord } from "../../lib/json.js";
import { ownValue } from "../../lib/own-values.js";

type Loose = Readonly<Record<string, unknown>>;

/** A report with the newer amounts of another: a stream reports its input at the start and its output at the end. */
export function mergeUsage(before: Loose, more: unknown): Loose {
  if (!isRecord(more)) return before;
  const stated = Object.entries(more).filter(([, value]) => value !== null && value !== undefined);
  return { ...before, ...Object.fromEntries(stated) };
}

/** Null without a credible report. Input in the format excludes cache reads and writes. */
export function toChatUsage(raw: Loose): Loose | null {
  const { cache_creation: kinds, output_tokens_details: details } = raw;
  const input = amountIn(raw, "input_tokens", null);
  const output = amountIn(raw, "output_tokens", null);
  const cached = amountIn(raw, "cache_read_input_tokens", 0);
  const byKind = isRecord(kinds) ? kinds : {};
  const short = amountIn(byKind, "ephemeral_5m_input_tokens", 0);
  const hour = amountIn(byKind, "ephemeral_1h_input_tokens", 0);
  const total = amountIn(raw, "cache_creation_input_tokens", 0);
  const thoughts = amountIn(isRecord(details) ? details : {}, "thinking_tokens", 0);
  if (input === null || output === null || cached === null || short === null || hour === null || total === null || thoughts === null)
    return null;
  const written = Math.max(total, short + hour);
  const prompt = input + cached + written;
  return {
    prompt_tokens: prompt,
    completion_tokens: output,
    total_tokens: prompt + output,
    prompt_tokens_details: {
      cached_tokens: cached,
      cache_write_tokens: written,
      ...(isRecord(kinds) && { cache_creation: { ephemeral_5m_input_tokens: short, ephemeral_1h_input_tokens: hour } }),
    },
    completion_tokens_details: { reasoning_tokens: thoughts },
  };
}

/** Null for an impossible amount. */
function amountIn(holder: Loose, name: string, absent: number | null): number | null {
  const value = ownValue(holder, name);
  if (value === undefined || value === null) return absent;
  return typeof value === "number" && Number.isInteger(value) && value >= 0 ? value : null;
}
