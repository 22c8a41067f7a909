/** What operators see of the charges that the database refuses, and how they have them tried again. */
import { z } from "zod";
import type { RequestContext } from "../../context.js";
import { requireOperator } from "../access/permissions.js";
import type { RefusedSettlements as Kept } from "../credits/refused-settlements.js";
import { REFUSED_SETTLEMENTS_SHOWN_MAX } from "./limits.js";

export const retryRefusedSettlementsInput = z.strictObject({ ids: z.array(z.uuid()).max(REFUSED_SETTLEMENTS_SHOWN_MAX).nullish() });
export type RetryRefusedSettlementsInput = z.output<typeof retryRefusedSettlementsInput>;

export interface RefusedSettlementRow {
  /** The generation's. */
  readonly id: string;
  readonly accountId: string;
  readonly apiKeyId: string | null;
  readonly model: string;
  /** Nanocredits. */
  readonly cost: bigint;
  /** Of the generation. */
  readonly timestamp: Date;
  readonly refusedAt: Date;
  /** In the database's words. */
  readonly reason: string;
}

export interface RefusedSettlementsShown {
  readonly count: number;
  /** The oldest ones. */
  readonly settlements: readonly RefusedSettlementRow[];
}

/** Of the process that is asked: each has a DATA_DIR of its own. */
export class RefusedSettlements {
  constructor(private readonly kept: Kept) {}

  show(ctx: RequestContext): RefusedSettlementsShown {
    requireOperator(ctx);
    return this.present();
  }

  /** Shows what the database still refuses after that. */
  async retry(ctx: RequestContext, { ids }: RetryRefusedSettlementsInput): Promise<RefusedSettlementsShown> {
    requireOperator(ctx);
    await this.kept.retry(ids ? new Set(ids) : null);
    return this.present();
  }

  private present(): RefusedSettlementsShown {
    const settlements = this.kept.list(REFUSED_SETTLEMENTS_SHOWN_MAX).map(({ operation, refusedAt, reason }) => {
      const { id, accountId, apiKeyId, amount: cost, record } = operation;
      const { model, timestamp } = record;
      return { id, accountId, apiKeyId, model, cost, timestamp: new Date(timestamp), refusedAt: new Date(refusedAt), reason };
    });
    return { count: this.kept.count, settlements };
  }
}
