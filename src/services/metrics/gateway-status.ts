/**
 * The state of the gateway for operators: its processes, their recent settlements, calls and errors, and open holds. Each process reports
 * from memory on request, each worker for itself; shared data is read from the database.
 */
import type { RequestContext } from "../../context.js";
import type { Clock } from "../../lib/clock.js";
import { VERSION } from "../../lib/version.js";
import { HEARTBEAT_DEAD_MS } from "../../limits.js";
import type { LearnedField } from "../../providers/openai/learned-fields.js";
import type { Database } from "../../store/database.js";
import { requireOperator } from "../access/permissions.js";
import type { Catalog } from "../catalog/catalog.js";
import type { Tiers } from "../credits/tiers.js";
import type { Metrics } from "./metrics.js";
import type { WatchedPlatform, WatchedWork } from "./platform-gauges.js";
import {
  addUpModelCalls,
  addUpSettlements,
  type ModelCalls,
  RECENT_ERRORS_MAX,
  type RecentError,
  type SettlementCounts,
} from "./recent-activity.js";
import { addUpTraffic, type RecentTrafficCounts } from "./recent-traffic.js";

/** Unspecified: processes, models and errors in one answer. */
export const PROCESSES_SHOWN_MAX = 200;
export const MODELS_SHOWN_MAX = 100;
export const REFUSED_FIELDS_SHOWN_MAX = 200;
export const ERRORS_SHOWN_MAX = 2 * RECENT_ERRORS_MAX;

/** The processes of a gateway that has several: see WorkerLink. */
interface Workers {
  readonly number: number;
  answer(question: string, give: (body: unknown) => Promise<unknown>): void;
  askAll(question: string, body: unknown, timeoutMs: number): Promise<readonly unknown[]>;
}

const QUESTION = "gateway status";
/** A process whose event loop is blocked longer is shown without a report. */
const ANSWER_MS_MAX = 2_000;

/** Settlements on disk and in memory that the database has not accepted. */
export interface SpoolStatus {
  /** Settlements and releases that wait for the database. */
  readonly waiting: number;
  readonly refused: number;
  readonly waitingBytes: number;
  readonly refusedBytes: number;
}

export interface ProcessStatus {
  readonly processId: string;
  /** From 1; null: the only process. */
  readonly worker: number | null;
  readonly startedAt: Date;
  readonly version: string;
  readonly residentBytes: number;
  readonly generations: number;
  readonly streams: number;
  readonly jobs: number;
  readonly isDatabaseAvailable: boolean;
}

interface ProcessReport {
  readonly process: ProcessStatus;
  readonly spool: SpoolStatus;
  readonly settlements: SettlementCounts;
  readonly errors: readonly RecentError[];
  readonly models: readonly ModelCalls[];
  readonly traffic: RecentTrafficCounts;
  readonly refusedFields: readonly RefusedField[];
}

export interface GatewayProcess {
  readonly processId: string;
  readonly startedAt: Date;
  /** Null: the database is unavailable. */
  readonly heardAt: Date | null;
  /** Null: on another machine, or too busy to answer. */
  readonly status: ProcessStatus | null;
}

/** Held credits. */
export interface SetAside {
  readonly count: number;
  readonly nanocredits: bigint;
}

export interface ShownModelCalls extends ModelCalls {
  /** Null: a community model, or removed. */
  readonly upstreamId: string | null;
}

export type RefusedField = LearnedField;

export interface GatewayShown {
  readonly asOf: Date;
  readonly settlements: SettlementCounts;
  readonly traffic: RecentTrafficCounts;
  readonly spool: SpoolStatus;
  /** Newest first. */
  readonly errors: readonly RecentError[];
  /** Most failures first. */
  readonly models: readonly ShownModelCalls[];
  /** Newest first. */
  readonly refusedFields: readonly RefusedField[];
  readonly reported: readonly ProcessStatus[];
  readonly tiers: readonly string[];
}

export interface GatewayStatusDependencies {
  readonly platform: WatchedPlatform & { readonly processId: string; readonly database: Database };
  readonly work: Pick<WatchedWork, "running" | "jobRunner">;
  readonly metrics: Pick<Metrics, "settlements" | "errors" | "modelCalls" | "traffic">;
  readonly catalog: Pick<Catalog, "find">;
  readonly learnedFields: { read(): readonly RefusedField[] };
  readonly tiers: Pick<Tiers, "names">;
  readonly clock: Clock;
  /** Null for a gateway of one process. */
  readonly workers: Workers | null;
}

export class GatewayStatus {
  private readonly startedAt: Date;

  constructor(private readonly deps: GatewayStatusDependencies) {
    this.startedAt = deps.clock.now();
    deps.workers?.answer(QUESTION, () => this.report());
  }

  async show(ctx: RequestContext): Promise<GatewayShown> {
    requireOperator(ctx);
    const { workers, clock, catalog } = this.deps;
    const answers = workers ? ((await workers.askAll(QUESTION, null, ANSWER_MS_MAX)) as ProcessReport[]) : [];
    const reports = answers.length === 0 ? [await this.report()] : answers;
    const models = addUpModelCalls(reports.map((report) => report.models))
      .sort((one, other) => other.failed - one.failed || other.answered - one.answered)
      .slice(0, MODELS_SHOWN_MAX)
      .map((calls) => ({ ...calls, upstreamId: operatorsUpstream(catalog, calls.modelId) }));
    return {
      asOf: clock.now(),
      settlements: addUpSettlements(reports.map((report) => report.settlements)),
      traffic: addUpTraffic(reports.map((report) => report.traffic)),
      spool: addUpSpools(reports.map((report) => report.spool)),
      errors: reports
        .flatMap((report) => report.errors)
        .sort((one, other) => Number(other.at) - Number(one.at))
        .slice(0, ERRORS_SHOWN_MAX),
      models,
      refusedFields: addUpRefusedFields(reports.map((report) => report.refusedFields)).slice(0, REFUSED_FIELDS_SHOWN_MAX),
      reported: reports.map((report) => report.process),
      tiers: this.deps.tiers.names,
    };
  }

