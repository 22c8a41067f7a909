/** CSV export of filtered usage, newest rows first. Columns are those of the REST export, plus the model that answered. */
import type { CombinedError } from "urql";
import {
  type FeedRecordFragment,
  type ReceiptRecordFragment,
  UsageExportDocument,
  type UsageExportQuery,
  type UsageFilter,
} from "../../client/generated/graphql.js";
import { refetchQuery } from "../../client/graphql.js";
import { toCsvCell } from "../../ui/csv-cell.js";

/** Same limit as the REST export. */
export const EXPORT_ROWS_MAX = 50_000;

type Row = FeedRecordFragment & ReceiptRecordFragment;
type Column = readonly [name: string, read: (row: Row) => string | number | null];

const COLUMNS: readonly Column[] = [
  ["id", ({ restId }) => restId],
  ["timestamp", ({ timestamp }) => timestamp],
  ["type", ({ modality }) => `generate.${modality.toLowerCase()}`],
  ["model", ({ modelId }) => modelId],
  ["api_key_id", ({ apiKeyId }) => apiKeyId],
  ["api_key", ({ apiKeyName }) => apiKeyName],
  ["api_key_type", ({ apiKeyType }) => apiKeyType?.toLowerCase() ?? null],
  ["meter_source", ({ meterSource }) => meterSource.toLowerCase()],
  ["input_text_tokens", ({ usage }) => usage.inputTextTokens],
  ["input_cached_tokens", ({ usage }) => usage.inputCachedTokens],
  ["input_cache_write_tokens", ({ usage }) => usage.inputCacheWriteTokens],
  ["input_audio_tokens", ({ usage }) => usage.inputAudioTokens],
  ["input_image_tokens", ({ usage }) => usage.inputImageTokens],
  ["output_text_tokens", ({ usage }) => usage.outputTextTokens],
  ["output_reasoning_tokens", ({ usage }) => usage.outputReasoningTokens],
  ["output_audio_tokens", ({ usage }) => usage.outputAudioTokens],
  ["output_image_tokens", ({ usage }) => usage.outputImageTokens],
  ["output_video_seconds", ({ usage }) => usage.outputVideoSeconds],
  ["output_audio_seconds", ({ usage }) => usage.outputAudioSeconds],
  ["cost_usd", ({ cost }) => cost],
  ["response_time_ms", ({ responseTimeMs }) => responseTimeMs],
  ["time_to_first_token_ms", ({ timeToFirstTokenMs }) => timeToFirstTokenMs],
  ["status", ({ status }) => status.toLowerCase()],
  ["usage_source", ({ usageSource }) => usageSource.toLowerCase()],
  ["request_id", ({ restId }) => restId],
  ["parent_request_id", ({ parentRequestId }) => parentRequestId],
  ["upstream", ({ upstream }) => upstream],
  ["vendor_key_id", ({ vendorKeyId }) => vendorKeyId],
  ["app_margin_usd", ({ appMargin }) => appMargin],
  ["model_used", ({ modelUsedId }) => modelUsedId],
];

const toLine = (cells: readonly (string | number | null)[]) => `${cells.map(toCsvCell).join(",")}\r\n`;

export class Export {
  readonly parts: string[] = [toLine(COLUMNS.map(([name]) => name))];
  count = 0;
  private cursor: string | null = null;
  private isOver = false;
  private isCancelled = false;

  constructor(private readonly filter: UsageFilter) {}

  cancel(): void {
    this.isCancelled = true;
  }

  /** Reads all pages. After an error it can be called again and continues from the last page. */
  async run(onProgress: (count: number) => void): Promise<CombinedError | "cancelled" | "done"> {
    while (!this.isOver) {
      if (this.isCancelled) return "cancelled";
      const page = await refetchQuery(UsageExportDocument, { after: this.cursor, filter: this.filter });
      if (page.error) return page.error;
      this.take(page.data);
      onProgress(this.count);
    }
    return this.isCancelled ? "cancelled" : "done";
  }

  private take(data: UsageExportQuery | undefined): void {
    const { nodes = [], pageInfo } = data?.me?.usage ?? {};
    const taken = nodes.slice(0, EXPORT_ROWS_MAX - this.count);
    this.parts.push(taken.map((row) => toLine(COLUMNS.map(([, read]) => read(row)))).join(""));
    this.count += taken.length;
    this.cursor = pageInfo?.endCursor ?? null;
    this.isOver = !pageInfo?.hasNextPage || this.count >= EXPORT_ROWS_MAX;
  }
}

export function save(parts: readonly string[], name: string): void {
  const address = URL.createObjectURL(new Blob([...parts], { type: "text/csv;charset=utf-8" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  // The browser reads the blob in the background; one minute is enough for it to start.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
