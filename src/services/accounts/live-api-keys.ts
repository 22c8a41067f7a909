/**
 * Changes of an account's API keys as a subscription. Creation, change and revocation are published as events; expiry is not, so each
 * subscription waits for the next expiry itself.
 */
import type { RequestContext } from "../../context.js";
import type { Clock } from "../../lib/clock.js";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import { requireKeyManager } from "../access/permissions.js";
import type { AnnouncedChange } from "../api-keys/api-key-rows.js";
import { mapEvents, queueOf } from "./live.js";

export interface ApiKeyChange {
  readonly apiKeyId: string;
  readonly change: AnnouncedChange | "expired";
}

/** A longer wait would overflow a timer; keys that expire later are found by another look. */
const WAIT_MS_MAX = 60 * 60_000;
/** Wait after the database did not answer. */
const RETRY_MS = 10_000;

export class LiveApiKeys {
  constructor(
    private readonly database: Database,
    private readonly events: Events,
    private readonly clock: Clock,
  ) {}

  /** Yields each change of one of the account's keys. Descendants of a changed key are reported one by one. */
  changes(ctx: RequestContext): AsyncIterableIterator<ApiKeyChange> {
    const { accountId } = requireKeyManager(ctx);
    const source = queueOf(this.events, ctx, "api-key-changed", accountId);
    const notify = (apiKeyId: string) => source.push({ accountId, apiKeyId, change: "expired" });
    const ends = new KeyEnds(this.database, accountId, this.clock, notify);
    source.onClose(this.events.listenToAccount("api-key-changed", accountId, () => ends.look()));
    source.onClose(() => ends.stop());
    ends.look();
    return mapEvents(source, async ({ apiKeyId, change }) => ({ apiKeyId, change: toChange(change) }));
  }
}

/** Maps unknown changes, which a newer version of the gateway may publish, to "updated". */
function toChange(change: string): ApiKeyChange["change"] {
  return change === "created" || change === "revoked" || change === "expired" ? change : "updated";
}

/** Reports each key of an account that expires, once, when it does. */
class KeyEnds {
  private timer: NodeJS.Timeout | undefined;
  private isStopped = false;
  /** Looks run one after another. */
  private turn: Promise<void> = Promise.resolve();
  /** Expiries up to this time were reported, or were before the subscription. */
  private reportedUpTo: Date;

  constructor(
    private readonly database: Database,
    private readonly accountId: string,
    private readonly clock: Clock,
    private readonly notify: (apiKeyId: string) => void,
  ) {
    this.reportedUpTo = clock.now();
  }

  /** Looks for the next expiry, as there may be an earlier one. */
  look(): void {
    this.turn = this.turn.then(() => this.notifyAndWait()).catch(() => this.lookIn(RETRY_MS));
  }

  stop(): void {
    this.isStopped = true;
    clearTimeout(this.timer);
  }

  private async notifyAndWait(): Promise<void> {
    if (this.isStopped) return;
    const now = this.clock.now();
    const next = await this.next();
    if (next === null || next > now) return this.lookIn(next === null ? WAIT_MS_MAX : next.getTime() - now.getTime());
    for (const id of await this.endedAt(next)) this.notify(id);
    this.reportedUpTo = next;
    return this.notifyAndWait();
  }

  private async next(): Promise<Date | null> {
    const { _min } = await this.database.prisma.apiKey.aggregate({
      where: { accountId: this.accountId, revokedAt: null, expiresAt: { gt: this.reportedUpTo } },
      _min: { expiresAt: true },
    });
    return _min.expiresAt;
  }

  /** Ids of keys that expired at `moment`, with descendants that had not expired before. */
  private async endedAt(moment: Date): Promise<string[]> {
    const { apiKey } = this.database.prisma;
    const own = { accountId: this.accountId, revokedAt: null };
    const ended = (await apiKey.findMany({ where: { ...own, expiresAt: moment }, select: { id: true } })).map(({ id }) => id);
    const descended = await apiKey.findMany({
      where: { ...own, ancestorIds: { hasSome: ended }, OR: [{ expiresAt: null }, { expiresAt: { gt: moment } }] },
      select: { id: true },
    });
    return [...ended, ...descended.map(({ id }) => id)];
  }

  private lookIn(milliseconds: number): void {
    clearTimeout(this.timer);
    if (this.isStopped) return;
    this.timer = setTimeout(() => this.look(), Math.min(Math.max(milliseconds, 1), WAIT_MS_MAX)).unref();
  }
}
