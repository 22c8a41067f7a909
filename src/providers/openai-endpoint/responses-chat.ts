/** Chat over an upstream that speaks OpenAI's Responses format at an exact address: every body is rewritten both ways. */
import type { ChatCompletion } from "../../lib/chat-format.js";
import type { UpstreamResponse } from "../http.js";
import { toChunks } from "../openai/chunks.js";
import { contentTypeOf, isEventStream, isJson, type OpenAiClient, refuse } from "../openai/client.js";
import { ChatEventStream } from "../openai/event-stream.js";
import { toUsage } from "../openai/usage.js";
import { boundedBody, type ChatAnswer, type ChatCall, type ChatChunkBatch, type ChatProvider } from "../provider.js";
import { toCompletion } from "./responses-answer.js";
import { ResponsesEvents } from "./responses-events.js";
import { toResponsesRequest } from "./responses-request.js";

export class ResponsesChatProvider implements ChatProvider {
  constructor(private readonly client: OpenAiClient) {}

  async complete(call: ChatCall): Promise<ChatAnswer> {
    const { fields, warnings } = toResponsesRequest(boundedBody(call), call.upstreamModel, false);
    const response = await this.client.sendWhole({ path: "", body: JSON.stringify(fields), signal: call.signal });
    const completion = await this.readCompletion(response);
    return { bytes: Buffer.from(JSON.stringify(completion)), completion, usage: toUsage(completion.usage), warnings };
  }

  async stream(call: ChatCall): Promise<AsyncIterable<ChatChunkBatch>> {
    const { fields, warnings } = toResponsesRequest(boundedBody(call), call.upstreamModel, true);
    const body = JSON.stringify(fields);
    const response = await this.client.send({ path: "", accept: "text/event-stream", body, signal: call.signal, isStreamed: true });
    // An upstream that names no type is taken to answer what it was asked for.
    if (isEventStream(response) || contentTypeOf(response) === "") {
      return new ChatEventStream(response, this.client.streamBytesMax, new ResponsesEvents(this.client.secrets, warnings));
    }
    if (!isJson(response)) throw refuse(response, "The upstream answered a stream request with neither a stream nor JSON.");
    const [first, ...others] = toChunks(await this.readCompletion(response));
    return once(first ? [{ ...first, warnings }, ...others] : []);
  }

  private async readCompletion(response: UpstreamResponse): Promise<ChatCompletion> {
    const answer = this.client.readObject(await response.readAll(this.client.answerBytesMax));
    return toCompletion(answer, this.client.secrets);
  }
}

async function* once(batch: ChatChunkBatch): AsyncGenerator<ChatChunkBatch> {
  yield batch;
}
