/**
 * One lock order for all writers of money (docs/decisions/money-in-one-sql-function.md): only SQL functions of the
 * migrations write it, and each locks the account's row before it writes anything. Reads every source and every
 * migration, so that a new writer is found.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { readSources } from "../support/boundaries.js";
import type { Sources } from "../support/imports.js";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** Written by the functions alone. */
const BOOKS = [
  "hold",
  "credit_lease",
  "ledger_entry",
  "usage_record",
  "usage_daily",
  "app_usage_daily",
  "free_spend_daily",
  "earning",
  "earning_daily",
  "expiring_grant",
];
/** Of these tables, only the columns of money are restricted. */
const OWNERS = ["account", "api_key"];
const BUCKETS = [
  "tier",
  "crypto",
  "pack",
  "tier_held",
  "crypto_held",
  "pack_held",
  "crypto_sold",
  "pack_sold",
  "crypto_marked",
  "pack_marked",
  "earned",
];
const MONEY_COLUMN = new RegExp(`\\b(?:${[...BUCKETS, "budget", "spent", "held"].join("|")})_nanocredits\\b`);
const MONEY_FIELD = /\b(?:(?:tier|crypto|pack)(?:Held|Sold|Marked)?|earned|budget|spent|held)Nanocredits\b/;

const SQL_WRITE = new RegExp(
  `\\b(?:INSERT\\s+INTO|UPDATE|DELETE\\s+FROM|TRUNCATE(?:\\s+TABLE)?)\\s+"?(${[...BOOKS, ...OWNERS].join("|")})\\b`,
  "i",
);
const PRISMA_WRITE = /\.(\w+)\s*\.\s*((?:create|update|upsert|delete)\w*)\(/g;

/** The writers of money that stand in the sources, where none may. */
function findWriters(sources: Sources): string[] {
  return [...sources].flatMap(([file, text]) => [...findSqlWriters(file, text), ...findPrismaWriters(file, text)]);
}

function findSqlWriters(file: string, text: string): string[] {
  const statements = text.match(/`[^`]*`|"[^"\n]*"|'[^'\n]*'/g) ?? [];
  return statements.flatMap((statement) => {
    const table = SQL_WRITE.exec(statement)?.[1];
    return table && (BOOKS.includes(table.toLowerCase()) || MONEY_COLUMN.test(statement)) ? [`${file}: writes ${table} by itself`] : [];
  });
}

function findPrismaWriters(file: string, text: string): string[] {
  return [...text.matchAll(PRISMA_WRITE)].flatMap((match) => {
    const [call, model = "", method = ""] = match;
    const table = model.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    const writes = `${file}: writes ${table} by itself`;
    if (BOOKS.includes(table)) return [writes];
    if (!OWNERS.includes(table)) return [];
    const written = argumentsOf(text, match.index + call.length);
    // A key that is just being made has no charges yet: it may be created with a budget.
    const isBirth = table === "api_key" && method === "create" && !MONEY_FIELD.test(written.replaceAll("budgetNanocredits", ""));
    return method.startsWith("delete") || (MONEY_FIELD.test(written) && !isBirth) ? [writes] : [];
  });
}

/** The text up to the parenthesis that closes the one before `from`. */
function argumentsOf(text: string, from: number): string {
  let depth = 1;
  let end = from;
  for (; end < text.length && depth > 0; end++) depth += text[end] === "(" ? 1 : text[end] === ")" ? -1 : 0;
  return text.slice(from, end);
}

/** The last version of every SQL function, by its name. */
function readFunctions(): Map<string, string> {
  const folder = join(root, "prisma/migrations");
  const functions = new Map<string, string>();
  for (const name of readdirSync(folder).sort()) {
    if (!/^\d/.test(name)) continue;
    const sql = readFileSync(join(folder, name, "migration.sql"), "utf8");
    for (const [text, made] of sql.matchAll(/CREATE (?:OR REPLACE )?FUNCTION "?(\w+)"?\s*\([\s\S]*?\$\$[\s\S]*?\$\$/g))
      functions.set(made as string, text);
  }
  return functions;
}

const FUNCTION_WRITE = new RegExp(`\\b(?:INSERT\\s+INTO|UPDATE|DELETE\\s+FROM)\\s+"?(?:${[...BOOKS, ...OWNERS].join("|")})\\b`);
const OWNER_WRITE = new RegExp(`\\b(?:INSERT\\s+INTO|UPDATE|DELETE\\s+FROM)\\s+"?(?:${OWNERS.join("|")})\\b`);
const ACCOUNT_LOCK = /FROM account\b[^;]*\bFOR NO KEY UPDATE/;
/** What pays out of a lease: it locks leases alone, and writes nothing of the account or of its keys. */
const LEASE_LOCK = /FROM credit_lease\b[^;]*\bFOR NO KEY UPDATE/;

describe("a writer of money", () => {
  it("is an SQL function of the migrations", () => {
    const sources = readSources(root, ["src", "scripts"]);

    expect(sources.has("src/services/api-keys/api-keys.ts")).toBe(true);
    expect(findWriters(sources)).toEqual([]);
  });

  it("locks the account's row before it writes anything", () => {
    const writers = [...readFunctions()].filter(([, text]) => FUNCTION_WRITE.test(text));

    expect(writers.map(([name]) => name).sort()).toEqual(
      expect.arrayContaining(["credit_flush", "credit_grant", "credit_refill", "credit_set_budget", "credit_set_tier"]),
    );
    const locksFirst = (lock: RegExp, text: string) => text.search(lock) >= 0 && text.search(lock) < text.search(FUNCTION_WRITE);
    const late = writers.filter(([, text]) => !locksFirst(ACCOUNT_LOCK, text));
    expect(late.map(([name]) => name).sort()).toEqual(["credit_move", "credit_spend"]);
    for (const [, text] of late) expect(locksFirst(LEASE_LOCK, text) && !OWNER_WRITE.test(text)).toBe(true);
  });

  it.each([
    "await db.$executeRaw`UPDATE api_key SET budget_nanocredits = 1 WHERE id = 1`;",
    'await pool.query("UPDATE account SET pack_nanocredits = 1");',
    "await db.$executeRaw`DELETE FROM hold`;",
    "await prisma.apiKey.update({ where: { id }, data: { budgetNanocredits: 1n } });",
    "await prisma.apiKey.create({ data: { spentNanocredits: 1n } });",
    "await prisma.account.updateMany({ data: { tierHeldNanocredits: 0n } });",
    "await prisma.usageDaily.upsert({});",
    "await prisma.account.delete({ where: { id } });",
  ])("is found: %s", (text) => {
    expect(findWriters(new Map([["src/services/a.ts", text]]))).toHaveLength(1);
  });

  it.each([
    "await prisma.apiKey.create({ data: { budgetNanocredits: 1n } });",
    "await prisma.apiKey.update({ where: { id }, data: { name } }); const { budgetNanocredits } = row;",
    "await prisma.account.update({ where: { id }, data: { lowBalanceNanocredits: 1n } });",
    "await db.$executeRaw`UPDATE account SET is_low_balance_told = true`;",
  ])("is distinguished from: %s", (text) => {
    expect(findWriters(new Map([["src/services/a.ts", text]]))).toEqual([]);
  });
});
