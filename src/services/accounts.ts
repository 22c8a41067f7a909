/** Accounts: profile and balance (Spec 2.3, 2.4, 4.5), the owner's first account, and operators' grants. */

import { z } from "zod";
import type { RequestContext } from "../context.js";
import { notFound } from "../errors.js";
import { createId } from "../lib/ids.js";
import type { Database } from "../store/database.js";
import type { Events } from "../store/events.js";
import type { AccountModel } from "../store/generated/prisma/models.js";
import type { Ledger } from "../store/ledger.js";
import { creditsAmount } from "./credits/credits-amount.js";
import { storableText } from "./input.js";
import { isKeyCaller, requireCaller, requireOperator, requirePermission } from "./permissions.js";

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
  readonly nextResetAt: Date | null;
}

/** Nanocredits throughout. */
export interface Balance {
  /** The buckets' sum, or what remains of the key's budget when the key has one (Spec 2.4). */
  readonly balance: bigint;
  readonly tier: bigint;
  readonly crypto: bigint;
  readonly pack: bigint;
  /** Set aside for generations that are under way; part of the buckets until they are charged. */
  readonly held: bigint;
  readonly isKeyBudget: boolean;
}

export const grantCreditsInput = z.strictObject({
  accountId: z.uuid(),
  bucket: z.enum(["tier", "crypto", "pack"]),
  credits: creditsAmount.refine((nanocredits) => nanocredits > 0n, "must be more than 0"),
  note: storableText.max(500).nullish(),
  /** Makes the grant happen once, however often it is asked for. */
  grantId: z.uuid().nullish(),
});
export type GrantCreditsInput = z.output<typeof grantCreditsInput>;

export class Accounts {
  constructor(
    private readonly database: Database,
    private readonly ledger: Ledger,
    private readonly events: Events,
  ) {}

  /** The caller's own account: any key or session. */
  async me(ctx: RequestContext): Promise<AccountRow> {
    const { accountId } = requireCaller(ctx);
    return toAccountRow(await this.load(accountId));
  }

  async profile(ctx: RequestContext): Promise<AccountRow> {
    const { accountId } = requirePermission(ctx, "profile");
    return toAccountRow(await this.load(accountId));
  }

  async balance(ctx: RequestContext): Promise<Balance> {
    const caller = requirePermission(ctx, "balance");
    const account = await this.load(caller.accountId);
    const buckets = { tier: account.tierNanocredits, crypto: account.cryptoNanocredits, pack: account.packNanocredits };
    const held = account.tierHeldNanocredits + account.cryptoHeldNanocredits + account.packHeldNanocredits;
    const keyBudget = isKeyCaller(caller) ? await this.remainingBudget(caller.apiKeyId) : null;
    return { balance: keyBudget ?? buckets.tier + buckets.crypto + buckets.pack, ...buckets, held, isKeyBudget: keyBudget !== null };
  }

  /** Operators only: adds bought or given credits to an account. */
  async grantCredits(ctx: RequestContext, input: GrantCreditsInput): Promise<{ account: AccountRow; balance: bigint }> {
    requireOperator(ctx);
    const { accountId, bucket, credits, note, grantId } = input;
    if ((await this.database.prisma.account.count({ where: { id: accountId } })) === 0) throw notFound("account");
    await this.ledger.grant({ id: grantId ?? createId(), accountId, bucket, amount: credits, note: note ?? null });
    this.events.publish("balance-changed", { accountId });
    const account = await this.load(accountId);
    return { account: toAccountRow(account), balance: account.tierNanocredits + account.cryptoNanocredits + account.packNanocredits };
  }

  private async remainingBudget(apiKeyId: string): Promise<bigint | null> {
    const key = await this.database.prisma.apiKey.findUniqueOrThrow({
      where: { id: apiKeyId },
      select: { budgetNanocredits: true, spentNanocredits: true },
    });
    return key.budgetNanocredits === null ? null : key.budgetNanocredits - key.spentNanocredits;
  }

  private load(id: string): Promise<AccountModel> {
    return this.database.prisma.account.findUniqueOrThrow({ where: { id } });
  }
}

function toAccountRow(row: AccountModel): AccountRow {
  const { id, handle, name, email, githubUsername, image, tier, isOperator, createdAt, tierResetsAt } = row;
  return { id, handle, name, email, githubUsername, image, tier, isOperator, createdAt, nextResetAt: tierResetsAt };
}