  /** Processes of all gateways on this database, oldest first. `reported`: reports of this gateway's processes. */
  async processes(ctx: RequestContext, reported: readonly ProcessStatus[]): Promise<GatewayProcess[]> {
    requireOperator(ctx);
    const { platform } = this.deps;
    const rows = platform.settler.isUnavailable ? [] : await this.liveProcesses();
    const heard = new Map(rows.map((row) => [row.id, row]));
    const silent = rows.filter(({ id }) => !reported.some(({ processId }) => processId === id));
    return [
      ...reported.map((status) => ({ ...status, heardAt: heard.get(status.processId)?.heartbeat_at ?? null, status })),
      ...silent.map(({ id, started_at, heartbeat_at }) => ({ processId: id, startedAt: started_at, heardAt: heartbeat_at, status: null })),
    ].sort((one, other) => Number(one.startedAt) - Number(other.startedAt));
  }

  /** Holds of all processes, except those granted by leases, which count as leases. */
  async holds(ctx: RequestContext): Promise<SetAside> {
    requireOperator(ctx);
    return this.setAside(
      await this.deps.platform.database.prisma.$queryRaw<SumRow[]>`
        SELECT count(*)::integer AS count, coalesce(sum(tier_nanocredits + crypto_nanocredits + pack_nanocredits), 0)::text AS nanocredits
        FROM hold`,
    );
  }

  /** Leases of all processes: the remainder, and payments not yet folded into the account. */
  async leases(ctx: RequestContext): Promise<SetAside> {
    requireOperator(ctx);
    return this.setAside(
      await this.deps.platform.database.prisma.$queryRaw<SumRow[]>`
        SELECT count(*)::integer AS count, coalesce(sum(tier_nanocredits + crypto_nanocredits + pack_nanocredits
          + tier_paid_nanocredits + crypto_paid_nanocredits + pack_paid_nanocredits), 0)::text AS nanocredits
        FROM credit_lease`,
    );
  }

  private setAside([row]: readonly SumRow[]): SetAside {
    return { count: row?.count ?? 0, nanocredits: BigInt(row?.nanocredits ?? 0) };
  }

  private liveProcesses(): Promise<ProcessRow[]> {
    return this.deps.platform.database.prisma.$queryRaw<ProcessRow[]>`
      SELECT id, started_at, heartbeat_at FROM gateway_process
      WHERE heartbeat_at > now() - make_interval(secs => ${HEARTBEAT_DEAD_MS / 1000})
      ORDER BY started_at, id LIMIT ${PROCESSES_SHOWN_MAX}`;
  }

  private async report(): Promise<ProcessReport> {
    const { platform, work, metrics, workers, learnedFields } = this.deps;
    const { settler, spool, processId } = platform;
    const { settlements: waitingBytes, refused: refusedBytes } = await spool.sizes();
    return {
      process: {
        ...{ processId, worker: workers?.number ?? null, startedAt: this.startedAt, version: VERSION },
        residentBytes: process.memoryUsage.rss(),
        generations: work.running.count,
        streams: work.running.streamCount,
        jobs: work.jobRunner.ids.length,
        isDatabaseAvailable: !settler.isUnavailable,
      },
      spool: { waiting: settler.deferredOperations, refused: settler.refused.count, waitingBytes, refusedBytes },
      settlements: metrics.settlements.read(),
      errors: metrics.errors.read(),
      models: metrics.modelCalls.read(),
      traffic: metrics.traffic.read(),
      refusedFields: learnedFields.read().slice(0, REFUSED_FIELDS_SHOWN_MAX),
    };
  }
}

interface SumRow {
  readonly count: number;
  readonly nanocredits: string;
}

interface ProcessRow {
  readonly id: string;
  readonly started_at: Date;
  readonly heartbeat_at: Date;
}

function addUpSpools(each: readonly SpoolStatus[]): SpoolStatus {
  const sumOf = (field: keyof SpoolStatus) => each.reduce((sum, one) => sum + one[field], 0);
  return { waiting: sumOf("waiting"), refused: sumOf("refused"), waitingBytes: sumOf("waitingBytes"), refusedBytes: sumOf("refusedBytes") };
}

/** Each once, as the process that learned it last knows it: every process learns for itself. */
function addUpRefusedFields(each: readonly (readonly RefusedField[])[]): RefusedField[] {
  const all = each.flat().sort((one, other) => Number(other.learnedAt) - Number(one.learnedAt));
  const known = new Set<string>();
  return all.filter(({ upstreamId, upstreamModel, field }) => {
    const key = JSON.stringify([upstreamId, upstreamModel, field]);
    if (known.has(key)) return false;
    known.add(key);
    return true;
  });
}

function operatorsUpstream(catalog: Pick<Catalog, "find">, modelId: string): string | null {
  const model = catalog.find(modelId);
  return model && !model.isCommunity ? model.routes[0].upstreamId : null;
}
