/**
 * Ends a realtime session after a disconnect: the upstream is asked to cancel its work, and read until it has answered, because by then it
 * has processed and reported everything before.
 */
import { createId } from "../../../lib/ids.js";
import type { RealtimeConnection } from "../../../providers/media.js";
import type { RealtimeReading } from "../../../providers/openai/realtime-events.js";

/** No response in particular: the one under way, if any. */
const ANY = "";

export class RealtimeLeaving {
  /** Responses by the ids of the events that cancel them. */
  private readonly cancels = new Map<string, string>();
  private isAnyAwaited = false;

  /** The upstream has not confirmed that it has read everything. */
  get isAwaited(): boolean {
    return this.isAnyAwaited;
  }

  /** Cancels the responses with these ids. `hasMore`: the upstream may be working on an unreported one. */
  ask(connection: RealtimeConnection, responseIds: readonly string[], hasMore: boolean): void {
    this.isAnyAwaited = hasMore || responseIds.includes(ANY);
    for (const id of new Set(hasMore ? [...responseIds, ANY] : responseIds)) {
      const eventId = createId();
      this.cancels.set(eventId, id);
      const cancel = { type: "response.cancel", event_id: eventId, ...(id !== ANY && { response_id: id }) };
      void connection.send(JSON.stringify(cancel));
    }
  }

  /**
   * The response that the upstream says cannot be cancelled; null for other events. An error without an event id is taken as ours unless
   * `isAsked`: it may then be about another request.
   */
  read(reading: RealtimeReading, isAsked: boolean): string | null {
    if (reading.kind === "done" && reading.status === "cancelled" && ![...this.cancels.values()].includes(reading.responseId)) {
      this.isAnyAwaited = false;
    }
    if (reading.kind !== "error") return null;
    const isGuessed = reading.eventId === null && this.isAnyAwaited && !isAsked;
    const id = isGuessed ? ANY : (this.cancels.get(reading.eventId ?? "") ?? null);
    if (id === ANY) this.isAnyAwaited = false;
    return id;
  }
}
