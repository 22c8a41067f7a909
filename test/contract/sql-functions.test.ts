/** The functions of a migrated database are the files of `prisma/functions`, and a changed file becomes a migration. */
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { diffFunctions, readFunctions } from "../../scripts/sql-functions.js";
import { createEmptyDir, createTestDatabase, type TestDatabase } from "../support/database.js";

const functions = fileURLToPath(new URL("../../prisma/functions", import.meta.url));

describe("prisma/functions", () => {
  let test: TestDatabase;
  let folder: string;

  beforeAll(async () => {
    test = await createTestDatabase();
  });
  afterAll(() => test.close());
  beforeEach(async () => {
    folder = join(await createEmptyDir(), "functions");
    cpSync(functions, folder, { recursive: true });
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const diff = (schemaSql: string | null = null) => diffFunctions(test.database, folder, schemaSql);
  const change = (name: string, from: string, to: string) => {
    const file = join(folder, `${name}.sql`);
    const sql = readFileSync(file, "utf8");
    expect(sql).toContain(from);
    writeFileSync(
      file,
      sql.replace(from, () => to),
    );
  };

  it("holds the functions that the migrations create", async () => {
    expect(await diff()).toBeNull();
    expect(readFunctions(folder).size).toBe(readdirSync(functions).length);
  });

  it("is not compared by its comments", async () => {
    change("usage_unrolled", "-- ", "-- Another comment.\n-- ");
    change("credit_available", "AS $$\n", "AS $$\n  -- Another comment.\n\n");

    expect(await diff()).toBeNull();
  });

  it("writes a changed body as in the file", async () => {
    change("usage_time_digit", "THEN 0 ELSE", "THEN 1 ELSE");

    expect(await diff()).toBe(readFileSync(join(folder, "usage_time_digit.sql"), "utf8"));
  });

  it("drops the old function when its parameters change", async () => {
    change("usage_roll", "(rows_max integer)", "(rows_max integer, rows_min integer)");

    expect(await diff()).toBe(`DROP FUNCTION usage_roll(integer);\n\n${readFileSync(join(folder, "usage_roll.sql"), "utf8")}`);
  });

  it("drops the old function when its columns change", async () => {
    change("credit_available", "key_available bigint)", "of_key bigint)");
    change("credit_available", "of_key uuid", "of_api_key uuid");

    expect(await diff()).toMatch(/^DROP FUNCTION credit_available\(uuid,\s?uuid\);\n\n/);
  });

  it("drops a function without a file", async () => {
    rmSync(join(folder, "credit_forfeit.sql"));

    expect(await diff()).toBe("DROP FUNCTION credit_forfeit(uuid,uuid);\n");
  });

  it("may use columns that the migration of the schema adds", async () => {
    writeFileSync(join(folder, "twice.sql"), "CREATE FUNCTION twice(n added) RETURNS SETOF added LANGUAGE sql AS $$ SELECT n.* $$;\n");

    expect(await diff("CREATE TABLE added (id integer);")).toBe(readFileSync(join(folder, "twice.sql"), "utf8"));
    expect((await test.database.pool.query("SELECT to_regclass('added') AS added")).rows).toEqual([{ added: null }]);
  });

  it("refuses a file that creates another function than its name says", async () => {
    writeFileSync(join(folder, "once.sql"), readFileSync(join(folder, "usage_transaction.sql"), "utf8"));

    await expect(diff()).rejects.toThrow("once.sql does not create the function once.");
  });
});
