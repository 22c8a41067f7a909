/** Four built servers share a database and a model with four keys (docs/spec/routing.md): no call fails, and the books agree with the upstream. */
import { rm, writeFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import type pg from "pg";
import { Agent, request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { OWNER_KEY } from "../support/app.js";
import { type BuiltServer, startBuiltServer } from "../support/built-server.js";
import { createEmptyDir } from "../support/database.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { type KeyedUpstream, refuse, startKeyedUpstream } from "../support/keyed-upstream.js";
import { parseMetrics, type Scrape } from "../support/metrics.js";
import { chatChunks, chatCompletion, wireUsage } from "../support/openai-bodies.js";
import { isPostgresInstalled, POSTGRES_ABSENT } from "../support/postgres.js";
import { isRedisInstalled, REDIS_ABSENT, startRedis, type TestRedis } from "../support/redis.js";
import { createPostgresDatabase, createTestPool, type SuiteDatabase } from "../support/suite-server.js";

const PROCESSES = 4;
/** Of all processes together. More with ROUTED_CALLS. */
const CALLS = Number(process.env.ROUTED_CALLS ?? 240);
const CALLS_AT_ONCE = 32;
/** Every so many calls one is streamed. */
const STREAMED_EVERY = 4;
const MODEL = "routed/four";
/** Picocredits of one token in and out: to callers, and to the operator by the route that serves. */
const MODEL_PRICE = { input: 4_000_000n, output: 10_000_000n };
const ROUTES = [
  { upstream: "limited", key: "key-1", input: 1_000_000n, output: 2_000_000n },
  { upstream: "busy", key: "key-2", input: 1_100_000n, output: 2_300_000n },
  { upstream: "expired", key: "key-3", input: 1_200_000n, output: 2_500_000n },
  { upstream: "sound", key: "key-4", input: 3_000_000n, output: 7_000_000n },
] as const;
const MINUTE_MODEL = "routed/minute";
const COUNTED_KEY = "key-5";
const REQUESTS_A_MINUTE = 40;
/** The first key serves so many calls, and is limited from then on. */
const SERVED_BY_LIMITED = Math.floor(CALLS / 10);

const absent = isPostgresInstalled ? REDIS_ABSENT : POSTGRES_ABSENT;
const isInstalled = isPostgresInstalled && isRedisInstalled;
if (!isInstalled) console.warn(`skipped, routes through four processes: ${absent}`);

interface Served {
  readonly status: number;
  readonly generationId: string;
  readonly upstream: string;
  readonly charge: string;
}

/** What the upstream has answered with one key. */
interface Answered {
  calls: number;
  input: bigint;
  output: bigint;
}

describe.skipIf(!isInstalled)(`${CALLS} calls through ${PROCESSES} processes, with two limited keys and a refused one of four`, () => {
  let shared: SuiteDatabase;
  let pool: pg.Pool;
  let redis: TestRedis | null;
  let upstream: KeyedUpstream;
  const servers: BuiltServer[] = [];
  const dataDirs: string[] = [];
  const connections = new Agent({ connections: CALLS_AT_ONCE });
  const answered = new Map<string, Answered>();

  beforeAll(async () => {
    [shared, redis, upstream] = await Promise.all([createPostgresDatabase(), startRedis(), startKeyedUpstream()]);
    pool = createTestPool(shared.url, 2);
    upstream.answers.set("key-1", (response, isStreamed) =>
      (answered.get("key-1")?.calls ?? 0) < SERVED_BY_LIMITED ? answer("key-1", response, isStreamed) : refuse(response, 429),
    );
    upstream.answers.set("key-2", { status: 429, headers: { "retry-after": "1" } });
    upstream.answers.set("key-3", { status: 401 });
    upstream.answers.set("key-4", (response, isStreamed) => answer("key-4", response, isStreamed));
    // The first makes the owner.
    servers.push(await start());
    servers.push(...(await Promise.all(Array.from({ length: PROCESSES - 1 }, start))));
  });
  afterAll(async () => {
    for (const { child } of servers) child.kill("SIGKILL");
    await Promise.all([connections.destroy(), upstream.close(), pool.end(), redis?.stop()]);
    await shared.drop();
    await Promise.all(dataDirs.map((dataDir) => rm(dataDir, { recursive: true, force: true })));
  });

  async function start(): Promise<BuiltServer> {
    const dataDir = await createEmptyDir();
    dataDirs.push(dataDir);
    const modelsFile = join(dataDir, "models.json");
    await writeFile(modelsFile, JSON.stringify(catalogOf(upstream.baseUrl)));
    const env = {
      DATABASE_URL: shared.url,
      REDIS_URL: redis?.url ?? "",
      MODELS_FILE: modelsFile,
      ENCRYPTION_KEY: "shared by all four processes",
    };
    return startBuiltServer({ dataDir, env });
  }

  /** Answers with other amounts each time, and counts them. */
  function answer(key: string, response: ServerResponse, isStreamed: boolean): void {
    const sum = answered.get(key) ?? { calls: 0, input: 0n, output: 0n };
    sum.calls += 1;
    const [input, output] = [8 + (sum.calls % 7), 1 + (sum.calls % 5)];
    sum.input += BigInt(input);
    sum.output += BigInt(output);
    answered.set(key, sum);
    const usage = wireUsage(input, output);
    response.writeHead(200, { "content-type": isStreamed ? "text/event-stream" : "application/json" });
    if (!isStreamed) return void response.end(JSON.stringify(chatCompletion({ content: "Hi", usage })));
    for (const chunk of chatChunks(["Hi"], { usage })) response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    response.end("data: [DONE]\n\n");
  }

  async function callAll(model: string, count: number): Promise<Served[]> {
    const results: Served[] = [];
    let next = 0;
    const callSome = async () => {
      while (next < count) results.push(await call(model, next++));
    };
    await Promise.all(Array.from({ length: CALLS_AT_ONCE }, callSome));
    return results;
  }

  async function call(model: string, index: number): Promise<Served> {
    const server = servers[index % PROCESSES] as BuiltServer;
    const isStreamed = index % STREAMED_EVERY === 0;
    const { statusCode, headers, body } = await request(`${server.baseUrl}/v1/chat/completions`, {
      method: "POST",
      dispatcher: connections,
      headers: { authorization: `Bearer ${OWNER_KEY}`, "content-type": "application/json" },
      body: JSON.stringify({ model, stream: isStreamed, messages: [{ role: "user", content: `Hi ${index}` }] }),
    });
    const text = await body.text();
    const receipt = isStreamed ? receiptIn(text) : { upstream: String(headers["x-upstream"]), cost: Number(headers["x-cost"]) };
    const charge = receipt.cost.toFixed(9);
    return { status: statusCode, generationId: String(headers["x-generation-id"]), upstream: receipt.upstream, charge };
  }

  async function scrape({ baseUrl }: BuiltServer): Promise<Scrape> {
    const { body } = await request(`${baseUrl}/metrics`, { dispatcher: connections });
    return parseMetrics(await body.text());
  }

  it("fails none, charges each by its model, and records the operator's cost by the route that served", { timeout: 600_000 }, async () => {
    const startedAt = performance.now();
    const results = await callAll(MODEL, CALLS);
    const seconds = (performance.now() - startedAt) / 1_000;

    expect(results.filter(({ status }) => status !== 200)).toEqual([]);
    const scrapes = await Promise.all(servers.map(scrape));
    const attemptsOf = (name: string, result: string) =>
      scrapes.reduce((sum, each) => sum + each.sum("sluice_upstream_attempts_total", { upstream: name, result }), 0);
    for (const server of servers.splice(0)) expect(await server.stop()).toMatchObject({ code: 0 });
    expect(await findBrokenInvariants(pool, { isIdle: true })).toEqual({});

    const { rows } = await pool.query<{ id: string; upstream: string; charge: string; paid: string; route: string }>(
      `SELECT id::text, upstream, route, cost_nanocredits::text AS charge, upstream_cost_nanocredits::text AS paid
       FROM usage_record WHERE model = $1`,
      [MODEL],
    );
    expect(rows).toHaveLength(CALLS);
    // Each answer names the upstream and the charge of its usage row.
    const told = results.map(({ generationId, upstream: name, charge }) => `${generationId} ${name} ${charge}`);
    const stored = rows.map(({ id, upstream: name, charge }) => `${id} ${name} ${(Number(charge) / 1e9).toFixed(9)}`);
    expect(told.sort()).toEqual(stored.sort());

    const lines = ROUTES.map(({ upstream: name, key, input, output }) => {
      const served = answered.get(key) ?? { calls: 0, input: 0n, output: 0n };
      const own = rows.filter((row) => row.upstream === name);
      const line = {
        upstream: name,
        calls: own.length,
        charge: sumOf(own, "charge"),
        paid: sumOf(own, "paid"),
        ok: attemptsOf(name, "ok"),
      };
      expect(line).toEqual({
        upstream: name,
        calls: served.calls,
        charge: (served.input * MODEL_PRICE.input + served.output * MODEL_PRICE.output) / 1_000n,
        paid: (served.input * input + served.output * output) / 1_000n,
        ok: served.calls,
      });
      const refused = attemptsOf(name, "rate_limited") + attemptsOf(name, "credential_refused");
      expect((upstream.requests.get(key) ?? 0) - served.calls).toBe(refused);
      return `${name}: ${line.calls} served, ${refused} refused, charged ${line.charge}, paid ${line.paid} nanocredits`;
    });
    expect([answered.get("key-1")?.calls, attemptsOf("expired", "credential_refused") > 0]).toEqual([SERVED_BY_LIMITED, true]);
    // Once refused, it cools down for half a minute and longer.
    expect(attemptsOf("expired", "credential_refused")).toBeLessThan(CALLS / 2);
    if (process.env.ROUTED_CALLS !== undefined) console.info([`${CALLS} calls in ${seconds.toFixed(1)} s, 0 failed`, ...lines].join("\n"));
  });

  it("keep a limit of requests a minute together, and a process that starts knows the refused key", { timeout: 600_000 }, async () => {
    servers.push(...(await Promise.all(Array.from({ length: PROCESSES }, start))));
    const from = minuteOf(Date.now());
    // A process that has just started has no units until its first exchange.
    const first = async () => {
      await callAll(MINUTE_MODEL, PROCESSES);
      return upstream.requests.get(COUNTED_KEY) ?? 0;
    };
    await expect.poll(first, { timeout: 20_000 }).toBeGreaterThan(0);
    const results = await callAll(MINUTE_MODEL, 6 * REQUESTS_A_MINUTE);
    const minutes = minuteOf(Date.now()) - from + 1;

    expect(results.filter(({ status }) => status !== 200)).toEqual([]);
    const counted = upstream.requests.get(COUNTED_KEY) ?? 0;
    expect(counted).toBeGreaterThanOrEqual(REQUESTS_A_MINUTE / PROCESSES);
    expect(counted).toBeLessThanOrEqual(minutes * REQUESTS_A_MINUTE);

    upstream.answers.set("key-2", { status: 429, headers: { "retry-after": "300" } });
    const asked = () => upstream.requests.get("key-2") ?? 0;
    const before = asked();
    for (let index = 0; asked() === before; index += 1) await call(MODEL, index);
    const known = asked();
    expect(await servers[0]?.stop()).toMatchObject({ code: 0 });
    servers[0] = await start();
    for (let index = 0; index < 5 * PROCESSES; index += PROCESSES) expect((await call(MODEL, index)).status).toBe(200);
    expect(asked()).toBe(known);
  });
});

function catalogOf(baseUrl: string): object {
  return {
    upstreams: [...ROUTES, { upstream: "counted", key: COUNTED_KEY }].map(({ upstream: id, key }) => ({
      ...{ id, wireFormat: "openai", baseUrl, apiKey: key },
    })),
    models: [
      {
        ...{ id: MODEL, title: "Four keys", modality: "text", prices: statedPrices(MODEL_PRICE) },
        routes: ROUTES.map((route) => ({ upstream: route.upstream, upstreamModel: "m", prices: statedPrices(route) })),
      },
      {
        ...{ id: MINUTE_MODEL, title: "A limited key", modality: "text", prices: statedPrices(MODEL_PRICE) },
        routes: [
          { upstream: "counted", upstreamModel: "m", limits: { rpm: REQUESTS_A_MINUTE } },
          { upstream: "sound", upstreamModel: "m", priority: 1 },
        ],
      },
    ],
  };
}

function minuteOf(time: number): number {
  return Math.floor(time / 60_000);
}

/** Credits a token, from picocredits. */
function statedPrices({ input, output }: { readonly input: bigint; readonly output: bigint }): Record<string, string> {
  const decimal = (picocredits: bigint) => `0.${picocredits.toString().padStart(12, "0")}`;
  return { promptTextPrice: decimal(input), completionTextPrice: decimal(output) };
}

function receiptIn(events: string): { readonly upstream: string; readonly cost: number } {
  const line = events.split("\n").find((each) => each.includes('"receipt"')) ?? "";
  const { usage, receipt } = JSON.parse(line.slice("data: ".length));
  return { upstream: receipt.upstream, cost: usage.cost };
}

function sumOf<Name extends string>(rows: readonly Readonly<Record<Name, string>>[], name: Name): bigint {
  return rows.reduce((sum, row) => sum + BigInt(row[name]), 0n);
}
