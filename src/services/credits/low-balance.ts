/**
 * The low-balance threshold of an account, for the subscription `balanceLow` and the webhook `balance.low`. Each fall below it is reported
 * once; the balance must be above it before the next one.
 */
import { z } from "zod";
import type { RequestContext } from "../../context.js";
import type { Database } from "../../store/database.js";
import { requireKeyManager, requirePermission } from "../access/permissions.js";
import { creditsAmount } from "./credits-amount.js";

/** Null: no notices. */
export const setLowBalanceThresholdInput = z.strictObject({ threshold: creditsAmount.nullable() });
export type SetLowBalanceThresholdInput = z.output<typeof setLowBalanceThresholdInput>;

export interface LowBalanceRow {
  /** Nanocredits; null: no notices. */
  readonly threshold: bigint | null;
  /** Since when the buckets' sum is below it; null: it is not. */
  readonly since: Date | null;
}

export interface LowBalanceNotice {
  readonly accountId: string;
  /** Nanocredits: the buckets' sum at the notice, and the threshold. */
  readonly balance: bigint;
  readonly threshold: bigint;
  readonly since: Date;
}

export class LowBalance {
  constructor(private readonly database: Database) {}

  async get(ctx: RequestContext): Promise<LowBalanceRow> {
    const { accountId } = requirePermission(ctx, "balance");
    const row = await this.database.prisma.account.findUniqueOrThrow({ where: { id: accountId } });
    return { threshold: row.lowBalanceNanocredits, since: row.lowBalanceSince };
  }

  /** A threshold above the balance reports the next fall below it, not the current state. */
  async setThreshold(ctx: RequestContext, { threshold }: SetLowBalanceThresholdInput): Promise<LowBalanceRow> {
    const { accountId } = requireKeyManager(ctx);
    const row = await this.database.prisma.account.update({ where: { id: accountId }, data: { lowBalanceNanocredits: threshold } });
    return { threshold: row.lowBalanceNanocredits, since: row.lowBalanceSince };
  }
}
