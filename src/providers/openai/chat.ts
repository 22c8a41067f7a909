/**
 * Chat over OpenAI's wire format, passed through: the request is sent in the upstream's dialect with the model's name replaced, and the
 * answer's bytes are returned unchanged.
 */

import { assertNotFailed } from "../../formats/openai-chat/errors.js";
import { toOwnCompletion } from "../../formats/openai-chat/own-form.js";
import type { ChatCompletion } from "../../formats/openai-chat/schema.js";
import type { ChatChunkBatch } from "../../formats/openai-chat/stream.js";
import { areChoices, ChatChunkEvents, toChunks } from "../../formats/openai-chat/stream.js";
import { toUsage } from "../../formats/openai-chat/usage.js";
import { usageIn } from "../../formats/openai-chat/usage-dialects.js";
import { WarnedEvents, withWarnings } from "../../formats/openai-chat/warned-events.js";
import { ProviderError } from "../../formats/upstream-error.js";
import type { ChatAnswer, ChatBatches, ChatCall, ChatProvider } from "../provider.js";
import { ChatRequests } from "./chat-request.js";
import { contentTypeOf, isEventStream, isJson, type OpenAiClient, refuse } from "./client.js";
import { ChatEventStream } from "./event-stream.js";

export class OpenAiChatProvider implements ChatProvider {
  private readonly requests: ChatRequests;

  constructor(
    private readonly client: OpenAiClient,
    /** Empty for an exact address. */
    private readonly path = "/chat/completions",
  ) {
    this.requests = new ChatRequests(client.dialect, client.learned);
  }

  async complete(call: ChatCall): Promise<ChatAnswer> {
    const { path, client } = this;
    const ask = (json: object) => client.sendWhole({ path, json, signal: call.signal });
    const { answer: response, warnings } = await this.requests.send(call, false, ask);
    const bytes = response.atHand(client.answerBytesMax) ?? (await response.readAll(client.answerBytesMax));
    const received = this.parseCompletion(bytes);
    const completion = toOwnCompletion(received);
    const usage = toUsage(usageIn(completion), client.onUnknownUsage);
    const sent = completion === received ? bytes : Buffer.from(JSON.stringify(completion));
    return warnings.length === 0 ? { bytes: sent, completion, usage } : { bytes: sent, completion, usage, warnings };
  }

  async stream(call: ChatCall): Promise<ChatBatches> {
    const { path, client } = this;
    const ask = (json: object) => client.send({ path, accept: "text/event-stream", json, signal: call.signal, isStreamed: true });
    const { answer: response, warnings } = await this.requests.send(call, true, ask);
    // An upstream without a content type is assumed to answer with the requested one.
    if (isEventStream(response) || contentTypeOf(response) === "") {
      const events = new ChatChunkEvents(client.secrets, client.onUnknownUsage);
      return new ChatEventStream(response, client.streamBytesMax, warnings.length === 0 ? events : new WarnedEvents(events, warnings));
    }
    if (!isJson(response)) throw refuse(response, "The upstream answered a stream request with neither a stream nor JSON.");
    const completion = this.parseCompletion(await response.readAll(client.answerBytesMax));
    const [first, ...others] = toChunks(toOwnCompletion(completion), client.onUnknownUsage);
    return once(first ? [warnings.length === 0 ? first : withWarnings(first, warnings), ...others] : []);
  }

  private parseCompletion(bytes: Buffer): ChatCompletion {
    const completion = this.client.readObject(bytes);
    assertNotFailed(completion, this.client.secrets);
    if (!areChoices(completion.choices)) throw new ProviderError("invalid-response", "The upstream's answer has no readable choices.");
    return completion as ChatCompletion;
  }
}

async function* once(batch: ChatChunkBatch): AsyncGenerator<ChatChunkBatch> {
  yield batch;
}
