/**
 * Reads from an upstream's list of models when it stops to serve them: OpenAI states `shutdown_date`, OpenRouter `expiration_date`, and
 * Mistral `deprecation`, each a date or a time in ISO 8601, or null.
 */
import { ProviderError } from "../formats/upstream-error.js";
import { parseObject } from "../formats/upstream-json.js";
import { recordsOf } from "../lib/json.js";
import { withoutTrailing } from "../lib/urls.js";
import { createUpstreamPool } from "./http.js";

/** Unspecified: the timeout of one request; the size of a list that is read, and the models of it that are looked at. */
const TIMEOUT_MS = 20_000;
const LIST_BYTES_MAX = 8 * 1024 * 1024;
const LIST_MODELS_MAX = 5_000;
const FIELDS = ["shutdown_date", "expiration_date", "deprecation"] as const;
const TIME_PATTERN = /^20\d{2}-\d{2}-\d{2}(?:$|T[\d:.]{5,24}(?:Z|[+-]\d{2}:\d{2})?$)/;

/** By the upstream's names of models; those without a date are left out. Rejects with a ProviderError, or with the signal's reason. */
export async function readRetirementDates(
  { baseUrl, apiKey }: { readonly baseUrl: string; readonly apiKey: string | null },
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Date>> {
  const waits = { connectMs: TIMEOUT_MS, idleMs: TIMEOUT_MS, totalMs: TIMEOUT_MS };
  const pool = createUpstreamPool(baseUrl, waits);
  try {
    const path = `${withoutTrailing(new URL(baseUrl).pathname, "/")}/models`;
    const headers = ["accept", "application/json", "accept-encoding", "identity", "user-agent", "sluice"];
    if (apiKey !== null) headers.push("authorization", `Bearer ${apiKey}`);
    const response = await pool.request({ method: "GET", path, headers, body: null, signal, isStreamed: false });
    const list = parseObject(await response.readAll(LIST_BYTES_MAX));
    if (response.status >= 400 || list === null) throw new ProviderError("invalid-response", "The upstream has no list of its models.");
    return datesIn(list);
  } finally {
    await pool.close();
  }
}

function datesIn(list: Readonly<Record<string, unknown>>): ReadonlyMap<string, Date> {
  const dates = new Map<string, Date>();
  for (const entry of recordsOf(list.data).slice(0, LIST_MODELS_MAX)) {
    const { id } = entry;
    const date = FIELDS.map((field) => toDate(entry[field])).find((each) => each !== null);
    if (typeof id === "string" && date) dates.set(id, date);
  }
  return dates;
}

/** Null: none, or no date of this century. */
function toDate(value: unknown): Date | null {
  if (typeof value !== "string" || !TIME_PATTERN.test(value)) return null;
  const date = new Date(value);
  return Number.isNaN(date.getTime()) ? null : date;
}
