/** Runs: created, listed, ended, and given more credits by their payer (docs/spec/runs.md). */
import * as z from "zod";
import { isManagementKey, type KeyCaller, type RequestContext, type SessionCaller } from "../../context.js";
import { AppError, conflict, notFound, permissionDenied, wrongField } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { isUuid } from "../../lib/ids.js";
import { inUnit } from "../../lib/issue-words.js";
import { formatNanocredits } from "../../lib/money.js";
import { COUNT_TAKE, newestFirst, type Page, type PageRequest, toPage } from "../../lib/pagination.js";
import { API_KEY_NAME_CHARS_MAX, CREDITS_MAX } from "../../limits.js";
import type { Database, DatabaseClient } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { Prisma } from "../../store/generated/prisma/client.js";
import type { RunModel } from "../../store/generated/prisma/models.js";
import { isKeyManager, requireAccount } from "../access/permissions.js";
import type { KeyInTree } from "../api-keys/api-key-limits.js";
import { lockAccount, revokeTree, setBudget, worthOf } from "../api-keys/api-key-tree.js";
import { findMaker, type KeyMaker } from "../api-keys/key-maker.js";
import { positiveCredits } from "../credits/credits-amount.js";
import type { Leases } from "../credits/leases.js";
import { shownText, storableText } from "../requests/input.js";
import { IDEMPOTENCY_HOURS, IDEMPOTENCY_KEY_CHARS_MAX } from "../requests/limits.js";
import { RUN_ASKED_MS_MAX, RUN_TTL_SECONDS_DEFAULT, RUN_TTL_SECONDS_MAX, RUNS_BELOW_MAX, RUNS_OPEN_MAX } from "./limits.js";

export const runFields = {
  /** Nanocredits: the most that all calls of the run, and of the runs below it, may cost. */
  maxCost: positiveCredits,
  ttl: inUnit(z.int().min(1).max(RUN_TTL_SECONDS_MAX), "seconds"),
  label: shownText
    .trim()
    .min(1)
    .max(API_KEY_NAME_CHARS_MAX)
    .meta({ allOf: [{ pattern: "\\S" }] }),
  onLimit: z.enum(["refuse", "ask"]),
};

export const createRunInput = z.strictObject({
  maxCost: runFields.maxCost,
  ttl: runFields.ttl.nullish(),
  label: runFields.label.nullish(),
  onLimit: runFields.onLimit.nullish(),
});
export type CreateRunInput = z.output<typeof createRunInput>;

export const approveRunInput = z.strictObject({
  amount: positiveCredits,
  /** A repeat with the same one within a day adds nothing. */
  idempotencyKey: storableText.min(1).max(IDEMPOTENCY_KEY_CHARS_MAX).nullish(),
});

/** An approval of more credits, and the names of its fields on the face. */
export interface RunApprovalRequest {
  /** Nanocredits, more than 0. */
  readonly amount: bigint;
  readonly idempotencyKey: string | null;
  readonly params: { readonly amount: string; readonly idempotencyKey: string };
}

/** Names of the fields on the face, for errors. */
export interface RunParams {
  readonly maxCost: string;
  readonly ttl: string;
}

const IDENTITY = { id: true, createdAt: true } as const;
export type SelectedRun = Pick<RunModel, keyof typeof IDENTITY>;

/** The columns of a run, as both faces show it. */
export const RUN_ROW = {
  id: true,
  label: true,
  onLimit: true,
  askedNanocredits: true,
  askedAt: true,
  createdAt: true,
  key: {
    select: {
      parentId: true,
      expiresAt: true,
      revokedAt: true,
      budgetNanocredits: true,
      spentNanocredits: true,
      heldNanocredits: true,
    },
  },
} as const satisfies Prisma.RunSelect;
export type RunRow = Prisma.RunGetPayload<{ select: typeof RUN_ROW }>;

export type RunStatus = "open" | "ended" | "expired";

export interface CreatedRun {
  readonly id: string;
  /** Shown once. */
  readonly key: string;
  readonly expiresAt: Date;
}

