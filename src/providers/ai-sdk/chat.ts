/** Chat with a vendor that has a format of its own: OpenAI's body in, OpenAI's objects out. */
import type { LanguageModelV3 } from "@ai-sdk/provider";
import { toUsage as toQuantities } from "../openai/usage.js";
import { boundedBody, type ChatAnswer, type ChatCall, type ChatChunkBatch, type ChatProvider } from "../provider.js";
import { refuse } from "../refusal.js";
import { fromResponse } from "./chat-answer.js";
import { type ChatRequest, toRequest } from "./chat-request.js";
import { AiSdkChatStream, ChunkReducer } from "./chat-stream.js";
import { toUsage } from "./chat-usage.js";
import { type AiSdkClient, toWarnings } from "./client.js";
import { fetchReferences } from "./references.js";
import type { ChatTraits, VendorModels } from "./vendor.js";

export class AiSdkChatProvider implements ChatProvider {
  constructor(
    private readonly client: AiSdkClient,
    private readonly traits: ChatTraits,
  ) {}

  complete(call: ChatCall): Promise<ChatAnswer> {
    return this.client.call(call.signal, async (models, { signal }) => {
      const model = modelOf(models, call);
      const { options, warnings } = await this.toRequest(call, model, signal);
      const result = await model.doGenerate({ ...options, abortSignal: signal });
      const usage = toUsage(result.usage, this.traits);
      const all = [...warnings, ...toWarnings(result.warnings)];
      const completion = fromResponse(result, call.upstreamModel, usage, all);
      return { bytes: Buffer.from(JSON.stringify(completion)), completion, usage: toQuantities(usage), warnings: all };
    });
  }

  stream(call: ChatCall): Promise<AsyncIterable<ChatChunkBatch>> {
    return this.client.open(call.signal, async (models, session) => {
      const model = modelOf(models, call);
      const { options, warnings } = await this.toRequest(call, model, session.signal);
      const { stream } = await model.doStream({ ...options, abortSignal: session.signal });
      const reader = stream.getReader();
      const { apiKey } = this.client;
      const { value: first } = await reader.read();
      // A stream begins with its warnings, before anything has come from the upstream.
      const begun = first?.type === "stream-start" ? toWarnings(first.warnings) : [];
      const reducer = new ChunkReducer(call.upstreamModel, this.traits, [...warnings, ...begun], apiKey);
      return new AiSdkChatStream({ reader, first, reducer, session, apiKey, callSignal: call.signal });
    });
  }

  private async toRequest(call: ChatCall, model: LanguageModelV3, signal: AbortSignal): Promise<ChatRequest> {
    const { options, warnings } = toRequest(boundedBody(call), this.client.vendor, call.upstreamModel);
    const reader = { supportedUrls: await model.supportedUrls, fetchFile: this.client.fetchFile, signal };
    return { options: { ...options, prompt: await fetchReferences(options.prompt, reader) }, warnings };
  }
}

function modelOf(models: VendorModels, call: ChatCall): LanguageModelV3 {
  if (!models.languageModel) throw refuse("This upstream has no text models.", "model");
  return models.languageModel(call.upstreamModel);
}
