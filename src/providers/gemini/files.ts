/** Fetches files that a chat names by an address which the upstream does not read itself. */
import type { UpstreamContent } from "../../formats/gemini/upstream-contents.js";
import { fetchedFileOf, type Part } from "../../formats/gemini/upstream-parts.js";
import type { GeminiRequest } from "../../formats/gemini/upstream-request.js";
import { refuse } from "../../formats/upstream-error.js";
import { isRecord, recordsOf } from "../../lib/json.js";
import { CHAT_FILE_BYTES_MAX, CHAT_FILES_FETCHED_MAX } from "../../limits.js";
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
  if (count > CHAT_FILES_FETCHED_MAX) throw refuse(`At most ${CHAT_FILES_FETCHED_MAX} files may be named by their address.`, "messages");
  return fetchAll(request, fetchFile, signalOf());
}

/** A part, and those of a function's result. */
function withInner(part: Part): readonly Part[] {
  return isRecord(part.functionResponse) ? [part, ...recordsOf(part.functionResponse.parts)] : [part];
}

async function fetchAll(request: GeminiRequest, fetchFile: FetchFile, signal: AbortSignal): Promise<GeminiRequest> {
  const contents: UpstreamContent[] = [];
  // One after another: the bytes are held together anyway.
  for (const { role, parts } of request.fields.contents) contents.push({ role, parts: await fetchParts(parts, fetchFile, signal) });
  return { ...request, fields: { ...request.fields, contents } };
}

async function fetchParts(parts: readonly Part[], fetchFile: FetchFile, signal: AbortSignal): Promise<Part[]> {
  const fetched: Part[] = [];
  for (const part of parts) {
    const { functionResponse: result } = part;
    if (isRecord(result) && Array.isArray(result.parts)) {
      fetched.push({ ...part, functionResponse: { ...result, parts: await fetchParts(recordsOf(result.parts), fetchFile, signal) } });
    } else fetched.push(await fetchPart(part, fetchFile, signal));
  }
  return fetched;
}

async function fetchPart(part: Part, fetchFile: FetchFile, signal: AbortSignal): Promise<Part> {
  const named = fetchedFileOf(part);
  if (named === null) return part;
  try {
    const { bytes, contentType } = await fetchFile(named.uri, { bytesMax: CHAT_FILE_BYTES_MAX, accept: "*/*", signal });
    const mimeType = contentType.split(";", 1)[0]?.trim().toLowerCase() || named.mimeType;
    return { inlineData: { mimeType, data: Buffer.from(bytes).toString("base64") } };
  } catch (error) {
    signal.throwIfAborted();
    throw refuse(error instanceof Error ? error.message : "A file of the chat cannot be fetched.", "messages");
  }
}
