/** How credits come to an account and leave it: grants, the tier's refills, the ledger, and the way to more of them. */
import type { RequestContext } from "../../context.js";
import { isUuid } from "../../lib/ids.js";
import { COUNT_TAKE, newestFirst, type Page, type PageRequest, toPage } from "../../lib/pagination.js";
import type { TopUp } from "../../lib/settings.js";
import type { Database } from "../../store/database.js";
import type { Prisma } from "../../store/generated/prisma/client.js";
import type { ExpiringGrantModel, LedgerEntryModel } from "../../store/generated/prisma/models.js";
import type { BucketName } from "../../store/ledger.js";
import { isOperator, requirePermission } from "../access/permissions.js";
import type { TierRefill, Tiers } from "../credits/tiers.js";
import type { Accounts } from "./accounts.js";
import { readStatement, readStatementLines, type StatementLine } from "./credit-statement.js";

export interface CreditGrant {
  /** The ledger's id, or the id that the caller chose to make the grant idempotent. */
  readonly id: string;
  readonly bucket: BucketName;
  readonly nanocredits: bigint;
  readonly note: string | null;
  readonly createdAt: Date;
  /** Null: it does not expire. */
  readonly expiresAt: Date | null;
  /** Nanocredits that have expired. */
  readonly expired: bigint;
}

export interface LedgerLine extends StatementLine {
  /** When the next refill replaces the credits; null for credits that do not expire. */
  readonly expiresAt: Date | null;
}

const BUCKETS: readonly BucketName[] = ["tier", "crypto", "pack"];

export class CreditGrants {
  constructor(
    private readonly database: Database,
    private readonly accounts: Pick<Accounts, "viewable" | "balanceOf">,
    private readonly tiers: Pick<Tiers, "giftOf" | "refillOf">,
    /** How to get credits, for all who ask. Null: the operator does not say. */
    readonly topUp: TopUp | null,
  ) {}

  /** Lists the lines of the ledger, newest first. The own account needs the permission for its balance; operators may read any. */
  async statement(ctx: RequestContext, accountId: string, page: PageRequest): Promise<Page<LedgerLine>> {
    this.accounts.viewable(ctx, accountId, "balance", null);
    // Makes a refill that is due, so that the list has it.
    await this.accounts.balanceOf(accountId);
    const { items, ...rest } = await readStatement(this.database, accountId, page);
    return { ...rest, items: items.map((line) => this.withExpiry(line)) };
  }

  /** Returns lines of the caller's own ledger by id. */
  async getLines(ctx: RequestContext, ids: readonly string[]): Promise<LedgerLine[]> {
    const { accountId } = requirePermission(ctx, "balance");
    return (await readStatementLines(this.database, accountId, ids)).map((line) => this.withExpiry(line));
  }

  /** The refill of an account's tier. Null without refills. The own account needs the permission for its profile. */
  refillOf(ctx: RequestContext, account: { readonly id: string; readonly tier: string | null }): TierRefill | null {
    const tier = this.accounts.viewable(ctx, account.id, "profile", account.tier);
    return this.tiers.refillOf(tier);
  }

  /** A refill lasts to the next one. The ledger notes the tier that it was of. */
  private withExpiry(line: StatementLine): LedgerLine {
    return { ...line, expiresAt: line.kind === "refill" ? this.tiers.giftOf(line.note, line.bookedAt).nextReset : null };
  }

  /** Lists grants, newest first. The own account needs the permission for its balance; operators may read any. */
  async list(ctx: RequestContext, accountId: string, page: PageRequest): Promise<Page<CreditGrant>> {
    this.accounts.viewable(ctx, accountId, "balance", null);
    const { ledgerEntry } = this.database.prisma;
    // Each grant has two entries; one of them is the bucket's.
    const where: Prisma.LedgerEntryWhereInput = { accountId, kind: "grant", book: { in: [...BUCKETS] } };
    const { where: older, ...query } = newestFirst(page, "createdAt", "transactionId");
    const rows = await ledgerEntry.findMany({ where: { ...where, ...older }, ...query });
    return toPage(await this.withExpiries(rows), page, () => ledgerEntry.count({ where, take: COUNT_TAKE }));
  }

  /** Returns grants by id. The own account needs the permission for its balance; operators may read any. */
  async getMany(ctx: RequestContext, ids: readonly string[]): Promise<CreditGrant[]> {
    const where: Prisma.LedgerEntryWhereInput = isOperator(ctx) ? {} : { accountId: requirePermission(ctx, "balance").accountId };
    const rows = await this.database.prisma.ledgerEntry.findMany({
      where: { ...where, transactionId: { in: ids.filter(isUuid) }, kind: "grant", book: { in: [...BUCKETS] } },
    });
    return this.withExpiries(rows);
  }

  private async withExpiries(rows: readonly LedgerEntryModel[]): Promise<CreditGrant[]> {
    const where = { id: { in: rows.map(({ transactionId }) => transactionId) } };
    const expiring = await this.database.prisma.expiringGrant.findMany({ where });
    const byId = new Map(expiring.map((grant) => [grant.id, grant]));
    return rows.map((row) => toGrant(row, byId.get(row.transactionId)));
  }
}

function toGrant(
  { transactionId, book, amountNanocredits, note, createdAt }: LedgerEntryModel,
  expiring?: ExpiringGrantModel,
): CreditGrant {
  const bucket = BUCKETS.find((name) => name === book) ?? "pack";
  const expiry = { expiresAt: expiring?.expiresAt ?? null, expired: expiring?.expiredNanocredits ?? 0n };
  return { id: transactionId, bucket, nanocredits: amountNanocredits, note, createdAt, ...expiry };
}
