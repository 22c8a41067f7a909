/** Paid top-ups as a subscription. */
import type { RequestContext } from "../../context.js";
import type { Events } from "../../store/events.js";
import { requirePermission } from "../access/permissions.js";
import { mapEvents, queueOf } from "../accounts/live.js";

export class LiveTopUps {
  constructor(private readonly events: Events) {}

  /** Yields the id of each top-up of the account once it is paid. */
  completed(ctx: RequestContext): AsyncIterableIterator<{ readonly topUpId: string }> {
    const { accountId } = requirePermission(ctx, "balance");
    return mapEvents(queueOf(this.events, ctx, "top-up-completed", accountId), async ({ topUpId }) => ({ topUpId }));
  }
}
