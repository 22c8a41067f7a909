/**
 * Runs a statement of the ledger with a time limit, after which the database counts as unavailable; and writes its parameters by column as
 * PostgreSQL array literals, faster than the driver does.
 */
import pg from "pg";
import { NO_USAGE, USAGE_KINDS, type UsageQuantities } from "../lib/usage.js";
import { type LedgerOptions, LedgerUnavailable } from "./ledger.js";

/** For values without quotes: numbers, booleans, UUIDs, enum labels, timestamps, and results of `quote`. */
export function toArray<Item>(items: readonly Item[], element: (item: Item) => string | number | boolean | bigint | null): string {
  let literal = "{";
  for (const item of items) literal += (literal.length === 1 ? "" : ",") + (element(item) ?? "NULL");
  return `${literal}}`;
}

export function quote(text: string | null): string {
  return text === null ? "NULL" : `"${/["\\]/.test(text) ? text.replace(/["\\]/g, "\\$&") : text}"`;
}

export function quantities(usage: UsageQuantities): string {
  let literal = "{";
  for (const kind of USAGE_KINDS) literal += (literal.length === 1 ? "" : ",") + usage[kind];
  return `${literal}}`;
}

export const NO_QUANTITIES = quantities(NO_USAGE);

export interface LedgerStatement {
  readonly text: string;
  readonly values: unknown[];
  /** The name under which a connection that keeps statements prepares it. */
  readonly name?: string;
}

const SILENT = "The database does not answer";

/**
 * Destroys a connection without an answer in time: the statement may still be running on it, and a late answer must not reach the next
 * flush.
 */
export async function queryWithin<Row extends pg.QueryResultRow>(
  pool: pg.Pool,
  { name, ...statement }: LedgerStatement,
  { timeoutMs, watch, keepsStatements }: Pick<LedgerOptions, "timeoutMs" | "watch" | "keepsStatements">,
): Promise<readonly Row[]> {
  if (watch?.isSilent) throw new LedgerUnavailable(SILENT);
  let timer: NodeJS.Timeout | undefined;
  let endWatch: (() => void) | undefined;
  let client: pg.PoolClient | undefined;
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new LedgerUnavailable(`The database did not answer within ${timeoutMs} ms`)), timeoutMs);
    endWatch = watch?.begin(() => reject(new LedgerUnavailable(SILENT)));
  });
  let failure: Error | undefined;
  const connecting = pool.connect();
  try {
    client = await Promise.race([connecting, deadline]);
    const isKept = name !== undefined && keepsStatements?.(client);
    const result = await Promise.race([client.query<Row>(isKept ? { name, ...statement } : statement), deadline]);
    return result.rows;
  } catch (error) {
    failure = error instanceof Error ? error : new Error(String(error));
    if (isBatchFault(error)) throw error;
    throw error instanceof LedgerUnavailable ? error : new LedgerUnavailable("The database is away", { cause: error });
  } finally {
    clearTimeout(timer);
    endWatch?.();
    if (client) client.release(failure && !isBatchFault(failure) ? failure : undefined);
    else connecting.then((late) => late.release(true)).catch(() => undefined);
  }
}

/**
 * SQLSTATE classes of faulty statements. All others (connections 08, shutdown 57, resources 53, serialisation 40, system 58, and errors
 * without a SQLSTATE) pass when the database is available again.
 */
function isBatchFault(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /^(?:22|23|42|P0|XX)/.test(error.code ?? "");
}
