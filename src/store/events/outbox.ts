/**
 * Events waiting to be sent to other processes. Those of some milliseconds share a message, and at most one send is under way, so that a
 * busy gateway sends no more often than a quiet one. Never waits, throws or grows without bound.
 */
import { z } from "zod";
import type { EventChannel, EventChannels, Events } from "../events.js";

/** How long live events are collected. Viewers do not notice, and a thousand charges a second become fifty messages. */
const COLLECT_MS = 20;
const LIVE_EVENTS_MAX = 10_000;
/** Dropped together, because finding the oldest of a large set costs more than dropping it. */
const LIVE_EVENTS_DROPPED_AT_ONCE = 1_000;
/** The size of one statement or pipeline: about 900 usage rows. */
const MESSAGES_PER_SENDING_MAX = 16;
/** Retry delay when sending fails while connected. */
const RETRY_MS = 250;
/** How long a stopping process continues to send. */
const DRAIN_MS = 1_000;

/** `send` resolves when the messages are sent, and rejects within seconds otherwise. */
export class EventOutbox {
  /** Must arrive: kept until sent. Equal events wait once, so there are no more than changed keys. */
  private readonly kept = new Set<string>();
  /** For display: sent at most once, dropped oldest first when there are too many. */
  private readonly live = new Set<string>();
  private timer: NodeJS.Timeout | undefined;
  private isSending = false;
  private canSend = false;
  private isClosed = false;
  private isDropping = false;
  private whenDone: (() => void) | undefined;

  constructor(
    private readonly messages: EventMessages,
    private readonly send: (messages: readonly string[]) => Promise<void>,
    /** Called when events begin to be dropped, not for each. */
    private readonly onDropping: () => void,
  ) {}

  add(event: string, mustArrive: boolean): void {
    if (this.isClosed) return;
    if (mustArrive) {
      this.kept.add(event);
      this.scheduleNow();
    } else {
      this.live.add(event);
      if (this.live.size > LIVE_EVENTS_MAX) this.dropOldest();
      this.schedule(COLLECT_MS);
    }
  }

  /** The transport is connected. Nothing is sent before the first call. */
  resume(): void {
    this.canSend = true;
    this.scheduleNow();
  }

  /** The connection is lost. Events wait until `resume`. */
  pause(): void {
    this.canSend = false;
  }

  /** Sends the pending events if possible in time, and accepts no more. */
  async close(): Promise<void> {
    this.isClosed = true;
    if (!this.isSending && (this.isEmpty || !this.canSend)) return;
    let deadline: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.whenDone = resolve;
      deadline = setTimeout(resolve, DRAIN_MS);
      this.scheduleNow();
    });
    clearTimeout(deadline);
    clearTimeout(this.timer);
    this.canSend = false;
  }

  private get isEmpty(): boolean {
    return this.kept.size === 0 && this.live.size === 0;
  }

  private schedule(delayMs: number): void {
    if (this.isSending || !this.canSend || this.isEmpty) return;
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      void this.sendNext();
    }, delayMs);
  }

  private scheduleNow(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.schedule(0);
  }

  private async sendNext(): Promise<void> {
    if (this.isSending || !this.canSend) return;
    const mustArrive = [...this.kept];
    this.isSending = true;
    try {
      await this.send(this.takeMessages());
      this.isSending = false;
      if (this.isEmpty) this.becomeIdle();
      else this.schedule(this.isClosed || this.kept.size > 0 ? 0 : COLLECT_MS);
    } catch {
      // They may have arrived all the same: must-arrive events may arrive twice, live events would be shown twice.
      this.isSending = false;
      for (const event of mustArrive) this.kept.add(event);
      this.schedule(RETRY_MS);
    }
  }

  private takeMessages(): string[] {
    const messages: string[] = [];
    while (messages.length < MESSAGES_PER_SENDING_MAX) {
      const message = this.messages.pack(this.kept) ?? this.messages.pack(this.live);
      if (message === undefined) break;
      messages.push(message);
    }
    return messages;
  }

  private dropOldest(): void {
    let count = 0;
    for (const event of this.live) {
      if (count === LIVE_EVENTS_DROPPED_AT_ONCE) break;
      this.live.delete(event);
      count += 1;
    }
    if (!this.isDropping) this.onDropping();
    this.isDropping = true;
  }

  private becomeIdle(): void {
    this.isDropping = false;
    this.whenDone?.();
  }
}

// The format of events between processes: JSON texts with several events each. During a deployment processes of different versions
// communicate, so a reader ignores unknown content.

/** PostgreSQL: a notification's payload must be shorter than 8000 bytes ("NOTIFY"). */
const EVENT_MESSAGE_BYTES_MAX = 7_999;

