/** Operator actions on any account: find it, grant credits, set its tier, allow it to publish (docs/spec/accounts.md#operators). */
import { z } from "zod";
import type { RequestContext } from "../../context.js";
import { conflict, notFound, wrongField } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { createId, isUuid } from "../../lib/ids.js";
import { formatNanocredits } from "../../lib/money.js";
import { COUNT_TAKE, newestFirst, type Page, type PageRequest, toPage } from "../../lib/pagination.js";
import { type Database, lockAccountRow } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { Prisma } from "../../store/generated/prisma/client.js";
import type { AccountModel } from "../../store/generated/prisma/models.js";
import type { GrantExpiry, Ledger } from "../../store/ledger.js";
import { requireOperator } from "../access/permissions.js";
import { recordAct } from "../audit/audit-log.js";
import { positiveCredits } from "../credits/credits-amount.js";
import type { Leases } from "../credits/leases.js";
import type { Commit, TierRefills, Tiers } from "../credits/tiers.js";
import { storableText } from "../requests/input.js";
import { matchesOf } from "./account-search.js";
import { STANDING } from "./accounts.js";
import { bookOnce, findEarlier, isTaken } from "./chosen-ids.js";
import {
  ACCOUNT_FILTER_TIERS_MAX,
  ACCOUNT_SEARCH_CHARS_MAX,
  GRANT_NOTE_CHARS_MAX,
  GRANT_PRIORITY_MAX,
  TIER_NAME_CHARS_MAX,
} from "./limits.js";
import { countOtherOperators } from "./operators.js";

/** Columns that decide whether a refill is due and the balance after it, so that a list can show that balance. */
const LISTED = { ...STANDING, tierNanocredits: true, tierHeldNanocredits: true } as const;

export type ListedAccount = Pick<AccountModel, keyof typeof LISTED>;

export const grantCreditsInput = z.strictObject({
  accountId: z.uuid(),
  bucket: z.enum(["tier", "crypto", "pack"]),
  credits: positiveCredits,
  note: storableText.max(GRANT_NOTE_CHARS_MAX).nullish(),
  /** Grants with the same id are made once. */
  grantId: z.uuid().nullish(),
  /** The part that is not spent until then expires; absent: none does. */
  expiresAt: z.date().nullish(),
  /** Grants of smaller numbers are spent first. */
  priority: z.int().min(0).max(GRANT_PRIORITY_MAX).nullish(),
});
export type GrantCreditsInput = z.output<typeof grantCreditsInput>;

/** Null removes the tier; the field is required so that an omitted tier does not. */
export const setTierInput = z.strictObject({ accountId: z.uuid(), tier: storableText.min(1).max(TIER_NAME_CHARS_MAX).nullable() });
export type SetTierInput = z.output<typeof setTierInput>;

export const setPublisherInput = z.strictObject({ accountId: z.uuid(), isPublisher: z.boolean() });
export type SetPublisherInput = z.output<typeof setPublisherInput>;

export const setOperatorInput = z.strictObject({ accountId: z.uuid(), isOperator: z.boolean() });
export type SetOperatorInput = z.output<typeof setOperatorInput>;

export const accountSearch = z.object({
  /** See account-search.ts. */
  search: storableText.trim().max(ACCOUNT_SEARCH_CHARS_MAX).nullish(),
  filter: z
    .object({
      tiers: z.array(storableText.min(1).max(TIER_NAME_CHARS_MAX)).max(ACCOUNT_FILTER_TIERS_MAX).nullish(),
      isOperator: z.boolean().nullish(),
      isPublisher: z.boolean().nullish(),
      isSuspended: z.boolean().nullish(),
    })
    .nullish(),
});
export type AccountSearch = z.output<typeof accountSearch>;

export class AccountAdministration {
  constructor(
    private readonly database: Database,
    private readonly ledger: Ledger,
    private readonly events: Events,
    private readonly tiers: Tiers,
    private readonly refills: TierRefills,
    private readonly leases: Pick<Leases, "fold" | "recall">,
    private readonly clock: Clock,
  ) {}

  /** Lists accounts, newest first. Makes no refill: a refill that is due is only shown in the balance. */
  async list(ctx: RequestContext, page: PageRequest, search: AccountSearch, select: Prisma.AccountSelect): Promise<Page<ListedAccount>> {
    requireOperator(ctx);
    const { account } = this.database.prisma;
    const { where: older, ...query } = newestFirst(page);
    const where = {
      deletion: null,
      AND: [...whereOf(search), ...(search.search ? [{ OR: await matchesOf(this.database, search.search) }] : [])],
    };
    const read = () => account.findMany({ where: { AND: [older, where] }, select: { ...select, ...LISTED }, ...query });
    let rows = await read();
    if (await this.leases.fold(rows.map(({ id }) => id))) rows = await read();
    return toPage(
      rows.map((row) => this.refills.preview(row)),
      page,
      () => account.count({ where, take: COUNT_TAKE }),
    );
  }

