/** Accounts as text for a terminal. */

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
  readonly createdAt: string;
  readonly balance: {
    readonly available: string;
    readonly tier: string;
    readonly crypto: string;
    readonly pack: string;
    readonly held: string;
  };
}

const COLUMNS: readonly [string, (account: Account) => string][] = [
  ["ID", ({ id }) => id],
  ["HANDLE", ({ handle }) => handle],
  ["E-MAIL", ({ email }) => email ?? "-"],
  ["TIER", ({ tier }) => tier ?? "-"],
  ["BALANCE", ({ balance }) => balance.available],
  ["CREATED", ({ createdAt }) => createdAt.slice(0, 10)],
];

export function toTable(accounts: readonly Account[]): string {
  const rows = [COLUMNS.map(([title]) => title), ...accounts.map((account) => COLUMNS.map(([, cell]) => printable(cell(account))))];
  const widths = COLUMNS.map((_, index) => Math.max(...rows.map((row) => row[index]?.length ?? 0)));
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
    ["created", account.createdAt],
  ];
  return facts.map(([name, value]) => `${name.padEnd(11)} ${printable(value)}`).join("\n");
}

/** People choose their names: what steers a terminal is shown and not sent to it. */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}