/** Fields that are not listed are from a newer version and are dropped. */
const payloadSchemas: { readonly [C in EventChannel]: z.ZodType<EventChannels[C]> } = {
  // Earlier versions only send the key's id, which is enough for caches.
  "api-key-changed": z.object({ accountId: z.string().default(""), apiKeyId: z.string(), change: z.string().default("updated") }),
  "session-changed": z.object({ accountId: z.string(), sessionId: z.string() }),
  "account-suspension-changed": z.object({ accountId: z.string(), isSuspended: z.boolean() }),
  "run-changed": z.object({ accountId: z.string(), runId: z.string(), change: z.string() }),
  "usage-recorded": z.object({ accountId: z.string(), usageId: z.string() }),
  "requests-failed": z.object({ accountId: z.string(), failureIds: z.array(z.string()) }),
  "balance-changed": z.object({ accountId: z.string() }),
  "earning-recorded": z.object({ accountId: z.string(), generationId: z.string(), share: z.enum(["app", "model"]) }),
  "top-up-completed": z.object({ accountId: z.string(), topUpId: z.string() }),
  "top-up-changed": z.object({ accountId: z.string(), topUpId: z.string() }),
  "top-up-failed": z.object({ accountId: z.string(), topUpId: z.string(), reason: z.string() }),
  "alert-raised": z.object({ accountId: z.string(), alertId: z.string() }),
  "lease-wanted": z.object({ accountId: z.string() }),
  "device-authorization-changed": z.object({ deviceAuthorizationId: z.string() }),
  "balance-low": z.object({ accountId: z.string(), balance: z.string(), threshold: z.string(), since: z.string() }),
  "webhooks-changed": z.object({ accountId: z.string() }),
  "account-renamed": z.object({ accountId: z.string() }),
  "vendor-keys-changed": z.object({ accountId: z.string() }),
  "usage-limits-changed": z.object({ accountId: z.string() }),
  "usage-limit-wanted": z.object({ accountId: z.string(), limitId: z.string() }),
  "usage-limit-reached": z.object({
    ...{ accountId: z.string(), limitId: z.string(), apiKeyId: z.string().nullable(), model: z.string().nullable() },
    metric: z.enum(["credits", "requests", "tokens", "concurrency"]),
    ...{ percent: z.number(), amount: z.string(), spent: z.string(), at: z.string() },
  }),
  "community-model-changed": z.object({ accountId: z.string(), modelId: z.string(), change: z.string() }),
  "model-health-changed": z.object({ accountId: z.string(), modelId: z.string() }),
  "tool-call-cancelled": z.object({ accountId: z.string(), call: z.string() }),
  "stored-response-changed": z.object({ accountId: z.string(), responseId: z.string(), status: z.string() }),
  "route-health-changed": z.object({
    kind: z.enum(["key", "circuit"]),
    id: z.string(),
    code: z.enum(["credential_refused", "payment_required", "rate_limited", "circuit_open", "limit_reached"]),
    until: z.number(),
  }),
  "routes-changed": z.object({ modelId: z.string() }),
  "route-times-measured": z.object({ id: z.string(), firstMs: z.number().nullable(), tokenMs: z.number().nullable() }),
  "generation-changed": z.object({ accountId: z.string(), generationId: z.string(), status: z.string() }),
};

const messageSchema = z.object({ events: z.array(z.unknown()) });

type Publisher = Pick<Events, "publish">;

/** One event in text form. Equal events have equal texts. */
export function encodeEvent<C extends EventChannel>(channel: C, payload: EventChannels[C]): string {
  return JSON.stringify([channel, payload]);
}

/** Writes and reads the messages of one process. */
export class EventMessages {
  private readonly head: string;

  /** `sender` must be unique among processes, and consist of letters, digits and dashes. */
  constructor(sender: string) {
    this.head = `{"from":"${sender}","events":[`;
  }

  /** Takes as many events off the front of `queue` as fit into a message, at least one; undefined when it is empty. */
  pack(queue: Set<string>): string | undefined {
    const taken: string[] = [];
    let bytes = Buffer.byteLength(this.head) + TAIL.length;
    for (const event of queue) {
      const more = Buffer.byteLength(event) + SEPARATOR.length;
      if (taken.length > 0 && bytes + more > EVENT_MESSAGE_BYTES_MAX) break;
      bytes += more;
      queue.delete(event);
      taken.push(event);
    }
    return taken.length === 0 ? undefined : this.head + taken.join(SEPARATOR) + TAIL;
  }

  /** Publishes another process's events to `events`; this one's own were delivered before. False for a malformed message. */
  deliver(message: string, events: Publisher): boolean {
    if (message.startsWith(this.head)) return true;
    const parsed = messageSchema.safeParse(parseJson(message));
    if (!parsed.success) return false;
    for (const event of parsed.data.events) {
      if (Array.isArray(event) && isChannel(event[0])) deliverOne(event[0], event[1], events);
    }
    return true;
  }
}

const SEPARATOR = ",";
const TAIL = "]}";

function deliverOne<C extends EventChannel>(channel: C, payload: unknown, events: Publisher): void {
  const parsed = payloadSchemas[channel].safeParse(payload);
  if (parsed.success) events.publish(channel, parsed.data);
}

function isChannel(name: unknown): name is EventChannel {
  return typeof name === "string" && Object.hasOwn(payloadSchemas, name);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
