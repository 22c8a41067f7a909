/** What the migrations make is what prisma/schema.prisma says, and the rules that the schema cannot state hold. */
import { randomBytes, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { PrismaPg } from "@prisma/adapter-pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { diffSchema } from "../../scripts/schema-diff.js";
import { newestFirst } from "../../src/lib/pagination.js";
import { type Database, openDatabase } from "../../src/store/database.js";
import { PrismaClient } from "../../src/store/generated/prisma/client.js";
import { migrate } from "../../src/store/migrations.js";
import { createEmptyDir, createTestDatabase, silentLog } from "../support/database.js";
import { isPostgresInstalled, POSTGRES_ABSENT, startPostgres } from "../support/postgres.js";

const schema = readFileSync(new URL("../../prisma/schema.prisma", import.meta.url), "utf8");

if (!isPostgresInstalled) console.warn(`skipped: ${POSTGRES_ABSENT}`);

describe("the embedded database", () => {
  describeContract(async () => {
    const { database, close } = await createTestDatabase();
    return { database, close };
  });
});

describe.skipIf(!isPostgresInstalled)("PostgreSQL", () => {
  describeContract(async () => {
    const server = await startPostgres();
    if (!server) throw new Error(POSTGRES_ABSENT);
    const dataDir = await createEmptyDir();
    const database = await openDatabase({ databaseUrl: server.url, dataDir, log: silentLog });
    await migrate(database, silentLog);
    return {
      database,
      close: async () => {
        await database.close();
        await server.stop();
        await rm(dataDir, { recursive: true });
      },
    };
  });
});

interface Statement {
  readonly text: string;
  readonly values: unknown[];
}

function describeContract(open: () => Promise<{ readonly database: Database; close(): Promise<void> }>): void {
  let database: Database;
  let close: () => Promise<void>;

  beforeAll(async () => {
    ({ database, close } = await open());
  });

  afterAll(() => close());

  const execute = (sql: string, values: unknown[] = []) => database.pool.query(sql, values);

  describe("the schema", () => {
    it("matches the migrations", async () => {
      expect(await diffSchema(database, schema)).toBeNull();
    });

    it("differs once a column, an index, a default or a relation's rule is changed in it", async () => {
      const changes: [string, string][] = [
        ["model DeploymentSetting {", "model DeploymentSetting {\n  added Int?"],
        ["@@index([accountId, createdAt, id])", ""],
        ["isOperator            Boolean   @default(false)", "isOperator            Boolean   @default(true)"],
        ["onDelete: Restrict", "onDelete: Cascade"],
      ];
      for (const [before, after] of changes) {
        expect(schema).toContain(before);
        expect(await diffSchema(database, schema.replace(before, after)), before).toMatch(/ALTER TABLE|DROP INDEX/);
      }
    });
  });

  describe("the ledger", () => {
    const insert =
      "INSERT INTO ledger_entry (transaction_id, line, account_id, book, kind, amount_nanocredits) VALUES ($1, 0, $1, $2, $3, 1)";

    it.each([
      "UPDATE ledger_entry SET amount_nanocredits = 2",
      "UPDATE ledger_entry SET note = note WHERE false",
      "DELETE FROM ledger_entry",
      "TRUNCATE ledger_entry",
      "INSERT INTO ledger_entry SELECT * FROM ledger_entry ON CONFLICT (transaction_id, line) DO UPDATE SET amount_nanocredits = 2",
    ])("refuses %s", async (sql) => {
      await execute(insert, [randomUUID(), "pack", "grant"]);

      await expect(execute(sql)).rejects.toThrow("ledger_entry is append-only");
    });

    it("refuses them to a session that replays a replication stream, too", async () => {
      const session = database.openSession();
      await session.query("SET session_replication_role = replica");

      await expect(session.query("DELETE FROM ledger_entry")).rejects.toThrow("ledger_entry is append-only");
      await session.query("RESET session_replication_role");
      await session.end();
    });

    it.each([
      ["issued", "charge"],
      ["revenue", "grant"],
      ["write_off", "refill"],
    ])("has no line of %s in a %s", async (book, kind) => {
      await expect(execute(insert, [randomUUID(), book, kind])).rejects.toThrow("ledger_entry_book_check");
    });
  });

  describe("a page of a list", () => {
    const after = { timestamp: new Date("2026-01-31T12:00:00.000Z"), id: randomUUID() };
    const { where: older, ...page } = newestFirst({ first: 20, after });
    const { where: olderUsage, ...usagePage } = newestFirst({ first: 20, after }, "timestamp");
    const owner = { accountId: randomUUID() };

    it.each<[string, (prisma: PrismaClient) => Promise<unknown>]>([
      ["accounts", (prisma) => prisma.account.findMany({ where: older, ...page })],
      ["keys", (prisma) => prisma.apiKey.findMany({ where: { ...owner, revokedAt: null, ...older }, ...page })],
      ["an account's usage", (prisma) => prisma.usageRecord.findMany({ where: { ...owner, AND: olderUsage }, ...usagePage })],
      ["a key's usage", (prisma) => prisma.usageRecord.findMany({ where: { apiKeyId: owner.accountId, AND: olderUsage }, ...usagePage })],
      ["generations", (prisma) => prisma.generationJob.findMany({ where: { ...owner, ...older }, ...page })],
      ["files", (prisma) => prisma.mediaObject.findMany({ where: { ...owner, ...older }, ...page })],
      ["models and agents", (prisma) => prisma.communityModel.findMany({ where: { ...owner, ...older }, ...page })],
      ["webhook deliveries", (prisma) => prisma.webhookDelivery.findMany({ where: { endpointId: owner.accountId, ...older }, ...page })],
    ])("enters the index of %s where it begins", async (_list, query) => {
      const [statement] = await statementsOf(query);

      const plan = await explain(statement);

      expect(plan).toMatch(/Index Cond: .*(?:created_at|"?timestamp"?) <=/);
      // Rows come in the index's order.
      expect(plan).not.toMatch(/\bSort\b/);
    });

    /** What Prisma sends for a query, with its values. */
    async function statementsOf(query: (prisma: PrismaClient) => Promise<unknown>): Promise<Statement[]> {
      const prisma = new PrismaClient({ adapter: new PrismaPg(database.pool), log: [{ emit: "event", level: "query" }] });
      const statements: Statement[] = [];
      prisma.$on("query", ({ query: text, params }) => statements.push({ text, values: JSON.parse(params) as unknown[] }));
      await query(prisma);
      return statements;
    }

    /** Empty tables are read faster without an index: the plan shows whether an index exists for the statement. */
    async function explain(statement: Statement | undefined): Promise<string> {
      const client = await database.pool.connect();
      try {
        await client.query("BEGIN");
        await client.query("SET LOCAL enable_seqscan = off");
        await client.query("SET LOCAL enable_bitmapscan = off");
        const { rows } = await client.query({ text: `EXPLAIN ${statement?.text}`, values: statement?.values ?? [] });
        return rows.map((row) => row["QUERY PLAN"]).join("\n");
      } finally {
        await client.query("ROLLBACK");
        client.release();
      }
    }
  });

  describe("an account", () => {
    it.each(["tier", "crypto", "pack"])("holds no more of its %s bucket than is there, and neither is negative", async (bucket) => {
      const id = randomUUID();
      await execute(`INSERT INTO account (id, handle, ${bucket}_nanocredits, ${bucket}_held_nanocredits) VALUES ($1, $2, 5, 5)`, [id, id]);

      for (const change of [`${bucket}_held_nanocredits = 6`, `${bucket}_nanocredits = 4`, `${bucket}_held_nanocredits = -1`]) {
        await expect(execute(`UPDATE account SET ${change} WHERE id = $1`, [id]), change).rejects.toThrow(`account_${bucket}_check`);
      }
      await execute(`UPDATE account SET ${bucket}_held_nanocredits = 0 WHERE id = $1`, [id]);
      await expect(execute(`UPDATE account SET ${bucket}_nanocredits = -1 WHERE id = $1`, [id])).rejects.toThrow(`account_${bucket}_check`);
    });
  });

  describe("an API key", () => {
    it("descends from its parent last, from itself never, and from seven keys at most", async () => {
      const [accountId, first, ...more] = Array.from({ length: 10 }, () => randomUUID()) as [string, string, ...string[]];
      await execute("INSERT INTO account (id, handle) VALUES ($1, $2)", [accountId, accountId]);
      const insert = (id: string, parentId: string | null, ancestorIds: readonly string[]) =>
        execute(
          "INSERT INTO api_key (id, account_id, hash, type, name, start, parent_id, ancestor_ids) VALUES ($1, $2, $3, 'secret', 'tree', 'sk_', $4, $5)",
          [id, accountId, Buffer.from(id), parentId, ancestorIds],
        );
      await insert(first, null, []);
      const [child = "", ...others] = more;
      await insert(child, first, [first]);

      for (const [parentId, ancestorIds] of [
        [null, [first]],
        [first, []],
        [first, [first, child]],
        [first, [...others, first]],
        [child, [others[0] ?? "", child]],
      ] as const) {
        const id = others[0] ?? "";
        await expect(insert(id, parentId, ancestorIds), ancestorIds.join()).rejects.toThrow("api_key_ancestors_check");
      }
      await expect(insert(others[0] ?? "", accountId, [accountId])).rejects.toThrow("api_key_parent_id_fkey");
    });

    it("spends and holds no more than its budget", async () => {
      const accountId = randomUUID();
      const id = randomUUID();
      await execute("INSERT INTO account (id, handle) VALUES ($1, $2)", [accountId, accountId]);
      await execute(
        `INSERT INTO api_key (id, account_id, hash, type, name, start, budget_nanocredits, spent_nanocredits, held_nanocredits)
         VALUES ($1, $2, $3, 'secret', 'budgeted', 'sk_', 10, 4, 6)`,
        [id, accountId, Buffer.from(id)],
      );

      for (const [change, check] of [
        ["spent_nanocredits = 5", "budget"],
        ["held_nanocredits = 7", "budget"],
        ["budget_nanocredits = 9", "budget"],
        ["spent_nanocredits = -1", "spent"],
        ["held_nanocredits = -1", "held"],
      ]) {
        await expect(execute(`UPDATE api_key SET ${change} WHERE id = $1`, [id]), change).rejects.toThrow(`api_key_${check}_check`);
      }
      await expect(
        execute("UPDATE api_key SET budget_nanocredits = NULL, spent_nanocredits = 99 WHERE id = $1", [id]),
      ).resolves.toMatchObject({
        rowCount: 1,
      });
    });
  });

  describe("a hold", () => {
    const insert = `INSERT INTO hold (id, account_id, process_id, paid_only, tier_nanocredits, crypto_nanocredits, pack_nanocredits, metered_nanocredits, record, expires_at)
       VALUES ($1, $1, $1, $2, $3, $4, $5, $6, '{}', now())`;

    it.each([[[-1, 0, 0, 0]], [[0, -1, 0, 0]], [[0, 0, -1, 0]], [[0, 0, 0, -1]]])("has no negative amount: %j", async (amounts) => {
      await expect(execute(insert, [randomUUID(), false, ...amounts])).rejects.toThrow("hold_amounts_check");
    });

    it("takes nothing of the tier bucket for a model that is for paying callers only", async () => {
      await expect(execute(insert, [randomUUID(), true, 1, 0, 0, 0])).rejects.toThrow("hold_paid_only_check");
      await expect(execute(insert, [randomUUID(), true, 0, 1, 1, 0])).resolves.toMatchObject({ rowCount: 1 });
    });
  });

  describe("a usage row", () => {
    const columns = "id, account_id, timestamp, modality, model, model_used, meter_source, status, usage_source";
    const values = "$1, $1, now(), 'text', 'a/b', 'a/b', 'pack', 'ok', 'provider'";

    it.each([
      ["input_text_tokens", "amounts"],
      ["output_audio_milliseconds", "amounts"],
      ["time_to_first_token_ms", "times"],
    ])("has no negative %s", async (column, check) => {
      const insert = `INSERT INTO usage_record (${columns}, cost_nanocredits, response_time_ms, ${column}) VALUES (${values}, 0, 0, $2)`;

      await expect(execute(insert, [randomUUID(), -1])).rejects.toThrow(`usage_record_${check}_check`);
      await expect(execute(insert, [randomUUID(), 0])).resolves.toMatchObject({ rowCount: 1 });
    });

    it("costs nothing or something", async () => {
      const insert = `INSERT INTO usage_record (${columns}, response_time_ms, cost_nanocredits) VALUES (${values}, 0, $2)`;

      await expect(execute(insert, [randomUUID(), -1])).rejects.toThrow("usage_record_cost_check");
    });
  });

  describe("a generation job", () => {
    const insert = (columns: string, values: string) =>
      execute(
        `INSERT INTO generation_job (id, account_id, modality, model, request, process_id, expires_at, ${columns})
         VALUES ($1, $1, 'video', 'a/b', '{}', $1, now() + interval '1 day', ${values})`,
        [randomUUID()],
      );
    const result = "result_key, result_content_type, receipt";

    it.each([
      ["more than all of it done", "progress", "101", "progress"],
      ["a negative progress", "progress", "-1", "progress"],
      [
        "success that is not complete",
        `status, progress, finished_at, ${result}`,
        "'succeeded', 99, now(), 'k', 'video/mp4', '{}'",
        "progress",
      ],
      ["an end while it runs", "status, finished_at", "'running', now()", "finished"],
      ["no end when it is cancelled", "status", "'cancelled'", "finished"],
      ["success without a result", "status, progress, finished_at, receipt", "'succeeded', 100, now(), '{}'", "result"],
      [
        "a result of a failure",
        `status, finished_at, error_code, error_message, ${result}`,
        "'failed', now(), 'c', 'm', 'k', 't', '{}'",
        "result",
      ],
      [
        "success without a receipt",
        "status, progress, finished_at, result_key, result_content_type",
        "'succeeded', 100, now(), 'k', 't'",
        "result",
      ],
      ["a failure without a reason", "status, finished_at", "'failed', now()", "error"],
      ["an error without words", "status, finished_at, error_code", "'failed', now(), 'c'", "error"],
    ])("does not have %s", async (_, columns, values, check) => {
      await expect(insert(columns, values)).rejects.toThrow(`generation_job_${check}_check`);
    });

    it.each([
      ["runs", "status, progress", "'running', 40"],
      ["succeeds", `status, progress, finished_at, ${result}`, "'succeeded', 100, now(), 'jobs/1', 'video/mp4', '{}'"],
      ["fails", "status, finished_at, error_code, error_message", "'failed', now(), 'UPSTREAM_ERROR', 'm'"],
      ["is cancelled, charged or not", "status, finished_at, receipt", "'cancelled', now(), '{}'"],
    ])("%s", async (_, columns, values) => {
      await expect(insert(columns, values)).resolves.toMatchObject({ rowCount: 1 });
    });
  });

  describe("a media file", () => {
    const insert =
      "INSERT INTO media_file (id, sha256, account_id, content_type, size_bytes, expires_at) VALUES ($1, $2, $3, 'image/png', 1, now() + interval '1 day')";

    it("is named by the beginning of its own hash, and by nothing else", async () => {
      const sha256 = randomBytes(32);
      const id = sha256.toString("hex").slice(0, 16);

      await expect(execute(insert, [id.replace(/^./, "x"), sha256, randomUUID()])).rejects.toThrow("media_file_id_check");
      await expect(execute(insert, [id, sha256.subarray(0, 16), randomUUID()])).rejects.toThrow("media_file_id_check");
      await expect(execute(insert, [id, sha256, randomUUID()])).resolves.toMatchObject({ rowCount: 1 });
    });
  });

  describe("an idempotent request", () => {
    const insert = (key: string, columns = "", values = "") =>
      execute(
        `INSERT INTO idempotent_request (id, scope_id, key, account_id, fingerprint, generation_id, process_id, expires_at ${columns})
         VALUES ($1, $1, $2, $1, sha256(''), $1, $1, now() + interval '1 day' ${values})`,
        [randomUUID(), key],
      );

    it("has a key of 1 to 255 characters", async () => {
      await expect(insert("")).rejects.toThrow("idempotent_request_key_check");
      await expect(insert("k".repeat(256))).rejects.toThrow("idempotent_request_key_check");
      await expect(insert("k".repeat(255))).resolves.toMatchObject({ rowCount: 1 });
    });

    it.each([
      ["running, with a body", ", body", ", ''"],
      ["done, without one", ", status, status_code, headers", ", 'done', 200, '{}'"],
      ["done, with two", ", status, status_code, headers, body, body_key", ", 'done', 200, '{}', '', 'k'"],
      ["done, without a status", ", status, headers, body", ", 'done', '{}', ''"],
    ])("is not %s", async (_, columns, values) => {
      await expect(insert("k", columns, values)).rejects.toThrow("idempotent_request_answer_check");
    });

    it("is done with its answer", async () => {
      await expect(insert("k", ", status, status_code, headers, body_key", ", 'done', 200, '{}', 'k'")).resolves.toMatchObject({
        rowCount: 1,
      });
    });
  });
}
