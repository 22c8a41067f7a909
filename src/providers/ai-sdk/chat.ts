/** Chat with a vendor's own format: OpenAI's body in, OpenAI's objects out. */
import type { LanguageModelV3, LanguageModelV3FilePart, LanguageModelV3Message, LanguageModelV3Prompt } from "@ai-sdk/provider";
import type { ChatChunkBatch } from "../../formats/openai-chat/stream.js";
import { toUsage as toQuantities } from "../../formats/openai-chat/usage.js";
import { refuse } from "../../formats/upstream-error.js";
import { ownValue } from "../../lib/own-values.js";
import { assertFewFiles, chatFiles, type FetchChatFile } from "../chat-files.js";
import { boundedBody, type ChatAnswer, type ChatCall, type ChatProvider, toSignal } from "../provider.js";
import { fromResponse } from "./chat-answer.js";
import { type ChatRequest, toRequest } from "./chat-request.js";
import { type AiSdkClient, toWarnings } from "./client.js";
import { AiSdkChatStream, ChunkReducer } from "./stream.js";
import { toUsage } from "./usage.js";
import type { ChatTraits, VendorModels } from "./vendor.js";

export class AiSdkChatProvider implements ChatProvider {
  constructor(
    private readonly client: AiSdkClient,
    private readonly traits: ChatTraits,
  ) {}

  complete(call: ChatCall): Promise<ChatAnswer> {
    return this.client.call(toSignal(call.signal), async (models, { signal }) => {
      const model = modelOf(models, call);
      const { options, warnings } = await this.toRequest(call, model, signal);
      const result = await model.doGenerate({ ...options, abortSignal: signal });
      const usage = toUsage(result.usage, this.traits, this.client.onUnknownUsage);
      const all = [...warnings, ...toWarnings(result.warnings)];
      const completion = fromResponse(result, call.upstreamModel, usage, all);
      return { bytes: Buffer.from(JSON.stringify(completion)), completion, usage: toQuantities(usage), warnings: all };
    });
  }

  stream(call: ChatCall): Promise<AsyncIterable<ChatChunkBatch>> {
    const callSignal = toSignal(call.signal);
    return this.client.open(callSignal, async (models, session) => {
      const model = modelOf(models, call);
      const { options, warnings } = await this.toRequest(call, model, session.signal);
      const { stream } = await model.doStream({ ...options, abortSignal: session.signal });
      const reader = stream.getReader();
      const { apiKey } = this.client;
      const { value: first } = await reader.read();
      // A stream begins with its warnings, before anything from the upstream.
      const begun = first?.type === "stream-start" ? toWarnings(first.warnings) : [];
      const reducer = new ChunkReducer(call.upstreamModel, this.traits, [...warnings, ...begun], apiKey, this.client.onUnknownUsage);
      return new AiSdkChatStream({ reader, first, reducer, session, apiKey, callSignal });
    });
  }

  private async toRequest(call: ChatCall, model: LanguageModelV3, signal: AbortSignal): Promise<ChatRequest> {
    const { options, warnings } = toRequest(boundedBody(call), this.client.vendor, call.upstreamModel);
    const reader = { supportedUrls: await model.supportedUrls, fetchFile: chatFiles(this.client.fetchFile, signal) };
    return { options: { ...options, prompt: await fetchReferences(options.prompt, reader) }, warnings };
  }
}

function modelOf(models: VendorModels, call: ChatCall): LanguageModelV3 {
  if (!models.languageModel) throw refuse("This upstream has no text models.", "model");
  return models.languageModel(call.upstreamModel);
}

// Fetches files that a chat names by URL when the upstream does not fetch them itself.

interface ReferenceReader {
  /** URL patterns that the upstream fetches itself, by media type; `*` is any. */
  readonly supportedUrls: Readonly<Record<string, readonly RegExp[]>>;
  readonly fetchFile: FetchChatFile;
}

/** Throws a ProviderError of status 400 for a file that cannot be fetched, and for too many files. */
async function fetchReferences(prompt: LanguageModelV3Prompt, reader: ReferenceReader): Promise<LanguageModelV3Prompt> {
  const count = prompt.flatMap(contentOf).filter((part) => isForUs(part, reader)).length;
  if (count === 0) return prompt;
  assertFewFiles(count);
  const read: LanguageModelV3Message[] = [];
  // Sequential, because connections need not be parallel: the bytes are held together anyway.
  for (const message of prompt) read.push(await readMessage(message, reader));
  return read;
}

type Part = Exclude<LanguageModelV3Message["content"], string>[number];

function contentOf(message: LanguageModelV3Message): readonly Part[] {
  return typeof message.content === "string" ? [] : message.content;
}

function isForUs(part: Part, { supportedUrls }: ReferenceReader): part is LanguageModelV3FilePart & { readonly data: URL } {
  if (part.type !== "file" || !(part.data instanceof URL)) return false;
  const { href } = part.data;
  const family = `${part.mediaType.slice(0, part.mediaType.indexOf("/"))}/*`;
  return ![part.mediaType, family, "*", "*/*"].some((type) => ownValue(supportedUrls, type)?.some((pattern) => pattern.test(href)));
}

async function readMessage(message: LanguageModelV3Message, reader: ReferenceReader): Promise<LanguageModelV3Message> {
  if (typeof message.content === "string") return message;
  const content: Part[] = [];
  for (const part of message.content) content.push(isForUs(part, reader) ? await readFile(part, reader) : part);
  return { ...message, content } as LanguageModelV3Message;
}

async function readFile(part: LanguageModelV3FilePart & { readonly data: URL }, { fetchFile }: ReferenceReader) {
  const file = await fetchFile(part.data.href);
  return { ...part, data: file.bytes, mediaType: file.contentType || part.mediaType };
}
