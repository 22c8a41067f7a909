/** Credits that came to an account by no refill: bought, paid in, or given by an operator. */
import type { RequestContext } from "../../context.js";
import { COUNT_TAKE, type Page, type PagePosition, type PageRequest, toPage } from "../../lib/pagination.js";
import type { Database } from "../../store/database.js";
import type { Prisma } from "../../store/generated/prisma/client.js";
import type { BucketName } from "../../store/ledger.js";
import type { Accounts } from "./accounts.js";

export interface CreditGrant {
  /** The ledger's, or what its caller has called it to be granted once. */
  readonly grantId: string;
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

  /** Newest first: of the own account with the permission for its balance, for operators of any. */
  async list(ctx: RequestContext, accountId: string, page: PageRequest): Promise<Page<CreditGrant>> {
    this.accounts.viewable(ctx, accountId, "balance", null);
    const { ledgerEntry } = this.database.prisma;
    // Each grant is two entries, of which one is the bucket's.
    const where: Prisma.LedgerEntryWhereInput = { accountId, kind: "grant", book: { in: [...BUCKETS] } };
    const direction = page.isFromEnd ? ("asc" as const) : ("desc" as const);
    const rows = await ledgerEntry.findMany({
      where: { ...where, AND: [...(page.after ? [olderThan(page.after)] : []), ...(page.before ? [newerThan(page.before)] : [])] },
      orderBy: [{ createdAt: direction }, { transactionId: direction }],
      take: page.first + 1,
    });
    const grants = rows.map(({ transactionId, book, amountNanocredits, note, createdAt }) => ({
      ...{ grantId: transactionId, nanocredits: amountNanocredits, note, createdAt },
      bucket: BUCKETS.find((bucket) => bucket === book) ?? "pack",
    }));
    return toPage(grants, page, () => ledgerEntry.count({ where, take: COUNT_TAKE }));
  }
}

function olderThan({ timestamp, id }: PagePosition) {
  return { createdAt: { lte: timestamp }, OR: [{ createdAt: { lt: timestamp } }, { transactionId: { lt: id } }] };
}

function newerThan({ timestamp, id }: PagePosition) {
  return { createdAt: { gte: timestamp }, OR: [{ createdAt: { gt: timestamp } }, { transactionId: { gt: id } }] };
}
