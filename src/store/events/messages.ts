/**
 * Events as they travel between processes: JSON texts that hold several each. Processes of different versions hear each
 * other while a deployment is under way, so a reader takes what it understands and passes over the rest.
 */
import { z } from "zod";
import type { EventChannel, EventChannels, Events } from "../events.js";

/** PostgreSQL: a notification's payload must be shorter than 8000 bytes ("NOTIFY"). */
export const EVENT_MESSAGE_BYTES_MAX = 7_999;

/** Fields that are not listed are from a newer version and are left out. */
const payloadSchemas: { readonly [C in EventChannel]: z.ZodType<EventChannels[C]> } = {
  "api-key-changed": z.object({ apiKeyId: z.string() }),
  "session-changed": z.object({ accountId: z.string(), sessionId: z.string() }),
  "usage-recorded": z.object({ accountId: z.string(), usageId: z.string() }),
  "balance-changed": z.object({ accountId: z.string() }),
  "device-authorization-changed": z.object({ deviceAuthorizationId: z.string() }),
  "balance-low": z.object({ accountId: z.string(), balance: z.string(), threshold: z.string(), since: z.string() }),
  "webhooks-changed": z.object({ accountId: z.string() }),
  "account-renamed": z.object({ accountId: z.string() }),
  "community-model-changed": z.object({ accountId: z.string(), modelId: z.string(), change: z.string() }),
  "model-health-changed": z.object({ accountId: z.string(), modelId: z.string() }),
  "tool-call-cancelled": z.object({ accountId: z.string(), call: z.string() }),
  "generation-changed": z.object({ accountId: z.string(), generationId: z.string(), status: z.string() }),
};

const messageSchema = z.object({ events: z.array(z.unknown()) });

type Publisher = Pick<Events, "publish">;

/** One event, ready to be packed. Equal events have equal texts. */
export function encodeEvent<C extends EventChannel>(channel: C, payload: EventChannels[C]): string {
  return JSON.stringify([channel, payload]);
}

/** Writes and reads the messages of one process. */
export class EventMessages {
  private readonly head: string;

  /** `sender` must differ from that of every other process, and be plain letters, digits and dashes. */
  constructor(sender: string) {
    this.head = `{"from":"${sender}","events":[`;
  }

  /** Takes as many events off the front of `queue` as one message holds, at least one; undefined when it is empty. */
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

  /** Publishes another process's events to `events`; this one's own have been delivered. False when it is no message at all. */
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
