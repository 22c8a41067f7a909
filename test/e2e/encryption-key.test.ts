/** The encryption key of the built server: rotated beside running processes, lost, and never written by a start that fails. */
import { access, rm } from "node:fs/promises";
import { join } from "node:path";
import type pg from "pg";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { runSluice } from "../../scripts/sluice/run.js";
import { keepWrapOf, openRing, readWraps, sealRing } from "../../src/services/secrets/key-ring.js";
import { OWNER_KEY } from "../support/app.js";
import { type BuiltServer, startBuiltServer } from "../support/built-server.js";
import { createEmptyDir } from "../support/database.js";
import { type FakeUpstream, startFakeUpstream } from "../support/fake-upstream.js";
import { isPostgresInstalled } from "../support/postgres.js";
import { createPostgresDatabase, createTestPool, type SuiteDatabase } from "../support/suite-server.js";

const [OLD, NEW, AFTER_LOSS] = ["the encryption key of before", "the encryption key of today", "the key after the loss"];

async function createDataDir(): Promise<string> {
  const dataDir = await createEmptyDir();
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
  return dataDir;
}

const exists = (file: string) =>
  access(file).then(
    () => true,
    () => false,
  );

/** Stops the server, and again at the end of the test when it failed before. */
async function start(dataDir: string, env: Readonly<Record<string, string>>): Promise<BuiltServer> {
  const server = await startBuiltServer({ dataDir, env });
  onTestFinished(() => void server.child.kill("SIGKILL"));
  return server;
}

async function sluice(args: readonly string[], env: Readonly<Record<string, string>>) {
  const [out, error]: [string[], string[]] = [[], []];
  const code = await runSluice(args, env, { out: (text) => out.push(text), error: (text) => error.push(text) });
  return { code, out: out.join("\n"), error: error.join("\n") };
}

interface Answer {
  readonly status: number;
  readonly json: Readonly<Record<string, unknown>>;
}

async function ask({ baseUrl }: BuiltServer, key: string, path: string, body?: unknown): Promise<Answer> {
  const answer = await fetch(`${baseUrl}${path}`, {
    ...(body !== undefined && { method: "POST", body: JSON.stringify(body) }),
    headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
  });
  return { status: answer.status, json: JSON.parse((await answer.text()) || "{}") };
}

