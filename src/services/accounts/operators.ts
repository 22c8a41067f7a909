/** The operators of the gateway as a group: at least one of them must be able to act. */
import type { DatabaseClient } from "../../store/database.js";

/**
 * Counts operators besides the account that can act. Locks all of them first: two operators who remove or suspend each other at the same
 * time wait here, so that one of them stays.
 */
export async function countOtherOperators(transaction: Pick<DatabaseClient, "$queryRaw" | "account">, accountId: string): Promise<number> {
  await transaction.$queryRaw`SELECT id FROM account WHERE is_operator ORDER BY id FOR UPDATE`;
  return transaction.account.count({ where: { isOperator: true, suspendedAt: null, deletion: null, NOT: { id: accountId } } });
}
