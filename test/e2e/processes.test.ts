/** Several processes on one database: what one does, the others know. */
import { rm } from "node:fs/promises";
import type pg from "pg";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import type { RequestContext, SessionCaller } from "../../src/context.js";
import { API_KEY_CACHE_MS } from "../../src/limits.js";
import { createTestApp, OWNER_KEY, type TestApp, type TestAppOptions } from "../support/app.js";
import { createEmptyDir } from "../support/database.js";
import { eventually } from "../support/eventually.js";
import { type FakeUpstream, startFakeUpstream } from "../support/fake-upstream.js";
import { type FaultProxy, startFaultProxy } from "../support/fault-proxy.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { chatChunk, chatCompletion, wireUsage } from "../support/openai-bodies.js";
import { isPostgresInstalled, POSTGRES_ABSENT } from "../support/postgres.js";
import { isRedisInstalled, REDIS_ABSENT, startRedis, type TestRedis } from "../support/redis.js";
import { createPostgresDatabase, createTestPool, type SuiteDatabase } from "../support/suite-server.js";
import { sse } from "../support/upstream-replies.js";

import { databaseOf } from "./money.js";

const ENCRYPTION_KEY = "the same for every process of a deployment";
const CREDIT = 10n ** 9n;

const shared: SuiteDatabase[] = [];
let redis: TestRedis | null = null;
let upstream: FakeUpstream;

beforeAll(async () => {
  [redis, upstream] = await Promise.all([startRedis(), startFakeUpstream()]);
});

afterAll(async () => {
  await upstream.close();
  await Promise.all([...shared.map((each) => each.drop()), redis?.stop()]);
});

async function createDatabase(): Promise<string> {
  const created = await createPostgresDatabase();
  shared.push(created);
  return created.url;
}

/** A process on the database; the first of them makes the owner. */
async function startProcess(databaseUrl: string, config: TestAppOptions["config"] = {}): Promise<TestApp> {
  const dataDir = await createEmptyDir();
  const app = await createTestApp({ upstream, dataDir, config: { databaseUrl, encryptionKey: ENCRYPTION_KEY, ...config } });
  const close = () => app.close().then(() => rm(dataDir, { recursive: true }));
  return { ...app, close };
}

function request(app: TestApp, key: string, path: string, init: RequestInit = {}): Promise<Response> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  return fetch(`${app.baseUrl}${path}`, { ...init, headers });
}

function chat(app: TestApp, key: string, body: object): Promise<Response> {
  const messages = [{ role: "user", content: "Hi" }];
  return request(app, key, "/v1/chat/completions", { method: "POST", body: JSON.stringify({ messages, ...body }) });
}

async function createKey(app: TestApp, maker = OWNER_KEY): Promise<{ id: string; key: string }> {
  const response = await request(app, maker, "/account/keys", { method: "POST", body: JSON.stringify({ name: "to be revoked" }) });
  return (await response.json()) as { id: string; key: string };
}

async function createRun(app: TestApp, maker: string, maxCost: number): Promise<{ id: string; key: string }> {
  const response = await request(app, maker, "/v1/runs", { method: "POST", body: JSON.stringify({ max_cost: maxCost }) });
  expect(response.status).toBe(200);
  return (await response.json()) as { id: string; key: string };
}

/** What a key is answered about itself: 200, or 401 once it is revoked. */
async function statusOf(app: TestApp, key: string): Promise<number> {
  const response = await request(app, key, "/account/key");
  await response.arrayBuffer();
  return response.status;
}

async function contextOf(app: TestApp, key: string, signal: AbortSignal): Promise<RequestContext> {
  const caller = await app.services.apiKeys.authenticate(key);
  return { caller, requestId: "test", clientAddress: "127.0.0.1", signal, log: pino({ level: "silent" }) };
}

