/**
 * The registered models of all accounts, in memory: the catalog uses it for each generation, without waiting for the database.
 *
 * 1. `load` reads all of them before anything is served.
 * 2. Each change is announced by its row's id; the row is reread, one batch after another, so that the last read stands.
 * 3. A scheduled change needs no event: a model's terms are computed for the time of the request, and cached as long as they hold.
 * 4. While events may be missed, and at intervals where other processes write too, rows written since the last read are reread.
 */

import type { Logger } from "pino";
import type { Caller } from "../../context.js";
import { serviceUnavailable } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { Repeated } from "../../lib/repeated.js";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { CommunityCatalog, ModelHealth } from "../catalog/community.js";
import type { Model, Upstream } from "../catalog/model.js";
import { BILLED_KINDS, type RateCard } from "../catalog/pricing.js";
import type { SecretBox } from "../secrets/secret-box.js";
import { DIRECTORY_LOOK_MS, DIRECTORY_OVERLAP_MS, DIRECTORY_PAGE } from "./limits.js";
import { type RegisteredModel, rowIdOf, toListedModel, toUpstream, upstreamIdOf } from "./listed-model.js";
import { type CommunityModelRow, communityModelId } from "./record.js";
import { RereadQueue } from "./reread-queue.js";

export interface HealthRecords {
  healthOf(communityModelId: string): ModelHealth;
}

export interface DirectoryDependencies {
  readonly database: Database;
  readonly events: Events;
  readonly box: SecretBox;
  readonly health: HealthRecords;
  readonly clock: Clock;
  readonly log: Logger;
}

const WITH_OWNER = { include: { account: { select: { handle: true, suspendedAt: true } } } } as const;
type LoadedRow = CommunityModelRow & { readonly account: { readonly handle: string; readonly suspendedAt: Date | null } };

export class CommunityDirectory implements CommunityCatalog {
  private readonly byRowId = new Map<string, Registration>();
  private readonly byModelId = new Map<string, Registration>();
  /** By callable id; null: must be sorted again. */
  private sorted: readonly Registration[] | null = null;
  private readonly queue: RereadQueue;
  private readonly looks: Repeated;
  /** All rows written up to this time have been read. */
  private readUpTo = 0;
  private readonly stopDoubts: () => void;

  constructor(private readonly deps: DirectoryDependencies) {
    const { events, log } = deps;
    this.queue = new RereadQueue(
      (ids) => this.readRows(ids),
      (error) => log.warn({ err: error }, "changes of registered models could not be read yet"),
    );
    this.looks = new Repeated(() => this.readChanges(), log, "the registered models could not be looked up");
    events.listen("community-model-changed", ({ modelId }) => this.queue.add([modelId]));
    events.listen("account-renamed", ({ accountId }) => this.queue.add(this.rowIdsOf(accountId)));
    events.listen("account-suspension-changed", ({ accountId }) => this.queue.add(this.rowIdsOf(accountId)));
    this.stopDoubts = events.onDoubt(() => void this.look());
  }

  /** Call before anything is generated. Rejects when the database does not answer. */
  async load(): Promise<void> {
    this.readUpTo = Date.now();
    await this.queue.between(() => this.readAll());
    if (!this.deps.database.isExclusive) this.looks.every(DIRECTORY_LOOK_MS);
  }

  async close(): Promise<void> {
    this.stopDoubts();
    await Promise.all([this.looks.close(), this.queue.close()]);
  }

  /** Resolves when all announced rows have been reread. Never rejects: reads are retried while the database is unavailable. */
  upToDate(): Promise<void> {
    return this.queue.upToDate();
  }

  find(caller: Caller, id: string): Model | null {
    const registration = this.byModelId.get(id);
    if (!registration || registration.isSuspended) return null;
    const model = registration.at(this.deps.clock.now());
    return model.isPrivate && !isOwner(caller, registration) ? null : model;
  }

