/** The events of a background response for a reader, from any of them on, while it runs and for an hour after its end. */
import type { RequestContext } from "../../../context.js";
import type { ResponseObject } from "../../../formats/openai-responses/answer.js";
import { uuidOf } from "../../../formats/openai-responses/answer.js";
import type { ResponseEvent } from "../../../formats/openai-responses/stream.js";
import type { Events } from "../../../store/events.js";
import { requireCaller } from "../../access/permissions.js";
import { type EventQueue, looksAt } from "../../accounts/live.js";
import { writeEvents } from "../chat/converted-stream.js";
import type { ResponseStream, ResponseStreamBatch } from "../chat/responses.js";
import { FOLLOWER_LOOK_MS } from "./limits.js";
import type { StoredResponseRows } from "./rows.js";

const TERMINAL = ["completed", "incomplete", "failed"];

export class FollowedResponses {
  constructor(
    private readonly rows: StoredResponseRows,
    private readonly events: Events,
  ) {}

  /** The events of a response that has just begun, in the form of a stream. Leaving it ends nothing. */
  stream(ctx: RequestContext, { id, model }: ResponseObject, generationId: string): ResponseStream {
    return {
      generationId,
      opened: Promise.resolve({ model, modelUsed: model, cancelPolicy: undefined }),
      notes: [],
      events: this.follow(ctx, id, -1),
      receipt: () => null,
      timing: () => ({ gatewayMs: 0, upstreamMs: 0 }),
      failed: () => [],
      brokenOff: () => null,
      waiting: () => {
        throw new Error("A followed response has begun.");
      },
    };
  }

  /** Events after a sequence number. The caller may read the response. */
  async *follow(ctx: RequestContext, responseId: string, startingAfter: number): AsyncGenerator<ResponseStreamBatch> {
    const { accountId } = requireCaller(ctx);
    const uuid = uuidOf(responseId, "resp");
    if (uuid === null) return;
    const changes = changesOf(this.events, ctx, accountId, uuid);
    try {
      let after = startingAfter;
      while ((await changes.next()) !== undefined) {
        // Looked at before the events, which are all written when it is finished.
        const meta = await this.rows.findMeta(uuid);
        for (let events = await this.read(uuid, after); events.length > 0; events = await this.read(uuid, after)) {
          after = events.at(-1)?.sequence_number ?? after;
          yield toBatch(events);
        }
        if (meta === null || meta.finishedAt !== null) {
          if (after === startingAfter) yield* this.last(uuid, after);
          return;
        }
      }
    } finally {
      changes.close();
    }
  }

  private async read(uuid: string, after: number): Promise<ResponseEvent[]> {
    const json = await this.rows.readEvents(uuid, after);
    const events = json === null ? [] : (JSON.parse(json) as ResponseEvent[]);
    return events.filter((event) => event.sequence_number > after);
  }

  /** The last event of a response whose events are no longer kept, or were all read. */
  private async *last(uuid: string, after: number): AsyncGenerator<ResponseStreamBatch> {
    const response = await this.rows.readAnswer(uuid);
    if (response === null || !TERMINAL.includes(response.status)) return;
    yield toBatch([{ type: `response.${response.status}`, sequence_number: after + 1, response }]);
  }
}

/** A look at a response now, after each change, and at intervals. */
export function changesOf(events: Events, ctx: RequestContext, accountId: string, uuid: string): EventQueue<true> {
  const changes = looksAt(events, ctx, "stored-response-changed", accountId, ({ responseId }) => responseId === uuid);
  const timer = setInterval(() => changes.push(true), FOLLOWER_LOOK_MS);
  changes.onClose(() => clearInterval(timer));
  return changes;
}

function toBatch(events: readonly ResponseEvent[]): ResponseStreamBatch {
  return { events, bytes: writeEvents(events) };
}