export class Runs {
  constructor(
    private readonly database: Database,
    private readonly maker: KeyMaker,
    private readonly events: Events,
    private readonly clock: Clock,
    private readonly leases: Pick<Leases, "fold">,
  ) {}

  /**
   * Rejects with BAD_REQUEST for a limit that the calling key cannot give, naming the field, with FORBIDDEN for a publishable key, and with
   * CONFLICT when the account has too many runs.
   */
  async create(ctx: RequestContext, { maxCost, ttl, label, onLimit }: CreateRunInput, params: RunParams): Promise<CreatedRun> {
    const caller = requirePayer(ctx);
    if (isManagementKey(caller))
      throw permissionDenied("A management key cannot generate, so it has no runs. Create a key with it instead.");
    const { accountId } = caller;
    const now = this.clock.now();
    const created = await this.database.prisma.$transaction(async (transaction) => {
      await lockAccount(transaction, accountId);
      await assertRoom(transaction, accountId, now);
      const above = caller.kind === "key" ? await findMaker(transaction, caller.apiKeyId) : null;
      const expiresIn = above === null ? (ttl ?? RUN_TTL_SECONDS_DEFAULT) : ttlWithin(above, ttl ?? null, now, params.ttl);
      if (above) assertAfforded(above, maxCost, params.maxCost);
      const made = await this.maker.insert(
        {
          ...{ accountId, name: label ?? "Run", type: "secret", permissions: [], allowedModels: null, redirectUrls: [], origin: "run" },
          ...{ creditBudget: maxCost, expiresIn, parent: above?.key },
        },
        transaction,
      );
      const { id, createdAt } = made.apiKey;
      await transaction.run.create({ data: { id, accountId, label: label ?? null, onLimit: onLimit ?? "refuse", createdAt } });
      return made;
    });
    const { id, expiresAt } = created.apiKey;
    this.events.publish("api-key-changed", { accountId, apiKeyId: id, change: "created" });
    this.events.publish("run-changed", { accountId, runId: id, change: "created" });
    return { id, key: created.key, expiresAt: expiresAt ?? now };
  }

  /** Newest first: all of the account for a session or a key that manages keys, else those of the calling key. */
  async list<Select extends Prisma.RunSelect>(
    ctx: RequestContext,
    page: PageRequest,
    select: Select,
  ): Promise<Page<SelectedRun & Prisma.RunGetPayload<{ select: Select }>>>;
  async list(ctx: RequestContext, page: PageRequest, select: Prisma.RunSelect): Promise<Page<SelectedRun>> {
    const where = readableBy(ctx);
    await this.foldFor(ctx, select);
    const { where: older, ...query } = newestFirst(page);
    const rows = await this.rows.findMany({ where: { AND: [where, older ?? {}] }, select: { ...select, ...IDENTITY }, ...query });
    return toPage(rows, page, () => this.rows.count({ where, take: COUNT_TAKE }));
  }

  /** Leaves out runs that the caller cannot see. */
  async getMany(ctx: RequestContext, ids: readonly string[], select: Prisma.RunSelect): Promise<SelectedRun[]> {
    const where = readableBy(ctx);
    await this.foldFor(ctx, select);
    return this.rows.findMany({ where: { AND: [where, { id: { in: ids.filter(isUuid) } }] }, select: { ...select, ...IDENTITY } });
  }

  /** Rejects with NOT_FOUND. */
  async get<Select extends Prisma.RunSelect>(
    ctx: RequestContext,
    id: string,
    select: Select,
  ): Promise<SelectedRun & Prisma.RunGetPayload<{ select: Select }>>;
  async get(ctx: RequestContext, id: string, select: Prisma.RunSelect): Promise<SelectedRun> {
    const [run] = await this.getMany(ctx, [id], select);
    if (!run) throw notFound("run");
    return run;
  }

