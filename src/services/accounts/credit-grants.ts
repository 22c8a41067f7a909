/** Credits that an account got other than by a refill: bought, paid in, or given by an operator. */
import type { RequestContext } from "../../context.js";
import { isUuid } from "../../lib/ids.js";
import { COUNT_TAKE, newestFirst, type Page, type PageRequest, toPage } from "../../lib/pagination.js";
import type { Database } from "../../store/database.js";
import type { Prisma } from "../../store/generated/prisma/client.js";
import type { LedgerEntryModel } from "../../store/generated/prisma/models.js";
import type { BucketName } from "../../store/ledger.js";
import { isOperator, requirePermission } from "../access/permissions.js";
import type { Accounts } from "./accounts.js";

export interface CreditGrant {
  /** The ledger's id, or the id that the caller chose to make the grant idempotent. */
  readonly id: string;
  readonly bucket: BucketName;
  readonly nanocredits: bigint;
  readonly note: string | null;
  readonly createdAt: Date;
}

const BUCKETS: readonly BucketName[] = ["tier", "crypto", "pack"];

export class CreditGrants {
  constructor(
    private readonly database: Database,
    private readonly accounts: Pick<Accounts, "viewable">,
  ) {}

  /** Lists grants, newest first. The own account needs the permission for its balance; operators may read any. */
  async list(ctx: RequestContext, accountId: string, page: PageRequest): Promise<Page<CreditGrant>> {
    this.accounts.viewable(ctx, accountId, "balance", null);
    const { ledgerEntry } = this.database.prisma;
    // Each grant has two entries; one of them is the bucket's.
    const where: Prisma.LedgerEntryWhereInput = { accountId, kind: "grant", book: { in: [...BUCKETS] } };
    const { where: older, ...query } = newestFirst(page, "createdAt", "transactionId");
    const rows = await ledgerEntry.findMany({ where: { ...where, ...older }, ...query });
    return toPage(rows.map(toGrant), page, () => ledgerEntry.count({ where, take: COUNT_TAKE }));
  }

  /** Returns grants by id. The own account needs the permission for its balance; operators may read any. */
  async getMany(ctx: RequestContext, ids: readonly string[]): Promise<CreditGrant[]> {
    const where: Prisma.LedgerEntryWhereInput = isOperator(ctx) ? {} : { accountId: requirePermission(ctx, "balance").accountId };
    const rows = await this.database.prisma.ledgerEntry.findMany({
      where: { ...where, transactionId: { in: ids.filter(isUuid) }, kind: "grant", book: { in: [...BUCKETS] } },
    });
    return rows.map(toGrant);
  }
}

function toGrant({ transactionId, book, amountNanocredits, note, createdAt }: LedgerEntryModel): CreditGrant {
  const bucket = BUCKETS.find((name) => name === book) ?? "pack";
  return { id: transactionId, bucket, nanocredits: amountNanocredits, note, createdAt };
}