  /** Grants with the same id are made once. Rejects with CONFLICT when the id was used with other values. */
  async grantCredits(ctx: RequestContext, input: GrantCreditsInput): Promise<void> {
    requireOperator(ctx);
    const { accountId, bucket, credits, note, grantId } = input;
    const expiry = this.expiryOf(input);
    // A due refill comes first: it sets the bucket, and would remove credits granted before it.
    await this.load(accountId);
    const grant = { id: grantId ?? createId(), accountId, bucket, amount: credits, note: note ?? null, expiry };
    await bookOnce(this.database, "grant", async (transaction) => {
      await lockAccountRow(transaction, accountId);
      // A repeated grant changes nothing, so that it is no act.
      const earlier = await findEarlier(transaction, { ...grant, kind: "grant" });
      if (earlier && earlier.amountNanocredits !== credits) throw isTaken("grant");
      if (earlier) return;
      if (!(await this.ledger.grant(grant, transaction))) throw isTaken("grant");
      const expiresAt = expiry?.expiresAt.toISOString();
      const after = { bucket, credits: formatNanocredits(credits), ...(expiresAt !== undefined && { expiresAt }) };
      await recordAct(transaction, ctx, { act: "grant_credits", accountId, objectId: grant.id, after, reason: grant.note });
    });
    // A lease may have been drawn from other buckets than the next one will be.
    await this.leases.recall(accountId);
    this.events.publish("balance-changed", { accountId });
  }

  private expiryOf({ bucket, expiresAt, priority }: GrantCreditsInput): GrantExpiry | undefined {
    if (expiresAt == null) {
      if (priority != null) throw wrongField("priority", "is for credits that expire: name expiresAt too");
      return undefined;
    }
    if (bucket === "tier") throw wrongField("expiresAt", "is for the buckets crypto and pack: credits of the tier end with its refill");
    if (expiresAt <= this.clock.now()) throw wrongField("expiresAt", "must be in the future");
    return { expiresAt, priority: priority ?? 0 };
  }

  /** Null removes the tier. */
  async setTier(ctx: RequestContext, { accountId, tier }: SetTierInput): Promise<void> {
    requireOperator(ctx);
    if (tier !== null) this.tiers.assertKnown(tier);
    const before = await this.load(accountId);
    const commit: Commit = (change) =>
      this.database.prisma.$transaction(async (transaction) => {
        const outcome = await change(transaction);
        await recordAct(transaction, ctx, { act: "set_tier", accountId, before: { tier: before.tier }, after: { tier } });
        return outcome;
      });
    if (!(await this.refills.setTier(before, tier, commit))) throw notFound("account");
    ctx.log.info({ accountId, tier, previousTier: before.tier }, "an operator set a tier");
  }

  async setPublisher(ctx: RequestContext, { accountId, isPublisher }: SetPublisherInput): Promise<void> {
    requireOperator(ctx);
    const before = await this.load(accountId);
    await this.database.prisma.$transaction(async (transaction) => {
      await transaction.account.update({ where: { id: accountId }, data: { isPublisher } });
      const facts = { before: { isPublisher: before.isPublisher }, after: { isPublisher } };
      await recordAct(transaction, ctx, { act: "set_publisher", accountId, ...facts });
    });
    ctx.log.info({ accountId, isPublisher }, "an operator said who may publish");
  }

  /**
   * Makes an account an operator, or ends that, at once: its cached keys and sessions are refetched. Rejects with CONFLICT for the last
   * operator.
   */
  async setOperator(ctx: RequestContext, { accountId, isOperator }: SetOperatorInput): Promise<void> {
    requireOperator(ctx);
    const before = await this.load(accountId);
    const { keys, sessions } = await this.database.prisma.$transaction(async (transaction) => {
      const others = await countOtherOperators(transaction, accountId);
      if (!isOperator && others === 0) throw conflict("This is the last operator: make another account one first.");
      const held = { where: { accountId }, select: { id: true } } as const;
      await transaction.account.update({ where: { id: accountId }, data: { isOperator } });
      const facts = { before: { isOperator: before.isOperator }, after: { isOperator } };
      await recordAct(transaction, ctx, { act: "set_operator", accountId, ...facts });
      return { keys: await transaction.apiKey.findMany(held), sessions: await transaction.session.findMany(held) };
    });
    for (const { id } of keys) this.events.publish("api-key-changed", { accountId, apiKeyId: id, change: "updated" });
    for (const { id } of sessions) this.events.publish("session-changed", { accountId, sessionId: id });
    ctx.log.info({ accountId, isOperator }, "an operator said who operates the gateway");
  }

  /** Loads the account, refilled when that is due. */
  private async load(id: string): Promise<AccountModel> {
    const account = await this.find(id);
    return (await this.refills.bringUpToDate(account)) ? this.find(id) : account;
  }

  private async find(id: string): Promise<AccountModel> {
    const account = isUuid(id) ? await this.database.prisma.account.findUnique({ where: { id, deletion: null } }) : null;
    if (!account) throw notFound("account");
    return account;
  }
}

function whereOf({ filter }: AccountSearch): Prisma.AccountWhereInput[] {
  const { tiers, isOperator, isPublisher, isSuspended } = filter ?? {};
  return [
    ...(tiers ? [{ tier: { in: tiers } }] : []),
    ...(typeof isOperator === "boolean" ? [{ isOperator }] : []),
    ...(typeof isSuspended === "boolean" ? [{ suspendedAt: isSuspended ? { not: null } : null }] : []),
    // Operators may publish too.
    ...(typeof isPublisher === "boolean"
      ? [isPublisher ? { OR: [{ isPublisher }, { isOperator: true }] } : { isPublisher, isOperator: false }]
      : []),
  ];
}
