/** Chat over an upstream that speaks OpenAI's Responses format at an exact address: bodies are translated both ways. */

import type { ChatChunkBatch } from "../../formats/openai-chat/stream.js";
import { toChunks } from "../../formats/openai-chat/stream.js";
import { toUsage } from "../../formats/openai-chat/usage.js";
import { toCompletion } from "../../formats/openai-responses/upstream-answer.js";
import { toResponsesRequest } from "../../formats/openai-responses/upstream-request.js";
import { ResponsesEvents } from "../../formats/openai-responses/upstream-stream.js";
import type { UpstreamResponse } from "../http.js";
import { boundedBody, type ChatAnswer, type ChatBatches, type ChatCall, type ChatProvider } from "../provider.js";
import { contentTypeOf, isEventStream, isJson, type OpenAiClient, refuse as refuseAnswer } from "./client.js";
import { ChatEventStream } from "./event-stream.js";

export class ResponsesChatProvider implements ChatProvider {
  constructor(private readonly client: OpenAiClient) {}

  async complete(call: ChatCall): Promise<ChatAnswer> {
    const { fields, warnings } = toResponsesRequest(boundedBody(call), call.upstreamModel, false);
    const response = await this.client.sendWhole({ path: "", json: fields, signal: call.signal });
    const { completion, usage } = await this.readCompletion(response);
    return { bytes: Buffer.from(JSON.stringify(completion)), completion, usage, warnings };
  }

  async stream(call: ChatCall): Promise<ChatBatches> {
    const { fields, warnings } = toResponsesRequest(boundedBody(call), call.upstreamModel, true);
    const { client } = this;
    const response = await client.send({
      path: "",
      accept: "text/event-stream",
      json: fields,
      signal: call.signal,
      isStreamed: true,
    });
    // An upstream without a content type is assumed to answer with the requested one.
    if (isEventStream(response) || contentTypeOf(response) === "") {
      return new ChatEventStream(response, client.streamBytesMax, new ResponsesEvents(client.secrets, warnings, client.onUnknownUsage));
    }
    if (!isJson(response)) throw refuseAnswer(response, "The upstream answered a stream request with neither a stream nor JSON.");
    const { completion, usage } = await this.readCompletion(response);
    const [first, ...others] = toChunks(completion).map((chunk) => (chunk.usage === null ? chunk : { ...chunk, usage }));
    return once(first ? [{ ...first, warnings }, ...others] : []);
  }

  private async readCompletion(response: UpstreamResponse): Promise<Pick<ChatAnswer, "completion" | "usage">> {
    const { client } = this;
    const answer = client.readObject(await response.readAll(client.answerBytesMax));
    return { completion: toCompletion(answer, client.secrets), usage: toUsage(answer.usage, client.onUnknownUsage) };
  }
}

async function* once(batch: ChatChunkBatch): AsyncGenerator<ChatChunkBatch> {
  yield batch;
}
