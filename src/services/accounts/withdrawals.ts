/** Credits that an operator takes back (docs/spec/credits.md#withdrawals): at most those that nothing holds. */
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { conflict, notFound } from "../../errors.js";
import { createId } from "../../lib/ids.js";
import { formatNanocredits } from "../../lib/money.js";
import { type Database, type DatabaseClient, lockAccountRow } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { Ledger } from "../../store/ledger.js";
import { requireOperator } from "../access/permissions.js";
import { recordAct } from "../audit/audit-log.js";
import { positiveCredits } from "../credits/credits-amount.js";
import type { Leases } from "../credits/leases.js";
import type { TierRefills } from "../credits/tiers.js";
import { storableText } from "../requests/input.js";
import { STANDING } from "./accounts.js";
import { bookOnce, findEarlier, isTaken } from "./chosen-ids.js";
import { GRANT_NOTE_CHARS_MAX } from "./limits.js";

export const withdrawCreditsInput = z.strictObject({
  accountId: z.uuid(),
  bucket: z.enum(["tier", "crypto", "pack"]),
  credits: positiveCredits,
  note: storableText.max(GRANT_NOTE_CHARS_MAX).nullish(),
  /** Withdrawals with the same id are made once. */
  withdrawalId: z.uuid().nullish(),
});
export type WithdrawCreditsInput = z.output<typeof withdrawCreditsInput>;

export class Withdrawals {
  constructor(
    private readonly database: Database,
    private readonly ledger: Pick<Ledger, "withdraw">,
    private readonly events: Events,
    private readonly leases: Pick<Leases, "recall">,
    private readonly refills: Pick<TierRefills, "bringUpToDate">,
  ) {}

  /**
   * Takes credits of a bucket, or as many as are available. Returns the nanocredits that were taken, the first time for a repeated id.
   * Rejects with CONFLICT when the bucket has no available credits.
   */
  async withdraw(ctx: RequestContext, input: WithdrawCreditsInput): Promise<bigint> {
    requireOperator(ctx);
    const { accountId, bucket, credits: amount, note = null, withdrawalId } = input;
    const id = withdrawalId ?? createId();
    const account = await this.database.prisma.account.findUnique({ where: { id: accountId, deletion: null }, select: STANDING });
    if (!account) throw notFound("account");
    // A due refill comes first: it replaces the rest of the tier's credits.
    await this.refills.bringUpToDate(account);
    // Credits of a lease are held until it is recalled.
    await this.leases.recall(accountId);
    const taken = await bookOnce(this.database, "withdrawal", async (transaction) => {
      await lockAccount(transaction, accountId);
      const earlier = await findEarlier(transaction, { id, kind: "withdrawal", accountId, bucket });
      if (earlier) {
        // Less may have been taken than was requested.
        if (-earlier.amountNanocredits > amount) throw isTaken("withdrawal");
        return -earlier.amountNanocredits;
      }
      const taken = await this.ledger.withdraw({ id, accountId, bucket, amount, note }, transaction);
      if (taken === 0n) throw conflict(`The bucket ${bucket} has no available credits: nothing was taken.`);
      const facts = { after: { bucket, requested: formatNanocredits(amount), credits: formatNanocredits(taken) } };
      await recordAct(transaction, ctx, { act: "withdraw_credits", accountId, objectId: id, ...facts, reason: note });
      return taken;
    });
    this.events.publish("balance-changed", { accountId });
    return taken;
  }
}

async function lockAccount(transaction: Pick<DatabaseClient, "$queryRaw" | "account">, id: string): Promise<void> {
  await lockAccountRow(transaction, id);
  if ((await transaction.account.count({ where: { id, deletion: null } })) === 0) throw notFound("account");
}
