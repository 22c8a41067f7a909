import { append } from "../../lib/collections.js";
import { type Ledger, type LedgerOperation, type LedgerOutcome, LedgerUnavailable } from "../../store/ledger.js";

/**
 * Commits the operations together, or each alone when the database refuses the batch. A refused operation has a null outcome, after its
 * error was reported. Throws when the database is unavailable.
 */
export async function flushApart<Operation extends LedgerOperation>(
  ledger: Pick<Ledger, "flush">,
  batch: readonly Operation[],
  onRefused: (operation: Operation, error: unknown) => Promise<void>,
): Promise<readonly (LedgerOutcome | null)[]> {
  try {
    return await ledger.flush(batch);
  } catch (error) {
    if (error instanceof LedgerUnavailable) throw error;
    const [only] = batch;
    if (batch.length === 1 && only) {
      await onRefused(only, error);
      return [null];
    }
    const outcomes: (LedgerOutcome | null)[] = [];
    for (const operation of batch) append(outcomes, await flushApart(ledger, [operation], onRefused));
    return outcomes;
  }
}