describe.skipIf(!isPostgresInstalled)("ENCRYPTION_KEY", () => {
  let shared: SuiteDatabase;
  let pool: pg.Pool;
  let upstream: FakeUpstream;

  beforeAll(async () => {
    shared = await createPostgresDatabase();
    pool = createTestPool(shared.url, 2);
    upstream = await startFakeUpstream();
  });
  afterAll(async () => {
    await upstream.close();
    await pool.end();
    await shared.drop();
  });

  const envOf = (more: Readonly<Record<string, string>>) => ({
    DATABASE_URL: shared.url,
    UPSTREAM_ALLOW_HOSTS: "127.0.0.1",
    ...more,
  });

  /** As if the processes had had the time to learn the new secret. */
  async function settleRing(): Promise<void> {
    const { rows } = await pool.query("SELECT value FROM deployment_setting WHERE name = 'key-ring'");
    const ring = openRing(readWraps(rows[0].value), NEW);
    if (!ring) throw new Error("the ring is not sealed under the new key");
    const [first, ...rest] = ring.roots;
    const settled = sealRing({ ...ring, roots: [{ ...first, usedFrom: 1 }, ...rest] }, [NEW, OLD]);
    await pool.query("UPDATE deployment_setting SET value = $1 WHERE name = 'key-ring'", [settled]);
  }

  /** Ids of the keys that sealed values, of every column of bytes in the database. */
  async function sealingKeys(): Promise<Set<string>> {
    const { rows: columns } = await pool.query<{ table: string; column: string }>(
      `SELECT table_name AS table, column_name AS column FROM information_schema.columns
       WHERE table_schema = 'public' AND data_type = 'bytea' AND table_name NOT IN ('idempotent_request')`,
    );
    const ids = new Set<string>();
    for (const { table, column } of columns) {
      const { rows } = await pool.query<{ id: string }>(
        `SELECT DISTINCT encode(substring("${column}" FROM 2 FOR 4), 'hex') AS id FROM "${table}"
         WHERE get_byte("${column}", 0) = 1 AND length("${column}") > 33`,
      );
      for (const { id } of rows) ids.add(id);
    }
    return ids;
  }

  it("is rotated beside running processes, and everything sealed follows", async () => {
    const [dirOfOld, dirOfNew] = [await createDataDir(), await createDataDir()];
    const old = await start(dirOfOld, envOf({ ENCRYPTION_KEY: OLD }));
    const model = await ask(old, OWNER_KEY, "/account/my-models", {
      ...{ name: "mine", title: "Mine", upstreamModel: "m", api: "chat_completions", inputModalities: ["text"] },
      ...{ bearerToken: "upstream-credential-0123456789", url: `${upstream.baseUrl}/chat/completions` },
    });
    expect(model).toMatchObject({ status: 200, json: { modelId: "community/owner/mine" } });
    const webhook = await ask(old, OWNER_KEY, "/account/webhooks", { url: "http://127.0.0.1:9/hook", events: ["usage.recorded"] });
    expect(webhook.status).toBeLessThan(300);
    expect((await ask(old, OWNER_KEY, `/account/webhooks/${webhook.json.id}/rotate-secret`, {})).status).toBeLessThan(300);
    const made = await ask(old, OWNER_KEY, "/account/keys", { name: "service" });
    const key = String(made.json.key);
    const [sealedBefore] = [...(await sealingKeys())];

    const both = await start(dirOfNew, envOf({ ENCRYPTION_KEY: NEW, ENCRYPTION_KEY_PREVIOUS: OLD }));
    const chat = { model: model.json.modelId, messages: [{ role: "user", content: "Hello" }] };
    for (const server of [old, both]) {
      expect((await ask(server, key, "/account/key")).status).toBe(200);
      expect((await ask(server, OWNER_KEY, "/v1/chat/completions", chat)).status).toBe(200);
    }
    await settleRing();
    const resealed = await sluice(["secrets", "reseal"], envOf({ ENCRYPTION_KEY: NEW, DATA_DIR: await createDataDir() }));
    const again = await sluice(["secrets", "reseal", "--json"], envOf({ ENCRYPTION_KEY: NEW, DATA_DIR: await createDataDir() }));
    await Promise.all([old.stop(), both.stop()]);

    expect(resealed).toMatchObject({
      code: 0,
      out: "3 resealed, 0 left.\nThe previous key is accepted no longer: unset ENCRYPTION_KEY_PREVIOUS.",
    });
    expect(JSON.parse(again.out)).toEqual({ resealed: 0, left: 0, unreadable: 0, isFinished: true });
    const sealedAfter = await sealingKeys();
    expect(sealedAfter.size).toBe(1);
    expect(sealedAfter).not.toContain(sealedBefore);
    const after = await start(dirOfNew, envOf({ ENCRYPTION_KEY: NEW }));
    expect((await ask(after, key, "/account/key")).status).toBe(200);
    expect((await ask(after, OWNER_KEY, "/v1/chat/completions", chat)).status).toBe(200);
    expect(upstream.requests.at(-1)?.headers.authorization).toBe("Bearer upstream-credential-0123456789");
    await after.stop();
    await expect(startBuiltServer({ dataDir: dirOfOld, env: envOf({ ENCRYPTION_KEY: OLD }) })).rejects.toThrow(
      /ended with code 78 [\s\S]*ENCRYPTION_KEY_PREVIOUS[\s\S]*secrets forget/,
    );
  });

  it("when it is lost, revokes credentials after a confirmation, and keeps the accounts", async () => {
    const dataDir = await createDataDir();
    const lost = envOf({ ENCRYPTION_KEY: AFTER_LOSS, DATA_DIR: dataDir });
    const before = await start(dataDir, envOf({ ENCRYPTION_KEY: NEW }));
    const key = String((await ask(before, OWNER_KEY, "/account/keys", { name: "second" })).json.key);
    const [model] = (await pool.query("SELECT id, name FROM community_model")).rows;
    const balance = (await ask(before, OWNER_KEY, "/account/balance")).json.balance;

    const running = await sluice(["secrets", "forget", "--confirm", new URL(shared.url).pathname.slice(1)], lost);
    expect(running).toMatchObject({ code: 1, error: expect.stringMatching(/runs? on this database/) });
    expect(await sluice(["secrets", "forget"], { ...lost, ENCRYPTION_KEY: NEW })).toMatchObject({
      code: 1,
      error: "sluice: ENCRYPTION_KEY is the one that this database was made with: nothing is lost.",
    });
    await before.stop();

    const said = await sluice(["secrets", "forget"], lost);
    expect(said).toMatchObject({ code: 0 });
    expect(said.out).toMatch(/ 3 {2}API keys are revoked\n[\s\S]* 1 {2}upstream credentials[\s\S]* 1 {2}webhook endpoints/);
    const name = /--confirm (\S+)/.exec(said.out)?.[1] ?? "";
    expect(await sluice(["secrets", "forget", "--confirm", "another"], lost)).toMatchObject({
      code: 1,
      error: `sluice: --confirm is not the name of this database, which is ${name}. Nothing was changed.`,
    });
    await expect(startBuiltServer({ dataDir, env: lost })).rejects.toThrow(/ended with code 78/);

    const done = await sluice(["secrets", "forget", "--confirm", name], lost);
    expect(done).toMatchObject({ code: 0, out: expect.stringMatching(/^sk_\w+$/) });
    const after = await start(dataDir, lost);
    expect((await ask(after, key, "/account/key")).status).toBe(401);
    expect((await ask(after, done.out, "/account/balance")).json.balance).toBe(balance);
    const chat = { model: `community/owner/${model.name}`, messages: [{ role: "user", content: "Hello" }] };
    expect(await ask(after, done.out, "/v1/chat/completions", chat)).toMatchObject({
      status: 503,
      json: { error: { message: expect.stringContaining("its owner has to state it again") } },
    });
    const { rows: hooks } = await pool.query("SELECT id, is_enabled FROM webhook_endpoint");
    expect(hooks).toEqual([expect.objectContaining({ is_enabled: false })]);
    expect((await ask(after, done.out, `/account/webhooks/${hooks[0].id}/rotate-secret`, {})).status).toBeLessThan(300);
    const { rows: acts } = await pool.query("SELECT act, before FROM audit_entry WHERE act = 'forget_secrets'");
    expect(acts).toEqual([{ act: "forget_secrets", before: expect.objectContaining({ apiKeys: 3, webhookSecrets: 1 }) }]);
    await after.stop();
  });

  it("is not written by a start that fails, with several workers", async () => {
    const dataDir = await createDataDir();

    await expect(startBuiltServer({ dataDir, env: envOf({ WORKERS: "2" }) })).rejects.toThrow(/ended with code 78/);

    expect(await exists(join(dataDir, "secrets.json"))).toBe(false);
  });

  it("is generated once for several workers", async () => {
    const own = await createPostgresDatabase();
    onTestFinished(() => own.drop());
    const dataDir = await createDataDir();
    const server = await start(dataDir, { DATABASE_URL: own.url, WORKERS: "2" });

    const answers = await Promise.all(Array.from({ length: 8 }, () => ask(server, OWNER_KEY, "/account/key")));

    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(await exists(join(dataDir, "secrets.json"))).toBe(true);
    await server.stop();
  });
});

it("is not written by a start that fails, with the embedded database restored without it", async () => {
  const dataDir = await createDataDir();
  await (await start(dataDir, {})).stop();
  await rm(join(dataDir, "secrets.json"));

  await expect(startBuiltServer({ dataDir })).rejects.toThrow(/ended with code 78/);

  expect(await exists(join(dataDir, "secrets.json"))).toBe(false);
});

it("leaves one wrap in the ring when others are dropped", () => {
  const ring = { hashRoot: "root", roots: [{ secret: "root", usedFrom: 0 }] as [{ secret: string; usedFrom: number }] };
  const kept = keepWrapOf(readWraps(sealRing(ring, [OLD, NEW])), NEW) ?? "";

  expect([openRing(readWraps(kept), OLD), openRing(readWraps(kept), NEW)]).toEqual([null, ring]);
  expect(keepWrapOf(readWraps(kept), OLD)).toBeNull();
});
