/** Files that a chat names by their address, for an upstream that does not fetch them itself. Those of one chat are in memory together. */
import { refuse } from "../formats/upstream-error.js";
import { CHAT_FILES_BYTES_MAX, CHAT_FILES_FETCHED_MAX } from "../limits.js";
import type { FetchFile } from "./openai/client.js";

/** Throws a ProviderError of status 400 for more files than are fetched for a chat. */
export function assertFewFiles(count: number): void {
  if (count > CHAT_FILES_FETCHED_MAX) throw refuse(`At most ${CHAT_FILES_FETCHED_MAX} files may be named by their address.`, "messages");
}

export type FetchChatFile = (url: string) => ReturnType<FetchFile>;

/**
 * Makes the fetching of one chat, whose files are fetched one after another. It rejects with a ProviderError of status 400 for a file that
 * cannot be fetched, and for more bytes than all of them may have.
 */
export function chatFiles(fetchFile: FetchFile, signal: AbortSignal): FetchChatFile {
  let left = CHAT_FILES_BYTES_MAX;
  return async (url) => {
    const bytesMax = left;
    try {
      const file = await fetchFile(url, { bytesMax, accept: "*/*", signal });
      left -= file.bytes.length;
      return file;
    } catch (error) {
      signal.throwIfAborted();
      const reason = error instanceof Error ? error.message : "A file of the chat cannot be fetched.";
      const together = bytesMax < CHAT_FILES_BYTES_MAX ? ` The files of a chat have at most ${CHAT_FILES_BYTES_MAX} bytes together.` : "";
      throw refuse(`${reason}${together}`, "messages");
    }
  };
}