  list(caller: Caller, { reliableOnly }: { readonly reliableOnly: boolean }): readonly Model[] {
    this.sorted ??= [...this.byModelId].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, registration]) => registration);
    const now = this.deps.clock.now();
    return this.sorted.flatMap((registration) => {
      if (registration.isSuspended) return [];
      const model = registration.at(now);
      if (isOwner(caller, registration)) return [model];
      if (model.isPrivate || (reliableOnly && this.healthOf(model).status === "unreliable")) return [];
      return [model];
    });
  }

  /** Valid fallbacks: public or the owner's own, and no dearer. They cost the caller the price of `model`. */
  fallbacksOf(model: Model): readonly Model[] {
    const ownerId = this.ownerOf(model);
    const now = this.deps.clock.now();
    return model.fallbacks.flatMap((id) => {
      const registration = this.byModelId.get(id);
      if (!registration || registration.isSuspended) return [];
      const fallback = registration.at(now);
      const isEligible =
        !fallback.isAgent &&
        fallback.id !== model.id &&
        fallback.modality === model.modality &&
        (!fallback.isPrivate || registration.row.accountId === ownerId) &&
        isNoDearer(fallback.rates, model.rates);
      return isEligible ? [fallback] : [];
    });
  }

  /** The current upstream, also for a generation that began before it changed. */
  upstream(id: string): Upstream | null {
    const rowId = rowIdOf(id);
    const registration = rowId === null ? undefined : this.byRowId.get(rowId);
    return registration ? toUpstream(registration, (sealed) => this.openToken(registration.row.id, sealed)) : null;
  }

  healthOf({ communityModelId }: Pick<Model, "communityModelId">): ModelHealth {
    return this.deps.health.healthOf(communityModelId ?? "");
  }

  ownerOf({ communityModelId }: Pick<Model, "communityModelId">): string | null {
    return this.byRowId.get(communityModelId ?? "")?.row.accountId ?? null;
  }

  /** By the row's id, for any caller; null when there is none. */
  registered(communityModelId: string): RegisteredModel | null {
    return this.byRowId.get(communityModelId) ?? null;
  }

  /** Rereads rows written since the last read, and drops deleted ones. Never rejects. */
  look(): Promise<void> {
    return this.looks.now();
  }

  private async readChanges(): Promise<void> {
    const { communityModel } = this.deps.database.prisma;
    const begunAt = Date.now();
    // Clocks of processes differ, and a transaction commits after its rows were dated.
    const gt = new Date(this.readUpTo - DIRECTORY_OVERLAP_MS);
    const where = { OR: [{ updatedAt: { gt } }, { account: { updatedAt: { gt } } }] };
    const changed = await communityModel.findMany({ where, select: { id: true } });
    this.queue.add(changed.map(({ id }) => id));
    await this.queue.upToDate();
    if ((await communityModel.count()) !== this.byRowId.size) {
      const ids = new Set((await communityModel.findMany({ select: { id: true } })).map(({ id }) => id));
      this.queue.add([...ids, ...this.byRowId.keys()].filter((id) => !ids.has(id) || !this.byRowId.has(id)));
      await this.queue.upToDate();
    }
    this.readUpTo = begunAt;
  }

  private async readAll(): Promise<void> {
    const { communityModel } = this.deps.database.prisma;
    let after: string | undefined;
    do {
      const rows: LoadedRow[] = await communityModel.findMany({
        ...(after !== undefined && { where: { id: { gt: after } } }),
        orderBy: { id: "asc" },
        take: DIRECTORY_PAGE,
        ...WITH_OWNER,
      });
      for (const row of rows) this.put(row);
      after = rows.length < DIRECTORY_PAGE ? undefined : rows.at(-1)?.id;
    } while (after !== undefined);
  }

  private async readRows(ids: readonly string[]): Promise<void> {
    const rows = await this.deps.database.prisma.communityModel.findMany({ where: { id: { in: [...ids] } }, ...WITH_OWNER });
    const found = new Set(rows.map(({ id }) => id));
    for (const id of ids) if (!found.has(id)) this.remove(id);
    for (const row of rows) this.put(row);
  }

  private put({ account: { handle, suspendedAt }, ...row }: LoadedRow): void {
    this.remove(row.id);
    const registration = new Registration(row, handle, suspendedAt !== null);
    this.byRowId.set(row.id, registration);
    this.byModelId.set(registration.modelId, registration);
  }

  private remove(rowId: string): void {
    const registration = this.byRowId.get(rowId);
    this.sorted = null;
    if (!registration) return;
    this.byRowId.delete(rowId);
    // Its name may belong to another row by now.
    if (this.byModelId.get(registration.modelId) === registration) this.byModelId.delete(registration.modelId);
  }

  private rowIdsOf(accountId: string): readonly string[] {
    return [...this.byRowId.values()].filter(({ row }) => row.accountId === accountId).map(({ row }) => row.id);
  }

  private openToken(rowId: string, sealed: Uint8Array): string {
    try {
      return this.deps.box.open({ table: "community_model", rowId, column: "bearer_token" }, sealed);
    } catch (cause) {
      this.deps.log.error({ err: cause, communityModelId: rowId }, "the credential of a registered model cannot be opened");
      throw serviceUnavailable("The credential of this model cannot be read: its owner has to state it again.", { cause });
    }
  }
}

class Registration implements RegisteredModel {
  readonly modelId: string;
  readonly upstreamId: string;
  private made: { readonly model: Model; readonly isDue: boolean } | null = null;

  constructor(
    readonly row: CommunityModelRow,
    readonly handle: string,
    /** Its owner's account is suspended, so it is not offered. */
    readonly isSuspended: boolean,
  ) {
    this.modelId = communityModelId(handle, row.name);
    this.upstreamId = upstreamIdOf(row);
  }

  /** Computed once before and once after the scheduled change takes effect. */
  at(now: Date): Model {
    const { pendingEffectiveAt } = this.row;
    const isDue = pendingEffectiveAt !== null && pendingEffectiveAt <= now;
    if (this.made?.isDue !== isDue) this.made = { model: toListedModel(this, now), isDue };
    return this.made.model;
  }
}

function isOwner(caller: Caller, { row }: Registration): boolean {
  return caller.kind !== "anonymous" && caller.accountId === row.accountId;
}

function isNoDearer(rates: RateCard, than: RateCard): boolean {
  const all = [rates, ...(rates.longContext ?? []).map((tier) => tier.rates)];
  return all.every((each) => BILLED_KINDS.every((kind) => each[kind] <= than[kind]));
}
