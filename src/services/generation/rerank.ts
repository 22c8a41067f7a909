/** Reranking (docs/spec/embeddings.md#reranking, POST /v1/rerank): documents in the order of their relevance to a query. */
import { z } from "zod";
import type { RequestContext } from "../../context.js";
import { withoutFields } from "../../lib/own-values.js";
import { countTexts } from "../../lib/tokenizer.js";
import { NO_USAGE, type ReportedUsage } from "../../lib/usage.js";
import type { RerankAnswer } from "../../providers/media.js";
import { safeInput, toSafeText } from "../safety/features.js";
import type { Generations } from "./generations.js";
import type { Metered } from "./metered.js";
import { type AmountBounds, inputTokensOf, isJudged, judged, judgedPrompt, promptBounds } from "./plausible.js";
import type { Receipt } from "./receipt.js";
import type { Upstreams } from "./upstreams.js";

/** Cohere's own bound for one request. */
const RERANK_DOCUMENTS_MAX = 1_000;
/** Cohere's unit: a query with up to 100 documents, where one of more than 500 tokens counts as several. */
const DOCUMENTS_PER_SEARCH = 100;
const TOKENS_PER_DOCUMENT = 500;
/** A vocabulary of another model may split documents otherwise. */
const SEARCHES_FACTOR = 2;

const text = z.string().min(1);

export const rerankInput = z.looseObject({
  model: z.string().min(1).max(253).nullish(),
  query: text,
  documents: z
    .array(z.union([text, z.looseObject({ text })]))
    .min(1)
    .max(RERANK_DOCUMENTS_MAX),
  top_n: z.int().min(1).nullish(),
  return_documents: z.boolean().nullish(),
  safe: safeInput,
});
export type RerankInput = z.output<typeof rerankInput>;

const READ_FIELDS: ReadonlySet<string> = new Set(["model", "query", "documents", "top_n", "return_documents", "safe"]);

export interface RerankedDocument {
  readonly index: number;
  readonly relevance_score: number;
  /** With `return_documents`, as it was sent. */
  readonly document?: { readonly text: string };
}

/** Both Cohere's and Jina's form. */
export interface RerankObject {
  readonly id: string;
  readonly object: "list";
  readonly model: string;
  readonly results: readonly RerankedDocument[];
  readonly meta: { readonly billed_units: { readonly search_units: number } };
  readonly usage: { readonly prompt_tokens: number; readonly total_tokens: number };
}

export interface RerankResult {
  readonly reranking: RerankObject;
  readonly receipt: Receipt;
}

export class Rerankings {
  constructor(
    private readonly generations: Generations,
    private readonly upstreams: Upstreams,
  ) {}

  async create(ctx: RequestContext, input: RerankInput): Promise<RerankResult> {
    const { model: modelName, query, top_n: topN = null, return_documents: isReturned, safe } = input;
    const extra = withoutFields(input, READ_FIELDS);
    const documents = input.documents.map((document) => (typeof document === "string" ? document : document.text));
    const texts = [query, ...documents];
    const searchUnits = countSearches(documents);
    const counted = { ...NO_USAGE, inputTextTokens: countTexts(texts), searchUnits };
    const read = { counted, texts: () => texts };
    const plan = this.generations.plan(ctx, "rerank", modelName, extra, () => counted, boundsOf(read, searchUnits));
    const { answer, receipt, charged } = await this.generations.run<RerankAnswer>(ctx, plan, {
      words: { texts, extra },
      safe: toSafeText(safe),
      call: (candidate, signal, { texts: [asked = "", ...read], extra: more }) =>
        this.upstreams.serving(ctx, candidate, "rerank").rerank({
          upstreamModel: candidate.route.upstreamModel,
          signal,
          extra: more,
          query: asked,
          documents: read,
          topN,
        }),
      meter: ({ usage, searchUnits: reported }, served) => {
        const isBounded = isJudged(plan, served);
        return withSearches(meterTokens(usage, isBounded), isBounded, reported);
      },
      warnings: ({ warnings }) => warnings,
    });
    const tokens = inputTokensOf(receipt.usage);
    const results = answer.results.slice(0, topN ?? documents.length).map(({ index, score }) => ({
      index,
      relevance_score: score,
      ...(isReturned && { document: { text: documents[index] ?? "" } }),
    }));
    const reranking = {
      id: `rerank-${receipt.generationId.replaceAll("-", "")}`,
      object: "list" as const,
      model: receipt.model,
      results,
      meta: { billed_units: { search_units: charged.searchUnits ?? searchUnits } },
      usage: { prompt_tokens: tokens, total_tokens: tokens },
    };
    return { reranking, receipt };

    function meterTokens(usage: ReportedUsage | null, isBounded: boolean): Metered {
      if (!usage) return { quantities: counted, source: "estimated" };
      return isBounded ? judgedPrompt(usage, read) : judged(usage, usage);
    }

    /** The reported searches up to the plausible bound, or else the counted ones. */
    function withSearches(tokens: Metered, isBounded: boolean, reported: number | null): Metered {
      const most = isBounded ? SEARCHES_FACTOR * searchUnits : Number.POSITIVE_INFINITY;
      const units = Math.min(reported ?? searchUnits, most);
      const quantities = { ...tokens.quantities, searchUnits: units };
      const counted = () => ({ ...(tokens.counted?.() ?? quantities), searchUnits: Math.min(units, searchUnits) });
      if (reported === null || tokens.source === "bounded") return { ...tokens, quantities, counted };
      return reported > most
        ? { quantities, source: "bounded", reported: { ...quantities, searchUnits: reported }, counted }
        : { quantities, source: "provider", counted };
    }
  }
}

/** An upstream's own count of searches is believed as far as it is plausible. */
function boundsOf(read: Parameters<typeof promptBounds>[0], searchUnits: number): AmountBounds {
  const { least, most, notes } = promptBounds(read);
  return {
    least: () => ({ ...least(), searchUnits: Math.min(1, searchUnits) }),
    most: () => ({ ...most(), searchUnits: SEARCHES_FACTOR * searchUnits }),
    notes,
  };
}

function countSearches(documents: readonly string[]): number {
  let parts = 0;
  for (const document of documents) parts += Math.max(1, Math.ceil(countTexts([document]) / TOKENS_PER_DOCUMENT));
  return Math.ceil(parts / DOCUMENTS_PER_SEARCH);
}
