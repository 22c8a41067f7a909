/** Accounts, and charges that are refused, as text for a terminal. */

/** Result of a command. */
export interface Outcome {
  /** Printed with --json. */
  readonly answer: unknown;
  readonly words: string;
  /** Printed on standard error, apart from the answer that programs read. */
  readonly advice?: string | undefined;
}

export interface Account {
  readonly id: string;
  readonly handle: string;
  readonly name: string | null;
  readonly email: string | null;
  readonly githubUsername: string | null;
  readonly tier: string | null;
  readonly nextResetAt: string | null;
  readonly isOperator: boolean;
  readonly isPublisher: boolean;
  readonly suspendedAt: string | null;
  readonly suspensionReason: string | null;
  readonly createdAt: string;
  readonly balance: {
    readonly available: string;
    readonly tier: string;
    readonly crypto: string;
    readonly pack: string;
    readonly held: string;
  };
}

export type Column<Row> = readonly [string, (row: Row) => string];

const ACCOUNT_COLUMNS: readonly Column<Account>[] = [
  ["ID", ({ id }) => id],
  ["HANDLE", ({ handle }) => handle],
  ["E-MAIL", ({ email }) => email ?? "-"],
  ["TIER", ({ tier }) => tier ?? "-"],
  ["BALANCE", ({ balance }) => balance.available],
  ["CREATED", ({ createdAt }) => createdAt.slice(0, 10)],
];

export interface RefusedSettlement {
  readonly id: string;
  readonly accountId: string;
  readonly model: string;
  readonly cost: string;
  readonly refusedAt: string;
  readonly reason: string;
}

export interface RefusedSettlements {
  readonly count: number;
  readonly settlements: readonly RefusedSettlement[];
}

const REFUSED_COLUMNS: readonly Column<RefusedSettlement>[] = [
  ["GENERATION", ({ id }) => id],
  ["ACCOUNT", ({ accountId }) => accountId],
  ["MODEL", ({ model }) => model],
  ["COST", ({ cost }) => cost],
  ["REFUSED", ({ refusedAt }) => refusedAt],
  ["REASON", ({ reason }) => reason],
];

export function toTable(accounts: readonly Account[]): string {
  return toColumns(ACCOUNT_COLUMNS, accounts);
}

export function toRefusedTable({ count, settlements }: RefusedSettlements): string {
  if (count === 0) return "The database refuses no charge.";
  const more = count > settlements.length ? `\nand ${count - settlements.length} more` : "";
  return toColumns(REFUSED_COLUMNS, settlements) + more;
}

export function toColumns<Row>(columns: readonly Column<Row>[], of: readonly Row[]): string {
  const rows = [columns.map(([title]) => title), ...of.map((row) => columns.map(([, cell]) => printable(cell(row))))];
  const widths = columns.map((_, index) => Math.max(...rows.map((row) => row[index]?.length ?? 0)));
  return rows
    .map((row) =>
      row
        .map((cell, index) => cell.padEnd(widths[index] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

export function toLines(account: Account): string {
  const { balance } = account;
  const facts: [string, string][] = [
    ["id", account.id],
    ["handle", account.handle],
    ["name", account.name ?? "-"],
    ["e-mail", account.email ?? "-"],
    ["github", account.githubUsername ?? "-"],
    ["tier", account.tier ?? "-"],
    ["next reset", account.nextResetAt ?? "-"],
    ["balance", `${balance.available} credits: tier ${balance.tier}, crypto ${balance.crypto}, pack ${balance.pack}; held ${balance.held}`],
    ["publisher", account.isPublisher ? "yes" : "no"],
    ["operator", account.isOperator ? "yes" : "no"],
    ["suspended", account.suspendedAt === null ? "no" : `since ${account.suspendedAt}: ${account.suspensionReason ?? ""}`],
    ["created", account.createdAt],
  ];
  return facts.map(([name, value]) => `${name.padEnd(11)} ${printable(value)}`).join("\n");
}

/** People choose their names: what steers a terminal is shown and not sent to it. */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}
