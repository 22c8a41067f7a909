/**
 * Chat over OpenAI's wire format, passed through: the request is sent with the model's name replaced, and the answer's bytes are returned
 * unchanged.
 */

import { assertNotFailed } from "../../formats/openai-chat/errors.js";
import { toOwnCompletion } from "../../formats/openai-chat/own-form.js";
import type { ChatBody, ChatCompletion } from "../../formats/openai-chat/schema.js";
import type { ChatChunkBatch } from "../../formats/openai-chat/stream.js";
import { areChoices, ChatChunkEvents, toChunks } from "../../formats/openai-chat/stream.js";
import { toUsage } from "../../formats/openai-chat/usage.js";
import { usageIn } from "../../formats/openai-chat/usage-dialects.js";
import { ProviderError } from "../../formats/upstream-error.js";
import { isRecord } from "../../lib/json.js";
import { withFields } from "../../lib/own-values.js";
import { boundedBody, type ChatAnswer, type ChatBatches, type ChatCall, type ChatProvider } from "../provider.js";
import { contentTypeOf, isEventStream, isJson, type OpenAiClient, type OpenAiQuirks, refuse } from "./client.js";
import { ChatEventStream } from "./event-stream.js";

export class OpenAiChatProvider implements ChatProvider {
  constructor(
    private readonly client: OpenAiClient,
    private readonly quirks: OpenAiQuirks = {},
    /** Empty for an exact address. */
    private readonly path = "/chat/completions",
  ) {}

  async complete(call: ChatCall): Promise<ChatAnswer> {
    const sent = withFields(this.bodyOf(call), { model: call.upstreamModel, stream: false, stream_options: undefined });
    const { path, client } = this;
    const response = await client.sendWhole({ path, json: sent, signal: call.signal });
    const bytes = response.atHand(client.answerBytesMax) ?? (await response.readAll(client.answerBytesMax));
    const received = this.parseCompletion(bytes);
    const completion = toOwnCompletion(received);
    const usage = toUsage(usageIn(completion), client.onUnknownUsage);
    return { bytes: completion === received ? bytes : Buffer.from(JSON.stringify(completion)), completion, usage };
  }

  async stream(call: ChatCall): Promise<ChatBatches> {
    const { client } = this;
    const response = await client.send({
      path: this.path,
      accept: "text/event-stream",
      json: this.toStreamedBody(call),
      signal: call.signal,
      isStreamed: true,
    });
    // An upstream without a content type is assumed to answer with the requested one.
    if (isEventStream(response) || contentTypeOf(response) === "") {
      return new ChatEventStream(response, client.streamBytesMax, new ChatChunkEvents(client.secrets, client.onUnknownUsage));
    }
    if (!isJson(response)) throw refuse(response, "The upstream answered a stream request with neither a stream nor JSON.");
    const completion = this.parseCompletion(await response.readAll(client.answerBytesMax));
    return once(toChunks(toOwnCompletion(completion), client.onUnknownUsage));
  }

  private toStreamedBody(call: ChatCall): Record<string, unknown> {
    const body = this.bodyOf(call);
    return withFields(body, {
      ...{ model: call.upstreamModel, stream: true },
      stream_options: this.quirks.refusesStreamOptions ? undefined : withUsageReport(body.stream_options),
    });
  }

  private bodyOf(call: ChatCall): ChatBody {
    return boundedBody(call, this.quirks.outputCapField ?? this.client.outputCapField);
  }

  private parseCompletion(bytes: Buffer): ChatCompletion {
    const completion = this.client.readObject(bytes);
    assertNotFailed(completion, this.client.secrets);
    if (!areChoices(completion.choices)) throw new ProviderError("invalid-response", "The upstream's answer has no readable choices.");
    return completion as ChatCompletion;
  }
}

/** Adds the stream options that request usage. */
function withUsageReport(options: unknown): Readonly<Record<string, unknown>> {
  return isRecord(options) ? withFields(options, USAGE_REPORT) : USAGE_REPORT;
}

const USAGE_REPORT = { include_usage: true } as const;

async function* once(batch: ChatChunkBatch): AsyncGenerator<ChatChunkBatch> {
  yield batch;
}
