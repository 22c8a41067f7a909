/** The store of registered documents that the configuration asks for. */
import type { Logger } from "pino";
import { type DocumentStore, MemoryDocuments } from "../documents.js";

/** Does not wait for Redis. Without Redis, and while it is away, a process knows what was registered with it alone. */
export async function openDocuments({ redisUrl, log }: { readonly redisUrl: string | null; readonly log: Logger }): Promise<DocumentStore> {
  const memory = new MemoryDocuments();
  if (redisUrl === null) return memory;
  // A client that few need takes its time to load.
  const { openSharedDocuments } = await import("./redis.js");
  return openSharedDocuments(redisUrl, memory, log);
}
