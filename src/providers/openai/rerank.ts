/**
 * Reranking in the format that Cohere, Jina, Voyage, vLLM and others share: `POST /rerank` with a query and texts. They differ in the
 * report of usage.
 */
import { toInputUsage } from "../../formats/openai-chat/usage.js";
import { ProviderError } from "../../formats/upstream-error.js";
import { isRecord } from "../../lib/json.js";
import { UPSTREAM_BODY_BYTES_MAX } from "../../limits.js";
import type { Relevance, RerankAnswer, RerankCall, RerankProvider } from "../media.js";
import type { OpenAiClient } from "./client.js";

const UNREADABLE = "The upstream's answer holds no ranking that can be read.";

export class RerankEndpointProvider implements RerankProvider {
  constructor(private readonly client: OpenAiClient) {}

  async rerank({ extra, upstreamModel, query, documents, topN, signal }: RerankCall): Promise<RerankAnswer> {
    const json = { ...extra, model: upstreamModel, query, documents, ...(topN !== null && { top_n: topN }) };
    const response = await this.client.sendWhole({ path: "/rerank", json, signal });
    const answer = this.client.readObject(await response.readAll(UPSTREAM_BODY_BYTES_MAX), UNREADABLE);
    const meta = isRecord(answer.meta) ? answer.meta : {};
    const units = isRecord(meta.billed_units) ? meta.billed_units.search_units : undefined;
    return {
      results: toResults(answer.results ?? answer.data, documents.length),
      searchUnits: typeof units === "number" && Number.isSafeInteger(units) && units > 0 ? units : null,
      usage: toInputUsage(answer.usage ?? meta.tokens, this.client.onUnknownUsage),
      warnings: [],
    };
  }
}

/** Each document at most once. */
function toResults(results: unknown, count: number): readonly Relevance[] {
  if (!Array.isArray(results)) throw invalid();
  const seen = new Set<number>();
  for (const result of results) {
    const index = isRecord(result) ? result.index : null;
    if (!Number.isSafeInteger(index) || Number(index) < 0 || Number(index) >= count || seen.has(Number(index))) throw invalid();
    seen.add(Number(index));
  }
  return results.map(toRelevance).sort((one, other) => other.score - one.score);
}

function toRelevance(result: Readonly<Record<string, unknown>>): Relevance {
  const score = result.relevance_score ?? result.score;
  if (typeof score !== "number" || !Number.isFinite(score)) throw invalid();
  return { index: Number(result.index), score };
}

function invalid(): ProviderError {
  return new ProviderError("invalid-response", UNREADABLE);
}