  /** All runs below each run, the newest first, at most RUNS_BELOW_MAX in all. */
  async below(ctx: RequestContext, ids: readonly string[], select: Prisma.RunSelect): Promise<ReadonlyMap<string, readonly SelectedRun[]>> {
    const where = readableBy(ctx);
    await this.foldFor(ctx, select);
    const rows = await this.rows.findMany({
      where: { AND: [where, { key: { ancestorIds: { hasSome: ids.filter(isUuid) } } }] },
      select: { ...select, ...IDENTITY, key: { select: { ...keySelectOf(select), ancestorIds: true } } },
      orderBy: [{ createdAt: "desc" }, { id: "desc" }],
      take: RUNS_BELOW_MAX,
    });
    return new Map(ids.map((id) => [id, rows.filter(({ key }) => key.ancestorIds.includes(id))]));
  }

  /** Ends the run and the runs below it, on every process within a second. Ending an ended run changes nothing. */
  async end(ctx: RequestContext, id: string): Promise<void> {
    const { accountId } = requirePayer(ctx);
    await this.get(ctx, id, {});
    const ended = await this.database.prisma.$transaction(async (transaction) => {
      await lockAccount(transaction, accountId);
      const tree = await revokeTree(transaction, id, this.clock.now());
      await transaction.run.updateMany({ where: { id: { in: tree.map((key) => key.id) } }, data: { askedNanocredits: null } });
      return tree;
    });
    for (const { id: apiKeyId } of ended) this.events.publish("api-key-changed", { accountId, apiKeyId, change: "revoked" });
  }

  /**
   * Raises the limit of a run. False: an approval with this idempotency key did it before. Rejects with NOT_FOUND, with FORBIDDEN for a key
   * that is not above the run, and with CONFLICT for a run that has ended, or an idempotency key of another amount.
   */
  async approve(ctx: RequestContext, id: string, approval: RunApprovalRequest): Promise<boolean> {
    const caller = requirePayer(ctx);
    const { accountId } = caller;
    const { amount, params } = approval;
    const now = this.clock.now();
    const isNew = await this.database.prisma.$transaction(async (transaction) => {
      await lockAccount(transaction, accountId);
      const run = isUuid(id) ? await transaction.run.findFirst({ where: { AND: [readableBy(ctx), { id }] }, select: { key: true } }) : null;
      if (!run) throw notFound("run");
      const { ancestorIds, budgetNanocredits, ...terms } = run.key;
      if (caller.kind === "key" && !ancestorIds.includes(caller.apiKeyId)) {
        throw permissionDenied("Only the payer approves more: a signed-in person, or a key above the run. The key of a run cannot do it.");
      }
      // A repeat is answered as the first, also when the run has ended since.
      if (!(await recordApproval(transaction, caller, id, approval, now))) return false;
      if (statusOf(terms, now) !== "open") throw conflict("This run has ended: create another one.");
      const raised = (budgetNanocredits ?? 0n) + amount;
      if (raised > BigInt(CREDITS_MAX) * 1_000_000_000n)
        throw wrongField(params.amount, `would raise the limit above ${CREDITS_MAX} credits`);
      await setBudget(transaction, accountId, id, raised - run.key.spentNanocredits);
      await transaction.run.update({ where: { id }, data: { askedNanocredits: null } });
      return true;
    });
    if (isNew) this.events.publish("run-changed", { accountId, runId: id, change: "approved" });
    return isNew;
  }

  private async foldFor(ctx: RequestContext, select: Prisma.RunSelect): Promise<void> {
    if (select.key) await this.leases.fold([requireAccount(ctx).accountId]);
  }

  private get rows() {
    return this.database.prisma.run;
  }
}

export function statusOf({ revokedAt, expiresAt }: Pick<RunRow["key"], "revokedAt" | "expiresAt">, now: Date): RunStatus {
  if (revokedAt !== null) return "ended";
  return expiresAt !== null && expiresAt <= now ? "expired" : "open";
}

