/**
 * Documents that clients have registered under their digests, of one process or shared through Redis. They may be forgotten: whoever asks
 * for one that is gone sends it again. That a text has the digest that it is kept under is for whoever keeps it to see to.
 */
import type { Redis } from "ioredis";
import { LRUCache } from "lru-cache";
import type { Logger } from "pino";
import { reconnectDelayMs } from "./events/transport.js";

/** Unspecified: how many a process keeps in memory, and how large together. */
const DOCUMENTS_MAX = 10_000;
const DOCUMENTS_BYTES_MAX = 64 * 1024 * 1024;
/** Unspecified: how long Redis keeps each. */
export const DOCUMENT_SECONDS = 24 * 60 * 60;

export interface DocumentStore {
  /** Null when it is not known. Never rejects. */
  find(digest: string): Promise<string | null>;
  /** True without asking anybody else. */
  has(digest: string): boolean;
  /** Never rejects. */
  keep(digest: string, text: string): Promise<void>;
  close(): void;
}

/** Does not wait for Redis. Without Redis, and while it is away, a process knows what was registered with it alone. */
export async function openDocuments({ redisUrl, log }: { readonly redisUrl: string | null; readonly log: Logger }): Promise<DocumentStore> {
  const memory = new MemoryDocuments();
  if (redisUrl === null) return memory;
  // A client that few need takes its time to load.
  const { Redis: Client } = await import("ioredis");
  const redis = new Client(redisUrl, {
    connectionName: "sluice-documents",
    connectTimeout: 2_000,
    commandTimeout: ANSWER_TIMEOUT_MS,
    retryStrategy: reconnectDelayMs,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
  });
  return new SharedDocuments(memory, redis, log);
}

/** The one that was not asked for longest goes first. */
export class MemoryDocuments implements DocumentStore {
  private readonly texts = new LRUCache<string, string>({
    maxSize: DOCUMENTS_BYTES_MAX,
    // Short ones count for more than they have, which bounds their number.
    sizeCalculation: (text) => Math.max(Buffer.byteLength(text), Math.ceil(DOCUMENTS_BYTES_MAX / DOCUMENTS_MAX)),
  });

  async find(digest: string): Promise<string | null> {
    return this.texts.get(digest) ?? null;
  }

  has(digest: string): boolean {
    return this.texts.has(digest);
  }

  async keep(digest: string, text: string): Promise<void> {
    this.texts.set(digest, text);
  }

  close(): void {
    this.texts.clear();
  }
}

/** A request does not wait longer than this for Redis. */
const ANSWER_TIMEOUT_MS = 250;
/** After an answer that did not come, Redis is left alone for this long. */
const PAUSE_MS = 1_000;

class SharedDocuments implements DocumentStore {
  private readonly prefix: string;
  private pausedUntil = 0;
  private isAway = false;
  private isClosed = false;

  constructor(
    private readonly memory: MemoryDocuments,
    private readonly redis: Redis,
    private readonly log: Logger,
  ) {
    this.prefix = `sluice:${redis.options.db ?? 0}:document:`;
    redis.on("error", (error) => this.onTrouble(error));
    redis.on("ready", () => {
      this.isAway = false;
    });
  }

  async find(digest: string): Promise<string | null> {
    const known = await this.memory.find(digest);
    if (known !== null) return known;
    const text = await this.ask(() => this.redis.get(this.prefix + digest));
    if (text !== null) await this.memory.keep(digest, text);
    return text;
  }

  has(digest: string): boolean {
    return this.memory.has(digest);
  }

  async keep(digest: string, text: string): Promise<void> {
    await this.memory.keep(digest, text);
    await this.ask(() => this.redis.set(this.prefix + digest, text, "EX", DOCUMENT_SECONDS, "NX"));
  }

  close(): void {
    this.isClosed = true;
    this.redis.disconnect();
    this.memory.close();
  }

  private async ask(command: () => Promise<string | null>): Promise<string | null> {
    if (this.redis.status !== "ready" || Date.now() < this.pausedUntil) return null;
    try {
      return await command();
    } catch (error) {
      this.pausedUntil = Date.now() + PAUSE_MS;
      this.onTrouble(error);
      return null;
    }
  }

  /** Said once for each time that it is lost. */
  private onTrouble(error: unknown): void {
    if (this.isAway || this.isClosed) return;
    this.isAway = true;
    this.log.warn({ err: error }, "registered documents are known to each process alone, because Redis does not answer");
  }
}
