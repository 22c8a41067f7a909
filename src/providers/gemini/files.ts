/** Fetches files that a chat names by an address which the upstream does not read itself. */
import type { UpstreamContent } from "../../formats/gemini/upstream-contents.js";
import { fetchedFileOf, type Part } from "../../formats/gemini/upstream-parts.js";
import type { GeminiRequest } from "../../formats/gemini/upstream-request.js";
import { bareMediaType } from "../../lib/content-types.js";
import { isRecord, recordsOf } from "../../lib/json.js";
import { assertFewFiles, chatFiles, type FetchChatFile } from "../chat-files.js";
import type { FetchFile } from "../openai/client.js";

/** The same request when there is nothing to fetch. Throws a ProviderError of status 400 for a file that cannot be fetched, and for too many. */
export function withFetchedFiles(
  request: GeminiRequest,
  fetchFile: FetchFile,
  signalOf: () => AbortSignal,
): GeminiRequest | Promise<GeminiRequest> {
  const { contents } = request.fields;
  const count = contents.flatMap(({ parts }) => parts.flatMap(withInner)).filter((part) => fetchedFileOf(part) !== null).length;
  if (count === 0) return request;
  assertFewFiles(count);
  return fetchAll(request, chatFiles(fetchFile, signalOf()));
}

/** A part, and those of a function's result. */
function withInner(part: Part): readonly Part[] {
  return isRecord(part.functionResponse) ? [part, ...recordsOf(part.functionResponse.parts)] : [part];
}

async function fetchAll(request: GeminiRequest, fetchFile: FetchChatFile): Promise<GeminiRequest> {
  const contents: UpstreamContent[] = [];
  // One after another: the bytes are held together anyway.
  for (const { role, parts } of request.fields.contents) contents.push({ role, parts: await fetchParts(parts, fetchFile) });
  return { ...request, fields: { ...request.fields, contents } };
}

async function fetchParts(parts: readonly Part[], fetchFile: FetchChatFile): Promise<Part[]> {
  const fetched: Part[] = [];
  for (const part of parts) {
    const { functionResponse: result } = part;
    if (isRecord(result) && Array.isArray(result.parts)) {
      fetched.push({ ...part, functionResponse: { ...result, parts: await fetchParts(recordsOf(result.parts), fetchFile) } });
    } else fetched.push(await fetchPart(part, fetchFile));
  }
  return fetched;
}

async function fetchPart(part: Part, fetchFile: FetchChatFile): Promise<Part> {
  const named = fetchedFileOf(part);
  if (named === null) return part;
  const { bytes, contentType } = await fetchFile(named.uri);
  const mimeType = bareMediaType(contentType) || named.mimeType;
  return { inlineData: { mimeType, data: Buffer.from(bytes).toString("base64") } };
}
