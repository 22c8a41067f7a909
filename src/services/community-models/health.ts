/**
 * Health of registered models (docs/spec/models.md#health): results of other accounts' calls, by the hour, over 24 hours.
 *
 * 1. Generations report each call, which is counted in memory.
 * 2. At intervals the counts are added to the table in one statement, where those of all processes add up.
 * 3. Changed models are announced, and each process rereads their sums.
 */
import type { Logger } from "pino";
import type { KeyCaller, SessionCaller } from "../../context.js";
import type { Clock } from "../../lib/clock.js";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { CommunityModelHealthModel } from "../../store/generated/prisma/models.js";
import { type ModelHealth, UNKNOWN_HEALTH } from "../catalog/community.js";
import type { Model } from "../catalog/model.js";
import type { HealthReporter } from "../generation/failures.js";
import { HEALTH_FLUSH_MS, HEALTH_PAGE, HEALTH_REQUESTS_MIN, HEALTH_SUCCESS_PERCENT_MIN, HEALTH_WINDOW_HOURS } from "./limits.js";
import { RereadQueue } from "./reread-queue.js";

export interface HealthDependencies {
  readonly database: Database;
  readonly events: Events;
  readonly clock: Clock;
  readonly log: Logger;
  /** The account of a registered model; null when it was deleted. */
  readonly ownerOf: (model: Pick<Model, "communityModelId">) => string | null;
}

interface Counts {
  succeeded: number;
  failed: number;
}

/** By the start of the hour, in milliseconds. */
type CountsByHour = Map<number, Counts>;

const HOUR_MS = 3_600_000;

export class ModelHealthRecords implements Pick<HealthReporter, "succeeded" | "failed"> {
  /** Counts not written yet, by row id. */
  private unwritten = new Map<string, CountsByHour>();
  /** Counts in the table. */
  private readonly written = new Map<string, CountsByHour>();
  private readonly queue: RereadQueue;
  private timer: NodeJS.Timeout | null = null;
  private flushing: Promise<void> | null = null;
  private sweptHour = 0;

  constructor(private readonly deps: HealthDependencies) {
    const { events, log } = deps;
    const onFailure = (error: unknown) => log.warn({ err: error }, "the health of registered models could not be read yet");
    this.queue = new RereadQueue((ids) => this.read(ids), onFailure);
    events.listen("model-health-changed", ({ modelId }) => this.queue.add([modelId]));
    events.onGap(() => void this.load().catch(onFailure));
  }

  /** Reads the sums of every model. */
  load(): Promise<void> {
    return this.queue.between(async () => {
      const hour = { gte: new Date(this.windowStart()) };
      let after: { readonly modelId: string; readonly hour: Date } | undefined;
      do {
        const rows: CommunityModelHealthModel[] = await this.deps.database.prisma.communityModelHealth.findMany({
          where: { hour, ...(after && { OR: [{ modelId: { gt: after.modelId } }, { modelId: after.modelId, hour: { gt: after.hour } }] }) },
          orderBy: [{ modelId: "asc" }, { hour: "asc" }],
          take: HEALTH_PAGE,
        });
        for (const row of rows) add(this.written, row.modelId, row.hour.getTime(), row, "replace");
        after = rows.length < HEALTH_PAGE ? undefined : rows.at(-1);
      } while (after);
    });
  }

  /** Writes the remaining counts. */
  async close(): Promise<void> {
    await this.flush();
    if (this.timer) clearTimeout(this.timer);
    await this.queue.close();
  }

  succeeded(caller: KeyCaller | SessionCaller, model: Model): void {
    if (model.communityModelId !== null) this.count(caller, model, model.communityModelId, { succeeded: 1, failed: 0 });
  }

  failed(caller: KeyCaller | SessionCaller, model: Model): void {
    if (model.communityModelId !== null) this.count(caller, model, model.communityModelId, { succeeded: 0, failed: 1 });
  }

  /** Health of a row, from written counts. */
  healthOf(communityModelId: string): ModelHealth {
    const hours = this.written.get(communityModelId);
    return hours ? toHealth(hours, this.windowStart()) : UNKNOWN_HEALTH;
  }

  /** Resolves when all announced sums have been reread. */
  upToDate(): Promise<void> {
    return this.queue.upToDate();
  }

  /** Writes the counts so far, one flush at a time. Never rejects: failed counts are kept for the next flush. */
  async flush(): Promise<void> {
    while (this.flushing) await this.flushing;
    this.flushing = this.writeDown().finally(() => {
      this.flushing = null;
    });
    await this.flushing;
  }

  private count(caller: KeyCaller | SessionCaller, model: Model, id: string, counts: Counts): void {
    const owner = this.deps.ownerOf(model);
    if (owner === null || owner === caller.accountId) return;
    add(this.unwritten, id, this.hour(), counts);
    this.flushSoon();
  }

