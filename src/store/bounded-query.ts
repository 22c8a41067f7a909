/** A statement of the ledger that either answers in time, or counts as asked of a database that is away. */
import pg from "pg";

/** The database is away: nothing is known of whether the batch was applied. Anything else is the batch's own fault. */
export class LedgerUnavailable extends Error {
  override readonly name = "LedgerUnavailable";
}

/**
 * A connection that does not answer in time is destroyed, not returned: the statement may still be running on it, and a
 * late answer must not reach the next flush.
 */
export async function queryWithin<Row extends pg.QueryResultRow>(
  pool: pg.Pool,
  statement: pg.QueryConfig,
  timeoutMs: number,
): Promise<readonly Row[]> {
  let timer: NodeJS.Timeout | undefined;
  let client: pg.PoolClient | undefined;
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new LedgerUnavailable(`The database did not answer within ${timeoutMs} ms`)), timeoutMs);
  });
  let failure: Error | undefined;
  const connecting = pool.connect();
  try {
    client = await Promise.race([connecting, deadline]);
    const result = await Promise.race([client.query<Row>(statement), deadline]);
    return result.rows;
  } catch (error) {
    failure = error instanceof Error ? error : new Error(String(error));
    if (isBatchFault(error)) throw error;
    throw error instanceof LedgerUnavailable ? error : new LedgerUnavailable("The database is away", { cause: error });
  } finally {
    clearTimeout(timer);
    if (client) client.release(failure && !isBatchFault(failure) ? failure : undefined);
    else connecting.then((late) => late.release(true)).catch(() => undefined);
  }
}

/**
 * SQLSTATE classes that condemn the statement itself. Everything else (connections 08, shutdown 57, resources 53,
 * serialisation 40, system 58, and errors without a SQLSTATE) passes when the database is back.
 */
function isBatchFault(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /^(?:22|23|42|P0|XX)/.test(error.code ?? "");
}
