/**
 * Exports all data of an account for its owner (docs/spec/accounts.md#export), section by section and page by page, so that only one page
 * is in memory. It has no secrets: no key, webhook secret, password or token.
 */
import type { RequestContext } from "../../context.js";
import { wrongField } from "../../errors.js";
import { groupBy } from "../../lib/collections.js";
import { isUuid } from "../../lib/ids.js";
import { formatNanocredits, formatPicocredits } from "../../lib/money.js";
import { newestFirst, type PagePosition, type PageRequest, RANKED } from "../../lib/pagination.js";
import type { Database } from "../../store/database.js";
import { requireSession } from "../access/permissions.js";
import { PRICE_FIELDS } from "../catalog/pricing.js";
import { vendorKeyIdOf } from "../catalog/route.js";
import { isMediaFileId } from "../files/media-links.js";
import { formatCents } from "../payments/money.js";
import { USAGE_ROW } from "../usage/usage.js";
import { formatAmount } from "../usage-limits/usage-limits.js";
import { EXPORT_CONTENT_PAGE_MAX, EXPORT_PAGE_MAX } from "./limits.js";

/** `files` are content-addressed, `uploads` went straight to the store. */
export type ExportSection =
  | "profile"
  | "sign_in_methods"
  | "sessions"
  | "api_keys"
  | "usage"
  | "failed_requests"
  | "ledger"
  | "files"
  | "uploads"
  | "webhook_endpoints"
  | "presets"
  | "vendor_keys"
  | "usage_limits"
  | "top_ups"
  | "earnings"
  | "alerts"
  | "stored_responses"
  | "conversations"
  | "models";

/** Of the lines of a charge, those of its payer. Further lines are the shares of owners of models and apps. */
const CHARGE_LINE_MAX = 10;
/** Milliseconds of a time that every database can write. */
const TIME_PATTERN = /^\d{1,14}$/;

export interface ExportQuery {
  readonly section: ExportSection;
  readonly first?: number | null | undefined;
  /** The `next` of the previous page. */
  readonly after?: string | null | undefined;
}

export interface ExportPage {
  /** JSON objects: amounts of credits are decimal strings, times ISO 8601. */
  readonly items: readonly object[];
  /** Position of the next page; null at the end. */
  readonly next: string | null;
}

/** Items of megabytes. */
const CONTENT_SECTIONS: ReadonlySet<ExportSection> = new Set(["stored_responses", "conversations"]);

interface Exported extends PagePosition {
  readonly item: object;
}

type Reader = (database: Database, accountId: string, page: PageRequest) => Promise<readonly Exported[]>;

export class AccountExports {
  constructor(
    private readonly database: Database,
    private readonly stored: StoredExports,
  ) {}

  /** Sessions only. Rejects with BAD_REQUEST for a size out of bounds or an invalid position. */
  async page(ctx: RequestContext, { section, first, after }: ExportQuery): Promise<ExportPage> {
    const { accountId } = requireSession(ctx);
    const size = first ?? EXPORT_PAGE_MAX;
    if (size < 1 || size > EXPORT_PAGE_MAX) throw wrongField("first", `must be from 1 to ${EXPORT_PAGE_MAX}`);
    const page = {
      first: Math.min(size, CONTENT_SECTIONS.has(section) ? EXPORT_CONTENT_PAGE_MAX : size),
      after: after ? readPlace(section, after) : undefined,
    };
    const rows = await this.read(section, accountId, page);
    const items = rows.slice(0, page.first);
    const last = rows.length > page.first ? items.at(-1) : undefined;
    return { items: items.map(({ item }) => item), next: last ? writePlace(section, last) : null };
  }

  private async read(section: ExportSection, accountId: string, page: PageRequest): Promise<readonly Exported[]> {
    if (section === "stored_responses") return (await this.stored.exportResponses(accountId, page)).map(created);
    if (section === "conversations") return (await this.stored.exportConversations(accountId, page)).map(created);
    return READERS[section](this.database, accountId, page);
  }
}

/** What the gateway stores sealed. Each returns one item more than the page, if there is one. */
export interface StoredExports {
  exportResponses(accountId: string, page: PageRequest): Promise<readonly ExportedRow[]>;
  exportConversations(accountId: string, page: PageRequest): Promise<readonly ExportedRow[]>;
}

interface ExportedRow {
  readonly id: string;
  readonly createdAt: Date;
}

function writePlace(section: ExportSection, { timestamp, id }: PagePosition): string {
  return RANKED.encode({ rank: String(timestamp.getTime()), id }, section);
}

function readPlace(section: ExportSection, place: string): PagePosition {
  const read = RANKED.decode(place, section);
  const isId = section === "files" ? isMediaFileId : isUuid;
  if (!read || !TIME_PATTERN.test(read.rank) || !isId(read.id))
    throw wrongField("after", "must be the endCursor of a page of this section");
  return { timestamp: new Date(Number(read.rank)), id: read.id };
}