  private flushSoon(): void {
    this.timer ??= setTimeout(() => void this.flush(), HEALTH_FLUSH_MS).unref();
  }

  private async writeDown(): Promise<void> {
    if (this.timer) clearTimeout(this.timer);
    this.timer = null;
    const counted = this.unwritten;
    if (counted.size === 0) return;
    this.unwritten = new Map();
    try {
      await this.insert(counted);
    } catch (error) {
      this.keep(counted);
      this.deps.log.warn({ err: error }, "the health of registered models could not be written down yet");
      return;
    }
    await this.sweep().catch((error: unknown) =>
      this.deps.log.warn({ err: error }, "old health of registered models could not be deleted"),
    );
    for (const modelId of counted.keys()) {
      const accountId = this.deps.ownerOf({ communityModelId: modelId });
      if (accountId !== null) this.deps.events.publish("model-health-changed", { accountId, modelId });
    }
  }

  /** Sorted, so that two processes that write at once cannot deadlock. */
  private async insert(counted: ReadonlyMap<string, CountsByHour>): Promise<void> {
    const rows = [...counted].flatMap(([id, hours]) => [...hours].map(([hour, counts]) => ({ id, hour: new Date(hour), ...counts })));
    rows.sort((one, other) => (one.id === other.id ? one.hour.getTime() - other.hour.getTime() : one.id < other.id ? -1 : 1));
    await this.deps.database.prisma.$executeRaw`
      INSERT INTO community_model_health AS health (model_id, hour, succeeded, failed)
      SELECT * FROM unnest(${rows.map(({ id }) => id)}::uuid[], ${rows.map(({ hour }) => hour)}::timestamptz[],
        ${rows.map(({ succeeded }) => succeeded)}::integer[], ${rows.map(({ failed }) => failed)}::integer[])
      ON CONFLICT (model_id, hour) DO UPDATE SET succeeded = health.succeeded + excluded.succeeded, failed = health.failed + excluded.failed`;
  }

  /** Deletes old counts from the table and from memory, once an hour. */
  private async sweep(): Promise<void> {
    const hour = this.hour();
    if (this.sweptHour === hour) return;
    const start = this.windowStart();
    await this.deps.database.prisma.communityModelHealth.deleteMany({ where: { hour: { lt: new Date(start) } } });
    this.sweptHour = hour;
    for (const [id, hours] of this.written) {
      for (const each of hours.keys()) if (each < start) hours.delete(each);
      if (hours.size === 0) this.written.delete(id);
    }
  }

  /** Keeps counts for the next flush, except those that will be too old. */
  private keep(counted: ReadonlyMap<string, CountsByHour>): void {
    const start = this.windowStart();
    for (const [id, hours] of counted) {
      for (const [hour, counts] of hours) if (hour >= start) add(this.unwritten, id, hour, counts);
    }
    if (this.unwritten.size > 0) this.flushSoon();
  }

  private async read(ids: readonly string[]): Promise<void> {
    const rows = await this.deps.database.prisma.communityModelHealth.findMany({
      where: { modelId: { in: [...ids] }, hour: { gte: new Date(this.windowStart()) } },
    });
    for (const id of ids) this.written.delete(id);
    for (const row of rows) add(this.written, row.modelId, row.hour.getTime(), row, "replace");
  }

  private hour(): number {
    const now = this.deps.clock.now().getTime();
    return now - (now % HOUR_MS);
  }

  /** The current hour is part of the window. */
  private windowStart(): number {
    return this.hour() - (HEALTH_WINDOW_HOURS - 1) * HOUR_MS;
  }
}

function add(counts: Map<string, CountsByHour>, id: string, hour: number, { succeeded, failed }: Counts, mode?: "replace"): void {
  const hours = counts.get(id) ?? new Map<number, Counts>();
  counts.set(id, hours);
  const before = mode === "replace" ? undefined : hours.get(hour);
  hours.set(hour, { succeeded: (before?.succeeded ?? 0) + succeeded, failed: (before?.failed ?? 0) + failed });
}

function toHealth(hours: CountsByHour, windowStart: number): ModelHealth {
  let [succeeded, requests] = [0, 0];
  for (const [hour, counts] of hours) {
    if (hour < windowStart) continue;
    succeeded += counts.succeeded;
    requests += counts.succeeded + counts.failed;
  }
  if (requests === 0) return UNKNOWN_HEALTH;
  const isReliable = succeeded * 100 > requests * HEALTH_SUCCESS_PERCENT_MIN;
  const status = requests < HEALTH_REQUESTS_MIN ? "unknown" : isReliable ? "healthy" : "unreliable";
  return { status, successRate: succeeded / requests, requests };
}
