/** Files that a chat names by their address and that the upstream does not fetch by itself: fetched for it. */
import type { LanguageModelV3FilePart, LanguageModelV3Message, LanguageModelV3Prompt } from "@ai-sdk/provider";
import { ownValue } from "../../lib/own-values.js";
import { CHAT_FILE_BYTES_MAX, CHAT_FILES_FETCHED_MAX } from "../../limits.js";
import type { FetchFile } from "../openai/client.js";
import { refuse } from "../refusal.js";

export interface ReferenceReader {
  /** Addresses that the upstream fetches by itself, by media type; `*` is any. */
  readonly supportedUrls: Readonly<Record<string, readonly RegExp[]>>;
  readonly fetchFile: FetchFile;
  readonly signal: AbortSignal;
}

/** Throws a ProviderError of status 400 for a file that cannot be had, or for too many. */
export async function fetchReferences(prompt: LanguageModelV3Prompt, reader: ReferenceReader): Promise<LanguageModelV3Prompt> {
  const count = prompt.flatMap(contentOf).filter((part) => isForUs(part, reader)).length;
  if (count === 0) return prompt;
  if (count > CHAT_FILES_FETCHED_MAX) throw refuse(`At most ${CHAT_FILES_FETCHED_MAX} files may be named by their address.`, "messages");
  const read: LanguageModelV3Message[] = [];
  // One after the other: their bytes are held together, their connections need not be.
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

async function readFile(part: LanguageModelV3FilePart & { readonly data: URL }, { fetchFile, signal }: ReferenceReader) {
  try {
    const file = await fetchFile(part.data.href, { bytesMax: CHAT_FILE_BYTES_MAX, accept: "*/*", signal });
    return { ...part, data: file.bytes, mediaType: file.contentType || part.mediaType };
  } catch (error) {
    signal.throwIfAborted();
    throw refuse(error instanceof Error ? error.message : "A file of the chat cannot be fetched.", "messages");
  }
}
