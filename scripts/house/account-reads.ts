/** How often an operation reads the account: the statements that go to the database while it is answered. */
import pg from "pg";

const READS_ACCOUNT = /^\s*(?:SELECT|WITH)\b[\s\S]*\b(?:FROM|JOIN)\s+(?:"public"\.)?"?account"?(?!_)\b/i;

const IDS = /"account"\."id" IN \(([^)]*)\)/i;

/** Rows of accounts that a statement asks for: reads that come in the same moment become one statement, with an id for each. */
export function accountReadsIn(statement: string): number {
  if (!READS_ACCOUNT.test(statement)) return 0;
  return IDS.exec(statement)?.[1]?.split(",").length ?? 1;
}

/** The text of each statement that the process sends while `work` goes on. */
export async function statementsOf(work: () => Promise<unknown>): Promise<string[]> {
  const statements: string[] = [];
  const { query } = pg.Client.prototype;
  pg.Client.prototype.query = function note(this: pg.Client, ...values: unknown[]) {
    const [asked] = values;
    if (typeof asked === "string") statements.push(asked);
    else if (typeof asked === "object" && asked !== null && "text" in asked) statements.push(String(asked.text));
    return Reflect.apply(query, this, values);
  } as typeof query;
  try {
    await work();
    return statements;
  } finally {
    pg.Client.prototype.query = query;
  }
}
