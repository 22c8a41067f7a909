/** Chat over an upstream that speaks OpenAI's Responses format at an exact address: bodies are translated both ways. */

import { type ChatDialect, mayLeaveOut } from "../../formats/openai-chat/dialect.js";
import { toChunks } from "../../formats/openai-chat/stream.js";
import { toUsage } from "../../formats/openai-chat/usage.js";
import { toCompletion } from "../../formats/openai-responses/upstream-answer.js";
import { toResponsesRequest } from "../../formats/openai-responses/upstream-request.js";
import { ResponsesEvents } from "../../formats/openai-responses/upstream-stream.js";
import { ownValue, withoutFields } from "../../lib/own-values.js";
import { boundedBody, type ChatAnswer, type ChatBatches, type ChatCall, type ChatProvider } from "../provider.js";
import { type AnswerFormat, readStreamedAnswer, readWholeAnswer } from "./answers.js";
import { type ChatRequest, ChatRequests } from "./chat-request.js";
import type { OpenAiClient } from "./client.js";

export class ResponsesChatProvider implements ChatProvider {
  private readonly requests: ChatRequests;

  constructor(private readonly client: OpenAiClient) {
    this.requests = new ChatRequests(client.dialect, client.learned, toRequest);
  }

  async complete(call: ChatCall): Promise<ChatAnswer> {
    const ask = (json: object) => this.client.sendWhole({ path: "", json, signal: call.signal, takesStream: true });
    const { answer: response, warnings } = await this.requests.send(call, false, ask);
    return { ...(await readWholeAnswer(response, this.formatOf(warnings))), warnings };
  }

  async stream(call: ChatCall): Promise<ChatBatches> {
    const ask = (json: object) => this.client.send({ path: "", accept: "text/event-stream", json, signal: call.signal, isStreamed: true });
    const { answer: response, warnings } = await this.requests.send(call, true, ask);
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

/** Fields that the upstream has refused are left out, with a warning for those of the caller. */
function toRequest(call: ChatCall, { refused }: ChatDialect, isStreamed: boolean): ChatRequest {
  const body = boundedBody(call);
  const { fields, warnings } = toResponsesRequest(body, call.upstreamModel, isStreamed);
  const left = [...refused].filter((name) => ownValue(fields, name) !== undefined && mayLeaveOut(name, ownValue(fields, name)));
  if (left.length === 0) return { fields, warnings };
  const isAsked = (value: unknown) => value !== undefined && value !== null && value !== false;
  const lost = left.filter((name) => isAsked(ownValue(body, name))).map((name) => `${name} has no effect on this model.`);
  return { fields: withoutFields(fields, new Set(left)), warnings: [...warnings, ...lost] };
}
