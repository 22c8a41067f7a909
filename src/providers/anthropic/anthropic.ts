/** An upstream that speaks Anthropic's Messages format: chat, translated both ways. */
import { toCompletion } from "../../formats/anthropic-messages/upstream-answer.js";
import { refusesSignature, withNamedField } from "../../formats/anthropic-messages/upstream-errors.js";
import { type MessagesRequest, toMessagesRequest } from "../../formats/anthropic-messages/upstream-request.js";
import { MessagesStreamEvents } from "../../formats/anthropic-messages/upstream-stream.js";
import { toChunks } from "../../formats/openai-chat/stream.js";
import { toUsage } from "../../formats/openai-chat/usage.js";
import { warnedChunk } from "../../formats/openai-chat/warned-events.js";
import { type AnswerFormat, readStreamedAnswer, readWholeAnswer, warnedAnswer } from "../openai/answers.js";
import type { FetchFile, OpenAiClient, OpenAiUpstream } from "../openai/client.js";
import { boundedBody, type ChatAnswer, type ChatBatches, type ChatCall, type ChatProvider, type Provider, toSignal } from "../provider.js";
import { withFetchedFiles } from "./files.js";

/** The version of the format; features come with `anthropic-beta`. */
const VERSION = "2023-06-01";
const PATH = "/messages";

/** What an upstream of this format needs beside its address. */
export function toAnthropicUpstream(upstream: OpenAiUpstream): OpenAiUpstream {
  return { ...upstream, keyHeader: "x-api-key", headers: { "anthropic-version": VERSION, ...upstream.headers } };
}

export function toAnthropicAbilities(client: OpenAiClient, fetchFile: FetchFile): Omit<Provider, "close"> {
  return { chat: new AnthropicChatProvider(client, fetchFile) };
}

interface Sent<Answer> {
  readonly answer: Answer;
  readonly warnings: readonly string[];
}

class AnthropicChatProvider implements ChatProvider {
  constructor(
    private readonly client: OpenAiClient,
    private readonly fetchFile: FetchFile,
  ) {}

  async complete(call: ChatCall): Promise<ChatAnswer> {
    const { signal } = call;
    const ask = (json: object, client: OpenAiClient) => client.sendWhole({ path: PATH, json, signal, takesStream: true });
    const { answer: response, warnings } = await this.send(call, false, ask);
    return warnedAnswer(await readWholeAnswer(response, this.formatOf([])), warnings);
  }

  async stream(call: ChatCall): Promise<ChatBatches> {
    const { signal } = call;
    const ask = (json: object, client: OpenAiClient) =>
      client.send({ path: PATH, accept: "text/event-stream", json, signal, isStreamed: true });
    const { answer: response, warnings } = await this.send(call, true, ask);
    return readStreamedAnswer(response, this.formatOf(warnings));
  }

  /** A request whose signatures are refused is sent once more without its thoughts, before anything was delivered. */
  private async send<Answer>(
    call: ChatCall,
    isStreamed: boolean,
    ask: (json: object, client: OpenAiClient) => Promise<Answer>,
  ): Promise<Sent<Answer>> {
    const body = boundedBody(call);
    const request = await this.fetched(toMessagesRequest(body, call.upstreamModel, { isStreamed }), call);
    try {
      return { answer: await ask(request.fields, this.clientFor(request)), warnings: request.warnings };
    } catch (error) {
      if (!refusesSignature(error) || call.signal.aborted) throw withNamedField(error);
    }
    const plain = await this.fetched(toMessagesRequest(body, call.upstreamModel, { isStreamed, withoutThoughts: true }), call);
    try {
      const lost = "messages.reasoning_content: left out, because the upstream refused the signature of an earlier thought.";
      return { answer: await ask(plain.fields, this.clientFor(plain)), warnings: [...plain.warnings, lost] };
    } catch (error) {
      throw withNamedField(error);
    }
  }

  private fetched(request: MessagesRequest, { signal }: ChatCall): MessagesRequest | Promise<MessagesRequest> {
    return withFetchedFiles(request, this.fetchFile, () => toSignal(signal));
  }

  private clientFor({ betas }: MessagesRequest): OpenAiClient {
    return betas.length === 0 ? this.client : this.client.withHeaders({ "anthropic-beta": betas.join(",") });
  }

  private formatOf(warnings: readonly string[]): AnswerFormat {
    const { answerBytesMax, streamBytesMax, secrets, onUnknownUsage } = this.client;
    return {
      ...{ answerBytesMax, streamBytesMax },
      events: () => new MessagesStreamEvents(secrets, warnings, onUnknownUsage),
      read: (bytes) => this.read(bytes),
      toChunks: ({ completion }) => {
        const [first, ...others] = toChunks(completion);
        return first ? [warnedChunk(first.object, warnings), ...others] : [];
      },
    };
  }

  private read(bytes: Buffer): ChatAnswer {
    const { client } = this;
    const message = client.readObject(bytes);
    const completion = toCompletion(message);
    // For names that are not known.
    toUsage(message.usage, client.onUnknownUsage);
    return { bytes: Buffer.from(JSON.stringify(completion)), completion, usage: toUsage(completion.usage) };
  }
}
