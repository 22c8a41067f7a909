/**
 * How much a model has recently written: the estimate of a request that states no max_tokens (decisions "What is billed").
 * A moving mean in memory; a process that has just started assumes.
 */
import { LRUCache } from "lru-cache";
import { OUTPUT_TOKENS_ASSUMED } from "../../limits.js";

const MODELS_MAX = 10_000;
/** The weight of the newest answer. */
const SMOOTHING = 0.1;

export class OutputEstimates {
  private readonly means = new LRUCache<string, number>({ max: MODELS_MAX });

  /** Output tokens, rounded up. */
  meanOf(model: string): number {
    return Math.ceil(this.means.get(model) ?? OUTPUT_TOKENS_ASSUMED);
  }

  learn(model: string, outputTokens: number): void {
    const mean = this.means.get(model);
    this.means.set(model, mean === undefined ? outputTokens : mean + SMOOTHING * (outputTokens - mean));
  }
}
