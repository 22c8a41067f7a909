/**
 * A realtime session whose caller has left: its upstream is asked to cancel what it is at work on, and is read until it has answered, because
 * whatever came before the answer has been taken by then, and is reported.
 */
import { createId } from "../../../lib/ids.js";
import type { RealtimeConnection } from "../../../providers/media.js";
import type { RealtimeReading } from "../../../providers/openai/realtime-events.js";

/** No answer in particular: the one that is under way, if there is any. */
const ANY = "";

export class RealtimeLeaving {
  /** Answers, by the ids of the events that cancel them. */
  private readonly cancels = new Map<string, string>();
  private isAnyAwaited = false;

  /** The upstream has not said yet that it has read everything. */
  get isAwaited(): boolean {
    return this.isAnyAwaited;
  }

  /** Asks for it, of the answers with these ids. `hasMore`: the upstream may be at work on what it has not told of. */
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
   * The answer that there is nothing to cancel of, when the upstream says so; null when it says nothing of the kind. An error that names
   * no event is believed to be about ours unless `isAsked`: something is asked for that it may be about as well.
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
