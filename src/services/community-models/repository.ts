/**
 * The repository of registered models: reads and writes rows for all services. Names are unique per account, models and agents of an
 * account are bounded together, and every change is published after its commit.
 */

import type { KeyCaller, SessionCaller } from "../../context.js";
import { type AppError, conflict, invalidInput, notFound, permissionDenied } from "../../errors.js";
import { isUuid } from "../../lib/ids.js";
import { COUNT_TAKE, newestFirst, type Page, type PageRequest, toPage } from "../../lib/pagination.js";
import { type Database, type DatabaseClient, lockName, refusingTaken } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { Prisma } from "../../store/generated/prisma/client.js";
import { COMMUNITY_MODELS_PER_ACCOUNT_MAX } from "./limits.js";
import type { CommunityModelRow } from "./record.js";

/** The parts of a transaction that writing models and agents needs. */
export type ModelTransaction = Pick<DatabaseClient, "communityModel" | "agent" | "$queryRaw">;
export type NewModelRow = Prisma.CommunityModelUncheckedCreateInput;
export type ChangedModelRow = Prisma.CommunityModelUncheckedUpdateInput;

/** Content of the event `community-model-changed`. */
export const MODEL_CHANGES = ["created", "updated", "deleted"] as const;
export type ModelChange = (typeof MODEL_CHANGES)[number];

const IDENTITY = { id: true, type: true, createdAt: true } as const;

export type SelectedModel = Pick<CommunityModelRow, keyof typeof IDENTITY>;

export class CommunityModelRepository {
  constructor(
    private readonly database: Database,
    private readonly events: Events,
  ) {}

  /** Rejects with FORBIDDEN unless the account may publish or is an operator (docs/spec/community-models.md#visibility). */
  async requirePublisher(caller: KeyCaller | SessionCaller): Promise<void> {
    if (caller.isOperator) return;
    const { isPublisher } = await this.database.prisma.account.findUniqueOrThrow({
      where: { id: caller.accountId },
      select: { isPublisher: true },
    });
    if (!isPublisher) throw permissionDenied("Publishing needs community publisher access, which an operator grants to an account.");
  }

  /** Rejects with NOT_FOUND when it does not exist or is another account's. */
  async findOwned(accountId: string, id: string): Promise<CommunityModelRow> {
    const row = isUuid(id) ? await this.database.prisma.communityModel.findUnique({ where: { id, accountId } }) : null;
    if (!row) throw notFound("model");
    return row;
  }

  /** Models of the account, newest first. `types`: only these. */
  async pageSelected(
    accountId: string,
    page: PageRequest,
    select: Prisma.CommunityModelSelect,
    types?: readonly CommunityModelRow["type"][],
  ): Promise<Page<SelectedModel>> {
    const { where: older, ...query } = newestFirst(page);
    const { communityModel } = this.database.prisma;
    const where = { accountId, ...(types && { type: { in: [...types] } }) };
    const rows = await communityModel.findMany({ where: { ...where, ...older }, select: { ...select, ...IDENTITY }, ...query });
    return toPage(rows, page, () => communityModel.count({ where, take: COUNT_TAKE }));
  }

  async manySelected(accountId: string, ids: readonly string[], select: Prisma.CommunityModelSelect): Promise<SelectedModel[]> {
    const where = { id: { in: ids.filter(isUuid) }, accountId };
    return this.database.prisma.communityModel.findMany({ where, select: { ...select, ...IDENTITY } });
  }

  /** Rejects with BAD_REQUEST for a name that the account uses, CONFLICT beyond the limit. `check` runs first, in the same transaction. */
  async insert(data: NewModelRow, check?: (transaction: ModelTransaction) => Promise<void>): Promise<CommunityModelRow> {
    const row = await this.write(data.name, (transaction) => insertRow(transaction, data, check));
    this.announce(row, "created");
    return row;
  }

  /** Applies `change` to the locked row. Rejects with NOT_FOUND when it does not exist or is another account's. */
  async update(
    accountId: string,
    id: string,
    change: (row: CommunityModelRow, transaction: ModelTransaction) => ChangedModelRow | Promise<ChangedModelRow>,
  ): Promise<CommunityModelRow> {
    if (!isUuid(id)) throw notFound("model");
    const row = await this.write(null, async (transaction) => {
      await transaction.$queryRaw`SELECT 1 FROM community_model WHERE id = ${id}::uuid FOR UPDATE`;
      const current = await transaction.communityModel.findUnique({ where: { id, accountId } });
      if (!current) throw notFound("model");
      return transaction.communityModel.update({ where: { id, accountId }, data: await change(current, transaction) });
    });
    this.announce(row, "updated");
    return row;
  }

  /** Deletes the model, with its agent if it is one. Rejects with NOT_FOUND when it does not exist or is another account's. */
  async delete(accountId: string, id: string): Promise<void> {
    if (!isUuid(id)) throw notFound("model");
    const { count } = await this.database.prisma.communityModel.deleteMany({ where: { id, accountId } });
    if (count === 0) throw notFound("model");
    this.announce({ id, accountId }, "deleted");
  }

  private async write(
    name: string | null,
    work: (transaction: ModelTransaction) => Promise<CommunityModelRow>,
  ): Promise<CommunityModelRow> {
    // Of two concurrent inserts, the database decides which has the name.
    return refusingTaken(
      () => this.database.prisma.$transaction(work),
      () => nameTaken(name),
    );
  }

  private announce({ id, accountId }: Pick<CommunityModelRow, "id" | "accountId">, change: ModelChange): void {
    this.events.publish("community-model-changed", { accountId, modelId: id, change });
  }
}

async function insertRow(
  transaction: ModelTransaction,
  data: NewModelRow,
  check: ((transaction: ModelTransaction) => Promise<void>) | undefined,
): Promise<CommunityModelRow> {
  const { accountId } = data;
  // Two concurrent inserts must not both be the last one allowed.
  await lockName(transaction, `community models of ${accountId}`);
  await check?.(transaction);
  if ((await transaction.communityModel.count({ where: { accountId } })) >= COMMUNITY_MODELS_PER_ACCOUNT_MAX) {
    throw conflict(`An account has at most ${COMMUNITY_MODELS_PER_ACCOUNT_MAX} models and agents.`);
  }
  return transaction.communityModel.create({ data });
}

function nameTaken(name: string | null): AppError {
  const named = name === null ? "this name" : `the name ${name}`;
  return invalidInput(`Another model or agent of the account has ${named}.`, "name");
}