/** Each returns one row more than the page, if there is one. */
const READERS: Readonly<Record<Exclude<ExportSection, "stored_responses" | "conversations">, Reader>> = {
  profile: async ({ prisma }, accountId, { after }) => {
    if (after) return [];
    const { lowBalanceNanocredits, ...account } = await prisma.account.findUniqueOrThrow({
      where: { id: accountId },
      select: {
        ...{ id: true, handle: true, name: true, email: true, isEmailVerified: true, githubUsername: true, image: true, tier: true },
        ...{ isOperator: true, isPublisher: true, createdAt: true, updatedAt: true, lowBalanceNanocredits: true },
      },
    });
    const lowBalanceThreshold = creditsOrNull(lowBalanceNanocredits);
    return [{ item: { ...account, lowBalanceThreshold }, timestamp: account.createdAt, id: account.id }];
  },
  sign_in_methods: async ({ prisma }, accountId, page) => {
    const { where, ...query } = newestFirst(page);
    const select = { id: true, providerId: true, scope: true, createdAt: true, updatedAt: true } as const;
    return (await prisma.signInMethod.findMany({ where: { accountId, ...where }, select, ...query })).map(created);
  },
  sessions: async ({ prisma }, accountId, page) => {
    const { where, ...query } = newestFirst(page);
    const select = { id: true, ipAddress: true, userAgent: true, createdAt: true, updatedAt: true, expiresAt: true } as const;
    return (await prisma.session.findMany({ where: { accountId, ...where }, select, ...query })).map(created);
  },
  api_keys: async ({ prisma }, accountId, page) => {
    const { where, ...query } = newestFirst(page);
    const omit = { hash: true, accountId: true } as const;
    const rows = await prisma.apiKey.findMany({ where: { accountId, ...where }, omit, ...query });
    return rows.map(({ budgetNanocredits, spentNanocredits, heldNanocredits, ...key }) =>
      created({
        ...key,
        budget: creditsOrNull(budgetNanocredits),
        spent: formatNanocredits(spentNanocredits),
        held: formatNanocredits(heldNanocredits),
      }),
    );
  },
  usage: async ({ prisma }, accountId, page) => {
    const { where, ...query } = newestFirst(page, "timestamp");
    const rows = await prisma.usageRecord.findMany({ where: { accountId, ...where }, select: USAGE_ROW, ...query });
    const entries = await prisma.ledgerEntry.findMany({
      // Without the shares of owners of models and apps, whose lines have greater numbers.
      where: { transactionId: { in: rows.map(({ id }) => id) }, line: { lte: CHARGE_LINE_MAX } },
      orderBy: [{ transactionId: "asc" }, { line: "asc" }],
      select: { transactionId: true, book: true, amountNanocredits: true },
    });
    const charges = groupBy(entries, ({ transactionId }) => transactionId);
    return rows.map(({ costNanocredits, route, ...row }) => {
      const charge = (charges.get(row.id) ?? []).map(({ book, amountNanocredits }) => ({
        book,
        amount: formatNanocredits(amountNanocredits),
      }));
      return {
        item: { ...row, vendorKeyId: vendorKeyIdOf(route), cost: formatNanocredits(costNanocredits), charge },
        timestamp: row.timestamp,
        id: row.id,
      };
    });
  },
  failed_requests: async ({ prisma }, accountId, page) => {
    const { where, ...query } = newestFirst(page, "timestamp");
    const omit = { accountId: true } as const;
    const rows = await prisma.failedRequest.findMany({ where: { accountId, ...where }, omit, ...query });
    return rows.map((item) => ({ item, timestamp: item.timestamp, id: item.id }));
  },
  ledger: readLedger,
  files: async ({ prisma }, accountId, page) => {
    const { where, ...query } = newestFirst(page);
    const select = { id: true, contentType: true, sizeBytes: true, name: true, createdAt: true, expiresAt: true } as const;
    return (await prisma.mediaFile.findMany({ where: { accountId, ...where }, select, ...query })).map(created);
  },
  uploads: async ({ prisma }, accountId, page) => {
    const { where, ...query } = newestFirst(page);
    const omit = { accountId: true } as const;
    return (await prisma.mediaObject.findMany({ where: { accountId, ...where }, omit, ...query })).map(created);
  },
  webhook_endpoints: async ({ prisma }, accountId, page) => {
    const { where, ...query } = newestFirst(page);
    const omit = { secret: true, previousSecret: true, accountId: true } as const;
    return (await prisma.webhookEndpoint.findMany({ where: { accountId, ...where }, omit, ...query })).map(created);
  },
  presets: async ({ prisma }, accountId, page) => {
    const { where, ...query } = newestFirst(page);
    return (await prisma.preset.findMany({ where: { accountId, ...where }, omit: { accountId: true }, ...query })).map(created);
  },
  vendor_keys: async ({ prisma }, accountId, page) => {
    const { where, ...query } = newestFirst(page);
    const omit = { secret: true, accountId: true } as const;
    return (await prisma.vendorKey.findMany({ where: { accountId, ...where }, omit, ...query })).map(created);
  },
  usage_limits: async ({ prisma }, accountId, page) => {
    const { where, ...query } = newestFirst(page);
    const rows = await prisma.usageLimit.findMany({ where: { accountId, ...where }, omit: { accountId: true }, ...query });
    return rows.map(({ amount, raiseAmount, ...row }) => {
      const amounts = { amount: formatAmount(row.metric, amount), raiseAmount: formatAmount(row.metric, raiseAmount) };
      return created({ ...row, ...amounts });
    });
  },
  top_ups: async ({ prisma }, accountId, page) => {
    const { where, ...query } = newestFirst(page);
    const rows = await prisma.topUp.findMany({ where: { accountId, ...where }, omit: { accountId: true }, ...query });
    return rows.map(({ nanocredits, amountCents, chargedCents, refundedCents, disputedCents, ...row }) =>
      created({
        ...{ ...row, credits: formatNanocredits(nanocredits), amount: formatCents(amountCents) },
        ...{
          charged: chargedCents && formatCents(chargedCents),
          refunded: formatCents(refundedCents),
          disputed: formatCents(disputedCents),
        },
      }),
    );
  },
  /** Without the payers, who are other accounts. */
  earnings: async ({ prisma }, accountId, page) => {
    const { where, ...query } = newestFirst(page);
    const select = { id: true, kind: true, source: true, nanocredits: true, reversedNanocredits: true, createdAt: true } as const;
    const rows = await prisma.earning.findMany({ where: { accountId, ...where }, select, ...query });
    return rows.map(({ nanocredits, reversedNanocredits, ...row }) =>
      created({ ...row, credits: formatNanocredits(nanocredits), reversed: formatNanocredits(reversedNanocredits) }),
    );
  },
  alerts: async ({ prisma }, accountId, page) => {
    const { where, ...query } = newestFirst(page);
    return (await prisma.alert.findMany({ where: { accountId, ...where }, omit: { accountId: true }, ...query })).map(created);
  },
  models: async ({ prisma }, accountId, page) => {
    const { where, ...query } = newestFirst(page);
    const rows = await prisma.communityModel.findMany({
      where: { accountId, ...where },
      omit: { bearerToken: true, accountId: true },
      include: { agent: { omit: { id: true, bundle: true } } },
      ...query,
    });
    return rows.map((row) => {
      const prices = PRICE_FIELDS.map((column) => [column, row[column] === null ? null : formatPicocredits(row[column])] as const);
      return created({ ...row, ...Object.fromEntries(prices) });
    });
  },
};

