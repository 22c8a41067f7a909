/** Chat over an upstream that speaks OpenAI's Responses format at an exact address: bodies are translated both ways. */

import { toChunks } from "../../formats/openai-chat/stream.js";
import { toUsage } from "../../formats/openai-chat/usage.js";
import { toCompletion } from "../../formats/openai-responses/upstream-answer.js";
import { toResponsesRequest } from "../../formats/openai-responses/upstream-request.js";
import { ResponsesEvents } from "../../formats/openai-responses/upstream-stream.js";
import { boundedBody, type ChatAnswer, type ChatBatches, type ChatCall, type ChatProvider } from "../provider.js";
import { type AnswerFormat, readStreamedAnswer, readWholeAnswer } from "./answers.js";
import type { OpenAiClient } from "./client.js";

export class ResponsesChatProvider implements ChatProvider {
  constructor(private readonly client: OpenAiClient) {}

  async complete(call: ChatCall): Promise<ChatAnswer> {
    const { fields, warnings } = toResponsesRequest(boundedBody(call), call.upstreamModel, false);
    const response = await this.client.sendWhole({ path: "", json: fields, signal: call.signal, takesStream: true });
    return { ...(await readWholeAnswer(response, this.formatOf(warnings))), warnings };
  }

  async stream(call: ChatCall): Promise<ChatBatches> {
    const { fields, warnings } = toResponsesRequest(boundedBody(call), call.upstreamModel, true);
    const response = await this.client.send({
      path: "",
      accept: "text/event-stream",
      json: fields,
      signal: call.signal,
      isStreamed: true,
    });
    return readStreamedAnswer(response, this.formatOf(warnings));
  }

  private formatOf(warnings: readonly string[]): AnswerFormat {
    const { answerBytesMax, streamBytesMax, secrets, onUnknownUsage } = this.client;
    return {
      ...{ answerBytesMax, streamBytesMax },
      events: () => new ResponsesEvents(secrets, warnings, onUnknownUsage),
      read: (bytes) => this.read(bytes),
      toChunks: ({ completion, usage }) => {
        const [first, ...others] = toChunks(completion).map((chunk) => (chunk.usage === null ? chunk : { ...chunk, usage }));
        return first ? [{ ...first, warnings }, ...others] : [];
      },
    };
  }

  private read(bytes: Buffer): ChatAnswer {
    const { client } = this;
    const answer = client.readObject(bytes);
    const completion = toCompletion(answer, client.secrets);
    return { bytes: Buffer.from(JSON.stringify(completion)), completion, usage: toUsage(answer.usage, client.onUnknownUsage) };
  }
}
