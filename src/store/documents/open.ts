/** Opens the configured store of registered documents. */
import type { Logger } from "pino";
import { type DocumentStore, MemoryDocuments } from "../documents.js";

/** Does not wait for Redis. Without Redis, or during its outage, a process knows only documents registered with it. */
export async function openDocuments({ redisUrl, log }: { readonly redisUrl: string | null; readonly log: Logger }): Promise<DocumentStore> {
  const memory = new MemoryDocuments();
  if (redisUrl === null) return memory;
  // Loaded on demand, because the client takes time to load.
  const { openSharedDocuments } = await import("./redis.js");
  return openSharedDocuments(redisUrl, memory, log);
}