const ways = [
  {
    name: "the database's notifications",
    isInstalled: isPostgresInstalled,
    absent: POSTGRES_ABSENT,
    config: () => ({}),
  },
  {
    name: "Redis",
    isInstalled: isPostgresInstalled && isRedisInstalled,
    absent: isPostgresInstalled ? REDIS_ABSENT : POSTGRES_ABSENT,
    config: () => ({ redisUrl: redis?.url ?? null }),
  },
].map((way) => ({ ...way, title: way.isInstalled ? way.name : `${way.name} (skipped: ${way.absent})` }));

describe.each(ways)("two processes that hear each other through $title", ({ isInstalled, config }) => {
  let a: TestApp;
  let b: TestApp;
  let pool: pg.Pool;

  if (isInstalled) {
    beforeAll(async () => {
      const databaseUrl = await createDatabase();
      pool = createTestPool(databaseUrl, 1);
      a = await startProcess(databaseUrl, config());
      b = await startProcess(databaseUrl, config());
    });
    afterAll(async () => {
      await Promise.all([a.close(), b.close()]);
      await pool.end();
    });
  }

  it.skipIf(!isInstalled)("both refuse a key that one of them has revoked", async () => {
    const { id, key } = await createKey(a);
    expect([await statusOf(a, key), await statusOf(b, key)]).toEqual([200, 200]);

    const revoked = await request(a, OWNER_KEY, `/account/keys/${id}`, { method: "DELETE" });

    expect(revoked.status).toBe(200);
    await expect.poll(() => statusOf(b, key), { interval: 20 }).toBe(401);
    expect(await statusOf(a, key)).toBe(401);
  });

  it.skipIf(!isInstalled)("both call the routes that an operator has changed in one of them", async () => {
    const off = { model: "acme/free", upstream: "acme", enabled: false, allow_none: true };
    const statuses = async () => [
      (await chat(a, OWNER_KEY, { model: "acme/free" })).status,
      (await chat(b, OWNER_KEY, { model: "acme/free" })).status,
    ];
    expect(await statuses()).toEqual([200, 200]);

    const changed = await request(a, OWNER_KEY, "/account/operator/routes", { method: "PATCH", body: JSON.stringify(off) });

    expect(changed.status).toBe(200);
    expect((await chat(a, OWNER_KEY, { model: "acme/free" })).status).toBe(400);
    await expect.poll(async () => (await chat(b, OWNER_KEY, { model: "acme/free" })).status, { interval: 20 }).toBe(400);
    await request(b, OWNER_KEY, "/account/operator/routes?model=acme/free", { method: "DELETE" });
    await expect.poll(statuses, { interval: 20 }).toEqual([200, 200]);
  });

  it.skipIf(!isInstalled)("both refuse the child keys of a key that one of them has revoked", async () => {
    const root = await createKey(a);
    await databaseOf(a).prisma.apiKey.update({ where: { id: root.id }, data: { permissions: ["keys"] } });
    const children = [await createKey(a, root.key), await createKey(b, root.key)];
    const statuses = (app: TestApp) => Promise.all(children.map(({ key }) => statusOf(app, key)));
    expect([await statuses(a), await statuses(b)]).toEqual([
      [200, 200],
      [200, 200],
    ]);

    await request(a, OWNER_KEY, `/account/keys/${root.id}`, { method: "DELETE" });

    await expect.poll(() => statuses(b), { interval: 20 }).toEqual([401, 401]);
    expect(await statuses(a)).toEqual([401, 401]);
  });

  it.skipIf(!isInstalled)("both refuse an account that one of them has suspended, and end its streams", async () => {
    const { accountId, key } = await createAccount(a, pool, "suspended", CREDIT);
    upstream.replyNext(sse([chatChunk({ role: "assistant", content: "" }), chatChunk({ content: " alpha" })], { end: "hang" }));
    const streams = await chat(b, key, { model: "acme/chat", stream: true });
    expect([await statusOf(a, key), await statusOf(b, key)]).toEqual([200, 200]);

    const query = "mutation ($input: SuspendAccountInput!) { suspendAccount(input: $input) { account { id } } }";
    const body = JSON.stringify({ query, variables: { input: { accountId, reason: "A leaver." } } });
    expect(await (await request(a, OWNER_KEY, "/graphql", { method: "POST", body })).json()).not.toHaveProperty("errors");

    expect(await streams.text()).toContain("ACCOUNT_SUSPENDED");
    await expect.poll(() => statusOf(b, key), { interval: 20 }).toBe(403);
    expect(await statusOf(a, key)).toBe(403);
  });

  it.skipIf(!isInstalled)("keep a run of depth 3 within its limit, whichever takes its calls, and end it together", async () => {
    const { key } = await createAccount(a, pool, "runner", 1_000n * CREDIT);
    upstream.answer.usage = wireUsage(10, 1);
    onTestFinished(() => {
      upstream.answer.usage = wireUsage(10, 4);
    });
    const top = await createRun(a, key, 20);
    const middle = await createRun(b, top.key, 15);
    const bottom = await createRun(a, middle.key, 10);
    const spentOf = async ({ id }: { id: string }) => ((await (await request(b, key, `/v1/runs/${id}`)).json()) as { spent: number }).spent;

    // One credit each: the price of one output token.
    const calls = Array.from({ length: 40 }, (_, index) => [top, middle, bottom][index % 3] as { key: string });
    const statuses = await Promise.all(
      calls.map(async (run, index) => (await chat(index % 2 ? a : b, run.key, { model: "acme/dear", max_tokens: 1 })).status),
    );

    const served = statuses.filter((status) => status === 200).length;
    expect(new Set(statuses)).toEqual(new Set([200, 402]));
    const spent = [await spentOf(top), await spentOf(middle), await spentOf(bottom)];
    expect(spent[0]).toBe(served);
    for (const [index, limit] of [20, 15, 10].entries()) expect(spent[index]).toBeLessThanOrEqual(limit);
    expect(await findBrokenInvariants(pool)).toEqual({});

    const last = await createRun(a, key, 20);
    const below = await createRun(b, last.key, 10);
    upstream.replyNext(sse([chatChunk({ role: "assistant", content: "" }), chatChunk({ content: " alpha" })], { end: "hang" }));
    const streams = await chat(b, below.key, { model: "acme/dear", stream: true, max_tokens: 4 });
    expect((await request(a, key, `/v1/runs/${last.id}/end`, { method: "POST", body: "{}" })).status).toBe(200);
    expect(await streams.text()).toContain("run of this key was ended");
    await expect.poll(() => statusOf(b, below.key), { interval: 20 }).toBe(401);
  });

  it.skipIf(!isInstalled)("show a generation of one, and the balance after it, to subscribers of the other", async () => {
    const watching = new AbortController();
    const ctx = await contextOf(b, OWNER_KEY, watching.signal);
    const usage = b.services.live.usageRecorded(ctx);
    const balances = b.services.live.balanceChanged(ctx);
    const before = await b.services.accounts.balance(ctx);

    const answer = await chat(a, OWNER_KEY, { model: "acme/chat" });
    const cost = BigInt(Math.round(Number(answer.headers.get("x-cost")) * 1e9));
    const row = await usage.next();

    expect(cost).toBeGreaterThan(0n);
    expect(row.value).toMatchObject({ id: answer.headers.get("x-generation-id"), model: "acme/chat", costNanocredits: cost });
    await eventually(async () => {
      await balances.next();
      expect(await b.services.accounts.balance(ctx)).toMatchObject({ balance: before.balance - cost, held: 0n });
    });
    watching.abort();
  });

  it.skipIf(!isInstalled)("call no upstream for an account that the other has emptied", async () => {
    upstream.answer.usage = wireUsage(10, 1);
    onTestFinished(() => {
      upstream.answer.usage = wireUsage(10, 4);
    });
    const { accountId, key } = await createAccount(a, pool, "emptied", 2n * CREDIT);
    const { caller, ...operator } = await contextOf(a, OWNER_KEY, new AbortController().signal);
    const person = { ...operator, caller: sessionOf(accountId) };
    const balances = a.services.live.balanceChanged(person);
    const nextBalance = async () => (await balances.next()) && (await a.services.accounts.balance(person)).balance;
    // One credit each: the price of one output token. Now A knows of one that is left.
    expect((await chat(a, key, { model: "acme/dear", max_tokens: 1 })).status).toBe(200);
    expect(await nextBalance()).toBe(CREDIT);
    expect((await chat(b, key, { model: "acme/dear", max_tokens: 1 })).status).toBe(200);
    expect(await nextBalance()).toBe(0n);
    const callsBefore = upstream.requests.length;

    const statuses = await Promise.all(
      Array.from({ length: 40 }, async () => (await chat(a, key, { model: "acme/chat", max_tokens: 5 })).status),
    );

    expect(new Set(statuses)).toEqual(new Set([402]));
    expect(upstream.requests.length).toBe(callsBefore);
    await balances.return?.();
  });

  it.skipIf(!isInstalled)("wait for settlements and releases of the other on a shared budget", async () => {
    const { key } = await createAccount(a, pool, "sharer", 50n * CREDIT, CREDIT);
    let open: () => void = () => undefined;
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    upstream.replyAlways({
      kind: "handler",
      handle: async (_request, response) => {
        await opened;
        response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(chatCompletion({ usage: wireUsage(10, 300) })));
      },
    });
    onTestFinished(() => upstream.replyAlways(null));
    const callsBefore = upstream.requests.length;
    // A fifth of a credit is held for each, and less than a thousandth spent.
    const callAt = async (app: TestApp, tokens = 49_000) => (await chat(app, key, { model: "acme/chat", max_tokens: tokens })).status;

    const atA = Array.from({ length: 5 }, () => callAt(a));
    await eventually(() => expect(upstream.requests.length - callsBefore).toBe(5));
    const atB = Array.from({ length: 15 }, () => callAt(b));
    // One that no settlement can turn is refused after those before it have begun to wait.
    expect(await callAt(b, 300_000)).toBe(402);
    open();

    expect(new Set(await Promise.all([...atA, ...atB]))).toEqual(new Set([200]));
  });
});