interface LedgerTransaction {
  readonly id: string;
  readonly kind: string;
  readonly note: string | null;
  readonly createdAt: Date;
  readonly entries: readonly { readonly book: string; readonly amount: string }[];
}

/** Entries other than charges, which are with their usage, and the operator's fees. */
async function readLedger({ prisma }: Database, accountId: string, { first, after }: PageRequest): Promise<readonly Exported[]> {
  const start = after ?? { timestamp: new Date("9999-12-31T23:59:59.999Z"), id: "ffffffff-ffff-ffff-ffff-ffffffffffff" };
  const transactions = await prisma.$queryRaw<LedgerTransaction[]>`
    SELECT l.transaction_id AS id, l.kind, max(l.note) AS note, l.created_at AS "createdAt",
      json_agg(json_build_object('book', l.book, 'amount', l.amount_nanocredits::text) ORDER BY l.line) AS entries
    FROM ledger_entry l
    WHERE l.account_id = ${accountId}::uuid AND l.kind NOT IN ('charge', 'fee') AND (l.created_at, l.transaction_id) < (${start.timestamp}, ${start.id}::uuid)
    GROUP BY l.created_at, l.transaction_id, l.kind ORDER BY l.created_at DESC, l.transaction_id DESC LIMIT ${first + 1}`;
  return transactions.map(({ entries, ...transaction }) =>
    created({ ...transaction, entries: entries.map(({ book, amount }) => ({ book, amount: formatNanocredits(BigInt(amount)) })) }),
  );
}

function created<Item extends { readonly id: string; readonly createdAt: Date }>(item: Item): Exported {
  return { item, timestamp: item.createdAt, id: item.id };
}

function creditsOrNull(nanocredits: bigint | null): string | null {
  return nanocredits === null ? null : formatNanocredits(nanocredits);
}