/** Nanocredits that the run may still spend, holds included; never below 0. */
export function leftOf({ budgetNanocredits, spentNanocredits }: Pick<RunRow["key"], "budgetNanocredits" | "spentNanocredits">): bigint {
  const left = (budgetNanocredits ?? 0n) - spentNanocredits;
  return left > 0n ? left : 0n;
}

/** Nanocredits that a waiting call lacks; null: none waits. */
export function askedOf({ askedNanocredits, askedAt }: Pick<RunRow, "askedNanocredits" | "askedAt">, now: Date): bigint | null {
  return askedAt !== null && askedAt.getTime() > now.getTime() - RUN_ASKED_MS_MAX ? askedNanocredits : null;
}

/** Requires a session or a secret key: a publishable key is in the hands of strangers. */
export function requirePayer(ctx: RequestContext): KeyCaller | SessionCaller {
  const caller = requireAccount(ctx);
  if (caller.kind === "key" && caller.apiKeyType !== "secret") throw permissionDenied("Runs require a secret key.");
  return caller;
}

/** Records an approval that has an idempotency key. False: it was recorded within the last day. */
async function recordApproval(
  { runApproval }: Pick<DatabaseClient, "runApproval">,
  caller: KeyCaller | SessionCaller,
  runId: string,
  { amount, idempotencyKey, params }: RunApprovalRequest,
  now: Date,
): Promise<boolean> {
  if (idempotencyKey === null) return true;
  await runApproval.deleteMany({ where: { runId, createdAt: { lte: new Date(now.getTime() - IDEMPOTENCY_HOURS * 3_600_000) } } });
  const scopeId = caller.kind === "key" ? caller.apiKeyId : caller.accountId;
  const approval = { runId, scopeId, idempotencyKey };
  const known = await runApproval.findUnique({ where: { runId_scopeId_idempotencyKey: approval } });
  if (known === null) {
    await runApproval.create({ data: { ...approval, amountNanocredits: amount, createdAt: now } });
    return true;
  }
  if (known.amountNanocredits === amount) return false;
  const message = `This idempotency key approved ${formatNanocredits(known.amountNanocredits)} credits. Send another key for another amount.`;
  throw new AppError("CONFLICT", message, { param: params.idempotencyKey });
}

function readableBy(ctx: RequestContext): Prisma.RunWhereInput {
  const caller = requirePayer(ctx);
  const { accountId } = caller;
  if (caller.kind === "session" || isKeyManager(ctx)) return { accountId };
  return { accountId, OR: [{ id: caller.apiKeyId }, { key: { ancestorIds: { has: caller.apiKeyId } } }] };
}

async function assertRoom({ apiKey }: Pick<DatabaseClient, "apiKey">, accountId: string, now: Date): Promise<void> {
  const open = await apiKey.count({ where: { accountId, origin: "run", revokedAt: null, expiresAt: { gt: now } }, take: RUNS_OPEN_MAX });
  if (open >= RUNS_OPEN_MAX) throw conflict(`An account has at most ${RUNS_OPEN_MAX} open runs: end some of them.`);
}

/** A run of a key that expires ends with it. */
function ttlWithin({ key, ancestors }: KeyInTree, ttl: number | null, now: Date, param: string): number {
  const end = worthOf(key, ancestors).expiresAt;
  const left = end === null ? Number.POSITIVE_INFINITY : Math.max(1, Math.floor((end.getTime() - now.getTime()) / 1000));
  if (ttl !== null && ttl > left) throw wrongField(param, `must be at most ${left} seconds: the calling key expires then`);
  return Math.min(ttl ?? RUN_TTL_SECONDS_DEFAULT, left);
}

function assertAfforded({ key, ancestors }: KeyInTree, maxCost: bigint, param: string): void {
  const left = worthOf(key, ancestors).creditBudget;
  if (left === null || maxCost <= left) return;
  throw wrongField(param, `must be at most ${formatNanocredits(left > 0n ? left : 0n)} credits, which the calling key has left`);
}

function keySelectOf({ key }: Prisma.RunSelect): Prisma.ApiKeySelect {
  return typeof key === "object" && key.select ? key.select : {};
}
