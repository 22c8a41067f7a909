/** Usage as everybody outside sees it (docs/spec/usage.md#rows): one list of columns for JSON, CSV and webhooks alike. */
import { toCreditsNumber } from "../../lib/money.js";
import { setOwnValue } from "../../lib/own-values.js";
import type { UsageRow } from "./usage.js";

/** Money stays nanocredits until it is known which of the two it becomes: a JSON number, or a decimal that no program rewrites. */
export type Cell = string | number | bigint | null;
export type Columns<Row> = Readonly<Record<string, (row: Row) => Cell>>;

export const USAGE_COLUMNS: Columns<UsageRow> = {
  id: (row) => row.id,
  timestamp: (row) => row.timestamp.toISOString(),
  type: (row) => `generate.${row.modality}`,
  model: (row) => row.model,
  api_key_id: (row) => row.apiKeyId,
  api_key: (row) => row.apiKeyName,
  api_key_type: (row) => row.apiKeyType,
  meter_source: (row) => row.meterSource,
  input_text_tokens: (row) => row.inputTextTokens,
  input_cached_tokens: (row) => row.inputCachedTokens,
  input_cache_write_tokens: (row) => row.inputCacheWriteTokens,
  input_audio_tokens: (row) => row.inputAudioTokens,
  input_image_tokens: (row) => row.inputImageTokens,
  output_text_tokens: (row) => row.outputTextTokens,
  output_reasoning_tokens: (row) => row.outputReasoningTokens,
  output_audio_tokens: (row) => row.outputAudioTokens,
  output_image_tokens: (row) => row.outputImageTokens,
  output_video_seconds: (row) => row.outputVideoMilliseconds / 1000,
  output_audio_seconds: (row) => row.outputAudioMilliseconds / 1000,
  cost_usd: (row) => row.costNanocredits,
  response_time_ms: (row) => row.responseTimeMs,
  time_to_first_token_ms: (row) => row.timeToFirstTokenMs,
  status: (row) => row.status,
  usage_source: (row) => row.usageSource,
  request_id: (row) => row.id,
  parent_request_id: (row) => row.parentRequestId,
};

export function toJsonRow<Row>(columns: Columns<Row>, row: Row): Record<string, string | number | null> {
  const json: Record<string, string | number | null> = {};
  for (const [name, read] of Object.entries(columns)) {
    const cell = read(row) ?? null;
    setOwnValue(json, name, typeof cell === "bigint" ? toCreditsNumber(cell) : cell);
  }
  return json;
}
