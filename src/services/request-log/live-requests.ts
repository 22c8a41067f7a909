/** Requests of an account as they are logged. */
import type { RequestContext } from "../../context.js";
import { notFound } from "../../errors.js";
import { isUuid } from "../../lib/ids.js";
import type { Events } from "../../store/events.js";
import { requireOperator } from "../access/permissions.js";
import { EventQueue, mapEvents } from "../accounts/live.js";
import type { LoggedRequest, RequestLog } from "./request-log.js";
import { requireReader } from "./request-log.js";

/** Unspecified: the shortest time between two announcements to one subscriber. */
const ANNOUNCE_MS = 1_000;
/** Requests that a slow subscriber may fall behind by; beyond that the oldest are dropped. */
const BACKLOG_MAX = 1_000;

export class LiveRequests {
  constructor(
    private readonly events: Events,
    private readonly log: Pick<RequestLog, "get">,
  ) {}

  /** Yields charged generations and failures of the account, the caller's by default. Operators may follow any account. */
  logged(ctx: RequestContext, id: string | null): AsyncIterableIterator<LoggedRequest> {
    const accountId = requireReader(ctx, id);
    if (!isUuid(accountId)) throw notFound("account");
    const queue = new EventQueue<string>(BACKLOG_MAX);
    queue.onClose(this.events.listenToAccount("usage-recorded", accountId, ({ usageId }) => queue.push(usageId)));
    queue.onClose(
      this.events.listenToAccount("requests-failed", accountId, ({ failureIds }) => {
        for (const failureId of failureIds) queue.push(failureId);
      }),
    );
    queue.closeWith(ctx.signal);
    // A row may have been deleted meanwhile.
    return mapEvents(queue, (entryId) => this.log.get(ctx, accountId, entryId).catch(() => null));
  }

  /**
   * Announces that requests of any accounts were logged, at most once a second, for operators. Nothing is read for it, so that it costs the
   * same at any number of requests.
   */
  changed(ctx: RequestContext): AsyncIterableIterator<Date> {
    requireOperator(ctx);
    const queue = new EventQueue<Date>(1);
    let timer: NodeJS.Timeout | null = null;
    const announce = () => {
      timer ??= setTimeout(() => {
        timer = null;
        queue.push(new Date());
      }, ANNOUNCE_MS);
    };
    queue.onClose(this.events.listen("usage-recorded", announce));
    queue.onClose(this.events.listen("requests-failed", announce));
    queue.onClose(() => timer && clearTimeout(timer));
    queue.closeWith(ctx.signal);
    return mapEvents(queue, (at) => Promise.resolve(at));
  }
}
