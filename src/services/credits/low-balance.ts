/**
 * The balance below which an account wants to be told: by the subscription `balanceLow` and the webhook `balance.low`. Each fall
 * below it is told once; it must be above again before the next.
 */
import { z } from "zod";
import type { RequestContext } from "../../context.js";
import type { Database } from "../../store/database.js";
import { requireKeyManager, requirePermission } from "../access/permissions.js";
import { creditsAmount } from "./credits-amount.js";

/** Null: not to be told. */
export const setLowBalanceThresholdInput = z.strictObject({ threshold: creditsAmount.nullable() });
export type SetLowBalanceThresholdInput = z.output<typeof setLowBalanceThresholdInput>;

export interface LowBalanceRow {
  /** Nanocredits; null: not to be told. */
  readonly threshold: bigint | null;
  /** Since when the buckets together have held less; null: they do not. */
  readonly since: Date | null;
}

/** A fall below it. */
export interface LowBalanceNotice {
  readonly accountId: string;
  /** Nanocredits: what the buckets held together when it was told, and what it is below. */
  readonly balance: bigint;
  readonly threshold: bigint;
  /** When it fell below. */
  readonly since: Date;
}

export class LowBalance {
  constructor(private readonly database: Database) {}

  async get(ctx: RequestContext): Promise<LowBalanceRow> {
    const { accountId } = requirePermission(ctx, "balance");
    const row = await this.database.prisma.account.findUniqueOrThrow({ where: { id: accountId } });
    return { threshold: row.lowBalanceNanocredits, since: row.lowBalanceSince };
  }

  /** One that is above the balance is told of after the next fall below it, not at once. */
  async setThreshold(ctx: RequestContext, { threshold }: SetLowBalanceThresholdInput): Promise<LowBalanceRow> {
    const { accountId } = requireKeyManager(ctx);
    const row = await this.database.prisma.account.update({ where: { id: accountId }, data: { lowBalanceNanocredits: threshold } });
    return { threshold: row.lowBalanceNanocredits, since: row.lowBalanceSince };
  }
}
