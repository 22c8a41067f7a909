/** The caller's own account: profile and balance (docs/spec/accounts.md). Reading it refills its tier when that is due. */
import type { AccountPermission, KeyCaller, RequestContext, SessionCaller } from "../../context.js";
import { notFound, permissionDenied } from "../../errors.js";
import { isUuid } from "../../lib/ids.js";
import type { Database } from "../../store/database.js";
import type { Prisma } from "../../store/generated/prisma/client.js";
import type { AccountModel } from "../../store/generated/prisma/models.js";
import { isKeyCaller, isOperator, requireAccount, requireOperator, requirePermission } from "../access/permissions.js";
import { ancestorsOf, type KeyWorth, worthOf } from "../api-keys/api-key-tree.js";
import type { Leases } from "../credits/leases.js";
import type { TierRefills, TierStanding } from "../credits/tiers.js";

export interface AccountRow {
  readonly id: string;
  readonly handle: string;
  readonly name: string | null;
  readonly email: string | null;
  readonly githubUsername: string | null;
  readonly image: string | null;
  readonly tier: string | null;
  readonly isOperator: boolean;
  readonly createdAt: Date;
  /** Time of the tier's next refill; null when there is none. */
  readonly nextResetAt: Date | null;
}

/** Amounts are nanocredits. */
export interface Balance {
  /** The sum of the buckets, or what remains of the budgets that the key draws on, if any (docs/spec/accounts.md#balance). */
  readonly balance: bigint;
  readonly tier: bigint;
  readonly crypto: bigint;
  readonly pack: bigint;
  /** Held for generations that are under way; part of the buckets until they settle. */
  readonly held: bigint;
  readonly isKeyBudget: boolean;
}

export type BalanceColumns = Pick<AccountModel, keyof typeof BALANCE_COLUMNS>;

export const BALANCE_COLUMNS = {
  tierNanocredits: true,
  cryptoNanocredits: true,
  packNanocredits: true,
  tierHeldNanocredits: true,
  cryptoHeldNanocredits: true,
  packHeldNanocredits: true,
} as const;

/** Columns that decide whether a refill is due. */
export const STANDING = { id: true, tier: true, tierResetsAt: true, createdAt: true } as const;

export type SelectedAccount = Pick<AccountModel, keyof typeof STANDING>;

export class Accounts {
  constructor(
    private readonly database: Database,
    private readonly refills: TierRefills,
    private readonly leases: Pick<Leases, "fold" | "freeOf" | "unreservedOf">,
  ) {}

  /** Returns the caller's own account; for any key or session. */
  async me(ctx: RequestContext): Promise<AccountRow> {
    const { accountId } = requireAccount(ctx);
    return toAccountRow(await this.load(accountId), this.refills);
  }

  /** Reads the selected columns of the caller's account in one query. */
  async own(ctx: RequestContext, select: Prisma.AccountSelect): Promise<SelectedAccount> {
    const { accountId } = requireAccount(ctx);
    if (showsMoney(select)) await this.leases.fold([accountId]);
    return this.refilled(() =>
      this.database.prisma.account.findUniqueOrThrow({ where: { id: accountId }, select: { ...select, ...STANDING } }),
    );
  }

  /** Returns those of the accounts that the caller may see: its own, or any for an operator. */
  async getMany(ctx: RequestContext, ids: readonly string[], select: Prisma.AccountSelect): Promise<SelectedAccount[]> {
    const { accountId } = requireAccount(ctx);
    if (ids.every((id) => id === accountId)) return ids.length === 0 ? [] : [await this.own(ctx, select)];
    if (!isOperator(ctx)) return ids.includes(accountId) ? [await this.own(ctx, select)] : [];
    const read = () =>
      this.database.prisma.account.findMany({ where: { id: { in: ids.filter(isUuid) } }, select: { ...select, ...STANDING } });
    if (showsMoney(select)) await this.leases.fold(ids.filter(isUuid));
    const accounts = await read();
    const refilled = await Promise.all(accounts.map((account) => this.refills.bringUpToDate(account)));
    return refilled.includes(true) ? read() : accounts;
  }

  /** Returns the caller's own account, or any for an operator. Rejects with NOT_FOUND. */
  async get(ctx: RequestContext, id: string, select: Prisma.AccountSelect): Promise<SelectedAccount> {
    if (requireAccount(ctx).accountId !== id) requireOperator(ctx);
    const [account] = await this.getMany(ctx, [id], select);
    if (!account) throw notFound("account");
    return account;
  }

  /** As `get`, for operators only. */
  async getAny(ctx: RequestContext, id: string, select: Prisma.AccountSelect): Promise<SelectedAccount> {
    requireOperator(ctx);
    return this.get(ctx, id, select);
  }

