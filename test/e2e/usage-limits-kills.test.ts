/**
 * Two built servers, one of which is killed again and again, keep limits that renew (docs/spec/usage-limits.md): no window of the usage rows sums
 * up to more than its limit, and what a killed process had claimed can be spent again. With PostgreSQL, PgBouncer and Redis between them.
 */
import { rm, writeFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type pg from "pg";
import { Agent, request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { OWNER_KEY } from "../support/app.js";
import { type BuiltServer, startBuiltServer } from "../support/built-server.js";
import { createEmptyDir } from "../support/database.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { answerWhole, type KeyedUpstream, refuse, startKeyedUpstream } from "../support/keyed-upstream.js";
import { chatChunks, chatCompletion, wireUsage } from "../support/openai-bodies.js";
import { isPgBouncerInstalled, PGBOUNCER_ABSENT, startPgBouncer, type TestPgBouncer } from "../support/pgbouncer.js";
import { isPostgresInstalled, POSTGRES_ABSENT } from "../support/postgres.js";
import { isRedisInstalled, REDIS_ABSENT, startRedis, type TestRedis } from "../support/redis.js";
import { createPostgresDatabase, createTestPool, type SuiteDatabase } from "../support/suite-server.js";

/** Longer with LIMIT_SECONDS, so that calendar minutes turn too. */
const SECONDS = Number(process.env.LIMIT_SECONDS ?? 6);
const KILLS = Number(process.env.LIMIT_KILLS ?? 2);
const CALLS_AT_ONCE = 40;
const STREAMED_EVERY = 3;
const MODEL = "limited/cents";
const UPSTREAM_KEY = "of-the-gateway";
/** Free, and limited over all accounts: each fourth call. */
const SHARED_MODEL = "limited/shared";
const SHARED_KEY = "of-the-shared-model";
const SHARED_EVERY = 4;
const SHARED_PER_MINUTE = 40;
/** Nanocredits of a token: a cent. */
const CENT = 10_000_000n;

/** `sum`: as usage rows count it, in nanocredits or requests. */
const LIMITS = [
  { metric: "credits", amount: "3", minutes: 1, rolling: true, sum: 300n * CENT },
  { metric: "credits", amount: "2.5", minutes: 1, rolling: false, sum: 250n * CENT },
  { metric: "credits", amount: "4", period: "month", rolling: false, sum: 400n * CENT },
  // More than the others let through: failed requests count, which have no usage row.
  { metric: "requests", amount: "220", minutes: 1, rolling: true, sum: 220n },
] as const;

const CHANNELS = [
  ["PostgreSQL", isPostgresInstalled, POSTGRES_ABSENT],
  ["PgBouncer", isPostgresInstalled && isPgBouncerInstalled, isPostgresInstalled ? PGBOUNCER_ABSENT : POSTGRES_ABSENT],
  ["Redis", isPostgresInstalled && isRedisInstalled, isPostgresInstalled ? REDIS_ABSENT : POSTGRES_ABSENT],
] as const;

for (const [channel, isInstalled, absent] of CHANNELS) {
  if (!isInstalled) console.warn(`skipped, limits on two servers with ${channel}: ${absent}`);
  describe.skipIf(!isInstalled)(`limits on two servers with ${channel}, and ${KILLS} kills`, () => {
    let shared: SuiteDatabase;
    let pool: pg.Pool;
    let redis: TestRedis | null = null;
    let pooler: TestPgBouncer | null = null;
    let upstream: KeyedUpstream;
    let key = "";
    let apiKeyId = "";
    let served = 0;
    /** When the upstream of the shared model was called, in milliseconds since 1970. */
    const calledAt: number[] = [];
    const servers: BuiltServer[] = [];
    const dataDirs: string[] = [];
    const connections = new Agent({ connections: CALLS_AT_ONCE });

    beforeAll(async () => {
      [shared, upstream] = await Promise.all([createPostgresDatabase(), startKeyedUpstream()]);
      if (channel === "Redis") redis = await startRedis();
      if (channel === "PgBouncer") pooler = await startPgBouncer({ databaseUrl: shared.url, mode: "transaction" });
      pool = createTestPool(shared.url, 2);
      upstream.answers.set(UPSTREAM_KEY, answer);
      upstream.answers.set(SHARED_KEY, (response, isStreamed) => {
        calledAt.push(Date.now());
        if (calledAt.length % 5 === 0) refuse(response, 500);
        else answerWhole(response, isStreamed);
      });
      dataDirs.push(await createEmptyDir(), await createEmptyDir());
      servers.push(await start(0));
      servers.push(await start(1));
      ({ id: apiKeyId, key } = (await post("/account/keys", { name: "limited" })) as { id: string; key: string });
      for (const { sum: _, ...terms } of LIMITS) await post("/account/usage-limits", { apiKeyId, ...terms });
      const ofModel = { allAccounts: true, model: SHARED_MODEL, metric: "requests", amount: SHARED_PER_MINUTE };
      await post("/account/usage-limits", { ...ofModel, minutes: 1, rolling: true });
    });
    afterAll(async () => {
      for (const { child } of servers) child.kill("SIGKILL");
      await Promise.all([connections.destroy(), upstream.close(), pool.end(), redis?.stop()]);
      await pooler?.stop();
      await shared.drop();
      await Promise.all(dataDirs.map((dataDir) => rm(dataDir, { recursive: true, force: true })));
    });

    async function start(index: number): Promise<BuiltServer> {
      const dataDir = dataDirs[index] ?? "";
      const modelsFile = join(dataDir, "models.json");
      await writeFile(modelsFile, JSON.stringify(catalogOf(upstream.baseUrl)));
      const env = {
        ...{ DATABASE_URL: pooler?.through(shared.url) ?? shared.url, ENCRYPTION_KEY: "shared by both processes", LOG_LEVEL: "error" },
        ...{ MODELS_FILE: modelsFile, UPSTREAM_ALLOW_HOSTS: "127.0.0.1" },
        ...(redis && { REDIS_URL: redis.url }),
        ...(pooler && { DATABASE_DIRECT_URL: shared.url }),
      };
      return startBuiltServer({ dataDir, env });
    }

    /** One to three cents, and every tenth answer fails. */
    function answer(response: ServerResponse, isStreamed: boolean): void {
      served += 1;
      if (served % 10 === 0) {
        response.writeHead(500);
        return void response.end();
      }
      const usage = wireUsage(1, 1 + (served % 3));
      response.writeHead(200, { "content-type": isStreamed ? "text/event-stream" : "application/json" });
      if (!isStreamed) return void response.end(JSON.stringify(chatCompletion({ content: "One two three", usage })));
      for (const chunk of chatChunks(["One ", "two ", "three"], { usage })) response.write(`data: ${JSON.stringify(chunk)}\n\n`);
      response.end("data: [DONE]\n\n");
    }

    async function post(path: string, body: object): Promise<unknown> {
      const { statusCode, body: answered } = await request(`${servers[0]?.baseUrl}${path}`, {
        ...{ method: "POST", dispatcher: connections, body: JSON.stringify(body) },
        headers: { authorization: `Bearer ${OWNER_KEY}`, "content-type": "application/json" },
      });
      const text = await answered.text();
      expect(statusCode, text).toBeLessThan(300);
      return JSON.parse(text);
    }

    /** The status; 0: a kill cut it off. */
    async function call(index: number, most = 3, isShared = false): Promise<number> {
      try {
        const { statusCode, body } = await request(`${servers[index % 2]?.baseUrl}/v1/chat/completions`, {
          ...{ method: "POST", dispatcher: connections },
          headers: { authorization: `Bearer ${isShared ? OWNER_KEY : key}`, "content-type": "application/json" },
          body: JSON.stringify({
            ...{ model: isShared ? SHARED_MODEL : MODEL, max_tokens: most, stream: index % STREAMED_EVERY === 0 },
            messages: [{ role: "user", content: `Hi ${index}` }],
          }),
        });
        await body.text();
        return statusCode;
      } catch (error) {
        if (error instanceof Error && "code" in error) return 0;
        throw error;
      }
    }

    /** Sums of usage rows in the window that ends with each row, the largest of them. */
    async function largest({ metric, rolling, ...window }: (typeof LIMITS)[number]): Promise<bigint> {
      const amount = metric === "credits" ? "u.cost_nanocredits" : "1";
      const unit = "period" in window ? window.period : "minute";
      const isIn = rolling
        ? "u.timestamp > e.timestamp - interval '1 minute' AND u.timestamp <= e.timestamp"
        : `date_trunc('${unit}', u.timestamp, 'UTC') = date_trunc('${unit}', e.timestamp, 'UTC')`;
      const { rows } = await pool.query(
        `SELECT coalesce(max(spent), 0)::text AS spent FROM (
           SELECT sum(${amount}) AS spent FROM usage_record e JOIN usage_record u ON u.api_key_id = e.api_key_id AND ${isIn}
           WHERE e.api_key_id = $1 GROUP BY e.id) s`,
        [apiKeyId],
      );
      return BigInt(rows[0].spent);
    }

    it("are never passed, and used to the end", { timeout: 1_800_000 }, async () => {
      const statuses = new Map<number, number>();
      const until = Date.now() + SECONDS * 1_000;
      const begun = Date.now();
      let next = 0;
      let kills = 0;
      let restarting: Promise<void> | null = null;
      const restart = async () => {
        const { child, ended } = servers[1] as BuiltServer;
        child.kill("SIGKILL");
        await ended;
        servers[1] = await start(1);
        restarting = null;
      };
      const callSome = async () => {
        while (Date.now() < until || kills < KILLS) {
          const index = next++;
          const status = await call(index, 3, index % SHARED_EVERY === 0);
          statuses.set(status, (statuses.get(status) ?? 0) + 1);
          if (status === 0 && restarting) await restarting;
          // Refusals are quick, and would keep both processes busy.
          if (status === 402 || status === 429) await delay(50);
          if (kills < KILLS && restarting === null && Date.now() - begun > ((kills + 0.5) * SECONDS * 1_000) / KILLS) {
            kills += 1;
            restarting = restart();
          }
        }
      };
      await Promise.all(Array.from({ length: CALLS_AT_ONCE }, callSome));
      if (restarting) await restarting;

      expect(statuses.get(200) ?? 0).toBeGreaterThan(30);
      expect(calledAt.length).toBeGreaterThan(SHARED_PER_MINUTE / 4);
      for (const [index, at] of calledAt.entries()) {
        expect(at - (calledAt[index - SHARED_PER_MINUTE] ?? 0), "between a call and that of a limit before it").toBeGreaterThan(60_000);
      }
      let refused = (statuses.get(402) ?? 0) + (statuses.get(429) ?? 0);
      if (process.env.LIMIT_SECONDS !== undefined)
        console.info(channel, Object.fromEntries(statuses), await Promise.all(LIMITS.map(largest)));
      for (const limit of LIMITS)
        expect(await largest(limit), JSON.stringify({ ...limit, sum: `${limit.sum}` })).toBeLessThanOrEqual(limit.sum);
      // Claims of the killed processes are free again: the last cents can be spent, at either server.
      await expect
        .poll(
          async () => {
            const status = await call(next++, 1);
            if (status === 402 || status === 429) refused += 1;
            const sums = await Promise.all(LIMITS.map(largest));
            return refused > 0 && sums.some((sum, index) => sum === LIMITS[index]?.sum);
          },
          // Longer than two minutes, so that the month is used up even where a minute turned meanwhile.
          { timeout: 150_000, interval: 20 },
        )
        .toBe(true);
      for (const server of servers.splice(0)) expect(await server.stop()).toMatchObject({ code: 0 });
      for (const limit of LIMITS) expect(await largest(limit)).toBeLessThanOrEqual(limit.sum);
      expect(await findBrokenInvariants(pool, { isIdle: true })).toEqual({});
    });
  });
}

function catalogOf(baseUrl: string): object {
  return {
    upstreams: [
      { id: "acme", wireFormat: "openai", baseUrl, apiKey: UPSTREAM_KEY },
      { id: "shared", wireFormat: "openai", baseUrl, apiKey: SHARED_KEY },
    ],
    models: [
      {
        ...{ id: MODEL, title: "A cent a token", modality: "text", upstream: "acme", upstreamModel: "m" },
        prices: { promptTextPrice: "0", completionTextPrice: "0.01" },
      },
      { id: SHARED_MODEL, title: "For all", modality: "text", upstream: "shared", upstreamModel: "m", prices: {} },
    ],
  };
}
