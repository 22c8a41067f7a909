/** Events through Redis's publish and subscribe: one channel, one connection that listens and one that sends. */
import { Redis } from "ioredis";
import {
  ANSWER_TIMEOUT_MS,
  type EventTransport,
  HEARTBEAT_MS,
  type OpenTransport,
  reconnectDelayMs,
  type TransportListener,
} from "./transport.js";

export function redisTransport(redisUrl: string): OpenTransport {
  return (listener) => new RedisTransport(redisUrl, listener);
}

class RedisTransport implements EventTransport {
  private readonly publisher: Redis;
  private readonly subscriber: Redis;
  private readonly channel: string;
  private readonly heartbeat: NodeJS.Timeout;
  /** Clients with an unanswered ping. */
  private readonly pinged = new Set<Redis>();
  private isSubscribed = false;
  private isUp = false;
  private isClosed = false;
  /** Errors precede the close that they cause. */
  private lastError = new Error("the connection to Redis is closed");

  constructor(
    redisUrl: string,
    private readonly listener: TransportListener,
  ) {
    this.publisher = connect(redisUrl);
    this.subscriber = connect(redisUrl);
    // Redis's databases share channels; the number in the name separates deployments, as for keys.
    this.channel = `sluice:${this.subscriber.options.db ?? 0}:events`;
    for (const client of [this.publisher, this.subscriber]) {
      client.on("error", (error) => {
        this.lastError = error;
      });
      client.on("close", () => this.onDown());
    }
    this.subscriber.on("close", () => {
      this.isSubscribed = false;
    });
    this.publisher.on("ready", () => this.onPart());
    this.subscriber.on("ready", () => this.subscribe());
    this.subscriber.on("message", (_channel: string, text: string) => this.listener.onMessage(text));
    this.heartbeat = setInterval(() => this.ping(), HEARTBEAT_MS);
  }

  async send(messages: readonly string[]): Promise<void> {
    await Promise.all(messages.map((message) => this.publisher.publish(this.channel, message)));
  }

  async close(): Promise<void> {
    this.isClosed = true;
    clearInterval(this.heartbeat);
    this.subscriber.disconnect();
    this.publisher.disconnect();
  }

  /** By hand, because messages before the server's confirmation may have been missed. */
  private subscribe(): void {
    this.subscriber.subscribe(this.channel).then(
      () => {
        this.isSubscribed = true;
        this.onPart();
      },
      (error: Error) => {
        this.lastError = error;
        if (this.subscriber.status === "ready") this.subscriber.disconnect(true);
      },
    );
  }

  private onPart(): void {
    if (this.isUp || this.isClosed || !this.isSubscribed || this.publisher.status !== "ready") return;
    this.isUp = true;
    this.listener.onUp();
  }

  private onDown(): void {
    if (this.isClosed) return;
    this.isUp = false;
    this.listener.onDown(this.lastError);
  }

  /** Destroys the connection without an answer in time. The answer follows every message published before the ping. */
  private ping(): void {
    for (const client of [this.publisher, this.subscriber]) {
      if (client.status !== "ready" || this.pinged.has(client)) continue;
      const sentAt = performance.now();
      this.pinged.add(client);
      client
        .ping()
        .then(() => client === this.subscriber && this.isUp && this.listener.onAlive(sentAt))
        .catch(() => undefined)
        .finally(() => this.pinged.delete(client));
    }
  }
}

function connect(redisUrl: string): Redis {
  return new Redis(redisUrl, {
    connectionName: "sluice-events",
    connectTimeout: ANSWER_TIMEOUT_MS,
    socketTimeout: ANSWER_TIMEOUT_MS,
    retryStrategy: reconnectDelayMs,
    // Commands fail at once while disconnected: the outbox repeats the important ones.
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResubscribe: false,
    autoResendUnfulfilledCommands: false,
  });
}
