/** Registered documents shared through Redis, behind each process's own memory. */
import { Redis } from "ioredis";
import type { Logger } from "pino";
import { DOCUMENT_SECONDS, type DocumentStore, type MemoryDocuments } from "../documents.js";
import { OutageLog, promptOptions } from "../redis-client.js";

/** Longest wait of a request for Redis. */
const ANSWER_TIMEOUT_MS = 250;
/** Redis is not called for this long after a missing answer. */
const PAUSE_MS = 1_000;

export function openSharedDocuments(redisUrl: string, memory: MemoryDocuments, log: Logger): DocumentStore {
  const redis = new Redis(redisUrl, promptOptions("sluice-documents", ANSWER_TIMEOUT_MS));
  return new SharedDocuments(memory, redis, log);
}

class SharedDocuments implements DocumentStore {
  private readonly prefix: string;
  private pausedUntil = 0;
  private readonly outage: OutageLog;

  constructor(
    private readonly memory: MemoryDocuments,
    private readonly redis: Redis,
    log: Logger,
  ) {
    this.prefix = `sluice:${redis.options.db ?? 0}:document:`;
    this.outage = new OutageLog(log, {
      away: "registered documents are known to each process alone, because Redis does not answer",
      back: null,
    });
    redis.on("error", (error) => this.outage.trouble(error));
    redis.on("ready", () => this.outage.answered());
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
    this.outage.close();
    this.redis.disconnect();
    this.memory.close();
  }

  private async ask(command: () => Promise<string | null>): Promise<string | null> {
    if (this.redis.status !== "ready" || Date.now() < this.pausedUntil) return null;
    try {
      return await command();
    } catch (error) {
      this.pausedUntil = Date.now() + PAUSE_MS;
      this.outage.trouble(error);
      return null;
    }
  }
}
