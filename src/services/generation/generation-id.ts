/** The id of a generation: its own, or the one that was written down for it before it began (see `Idempotency`). */
import type { RequestContext } from "../../context.js";
import { createId } from "../../lib/ids.js";

/** An id for the first generation of a request; every further one has an id of its own. */
export class ReservedId {
  private isTaken = false;

  constructor(readonly id: string) {}

  take(): string | null {
    if (this.isTaken) return null;
    this.isTaken = true;
    return this.id;
  }
}

export function takeGenerationId(ctx: RequestContext): string {
  return ctx.reservedId?.take() ?? createId();
}
