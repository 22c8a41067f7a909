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

/** The processes of a gateway that has several: each keeps its own, and answers for them. */
export interface Keepers {
  answer(question: string, give: (body: unknown) => Promise<unknown>): void;
  askAll(question: string, body: unknown, timeoutMs: number): Promise<readonly unknown[]>;
}

const SHOW_QUESTION = "refused settlements";
const RETRY_QUESTION = "retry refused settlements";
/** One whose database does not answer is waited for no longer. */
const ANSWER_MS_MAX = 20_000;

/** Of the gateway that is asked: each has a DATA_DIR of its own. */
export class RefusedSettlements {
  /** `keepers`: null for a gateway of one process. */
  constructor(
    private readonly kept: Kept,
    private readonly keepers: Keepers | null = null,
  ) {
    keepers?.answer(SHOW_QUESTION, async () => this.showOwn());
    keepers?.answer(RETRY_QUESTION, (ids) => this.retryOwn(ids as ReadonlySet<string> | null));
  }

  async show(ctx: RequestContext): Promise<RefusedSettlementsShown> {
    requireOperator(ctx);
    return this.keepers ? this.ask(this.keepers, SHOW_QUESTION, null) : this.showOwn();
  }

  /** Shows what the database still refuses after that. */
  async retry(ctx: RequestContext, { ids }: RetryRefusedSettlementsInput): Promise<RefusedSettlementsShown> {
    requireOperator(ctx);
    const wanted = ids ? new Set(ids) : null;
    return this.keepers ? this.ask(this.keepers, RETRY_QUESTION, wanted) : this.retryOwn(wanted);
  }

  /** What each process has, in one. */
  private async ask(keepers: Keepers, question: string, body: unknown): Promise<RefusedSettlementsShown> {
    const answers = (await keepers.askAll(question, body, ANSWER_MS_MAX)) as RefusedSettlementsShown[];
    const settlements = answers
      .flatMap((answer) => answer.settlements)
      .sort((one, other) => Number(one.refusedAt) - Number(other.refusedAt));
    return {
      count: answers.reduce((sum, { count }) => sum + count, 0),
      settlements: settlements.slice(0, REFUSED_SETTLEMENTS_SHOWN_MAX),
    };
  }

  private async retryOwn(ids: ReadonlySet<string> | null): Promise<RefusedSettlementsShown> {
    await this.kept.retry(ids);
    return this.showOwn();
  }

  private showOwn(): RefusedSettlementsShown {
    const settlements = this.kept.list(REFUSED_SETTLEMENTS_SHOWN_MAX).map(({ operation, refusedAt, reason }) => {
      const { id, accountId, apiKeyId, amount: cost, record } = operation;
      const { model, timestamp } = record;
      return { id, accountId, apiKeyId, model, cost, timestamp: new Date(timestamp), refusedAt: new Date(refusedAt), reason };
    });
    return { count: this.kept.count, settlements };
  }
}
