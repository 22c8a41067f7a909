import type { SharedV3ProviderOptions } from "@ai-sdk/provider";
import { ProviderError, refuse } from "../../formats/upstream-error.js";
import { append } from "../../lib/collections.js";
import { setOwnValue } from "../../lib/own-values.js";
import { NO_USAGE, USAGE_AMOUNT_MAX } from "../../lib/usage.js";
import type { EmbeddingAnswer, EmbeddingCall, EmbeddingProvider } from "../media.js";
import { type AiSdkClient, statedOptions, toWarnings } from "./client.js";
import type { EmbeddingTraits } from "./vendor.js";

export class AiSdkEmbeddingProvider implements EmbeddingProvider {
  constructor(
    private readonly client: AiSdkClient,
    private readonly traits: EmbeddingTraits,
  ) {}

  async embed(call: EmbeddingCall): Promise<EmbeddingAnswer> {
    const texts = call.inputs.map((input) => {
      if (typeof input !== "string") throw refuse("This upstream takes texts, not token numbers.", "input");
      return input;
    });
    return this.client.call(call.signal, async (models, { signal }) => {
      if (!models.embeddingModel) throw refuse("This upstream has no embedding models.", "model");
      const model = models.embeddingModel(call.upstreamModel);
      const warnings: string[] = [];
      const providerOptions = this.toOptions(call, warnings);
      const most = (await model.maxEmbeddingsPerCall) ?? texts.length;
      const vectors: number[][] = [];
      let tokens: number | null = 0;
      // Sequential, so that a thousand texts do not become a hundred concurrent requests.
      for (let at = 0; at < texts.length; at += most) {
        const values = texts.slice(at, at + most);
        const result = await model.doEmbed({ values, providerOptions, abortSignal: signal });
        if (result.embeddings.length !== values.length) throw unreadable();
        append(vectors, result.embeddings);
        if (at === 0) append(warnings, toWarnings(result.warnings));
        tokens = tokens === null || !isAmount(result.usage?.tokens) ? null : tokens + result.usage.tokens;
      }
      return { vectors, usage: tokens === null ? null : { ...NO_USAGE, inputTextTokens: tokens }, warnings };
    });
  }

  private toOptions(call: EmbeddingCall, warnings: string[]): SharedV3ProviderOptions {
    const { optionsName } = this.client.vendor;
    const { dimensions } = this.traits;
    const own: Record<string, unknown> = {};
    if (call.dimensions !== null && dimensions === undefined) warnings.push("dimensions: this upstream has no such option.");
    else if (call.dimensions !== null && dimensions !== undefined) setOwnValue(own, dimensions, call.dimensions);
    return { [optionsName]: { ...own, ...statedOptions(call.extra, optionsName) } } as SharedV3ProviderOptions;
  }
}

function unreadable(): ProviderError {
  return new ProviderError("invalid-response", "The upstream answered another number of embeddings than it was asked for.");
}

/** Packages return NaN or 0 when the vendor reports nothing. */
function isAmount(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value > 0 && value <= USAGE_AMOUNT_MAX;
}
