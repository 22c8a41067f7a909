/**
 * Applies the stored changes of routes to the catalog of this process.
 *
 * 1. `load` reads all of them before anything is served.
 * 2. Each change is announced by its model; its row is reread, one batch after another, so that the last read stands.
 * 3. While events may be missed, and at intervals where other processes write too, rows that differ are reread.
 */
import type { Logger } from "pino";
import { Repeated } from "../../lib/repeated.js";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { Catalog } from "../catalog/catalog.js";
import type { Model } from "../catalog/model.js";
import { priceAboveOf } from "../catalog/route-entry.js";
import type { ModelOverrides } from "../catalog/route-overrides.js";
import { RereadQueue } from "../community-models/reread-queue.js";
import { fromStored } from "./changes.js";

/** Unspecified: interval at which a process that shares its database looks for missed changes. */
const LOOK_MS = 60_000;

/** For the log. */
export const ROUTE_ABOVE_PRICE = "a changed route costs more than its model: callers pay less";

interface StoredChanges {
  readonly updatedAt: Date;
  /** Null: in a form that this version does not know. */
  readonly overrides: ModelOverrides | null;
}

export interface DirectoryDependencies {
  readonly database: Database;
  readonly events: Events;
  readonly catalog: Catalog;
  readonly log: Logger;
}

export class RouteDirectory {
  private readonly rows = new Map<string, StoredChanges>();
  private readonly queue: RereadQueue;
  private readonly looks: Repeated;
  private readonly stopDoubts: () => void;
  private applied: (models: readonly Model[]) => void = () => undefined;

  constructor(private readonly deps: DirectoryDependencies) {
    const { events, log } = deps;
    this.queue = new RereadQueue(
      (ids) => this.read(ids),
      (error) => log.warn({ err: error }, "changes of routes could not be read yet"),
    );
    this.looks = new Repeated(() => this.readChanges(), log, "the changes of routes could not be looked up");
    events.listen("routes-changed", ({ modelId }) => this.queue.add([modelId]));
    this.stopDoubts = events.onDoubt(() => void this.looks.now());
  }

  /** Call before anything is generated. Rejects when the database does not answer. */
  async load(): Promise<void> {
    const rows = await this.deps.database.prisma.routeOverrides.findMany({ select: { modelId: true } });
    if (rows.length > 0) await this.queue.between(() => this.read(rows.map(({ modelId }) => modelId)));
    this.report();
    if (!this.deps.database.isExclusive) this.looks.every(LOOK_MS);
  }

  /** Sets the listener for models whose routes were changed. */
  onApplied(listener: (models: readonly Model[]) => void): void {
    this.applied = listener;
  }

  /** The stored changes by model, those without effect too. */
  get stored(): ReadonlyMap<string, StoredChanges> {
    return this.rows;
  }

  /** Resolves when all announced changes are applied, or could not be read for now. */
  async upToDate(): Promise<void> {
    await this.queue.upToDate();
  }

  async close(): Promise<void> {
    this.stopDoubts();
    await Promise.all([this.looks.close(), this.queue.close()]);
  }

  private async readChanges(): Promise<void> {
    const rows = await this.deps.database.prisma.routeOverrides.findMany({ select: { modelId: true, updatedAt: true } });
    const there = new Set(rows.map(({ modelId }) => modelId));
    const changed = rows.filter(({ modelId, updatedAt }) => this.rows.get(modelId)?.updatedAt.getTime() !== updatedAt.getTime());
    this.queue.add([...changed.map(({ modelId }) => modelId), ...[...this.rows.keys()].filter((id) => !there.has(id))]);
    await this.queue.upToDate();
  }

  private async read(ids: readonly string[]): Promise<void> {
    const rows = await this.deps.database.prisma.routeOverrides.findMany({ where: { modelId: { in: [...ids] } } });
    for (const id of ids) this.rows.delete(id);
    for (const { modelId, changes, updatedAt } of rows) this.rows.set(modelId, { updatedAt, overrides: fromStored(changes) });
    const known = [...this.rows].flatMap(([id, { overrides }]) => (overrides === null ? [] : [[id, overrides] as const]));
    const { catalog } = this.deps;
    catalog.override(new Map(known));
    this.applied(ids.map((id) => catalog.find(id)).filter((model) => model !== null));
  }

  /** Logs changes that have no effect, and routes that cost more than their model. */
  private report(): void {
    const { catalog, log } = this.deps;
    const configured = new Map(catalog.routed.map((model) => [model.id, model]));
    for (const [model, { overrides }] of this.rows) {
      const routed = configured.get(model);
      const reasons =
        overrides === null ? ["unknown_form"] : routed === undefined ? ["no_model"] : routed.ignored.map(({ reason }) => reason);
      if (reasons.length > 0)
        log.warn({ event: "route-change-ignored", model, reasons: [...new Set(reasons)] }, "an operator's change of routes has no effect");
      for (const { upstream: route, prices } of overrides?.routes ?? []) {
        const price = routed ? priceAboveOf(prices, routed.stated.prices) : null;
        if (price !== null) log.warn({ event: "route-above-price", model, route, price }, ROUTE_ABOVE_PRICE);
      }
    }
  }
}
