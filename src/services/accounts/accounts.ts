/** The caller's own account: profile and balance (docs/spec/accounts.md). Reading it refills its tier when that is due. */
import type { KeyCaller, RequestContext, SessionCaller } from "../../context.js";
import type { Database } from "../../store/database.js";
import type { AccountModel } from "../../store/generated/prisma/models.js";
import { isKeyCaller, requireAccount, requirePermission } from "../access/permissions.js";
import { ancestorsOf, worthOf } from "../api-keys/api-key-tree.js";
import type { TierRefills } from "../credits/tier-refills.js";

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
  /** When the tier's bucket is next filled; null when it never is. */
  readonly nextResetAt: Date | null;
}

/** Nanocredits throughout. */
export interface Balance {
  /** The buckets' sum, or what remains of the budgets that the key draws on when there are any (docs/spec/accounts.md#balance). */
  readonly balance: bigint;
  readonly tier: bigint;
  readonly crypto: bigint;
  readonly pack: bigint;
  /** Set aside for generations that are under way; part of the buckets until they are charged. */
  readonly held: bigint;
  readonly isKeyBudget: boolean;
}

export class Accounts {
  constructor(
    private readonly database: Database,
    private readonly refills: TierRefills,
  ) {}

  /** The caller's own account: any key or session. */
  async me(ctx: RequestContext): Promise<AccountRow> {
    const { accountId } = requireAccount(ctx);
    return toAccountRow(await this.load(accountId), this.refills);
  }

  async profile(ctx: RequestContext): Promise<AccountRow> {
    const { accountId } = requirePermission(ctx, "profile");
    return toAccountRow(await this.load(accountId), this.refills);
  }

  async balance(ctx: RequestContext): Promise<Balance> {
    const caller = requirePermission(ctx, "balance");
    const account = await this.load(caller.accountId);
    const keyBudget = isKeyCaller(caller) ? await this.remainingBudget(caller.apiKeyId) : null;
    return { ...toBalance(account), ...(keyBudget !== null && { balance: keyBudget, isKeyBudget: true }) };
  }

  /** Nanocredits that the caller can set aside now. Not for faces. */
  async spendable(caller: KeyCaller | SessionCaller): Promise<bigint> {
    const { balance, held } = toBalance(await this.load(caller.accountId));
    const free = balance - held;
    const keyFree = isKeyCaller(caller) ? await this.freeBudget(caller.apiKeyId) : null;
    return keyFree !== null && keyFree < free ? keyFree : free;
  }

  /** Nanocredits of the account, whoever asks. Not for faces. */
  async balanceOf(accountId: string): Promise<bigint> {
    return toBalance(await this.load(accountId)).balance;
  }

  private async freeBudget(apiKeyId: string): Promise<bigint | null> {
    const key = await this.database.prisma.apiKey.findUniqueOrThrow({ where: { id: apiKeyId } });
    const ancestors = await ancestorsOf(this.database.prisma, [key]);
    return worthOf(key, ancestors.get(key.id) ?? []).creditBudgetFree;
  }

  private async remainingBudget(apiKeyId: string): Promise<bigint | null> {
    const key = await this.database.prisma.apiKey.findUniqueOrThrow({ where: { id: apiKeyId } });
    const ancestors = await ancestorsOf(this.database.prisma, [key]);
    return worthOf(key, ancestors.get(key.id) ?? []).creditBudget;
  }

  private async load(id: string): Promise<AccountModel> {
    const account = await this.database.prisma.account.findUniqueOrThrow({ where: { id } });
    const isRefilled = await this.refills.bringUpToDate(account);
    return isRefilled ? this.database.prisma.account.findUniqueOrThrow({ where: { id } }) : account;
  }
}

export function toAccountRow(row: AccountModel, refills: Pick<TierRefills, "nextResetOf">): AccountRow {
  const { id, handle, name, email, githubUsername, image, tier, isOperator, createdAt } = row;
  return { id, handle, name, email, githubUsername, image, tier, isOperator, createdAt, nextResetAt: refills.nextResetOf(row) };
}

/** The account's own, whichever key asks. */
export function toBalance(account: AccountModel): Balance {
  const buckets = { tier: account.tierNanocredits, crypto: account.cryptoNanocredits, pack: account.packNanocredits };
  const held = account.tierHeldNanocredits + account.cryptoHeldNanocredits + account.packHeldNanocredits;
  return { balance: buckets.tier + buckets.crypto + buckets.pack, ...buckets, held, isKeyBudget: false };
}
