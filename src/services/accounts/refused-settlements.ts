/** Charges that the database refuses: how operators list and retry them. */
import { z } from "zod";
import type { RequestContext } from "../../context.js";
import type { Database } from "../../store/database.js";
import { requireOperator } from "../access/permissions.js";
import { recordAct } from "../audit/audit-log.js";
import type { RefusedSettlements as Kept } from "../credits/refused-settlements.js";
import { REFUSED_SETTLEMENTS_SHOWN_MAX } from "./limits.js";

export const retryRefusedSettlementsInput = z.strictObject({ ids: z.array(z.uuid()).max(REFUSED_SETTLEMENTS_SHOWN_MAX).nullish() });
export type RetryRefusedSettlementsInput = z.output<typeof retryRefusedSettlementsInput>;

export interface RefusedSettlementRow {
  /** The generation's id. */
  readonly id: string;
  readonly accountId: string;
  readonly apiKeyId: string | null;
  readonly model: string;
  /** Nanocredits. */
  readonly cost: bigint;
  /** Time of the generation. */
  readonly timestamp: Date;
  readonly refusedAt: Date;
  readonly reason: string;
}

export interface RefusedSettlementsShown {
  readonly count: number;
  /** The oldest ones. */
  readonly settlements: readonly RefusedSettlementRow[];
}

/** The processes of a gateway that has several. Each keeps its own refused settlements and answers for them. */
export interface Keepers {
  answer(question: string, give: (body: unknown) => Promise<unknown>): void;
  askAll(question: string, body: unknown, timeoutMs: number): Promise<readonly unknown[]>;
}

const SHOW_QUESTION = "refused settlements";
const RETRY_QUESTION = "retry refused settlements";
/** Bound on waiting for a process, whose database may not answer. */
const ANSWER_MS_MAX = 20_000;

/** Refused settlements of this gateway only: each has its own DATA_DIR. */
export class RefusedSettlements {
  /** `keepers` is null for a gateway of one process. */
  constructor(
    private readonly kept: Kept,
    private readonly database: Pick<Database, "prisma">,
    private readonly keepers: Keepers | null = null,
  ) {
    keepers?.answer(SHOW_QUESTION, async () => this.showOwn());
    keepers?.answer(RETRY_QUESTION, (ids) => this.retryOwn(ids as ReadonlySet<string> | null));
  }

  async show(ctx: RequestContext): Promise<RefusedSettlementsShown> {
    requireOperator(ctx);
    return this.keepers ? this.ask(this.keepers, SHOW_QUESTION, null) : this.showOwn();
  }

  /** Retries the settlements, and returns those that the database still refuses. */
  async retry(ctx: RequestContext, { ids }: RetryRefusedSettlementsInput): Promise<RefusedSettlementsShown> {
    requireOperator(ctx);
    // A retry changes other processes too, so that it cannot be in the transaction of its row.
    await recordAct(this.database.prisma, ctx, { act: "retry_settlements", ...(ids && { after: { ids } }) });
    const wanted = ids ? new Set(ids) : null;
    return this.keepers ? this.ask(this.keepers, RETRY_QUESTION, wanted) : this.retryOwn(wanted);
  }

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
