/**
 * Chat over OpenAI's wire format, passed through: the request is sent in the upstream's dialect with the model's name replaced, and the
 * answer's bytes are returned unchanged where they have the format's own form.
 */

import { assertNotFailed } from "../../formats/openai-chat/errors.js";
import { toOwnCompletion } from "../../formats/openai-chat/own-form.js";
import type { ChatCompletion } from "../../formats/openai-chat/schema.js";
import { areChoices, ChatChunkEvents, toChunks } from "../../formats/openai-chat/stream.js";
import { toUsage } from "../../formats/openai-chat/usage.js";
import { usageIn } from "../../formats/openai-chat/usage-dialects.js";
import { WarnedEvents, withWarnings } from "../../formats/openai-chat/warned-events.js";
import { ProviderError } from "../../formats/upstream-error.js";
import type { ChatAnswer, ChatBatches, ChatCall, ChatProvider } from "../provider.js";
import { type AnswerFormat, readStreamedAnswer, readWholeAnswer } from "./answers.js";
import { ChatRequests } from "./chat-request.js";
import type { OpenAiClient } from "./client.js";

export class OpenAiChatProvider implements ChatProvider {
  private readonly requests: ChatRequests;
  private readonly format: AnswerFormat;

  constructor(
    private readonly client: OpenAiClient,
    /** Empty for an exact address. */
    private readonly path = "/chat/completions",
  ) {
    this.requests = new ChatRequests(client.dialect, client.learned);
    const { answerBytesMax, streamBytesMax, secrets, onUnknownUsage } = client;
    this.format = {
      ...{ answerBytesMax, streamBytesMax },
      events: () => new ChatChunkEvents(secrets, onUnknownUsage),
      read: (bytes) => this.read(bytes),
      toChunks: ({ completion }) => toChunks(completion),
    };
  }

  async complete(call: ChatCall): Promise<ChatAnswer> {
    const { path, client } = this;
    const ask = (json: object) => client.sendWhole({ path, json, signal: call.signal, takesStream: true });
    const { answer: response, warnings } = await this.requests.send(call, false, ask);
    if (warnings.length === 0) return readWholeAnswer(response, this.format);
    return { ...(await readWholeAnswer(response, this.format)), warnings };
  }

  async stream(call: ChatCall): Promise<ChatBatches> {
    const { path, client, format } = this;
    const ask = (json: object) => client.send({ path, accept: "text/event-stream", json, signal: call.signal, isStreamed: true });
    const { answer: response, warnings } = await this.requests.send(call, true, ask);
    return readStreamedAnswer(response, warnings.length === 0 ? format : warned(format, warnings));
  }

  private read(bytes: Buffer): ChatAnswer {
    const { client } = this;
    const received = client.readObject(bytes);
    assertNotFailed(received, client.secrets);
    if (!areChoices(received.choices)) throw new ProviderError("invalid-response", "The upstream's answer has no readable choices.");
    const completion = toOwnCompletion(received as ChatCompletion);
    const usage = toUsage(usageIn(completion), client.onUnknownUsage);
    return { bytes: completion === received ? bytes : Buffer.from(JSON.stringify(completion)), completion, usage };
  }
}

/** A format whose first chunk has the warnings. */
function warned(format: AnswerFormat, warnings: readonly string[]): AnswerFormat {
  return {
    ...format,
    events: () => new WarnedEvents(format.events(), warnings),
    toChunks: (answer) => {
      const [first, ...others] = format.toChunks(answer);
      return first ? [withWarnings(first, warnings), ...others] : [];
    },
  };
}
