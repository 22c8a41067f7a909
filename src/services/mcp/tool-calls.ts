/**
 * The calls of the gateway's own tools that are under way. A client gives a call up with a message of its own, which may arrive at
 * another process than the call did.
 */
import type { Events } from "../../store/events.js";

/** A call, as its client names it. */
export interface ToolCallId {
  readonly accountId: string;
  /** The id of a key or a session. */
  readonly principalId: string;
  /** The MCP session, which tells the callers of one key apart. */
  readonly sessionId: string;
  readonly requestId: string | number;
}

/** The client gave the call up, and expects no answer. */
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

  /** Calls `work` with a signal that is aborted when `signal` is, and when the client gives the call up; then rejects with ToolCallCancelled. */
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

  /** Has no effect on a call that is unknown or over. */
  cancel(id: ToolCallId): void {
    this.events.publish("tool-call-cancelled", { accountId: id.accountId, call: keyOf(id) });
  }
}

function keyOf({ principalId, sessionId, requestId }: ToolCallId): string {
  return `${principalId} ${sessionId} ${JSON.stringify(requestId)}`;
}