describe.skipIf(!isPostgresInstalled || !isRedisInstalled)("a process that has lost Redis", () => {
  let proxy: FaultProxy;
  let a: TestApp;
  let b: TestApp;
  beforeAll(async () => {
    const databaseUrl = await createDatabase();
    proxy = await startFaultProxy({ port: redis?.port ?? 0 });
    a = await startProcess(databaseUrl, { redisUrl: redis?.url ?? null });
    b = await startProcess(databaseUrl, { redisUrl: `redis://127.0.0.1:${proxy.port}` });
  });
  afterAll(async () => {
    await Promise.all([a.close(), b.close()]);
    await proxy.close();
  });

  it.each([
    { how: "in silence", lose: () => proxy.blackHole() },
    { how: "for good", lose: () => proxy.resetAll() },
  ])("$how refuses a key that is revoked then, long before it would ask without that", async ({ lose }) => {
    let least = Number.POSITIVE_INFINITY;
    // Where the cache's time alone ended it, no try would be shorter; a busy machine makes one longer now and then.
    for (let tries = 5; tries > 0 && least >= 0.9; tries -= 1) {
      const { id, key } = await createKey(a);
      proxy.refuse();
      lose();
      expect(await statusOf(b, key)).toBe(200);
      const believedFrom = performance.now();
      await request(a, OWNER_KEY, `/account/keys/${id}`, { method: "DELETE" });
      await eventually(async () => expect(await statusOf(b, key)).toBe(401));
      least = Math.min(least, (performance.now() - believedFrom) / API_KEY_CACHE_MS);
    }

    expect(least).toBeLessThan(0.9);
  });

  it("says so, and says when it hears the others again", async () => {
    await eventually(() => expect(warningsOf(b)).toContainEqual(expect.stringContaining("other processes are not heard")));
    const { id, key } = await createKey(a);
    proxy.heal();
    await eventually(() => expect(b.logs.map(({ msg }) => msg)).toContain("other processes are heard again"));
    expect(await statusOf(b, key)).toBe(200);

    await request(a, OWNER_KEY, `/account/keys/${id}`, { method: "DELETE" });
    await eventually(async () => expect(await statusOf(b, key)).toBe(401));
  });
});

