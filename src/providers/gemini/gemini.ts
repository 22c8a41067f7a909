/** Chat of an upstream that speaks Gemini's format, translated both ways. Its other modalities are the package's (`ai-sdk`). */
import { toCompletion } from "../../formats/gemini/upstream-answer.js";
import { type GeminiRequest, toGeminiRequest } from "../../formats/gemini/upstream-request.js";
import { AnswerStreamEvents } from "../../formats/gemini/upstream-stream.js";
import { toChatUsage } from "../../formats/gemini/upstream-usage.js";
import { toChunks } from "../../formats/openai-chat/stream.js";
import { toUsage } from "../../formats/openai-chat/usage.js";
import { type AnswerFormat, readStreamedAnswer, readWholeAnswer, warnedAnswer } from "../openai/answers.js";
import type { FetchFile, OpenAiClient, OpenAiUpstream } from "../openai/client.js";
import { boundedBody, type ChatAnswer, type ChatBatches, type ChatCall, type ChatProvider, toSignal } from "../provider.js";
import { withFetchedFiles } from "./files.js";

/** What an upstream of this format needs beside its address. */
export function toGeminiUpstream(upstream: OpenAiUpstream): OpenAiUpstream {
  return { ...upstream, keyHeader: "x-goog-api-key" };
}

export class GeminiChatProvider implements ChatProvider {
  constructor(
    private readonly client: OpenAiClient,
    private readonly fetchFile: FetchFile,
  ) {}

  async complete(call: ChatCall): Promise<ChatAnswer> {
    const { fields, warnings } = await this.toRequest(call);
    const path = `/models/${pathOf(call.upstreamModel)}:generateContent`;
    const response = await this.client.sendWhole({ path, json: fields, signal: call.signal, takesStream: true });
    return warnedAnswer(await readWholeAnswer(response, this.formatOf([])), warnings);
  }

  async stream(call: ChatCall): Promise<ChatBatches> {
    const { fields, warnings } = await this.toRequest(call);
    const path = `/models/${pathOf(call.upstreamModel)}:streamGenerateContent?alt=sse`;
    const response = await this.client.send({ path, accept: "text/event-stream", json: fields, signal: call.signal, isStreamed: true });
    return readStreamedAnswer(response, this.formatOf(warnings));
  }

  private toRequest(call: ChatCall): GeminiRequest | Promise<GeminiRequest> {
    const request = toGeminiRequest(boundedBody(call), call.upstreamModel);
    return withFetchedFiles(request, this.fetchFile, () => toSignal(call.signal));
  }

  private formatOf(warnings: readonly string[]): AnswerFormat {
    const { answerBytesMax, streamBytesMax, secrets, onUnknownUsage } = this.client;
    return {
      ...{ answerBytesMax, streamBytesMax },
      events: () => new AnswerStreamEvents(secrets, warnings, onUnknownUsage),
      read: (bytes) => this.read(bytes),
      toChunks: ({ completion }) => {
        const [first, ...others] = toChunks(completion);
        return first ? [warnings.length === 0 ? first : { ...first, warnings }, ...others] : [];
      },
    };
  }

  private read(bytes: Buffer): ChatAnswer {
    const answer = this.client.readObject(bytes);
    const completion = toCompletion(answer);
    // For names that are not known.
    toChatUsage(answer.usageMetadata, this.client.onUnknownUsage);
    return { bytes: Buffer.from(JSON.stringify(completion)), completion, usage: toUsage(completion.usage) };
  }
}

/** A slash of the name belongs to the path, as in `tunedModels/name`. */
function pathOf(model: string): string {
  return model.split("/").map(encodeURIComponent).join("/");
}
