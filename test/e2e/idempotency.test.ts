/** Idempotency-Key across processes and their deaths: one charge, through any process, and a death at any time. */
import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { OWNER_KEY, testModels } from "../support/app.js";
import { SERVER_PROGRAM } from "../support/compile.js";
import { createEmptyDir } from "../support/database.js";
import { type FakeUpstream, startFakeUpstream } from "../support/fake-upstream.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { chatCompletion } from "../support/openai-bodies.js";
import { isPostgresInstalled, POSTGRES_ABSENT } from "../support/postgres.js";
import { createPostgresDatabase, createTestPool, type SuiteDatabase } from "../support/suite-server.js";
import { json } from "../support/upstream-replies.js";

if (!isPostgresInstalled) console.warn(`skipped: ${POSTGRES_ABSENT}`);

interface Gateway {
  readonly baseUrl: string;
  readonly process: ChildProcess;
}

describe.skipIf(!isPostgresInstalled)("two processes on one PostgreSQL", () => {
  let shared: SuiteDatabase;
  let upstream: FakeUpstream;
  let home: string;
  let pool: pg.Pool;
  const gateways: Gateway[] = [];

  beforeAll(async () => {
    [shared, upstream, home] = await Promise.all([createPostgresDatabase(), startFakeUpstream(), createEmptyDir()]);
    pool = createTestPool(shared.url, 10);
    const models = {
      upstreams: [{ id: "acme", wireFormat: "openai", baseUrl: upstream.baseUrl, apiKey: "env:ACME_KEY" }],
      models: testModels(),
    };
    await writeFile(join(home, "models.json"), JSON.stringify(models));
    gateways.push(await start("one"));
    gateways.push(await start("two"));
  });

  afterAll(async () => {
    for (const gateway of gateways)
      if (gateway.process.exitCode === null && gateway.process.signalCode === null) await end(gateway, "SIGTERM");
    await pool.end();
    await upstream.close();
    await shared.drop();
    await rm(home, { recursive: true });
  });

  async function start(name: string): Promise<Gateway> {
    const dataDir = join(home, name);
    await mkdir(dataDir, { recursive: true });
    const env = {
      PORT: "0",
      DATA_DIR: dataDir,
      DATABASE_URL: shared.url,
      ENCRYPTION_KEY: "the same for every process of a deployment",
      MODELS_FILE: join(home, "models.json"),
      OWNER_API_KEY: OWNER_KEY,
      ACME_KEY: "acme-secret-key",
    };
    const child = spawn(process.execPath, [SERVER_PROGRAM], {
      env: { PATH: process.env.PATH, LOG_LEVEL: "error", ...env },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const lines = createInterface(child.stdout);
    const baseUrl = await new Promise<string>((resolve, reject) => {
      lines.on("line", (line) => {
        const [, url] = /ready at\s+(\S+)/.exec(line) ?? [];
        if (url) resolve(url);
      });
      child.once("exit", (code) => reject(new Error(`the gateway ended with code ${code} before it was ready`)));
    });
    return { baseUrl, process: child };
  }

  async function end({ process: child }: Gateway, signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    const exited = once(child, "exit");
    child.kill(signal);
    await exited;
  }

  function ask(gateway: Gateway | undefined, key: string, content = "Hello"): Promise<Response> {
    return fetch(`${gateway?.baseUrl}/v1/chat/completions`, {
      method: "POST",
      headers: { Authorization: `Bearer ${OWNER_KEY}`, "Content-Type": "application/json", "Idempotency-Key": key },
      body: JSON.stringify({ messages: [{ role: "user", content }] }),
    });
  }

  const charges = async () => Number((await pool.query("SELECT count(*) FROM usage_record")).rows[0]?.count);

  it("charge once for fifty requests at once, and each replays the answer of the other", async () => {
    const key = randomUUID();
    const before = await charges();
    upstream.replyNext(json(chatCompletion({ content: "Once." }), { delayMs: 100 }));

    const answers = await Promise.all(Array.from({ length: 50 }, (_, index) => ask(gateways[index % 2], key)));
    const replays = await Promise.all(gateways.map((gateway) => ask(gateway, key)));

    const made = answers.filter(({ status, headers }) => status === 200 && !headers.has("x-idempotent-replay"));
    expect(made).toHaveLength(1);
    expect(new Set(answers.filter(({ status }) => status !== 200).map(({ status }) => status))).toEqual(new Set([409]));
    for (const replay of replays) {
      expect([replay.status, replay.headers.get("x-idempotent-replay")]).toEqual([200, "true"]);
      expect(await replay.json()).toMatchObject({ choices: [{ message: { content: "Once." } }] });
    }
    expect(replays[0]?.headers.get("x-generation-id")).toBe(made[0]?.headers.get("x-generation-id"));
    expect((await charges()) - before).toBe(1);
  });

  it("charge an answer once when its process was killed before it could store it", async () => {
    const key = randomUUID();
    const before = await charges();
    // The request is stored and the upstream called; from then on answers cannot be stored any more, but money moves.
    let answer = () => {};
    const called = new Promise<void>((resolve) => {
      upstream.replyNext({
        kind: "handler",
        handle: async (_request, response) => {
          resolve();
          await new Promise<void>((go) => {
            answer = go;
          });
          response.setHeader("content-type", "application/json");
          response.end(JSON.stringify(chatCompletion()));
        },
      });
    });
    const lost = ask(gateways[0], key).catch(() => "lost");
    await called;
    const lock = await pool.connect();
    await lock.query("BEGIN");
    await lock.query("LOCK TABLE idempotent_request IN EXCLUSIVE MODE");
    answer();
    while ((await charges()) === before) await sleep(10);
    const [killed] = gateways;
    if (killed) await end(killed, "SIGKILL");
    // What a dead process has sent, the server would still do.
    await lock.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database() AND pid <> pg_backend_pid()",
    );
    await lock.query("ROLLBACK");
    lock.release();
    expect(await lost).toBe("lost");

    // The other process takes it for running until the heartbeat is old; the next process on the same directory knows at once.
    expect((await ask(gateways[1], key)).status).toBe(409);
    gateways[0] = await start("one");
    for (const gateway of gateways) {
      const refused = await ask(gateway, key);
      const { error } = (await refused.json()) as { error: { code: string; details: { generationId: string } } };
      expect([refused.status, error.code, refused.headers.get("x-should-retry")]).toEqual([409, "CONFLICT", "false"]);
      const { rows } = await pool.query("SELECT id FROM usage_record WHERE id = $1", [error.details.generationId]);
      expect(rows).toHaveLength(1);
    }
    expect((await charges()) - before).toBe(1);
  });

  it("execute a request again when its process was killed before a charge", async () => {
    const key = randomUUID();
    const before = await charges();
    const called = upstream.requests.length;
    upstream.replyNext({ kind: "hang" });
    const lost = ask(gateways[0], key).catch(() => "lost");
    while (upstream.requests.length === called) await sleep(5);
    const [killed] = gateways;
    if (killed) await end(killed, "SIGKILL");
    expect(await lost).toBe("lost");
    gateways[0] = await start("one");

    const answer = await ask(gateways[1], key);

    expect([answer.status, answer.headers.get("x-idempotent-replay")]).toEqual([200, null]);
    expect((await charges()) - before).toBe(1);
  });

  it("leave the books in order", async () => {
    while ((await pool.query("SELECT 1 FROM hold")).rowCount) await sleep(50);
    expect(await findBrokenInvariants(pool, { isIdle: true })).toEqual({});
  });
});
