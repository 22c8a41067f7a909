/** Calls of the gateway's tools under way. A client cancels a call by a separate message, which may arrive at another process. */
import type { Events } from "../../store/events.js";

/** A call's identity at its client. */
export interface ToolCallId {
  readonly accountId: string;
  /** The id of a key or a session. */
  readonly principalId: string;
  /** The MCP session, which distinguishes clients of one key. */
  readonly sessionId: string;
  readonly requestId: string | number;
}

/** The client cancelled the call and expects no answer. */
export class ToolCallCancelled extends Error {
  override readonly name = "ToolCallCancelled";
}

export class ToolCalls {
  private readonly running = new Map<string, AbortController>();

  constructor(private readonly events: Pick<Events, "publish" | "listen">) {
    events.listen("tool-call-cancelled", ({ call }) => {
      this.running.get(call)?.abort(new ToolCallCancelled("The call was cancelled."));
    });
  }

  /** Calls `work` with a signal that is aborted with `signal` and by a cancellation, which then rejects with ToolCallCancelled. */
  async run<Result>(id: ToolCallId | null, signal: AbortSignal, work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
    const controller = new AbortController();
    const leave = () => controller.abort(signal.reason);
    const key = id && keyOf(id);
    if (signal.aborted) leave();
    signal.addEventListener("abort", leave, { once: true });
    if (key !== null) this.running.set(key, controller);
    try {
      return await work(controller.signal);
    } catch (error) {
      throw controller.signal.reason instanceof ToolCallCancelled ? controller.signal.reason : error;
    } finally {
      signal.removeEventListener("abort", leave);
      if (key !== null && this.running.get(key) === controller) this.running.delete(key);
    }
  }

  /** Does nothing for a call that is unknown or over. */
  cancel(id: ToolCallId): void {
    this.events.publish("tool-call-cancelled", { accountId: id.accountId, call: keyOf(id) });
  }
}

function keyOf({ principalId, sessionId, requestId }: ToolCallId): string {
  return `${principalId} ${sessionId} ${JSON.stringify(requestId)}`;
}
