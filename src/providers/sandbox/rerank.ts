/** The sandbox's rerank model: the nearness of its embeddings (docs/sandbox-models.md). */
import { countTexts } from "../../lib/tokenizer.js";
import type { EmbeddingVector, RerankAnswer, RerankCall, RerankProvider } from "../media.js";
import type { UpstreamTimeouts } from "../provider.js";
import { createSandboxEmbeddingProvider } from "./embedding.js";
import { begin, reportTokens } from "./media/calls.js";

const DIMENSIONS = 1_024;

export function createSandboxRerankProvider(media: { readonly timeouts: UpstreamTimeouts }): RerankProvider {
  const embeddings = createSandboxEmbeddingProvider(media);
  return {
    async rerank({ query, documents, topN, upstreamModel, signal }: RerankCall): Promise<RerankAnswer> {
      const directives = await begin(query, "query", signal, media.timeouts);
      // A first text without brackets: directives of documents are ordinary text.
      const inputs = ["", directives.text ?? directives.prompt, ...documents];
      const call = { upstreamModel, signal, extra: {}, inputs, isSingle: false, dimensions: DIMENSIONS, encodingFormat: null };
      const [, asked = [], ...read] = (await embeddings.embed(call)).vectors;
      const scores = read.map((vector, index) => ({ index, score: toScore(nearness(asked, vector)) }));
      const sorted = scores.sort((one, other) => other.score - one.score || one.index - other.index);
      return {
        results: topN === null ? sorted : sorted.slice(0, topN),
        searchUnits: null,
        usage: reportTokens(directives, { inputText: countTexts([query, ...documents]) }),
        warnings: [],
      };
    },
  };
}

/** Both have the length 1. */
function nearness(one: EmbeddingVector, other: EmbeddingVector): number {
  if (typeof one === "string" || typeof other === "string") return 0;
  let sum = 0;
  for (const [index, value] of one.entries()) sum += value * (other[index] ?? 0);
  return sum;
}

function toScore(near: number): number {
  return Math.round(Math.min(1, Math.max(0, near)) * 1e6) / 1e6;
}
