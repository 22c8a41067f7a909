/**
 * What becomes of an account's API keys, as it happens. That they are made, changed and revoked is announced, so that caches drop them; that
 * one reaches its end nobody announces, so each subscription waits for the next end itself.
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

/** A longer wait would overflow a timer; keys that end later are looked for again. */
const WAIT_MS_MAX = 60 * 60_000;
/** After the database did not answer. */
const RETRY_MS = 10_000;

export class LiveApiKeys {
  constructor(
    private readonly database: Database,
    private readonly events: Events,
    private readonly clock: Clock,
  ) {}

  /** Each change of one of the account's keys, those that descend from others each for itself. */
  changes(ctx: RequestContext): AsyncIterableIterator<ApiKeyChange> {
    const { accountId } = requireKeyManager(ctx);
    const source = queueOf(this.events, ctx, "api-key-changed", accountId);
    const tell = (apiKeyId: string) => source.push({ accountId, apiKeyId, change: "expired" });
    const ends = new KeyEnds(this.database, accountId, this.clock, tell);
    source.onClose(this.events.listenToAccount("api-key-changed", accountId, () => ends.look()));
    source.onClose(() => ends.stop());
    ends.look();
    return mapEvents(source, async ({ apiKeyId, change }) => ({ apiKeyId, change: toChange(change) }));
  }
}

/** Those of a newer version of the gateway are changes like any other. */
function toChange(change: string): ApiKeyChange["change"] {
  return change === "created" || change === "revoked" || change === "expired" ? change : "updated";
}

/** Tells of each key of an account that reaches its end, once, when it does. */
class KeyEnds {
  private timer: NodeJS.Timeout | undefined;
  private isStopped = false;
  /** Looks take turns. */
  private turn: Promise<void> = Promise.resolve();
  /** What ended before has been told, or ended before anybody listened. */
  private toldUpTo: Date;

  constructor(
    private readonly database: Database,
    private readonly accountId: string,
    private readonly clock: Clock,
    private readonly tell: (apiKeyId: string) => void,
  ) {
    this.toldUpTo = clock.now();
  }

  /** For the next end, now that there may be another. */
  look(): void {
    this.turn = this.turn.then(() => this.tellAndWait()).catch(() => this.lookIn(RETRY_MS));
  }

  stop(): void {
    this.isStopped = true;
    clearTimeout(this.timer);
  }

  private async tellAndWait(): Promise<void> {
    if (this.isStopped) return;
    const now = this.clock.now();
    const next = await this.next();
    if (next === null || next > now) return this.lookIn(next === null ? WAIT_MS_MAX : next.getTime() - now.getTime());
    for (const id of await this.endedAt(next)) this.tell(id);
    this.toldUpTo = next;
    return this.tellAndWait();
  }

  private async next(): Promise<Date | null> {
    const { _min } = await this.database.prisma.apiKey.aggregate({
      where: { accountId: this.accountId, revokedAt: null, expiresAt: { gt: this.toldUpTo } },
      _min: { expiresAt: true },
    });
    return _min.expiresAt;
  }

  /** Those that descend from a key end with it, unless they have ended before. */
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
