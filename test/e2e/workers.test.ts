/**
 * A gateway of several workers behind one port, as an operator starts it: each answer is billed once by any worker, the
 * death of one does not affect the others, and reports and counts cover all of them.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type pg from "pg";
import { Client } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openSettlementSpool } from "../../src/store/settlement-spool.js";
import { execute, ok, subscribeWebSocket } from "../graphql/client.js";
import {
  GatewayStatusDocument,
  MyRequestLogDocument,
  RefusedSettlementsDocument,
  RequestLoggedDocument,
  UsageRecordedDocument,
} from "../operations/generated/graphql.js";
import { OWNER_KEY, testModels } from "../support/app.js";
import { SERVER_PROGRAM } from "../support/compile.js";
import { createEmptyDir } from "../support/database.js";
import { type FakeUpstream, startFakeUpstream } from "../support/fake-upstream.js";
import { findBrokenInvariants, findUnbilled } from "../support/invariants.js";
import { readUsage, settle } from "../support/ledger.js";
import { parseMetrics, type Scrape } from "../support/metrics.js";
import { chatChunk, wireUsage } from "../support/openai-bodies.js";
import { isPostgresInstalled, POSTGRES_ABSENT } from "../support/postgres.js";
import { createPostgresDatabase, createTestPool, type SuiteDatabase } from "../support/suite-server.js";
import { handler } from "../support/upstream-replies.js";

const WORKERS = 2;
const CALLERS = 8;
/** So many of each caller are received before and after a worker is killed. */
const ANSWERS_EACH = 5;
const ANONYMOUS_REQUESTS = 10;

interface LogLine {
  readonly pid: number;
  readonly msg: string;
  readonly generationId?: string;
  readonly requestId?: string;
  readonly worker?: number;
  readonly workerPid?: number;
}

interface Gateway {
  readonly baseUrl: string;
  readonly child: ChildProcess;
  readonly log: LogLine[];
}

if (!isPostgresInstalled) console.warn(`skipped, a gateway of several workers: ${POSTGRES_ABSENT}`);