function warningsOf(app: TestApp): unknown[] {
  return app.logs.filter(({ level }) => Number(level) >= 40).map(({ msg }) => msg);
}

describe.skipIf(!isPostgresInstalled)("three processes that serve one account", () => {
  it("let it spend its balance, and no more", async () => {
    upstream.answer.usage = wireUsage(10, 1);
    const databaseUrl = await createDatabase();
    const first = await startProcess(databaseUrl);
    const processes = [first, ...(await Promise.all([startProcess(databaseUrl), startProcess(databaseUrl)]))];
    const pool = createTestPool(databaseUrl, 1);
    const { key } = await createAccount(first, pool, "spender", 10n * CREDIT);

    // One credit each: the price of one output token. What each process has set aside is everybody's to see, and exact.
    const rich = await createAccount(first, pool, "rich", 1_000n * CREDIT);
    for (const [spent, app] of processes.entries()) {
      const response = await chat(app, rich.key, { model: "acme/dear", max_tokens: 1 });
      await response.arrayBuffer();
      const balances = await Promise.all(processes.map((other) => request(other, rich.key, "/account/balance")));
      expect(await Promise.all(balances.map((answer) => answer.json()))).toEqual(Array(3).fill({ balance: 999 - spent }));
    }
    expect((await pool.query("SELECT id FROM credit_lease")).rowCount).toBe(3);

    const calls = processes.flatMap((app) =>
      Array.from({ length: 15 }, async () => {
        const response = await chat(app, key, { model: "acme/dear", max_tokens: 1 });
        await response.arrayBuffer();
        return response.status;
      }),
    );
    const statuses = await Promise.all(calls);
    await Promise.all(processes.map((app) => app.close()));

    expect(statuses.filter((status) => status === 200)).toHaveLength(10);
    expect(statuses.filter((status) => status === 402)).toHaveLength(35);
    expect(await findBrokenInvariants(pool, { isIdle: true })).toEqual({});
    const { rows } = await pool.query("SELECT pack_nanocredits::text AS pack FROM account WHERE handle = 'spender'");
    expect(rows).toEqual([{ pack: "0" }]);
    await pool.end();
  });
});

/** An account with that much in its pack, and a key to it, with a budget in credits when that is stated. */
async function createAccount(
  app: TestApp,
  pool: pg.Pool,
  handle: string,
  nanocredits: bigint,
  creditBudget: bigint | null = null,
): Promise<{ accountId: string; key: string }> {
  const { rows } = await pool.query<{ id: string }>("INSERT INTO account (id, handle) VALUES (gen_random_uuid(), $1) RETURNING id::text", [
    handle,
  ]);
  const accountId = rows[0]?.id ?? "";
  const operator = await contextOf(app, OWNER_KEY, new AbortController().signal);
  await app.services.accountAdministration.grantCredits(operator, { accountId, bucket: "pack", credits: nanocredits });
  const ctx = { ...operator, caller: sessionOf(accountId) };
  const { key } = await app.services.apiKeys.create(ctx, {
    name: "made by a test",
    type: "secret",
    creditBudget,
    accountPermissions: ["balance"],
  });
  return { accountId, key: String(key) };
}

function sessionOf(accountId: string): SessionCaller {
  return { kind: "session", accountId, isOperator: false, sessionId: "test" };
}
