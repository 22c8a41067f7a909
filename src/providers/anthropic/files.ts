/** Fetches files that a chat names by an address which the upstream does not fetch itself. */
import type { UpstreamMessage } from "../../formats/anthropic-messages/upstream-messages.js";
import { type Block, isFetched, toInline } from "../../formats/anthropic-messages/upstream-parts.js";
import type { MessagesRequest } from "../../formats/anthropic-messages/upstream-request.js";
import { bareMediaType } from "../../lib/content-types.js";
import { recordsOf } from "../../lib/json.js";
import { assertFewFiles, chatFiles, type FetchChatFile } from "../chat-files.js";
import type { FetchFile } from "../openai/client.js";

/** The same request when there is nothing to fetch. Throws a ProviderError of status 400 for a file that cannot be fetched, and for too many. */
export function withFetchedFiles(
  request: MessagesRequest,
  fetchFile: FetchFile,
  signalOf: () => AbortSignal,
): MessagesRequest | Promise<MessagesRequest> {
  const count = request.fields.messages.flatMap(({ content }) => content.flatMap(withInner)).filter(isFetched).length;
  if (count === 0) return request;
  assertFewFiles(count);
  const fetchChatFile = chatFiles(fetchFile, signalOf());
  return fetchAll(request, (block) => fetchBlock(block, fetchChatFile));
}

/** A block, and those in a tool's result. */
function withInner(block: Block): readonly Block[] {
  return block.type === "tool_result" ? [block, ...(recordsOf(block.content) as Block[])] : [block];
}

type FetchBlock = (block: Block) => Promise<Block>;

async function fetchAll(request: MessagesRequest, fetchBlock: FetchBlock): Promise<MessagesRequest> {
  const messages: UpstreamMessage[] = [];
  // One after another: the bytes are held together anyway.
  for (const { role, content } of request.fields.messages) messages.push({ role, content: await fetchBlocks(content, fetchBlock) });
  return { ...request, fields: { ...request.fields, messages } };
}

async function fetchBlocks(blocks: readonly Block[], fetchBlock: FetchBlock): Promise<Block[]> {
  const fetched: Block[] = [];
  for (const block of blocks) {
    if (isFetched(block)) fetched.push(await fetchBlock(block));
    else if (block.type === "tool_result" && Array.isArray(block.content)) {
      fetched.push({ ...block, content: await fetchBlocks(block.content, fetchBlock) });
    } else fetched.push(block);
  }
  return fetched;
}

async function fetchBlock(block: Block, fetchFile: FetchChatFile): Promise<Block> {
  const { url } = block.source as { readonly url: string };
  const assumed = block.type === "image" ? "image/jpeg" : "text/plain";
  const file = await fetchFile(url);
  const base64 = Buffer.from(file.bytes).toString("base64");
  const { source } = toInline(bareMediaType(file.contentType) || assumed, { base64 }, "messages");
  return { ...block, source };
}