  /** Returns `part` of an account. Throws for a caller without the permission; operators see every part of other accounts. */
  viewable<Part>(ctx: RequestContext, accountId: string, permission: AccountPermission, part: Part): Part {
    if (requireAccount(ctx).accountId === accountId) requirePermission(ctx, permission);
    else requireOperator(ctx);
    return part;
  }

  /** Throws unless the account is the caller's own, operators included. */
  assertOwn(ctx: RequestContext, accountId: string): void {
    if (requireAccount(ctx).accountId !== accountId) throw permissionDenied("Only the account itself can read this.");
  }

  async balanceFrom(ctx: RequestContext, account: BalanceColumns & { readonly id: string }): Promise<Balance> {
    this.viewable(ctx, account.id, "balance", null);
    const balance = toBalance(account, await this.leases.unreservedOf(account.id));
    const caller = requireAccount(ctx);
    return caller.accountId === account.id ? this.asSeenBy(caller, balance) : balance;
  }

  nextResetOf(account: Pick<AccountModel, "tier" | "tierResetsAt">): Date | null {
    return this.refills.nextResetOf(account);
  }

  async profile(ctx: RequestContext): Promise<AccountRow> {
    const { accountId } = requirePermission(ctx, "profile");
    return toAccountRow(await this.load(accountId), this.refills);
  }

  async balance(ctx: RequestContext): Promise<Balance> {
    const caller = requirePermission(ctx, "balance");
    return this.asSeenBy(caller, toBalance(...(await this.loadMoney(caller.accountId))));
  }

  /** Nanocredits that the caller can hold now. Not exposed by GraphQL or REST. */
  async spendable(caller: KeyCaller | SessionCaller): Promise<bigint> {
    const { balance, held } = toBalance(...(await this.loadMoney(caller.accountId)));
    const free = balance - held;
    const budgetFree = isKeyCaller(caller) ? (await this.keyWorth(caller.apiKeyId)).creditBudgetFree : null;
    if (!isKeyCaller(caller) || budgetFree === null) return free;
    const keyFree = budgetFree + this.leases.freeOf(caller);
    return keyFree < free ? keyFree : free;
  }

  /** Nanocredits of the account, whichever key asks. Not exposed by GraphQL or REST. */
  async balanceOf(accountId: string): Promise<bigint> {
    return toBalance(...(await this.loadMoney(accountId))).balance;
  }

  /** Limits the balance to what remains of the key's budget. A key without a budget is not looked up. */
  private async asSeenBy(caller: KeyCaller | SessionCaller, balance: Balance): Promise<Balance> {
    const keyBudget = isKeyCaller(caller) && caller.hasBudget ? (await this.keyWorth(caller.apiKeyId)).creditBudget : null;
    return keyBudget === null ? balance : { ...balance, balance: keyBudget, isKeyBudget: true };
  }

  private async keyWorth(apiKeyId: string): Promise<KeyWorth> {
    const key = await this.database.prisma.apiKey.findUniqueOrThrow({ where: { id: apiKeyId } });
    const ancestors = await ancestorsOf(this.database.prisma, [key]);
    return worthOf(key, ancestors.get(key.id) ?? []);
  }

  /** Reads the account, and how much of its held credits belongs to no generation. */
  private async loadMoney(id: string): Promise<[AccountModel, bigint]> {
    await this.leases.fold([id]);
    return [await this.load(id), await this.leases.unreservedOf(id)];
  }

  private load(id: string): Promise<AccountModel> {
    return this.refilled(() => this.database.prisma.account.findUniqueOrThrow({ where: { id } }));
  }

  /** Runs `read` after a refill that is due. */
  private async refilled<Account extends TierStanding>(read: () => Promise<Account>): Promise<Account> {
    const account = await read();
    return (await this.refills.bringUpToDate(account)) ? read() : account;
  }
}

export function toAccountRow(row: AccountModel, refills: Pick<TierRefills, "nextResetOf">): AccountRow {
  const { id, handle, name, email, githubUsername, image, tier, isOperator, createdAt } = row;
  return { id, handle, name, email, githubUsername, image, tier, isOperator, createdAt, nextResetAt: refills.nextResetOf(row) };
}

/** Whether columns are selected that are only right after the account's leases are folded. */
function showsMoney(select: Prisma.AccountSelect): boolean {
  return Object.keys(BALANCE_COLUMNS).some((column) => Object.hasOwn(select, column));
}

/** The account's own balance, whichever key asks. `unreserved`: credits held for no generation. */
export function toBalance(account: BalanceColumns, unreserved: bigint): Balance {
  const buckets = { tier: account.tierNanocredits, crypto: account.cryptoNanocredits, pack: account.packNanocredits };
  const held = account.tierHeldNanocredits + account.cryptoHeldNanocredits + account.packHeldNanocredits - unreserved;
  return { balance: buckets.tier + buckets.crypto + buckets.pack, ...buckets, held: held > 0n ? held : 0n, isKeyBudget: false };
}