describe.skipIf(!isPostgresInstalled)("a gateway of several workers", () => {
  let shared: SuiteDatabase;
  let pool: pg.Pool;
  let dataDir: string;
  let upstream: FakeUpstream;
  let gateway: Gateway;
  /** The answers that a caller has received whole. */
  const answered: string[] = [];

  beforeAll(async () => {
    [shared, upstream, dataDir] = await Promise.all([createPostgresDatabase(), startFakeUpstream(), createEmptyDir()]);
    pool = createTestPool(shared.url, 2);
    upstream.answer.usage = wireUsage(100, 10);
    const upstreams = [{ id: "acme", wireFormat: "openai", baseUrl: upstream.baseUrl, apiKey: "env:ACME_KEY" }];
    await writeFile(join(dataDir, "models.json"), JSON.stringify({ upstreams, models: testModels() }));
    gateway = await start();
  });
  afterAll(async () => {
    gateway?.child.kill("SIGKILL");
    await Promise.all([upstream.close(), pool.end()]);
    await shared.drop();
    await rm(dataDir, { recursive: true, force: true });
  });

  /** Resolves when all of its workers serve, or the first. */
  async function start(until = /^all workers are ready/): Promise<Gateway> {
    const child = spawn(process.execPath, [SERVER_PROGRAM], {
      env: {
        PATH: process.env.PATH,
        PORT: "0",
        WORKERS: String(WORKERS),
        DATA_DIR: dataDir,
        DATABASE_URL: shared.url,
        MODELS_FILE: join(dataDir, "models.json"),
        OWNER_API_KEY: OWNER_KEY,
        ACME_KEY: "acme-secret-key",
        ANONYMOUS_REQUESTS_PER_10_SECONDS: String(ANONYMOUS_REQUESTS),
      },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const log: LogLine[] = [];
    const baseUrl = await new Promise<string>((resolve, reject) => {
      let url = "";
      createInterface(child.stdout).on("line", (line) => {
        url ||= /ready at\s+(\S+)/.exec(line)?.[1] ?? "";
        // Whole lines alone, of every worker.
        if (line.includes('"msg"')) log.push(JSON.parse(line));
        if (url && log.some(({ msg }) => until.test(msg))) resolve(url);
      });
      child.once("exit", (code) => reject(new Error(`the gateway ended with code ${code} before it was ready`)));
    });
    return { baseUrl, child, log };
  }

  /** A caller with a connection of its own, and the results of its requests. */
  class Caller {
    readonly ids: string[] = [];
    /** Its failure in place of an answer, and its pending request. */
    readonly failures: string[] = [];
    private askedAt = 0;
    private readonly client = new Client(gateway.baseUrl);

    async ask(): Promise<void> {
      this.askedAt = performance.now();
      try {
        const { statusCode, headers, body } = await this.client.request({ ...chatRequest(false), path: "/v1/chat/completions" });
        const text = await body.text();
        if (statusCode !== 200) throw new Error(`${statusCode} ${text}`);
        this.ids.push(String(headers["x-generation-id"]));
        answered.push(String(headers["x-generation-id"]));
      } catch (error) {
        this.failures.push(String(error));
      }
    }

    get story(): string {
      const waitedMs = Math.round(performance.now() - this.askedAt);
      return `${this.ids.length} answers, the last ${this.ids.at(-1)}, asked ${waitedMs} ms ago; failures: ${this.failures.join("; ") || "none"}`;
    }

    async askUntil(isOver: () => boolean): Promise<void> {
      while (!isOver()) await this.ask();
    }

    close(): Promise<void> {
      return this.client.close();
    }
  }

  function chatRequest(stream: boolean) {
    return {
      method: "POST" as const,
      headers: { authorization: `Bearer ${OWNER_KEY}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "acme/chat", stream, messages: [{ role: "user", content: "Hi" }] }),
    };
  }

  /** A stream on a connection of its own that says a word now and then until `over`, and then that it is done. */
  async function openStream(over: Promise<void>): Promise<{ id: string; whole: Promise<boolean> }> {
    upstream.replyNext(
      handler(async (_, response) => {
        let isOver = false;
        void over.then(() => {
          isOver = true;
        });
        response.writeHead(200, { "content-type": "text/event-stream" });
        while (!isOver && !response.destroyed) {
          response.write(`data: ${JSON.stringify(chatChunk({ content: " word" }))}\n\n`);
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
        const last = { ...chatChunk({}, "stop"), usage: wireUsage(100, 10) };
        response.end(`data: ${JSON.stringify(last)}\n\ndata: [DONE]\n\n`);
      }),
    );
    const { headers, ...request } = chatRequest(true);
    const response = await fetch(`${gateway.baseUrl}/v1/chat/completions`, { ...request, headers: { ...headers, connection: "close" } });
    const id = response.headers.get("x-generation-id") ?? "";
    const whole = response.text().then(
      (text) => text.trimEnd().endsWith("data: [DONE]"),
      () => false,
    );
    return { id, whole };
  }

  async function scrape(): Promise<Scrape> {
    return parseMetrics(await (await fetch(`${gateway.baseUrl}/metrics`, { headers: { connection: "close" } })).text());
  }

  const generationsIn = (metrics: Scrape) => metrics.sum("sluice_generations_total", { model: "acme/chat", status: "ok" });
  const statusOf = async (path: string) => (await fetch(`${gateway.baseUrl}${path}`, { headers: { connection: "close" } })).status;

  /** The worker that has answered a generation, by its process; known when its line of the log is. */
  async function workersOf(ids: readonly string[]): Promise<number[]> {
    const find = (id: string) => gateway.log.find(({ generationId }) => generationId === id)?.pid;
    await expect.poll(() => ids.every((id) => find(id) !== undefined)).toBe(true);
    return ids.map((id) => find(id) ?? 0);
  }

  it("answers with all of them behind one port, and bills each answer once", async () => {
    const callers = Array.from({ length: CALLERS }, () => new Caller());
    // One after the other, so that each worker has as many connections.
    for (const caller of callers) await caller.ask();
    await Promise.all(callers.map((caller) => caller.askUntil(() => caller.ids.length > ANSWERS_EACH)));

    const pids = await workersOf(callers.map(({ ids }) => ids[0] ?? ""));
    const perWorker = [...new Set(pids)].map((pid) => pids.filter((each) => each === pid).length);
    expect(perWorker).toEqual(Array(WORKERS).fill(CALLERS / WORKERS));
    expect(await findUnbilled(pool, answered)).toEqual([]);
    const { rows } = await pool.query("SELECT count(*)::int AS count FROM usage_record");
    expect(rows).toEqual([{ count: answered.length }]);
    expect(answered).toHaveLength(CALLERS * (1 + ANSWERS_EACH));
    await Promise.all(callers.map((caller) => caller.close()));
  });

  it("reports about all of them, through any worker", async () => {
    const scrapes = [await scrape(), await scrape(), await scrape()];

    expect(scrapes.map(generationsIn)).toEqual(Array(3).fill(answered.length));
    const [metrics] = scrapes;
    expect(metrics?.sum("sluice_workers_ready")).toBe(WORKERS);
    expect(metrics?.sum("sluice_database_available")).toBe(1);
    expect(metrics?.sum("sluice_settler_flush_operations_count")).toBeGreaterThanOrEqual(WORKERS);
    expect(await statusOf("/readyz")).toBe(200);
  });

  it("reports the answers of each to subscribers of one of them", async () => {
    const { baseUrl } = gateway;
    const target = { baseUrl, wsUrl: `${baseUrl.replace("http", "ws")}/graphql`, key: OWNER_KEY };
    const live = subscribeWebSocket(target, UsageRecordedDocument);
    const callers = Array.from({ length: CALLERS }, () => new Caller());
    let isOver = false;
    const asking = Promise.all(callers.map((caller) => caller.askUntil(() => isOver)));

    const told: string[] = [];
    do told.push(ok(await live.next()).usageRecorded.restId);
    while (new Set(await workersOf(told)).size < WORKERS);

    isOver = true;
    live.leave();
    await asking;
    await Promise.all(callers.map((caller) => caller.close()));
  });

  it("reports the refused requests of each to subscribers of one of them, and lists them at any", async () => {
    const { baseUrl, log } = gateway;
    const target = { baseUrl, wsUrl: `${baseUrl.replace("http", "ws")}/graphql`, key: OWNER_KEY };
    const live = subscribeWebSocket(target, RequestLoggedDocument);
    const refuse = async (): Promise<string> => {
      const client = new Client(baseUrl);
      const { statusCode, headers, body } = await client.request({
        ...chatRequest(false),
        path: "/v1/chat/completions",
        body: '{"messages":[]}',
      });
      await body.dump();
      await client.close();
      expect(statusCode).toBe(400);
      return String(headers["x-request-id"]);
    };
    const sent: string[] = [];
    let isOver = false;
    const refusing = (async () => {
      while (!isOver) sent.push(...(await Promise.all(Array.from({ length: WORKERS }, refuse))));
    })();
    const pidOf = (requestId: string) => log.find((line) => line.requestId === requestId)?.pid;

    const told: string[] = [];
    do {
      const { requestId } = ok(await live.next()).requestLogged;
      // An answer of an earlier test arrives late, without one.
      if (requestId !== null) told.push(requestId);
    } while (new Set(told.map(pidOf).filter(Boolean)).size < WORKERS);

    isOver = true;
    live.leave();
    await refusing;
    expect(sent).toEqual(expect.arrayContaining(told));
    for (const requestId of told) {
      const { requestLog } = ok(await execute(target, MyRequestLogDocument, { filter: { requestId } })).me;
      expect(requestLog?.edges.map(({ node }) => node.code)).toEqual(["BAD_REQUEST"]);
    }
  });

  it("counts an address once for all of them", async () => {
    const statuses = await Promise.all(Array.from({ length: 2 * ANONYMOUS_REQUESTS }, () => statusOf("/account/key")));

    expect(statuses.filter((status) => status === 401)).toHaveLength(ANONYMOUS_REQUESTS);
    expect(statuses.filter((status) => status === 429)).toHaveLength(ANONYMOUS_REQUESTS);
  });

  it("replaces one that is killed under load: no caller of another notices, its waiting connections are answered by another, its holds are recovered, and its spool is booked", async () => {
    const before = generationsIn(await scrape());
    const endless = new Promise<void>(() => {});
    const cut = await openStream(endless);
    const killed = await workerThatHolds(cut.id);
    const callers = Array.from({ length: CALLERS }, () => new Caller());
    for (const caller of callers) await caller.ask();
    const pids = await workersOf(callers.map(({ ids }) => ids[0] ?? ""));
    // Left by a worker of another day.
    const left = await leaveSettlements("7");

    let isOver = false;
    const asking = Promise.all(callers.map((caller) => caller.askUntil(() => isOver)));
    await answersOfEach(callers, ANSWERS_EACH);
    // It takes no connection any more, and is still handed its share.
    process.kill(killed, "SIGSTOP");
    const late = Array.from({ length: 2 * CALLERS }, () => new Caller());
    for (const caller of late) void caller.ask();
    await expect.poll(() => late.some(({ ids }) => ids.length > 0)).toBe(true);
    process.kill(killed, "SIGKILL");
    await answersOfEach(callers, ANSWERS_EACH);
    isOver = true;
    await asking;
    await expect
      .poll(() =>
        behind(
          late,
          late.map(() => 1),
        ),
      )
      .toEqual([]);

    // A request under way at the dead worker is lost, once; a repeated one is answered.
    expect(pids).toContain(killed);
    for (const [index, { failures }] of callers.entries()) expect(failures.slice(pids[index] === killed ? 1 : 0)).toEqual([]);
    expect(late.flatMap(({ failures }) => failures)).toEqual([]);
    expect(await cut.whole).toBe(false);
    await expect.poll(() => gateway.log.filter(({ msg }) => msg === "all workers are ready")).toHaveLength(2);
    expect(gateway.log.find(({ msg }) => msg.startsWith("a worker has died"))).toMatchObject({ workerPid: killed });
    await expect.poll(async () => (await pool.query("SELECT 1 FROM hold WHERE id = $1", [cut.id])).rowCount).toBe(0);
    expect((await readUsage(pool, left.booked))?.cost).toBe(5n);
    // Kept by one of them, and shown by each.
    const shown = await Promise.all(Array.from({ length: 2 * WORKERS }, refusedSettlements));
    for (const { count, settlements } of shown) expect([count, ...settlements.map((each) => each.generationId)]).toEqual([1, left.refused]);
    // Any worker serves the reports of each, the settlements of all in one.
    const { processes, settlements, models } = ok(
      await execute({ baseUrl: gateway.baseUrl, key: OWNER_KEY }, GatewayStatusDocument),
    ).gateway;
    expect((processes ?? []).flatMap(({ worker }) => worker ?? []).sort()).toEqual([1, 2]);
    expect(settlements.counts).toHaveLength(120);
    expect(models).toContainEqual(expect.objectContaining({ modelId: "acme/chat", upstreamId: "acme" }));
    expect(await findUnbilled(pool, answered)).toEqual([]);
    const metrics = await scrape();
    expect(metrics.sum("sluice_workers_ready")).toBe(WORKERS);
    expect(metrics.sum("sluice_worker_restarts")).toBe(1);
    // What the dead one had counted when it was last asked is not forgotten.
    expect(generationsIn(metrics)).toBeGreaterThanOrEqual(before);
    expect(await findBrokenInvariants(pool, { isIdle: true })).toEqual({});
    await Promise.all([...callers, ...late].map((caller) => caller.close()));
  });

  it("lets the streams of all of them end after a signal to stop", async () => {
    let end: () => void = () => {};
    const over = new Promise<void>((resolve) => {
      end = resolve;
    });
    // The primary may still count earlier connections, so a new one may go to any worker.
    const streams = [];
    while (streams.length < 2 * CALLERS + WORKERS) streams.push(await openStream(over));
    const exited = once(gateway.child, "exit");

    gateway.child.kill("SIGTERM");
    await expect.poll(() => fetch(gateway.baseUrl, { headers: { connection: "close" } }).catch(() => null)).toBeNull();
    end();

    expect(await Promise.all(streams.map(({ whole }) => whole))).toEqual(Array(streams.length).fill(true));
    expect(await exited).toEqual([0, null]);
    expect(new Set(await workersOf(streams.map(({ id }) => id))).size).toBe(WORKERS);
    expect(await findUnbilled(pool, [...answered, ...streams.map(({ id }) => id)])).toEqual([]);
    expect(await findBrokenInvariants(pool, { isIdle: true })).toEqual({});
    expect((await pool.query("SELECT id FROM gateway_process")).rows).toEqual([]);
  });

  it("ends at once after a second signal", async () => {
    gateway = await start(/^a worker is ready/);
    const stream = await openStream(new Promise<void>(() => {}));
    const exited = once(gateway.child, "exit");

    gateway.child.kill("SIGTERM");
    await expect.poll(() => gateway.log.some(({ msg }) => msg.startsWith("stopping"))).toBe(true);
    gateway.child.kill("SIGTERM");

    expect(await exited).toEqual([1, null]);
    expect(await stream.whole).toBe(false);
    expect(await findBrokenInvariants(pool)).toEqual({});
  });

  it("ends when its primary is killed, once the work under way is over", async () => {
    gateway = await start();
    let end: () => void = () => {};
    const stream = await openStream(
      new Promise<void>((resolve) => {
        end = resolve;
      }),
    );
    const workers = gateway.log.filter(({ msg }) => msg === "a worker is ready").map(({ workerPid = 0 }) => workerPid);
    const living = () => workers.filter(isAlive).length;

    gateway.child.kill("SIGKILL");
    await once(gateway.child, "exit");
    expect(living()).toBeGreaterThan(0);
    end();

    expect(await stream.whole).toBe(true);
    await expect.poll(living).toBe(0);
    expect(await findUnbilled(pool, [stream.id])).toEqual([]);
  });

  function isAlive(pid: number): boolean {
    try {
      return process.kill(pid, 0);
    } catch {
      return false;
    }
  }

  /** What those have met who have not received as many answers. */
  function behind(callers: readonly Caller[], wanted: readonly number[]): string[] {
    return callers.filter(({ ids }, index) => ids.length < (wanted[index] ?? 0)).map(({ story }) => story);
  }

  /** Resolves when each of them has received so many more. */
  async function answersOfEach(callers: readonly Caller[], count: number): Promise<void> {
    const wanted = callers.map(({ ids }) => ids.length + count);
    await expect.poll(() => behind(callers, wanted)).toEqual([]);
  }

  /** The process of the worker that has a generation under way, known when its hold is in the database. */
  async function workerThatHolds(id: string): Promise<number> {
    const find = "SELECT p.instance_id::text AS instance FROM hold h JOIN gateway_process p ON p.id = h.process_id WHERE h.id = $1";
    await expect.poll(async () => (await pool.query(find, [id])).rowCount).toBe(1);
    const { rows } = await pool.query<{ instance: string }>(find, [id]);
    const instances = await Promise.all(
      Array.from({ length: WORKERS }, (_, index) => readFile(join(dataDir, "workers", String(index + 1), "instance-id"), "utf8")),
    );
    const worker = instances.findIndex((instance) => instance.trim() === rows[0]?.instance) + 1;
    return gateway.log.find((line) => line.msg === "a worker is ready" && line.worker === worker)?.workerPid ?? 0;
  }

  async function refusedSettlements() {
    return ok(await execute({ baseUrl: gateway.baseUrl, key: OWNER_KEY }, RefusedSettlementsDocument)).refusedSettlements;
  }

  /** Two charges in the spool of a worker that is no more, one of them of an account that is not there. Resolves with their generations. */
  async function leaveSettlements(worker: string): Promise<{ readonly booked: string; readonly refused: string }> {
    const { rows } = await pool.query<{ id: string }>("SELECT id::text FROM account WHERE handle = 'owner'");
    const booked = settle({ accountId: rows[0]?.id ?? "", apiKeyId: null }, 5n);
    const refused = settle({ accountId: randomUUID(), apiKeyId: null }, 5n);
    const spool = await openSettlementSpool(join(dataDir, "workers", worker));
    await spool.append(booked);
    await spool.keepRefused({ operation: refused, refusedAt: new Date().toISOString(), reason: "because" });
    await spool.close();
    return { booked: booked.id, refused: refused.id };
  }
});
