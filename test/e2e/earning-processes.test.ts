/**
 * Two built servers, one of which is killed again and again, charge for a community model and for apps with margins (docs/spec/earnings.md):
 * every share is exact, no answer is unpaid, and granted credits earn nothing.
 */
import { randomUUID } from "node:crypto";
import { rm } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import type pg from "pg";
import { Agent, request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { OWNER_KEY } from "../support/app.js";
import { type BuiltServer, startBuiltServer } from "../support/built-server.js";
import { createEmptyDir } from "../support/database.js";
import { findBrokenInvariants, findUnbilled } from "../support/invariants.js";
import { type KeyedUpstream, startKeyedUpstream } from "../support/keyed-upstream.js";
import { chatChunks, chatCompletion, wireUsage } from "../support/openai-bodies.js";
import { isPostgresInstalled, POSTGRES_ABSENT } from "../support/postgres.js";
import { createPostgresDatabase, createTestPool, type SuiteDatabase } from "../support/suite-server.js";

/** More with EARNING_CALLS and EARNING_KILLS. */
const CALLS = Number(process.env.EARNING_CALLS ?? 300);
const KILLS = Number(process.env.EARNING_KILLS ?? 2);
const CALLS_AT_ONCE = 24;
const STREAMED_EVERY = 3;
const MODEL_KEY = "of-the-owner";
const NANO = 10n ** 9n;
const SHARE_PERCENT = 75n;

if (!isPostgresInstalled) console.warn(`skipped, earnings through two processes: ${POSTGRES_ABSENT}`);

interface Payer {
  readonly key: string;
  readonly accountId: string;
  readonly marginPercent: bigint;
  /** Whether its credits were bought. */
  readonly isBuyer: boolean;
}

interface Share {
  readonly generation_id: string;
  readonly kind: "app" | "model";
  readonly payer_id: string;
  readonly sold: string;
  readonly amount: string;
  readonly cost: string;
}

describe.skipIf(!isPostgresInstalled)(`${CALLS} calls that others earn of, with ${KILLS} kills`, () => {
  let shared: SuiteDatabase;
  let pool: pg.Pool;
  let upstream: KeyedUpstream;
  let model: string;
  const servers: BuiltServer[] = [];
  const dataDirs: string[] = [];
  const payers: Payer[] = [];
  const connections = new Agent({ connections: CALLS_AT_ONCE });
  let answered = 0;

  beforeAll(async () => {
    [shared, upstream] = await Promise.all([createPostgresDatabase(), startKeyedUpstream()]);
    pool = createTestPool(shared.url, 2);
    upstream.answers.set(MODEL_KEY, answer);
    dataDirs.push(await createEmptyDir(), await createEmptyDir());
    servers.push(await start(0));
    const registered = await post<{ modelId: string }>("/account/my-models", OWNER_KEY, {
      ...{
        name: "shared",
        title: "Shared",
        visibility: "public",
        api: "chat_completions",
        url: `${upstream.baseUrl}/chat/completions`,
        upstreamModel: "m",
      },
      ...{ bearerToken: MODEL_KEY, promptTextPrice: 0.000001, completionTextPrice: 0.000002 },
    });
    model = registered.modelId;
    // As after its announcement.
    await pool.query("UPDATE community_model SET visibility = 'public', pending = NULL, pending_effective_at = NULL");
    for (const [marginPercent, isBuyer] of [
      [0n, true],
      [20n, true],
      [7n, true],
      [20n, false],
    ] as const)
      payers.push(await createPayer(marginPercent, isBuyer));
    await servers.pop()?.stop();
    servers.push(await start(0), await start(1));
  });
  afterAll(async () => {
    for (const { child } of servers) child.kill("SIGKILL");
    await Promise.all([connections.destroy(), upstream.close(), pool.end()]);
    await shared.drop();
    await Promise.all(dataDirs.map((dataDir) => rm(dataDir, { recursive: true, force: true })));
  });

  function start(index: number): Promise<BuiltServer> {
    const env = {
      ...{ DATABASE_URL: shared.url, ENCRYPTION_KEY: "shared by both processes", LOG_LEVEL: "error" },
      ...{ UPSTREAM_ALLOW_HOSTS: "127.0.0.1", APP_MARGIN_MAX_PERCENT: "50" },
    };
    return startBuiltServer({ dataDir: dataDirs[index] ?? "", env });
  }

  /** Answers with other amounts each time, within the amounts that the gateway counts. */
  function answer(response: ServerResponse, isStreamed: boolean): void {
    answered += 1;
    const usage = wireUsage(3 + (answered % 4), 1 + (answered % 3));
    response.writeHead(200, { "content-type": isStreamed ? "text/event-stream" : "application/json" });
    const content = "One, two, three.";
    if (!isStreamed) return void response.end(JSON.stringify(chatCompletion({ content, usage })));
    for (const chunk of chatChunks([content], { usage })) response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    response.end("data: [DONE]\n\n");
  }

  async function post<Answer>(path: string, key: string, body: object): Promise<Answer> {
    const { statusCode, body: text } = await request(`${servers[0]?.baseUrl}${path}`, {
      ...{ method: "POST", dispatcher: connections, body: JSON.stringify(body) },
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    });
    const answer = await text.text();
    expect(statusCode, answer).toBeLessThan(300);
    return JSON.parse(answer);
  }

  /** A key of an account of its own, as a consent with this margin would have made it. */
  async function createPayer(marginPercent: bigint, isBuyer: boolean): Promise<Payer> {
    const [accountId, publisherId] = [randomUUID(), randomUUID()];
    for (const id of [accountId, publisherId]) await pool.query("INSERT INTO account (id, handle) VALUES ($1, $2)", [id, `a-${id}`]);
    const move = (keyId: string, owner: string, appKeyId: string | null) =>
      pool.query(
        "UPDATE api_key SET account_id = $2, app_key_id = $3, margin_percent = $4, parent_id = NULL, ancestor_ids = '{}' WHERE id = $1",
        [keyId, owner, appKeyId, marginPercent.toString()],
      );
    const app = await post<{ id: string }>("/account/keys", OWNER_KEY, { name: "app", type: "publishable" });
    const key = await post<{ id: string; key: string }>("/account/keys", OWNER_KEY, { name: "granted" });
    await move(app.id, publisherId, null);
    await move(key.id, accountId, marginPercent === 0n ? null : app.id);
    const id = randomUUID();
    const amount = (100n * NANO).toString();
    if (isBuyer) {
      await pool.query(
        `INSERT INTO top_up (id, account_id, processor, status, nanocredits, currency, amount_cents, expires_at) VALUES ($1, $2, 'test', 'paid', $3, 'usd', 10000, now())`,
        [id, accountId, amount],
      );
      // Granted ones are spent first.
      await pool.query("SELECT credit_grant($1, $2, 'pack', 2000, NULL)", [randomUUID(), accountId]);
      await pool.query("SELECT credit_grant($1, $2, 'pack', $3, NULL, 'purchase', 'cash')", [id, accountId, amount]);
    } else {
      await pool.query("SELECT credit_grant($1, $2, 'pack', $3, NULL)", [id, accountId, amount]);
    }
    return { key: key.key, accountId, marginPercent, isBuyer };
  }

  /** The id of a generation whose answer was received whole; null for one that a kill cut off. */
  async function call(index: number): Promise<string | null> {
    const server = servers[index % 2] as BuiltServer;
    const payer = payers[index % payers.length] as Payer;
    const isStreamed = index % STREAMED_EVERY === 0;
    try {
      const { statusCode, headers, body } = await request(`${server.baseUrl}/v1/chat/completions`, {
        ...{ method: "POST", dispatcher: connections },
        headers: { authorization: `Bearer ${payer.key}`, "content-type": "application/json" },
        body: JSON.stringify({
          model,
          stream: isStreamed,
          messages: [{ role: "user", content: `Count from one to three, call ${index}` }],
        }),
      });
      const text = await body.text();
      expect(statusCode, text).toBe(200);
      return !isStreamed || text.includes("[DONE]") ? String(headers["x-generation-id"]) : null;
    } catch (error) {
      if (error instanceof Error && "code" in error) return null;
      throw error;
    }
  }

  it("are split to the nanocredit", { timeout: 1_800_000 }, async () => {
    const received: string[] = [];
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
      while (next < CALLS) {
        const id = await call(next++);
        if (id !== null) received.push(id);
        else if (restarting) await restarting;
        if (kills < KILLS && restarting === null && next > ((kills + 1) * CALLS) / (KILLS + 1)) {
          kills += 1;
          restarting = restart();
        }
      }
    };
    await Promise.all(Array.from({ length: CALLS_AT_ONCE }, callSome));
    if (restarting) await restarting;
    for (const server of servers.splice(0)) expect(await server.stop()).toMatchObject({ code: 0 });

    expect(kills).toBe(KILLS);
    expect(received.length).toBeGreaterThan(CALLS / 2);
    expect(await findUnbilled(pool, received)).toEqual([]);
    expect(await findBrokenInvariants(pool, { isIdle: true })).toEqual({});
    const { rows: shares } = await pool.query<Share>(
      `SELECT e.generation_id::text, e.kind::text, e.payer_id::text, e.sold_nanocredits::text AS sold, e.nanocredits::text AS amount, u.cost_nanocredits::text AS cost
       FROM earning e JOIN usage_record u ON u.id = e.generation_id`,
    );
    const payerOf = new Map(payers.map((payer) => [payer.accountId, payer]));
    for (const { kind, payer_id, sold, amount, cost } of shares) {
      const { marginPercent, isBuyer } = payerOf.get(payer_id) as Payer;
      const margin = (BigInt(sold) * marginPercent) / (100n + marginPercent);
      const expected = kind === "app" ? margin : ((BigInt(sold) - margin) * SHARE_PERCENT) / 100n;
      expect([isBuyer, BigInt(sold) <= BigInt(cost), BigInt(amount)]).toEqual([true, true, expected]);
    }
    const { rows: charges } = await pool.query<{ id: string; account_id: string }>(
      "SELECT id::text, account_id::text FROM usage_record WHERE cost_nanocredits > 2000",
    );
    const shared = new Set(shares.filter(({ kind }) => kind === "model").map(({ generation_id }) => generation_id));
    expect(charges.filter(({ id, account_id }) => payerOf.get(account_id)?.isBuyer && !shared.has(id))).toEqual([]);
    const { rows: sums } = await pool.query<{ charged: string; kept: string; earned: string }>(
      `SELECT -sum(amount_nanocredits) FILTER (WHERE book IN ('tier', 'crypto', 'pack', 'write_off')) AS charged,
         sum(amount_nanocredits) FILTER (WHERE book = 'revenue') AS kept, sum(amount_nanocredits) FILTER (WHERE book = 'earnings') AS earned
       FROM ledger_entry WHERE kind = 'charge'`,
    );
    const [{ charged, kept, earned } = { charged: "", kept: "", earned: "" }] = sums;
    expect(BigInt(kept) + BigInt(earned)).toBe(BigInt(charged));
    expect(BigInt(earned)).toBe(shares.reduce((sum, { amount }) => sum + BigInt(amount), 0n));
    if (process.env.EARNING_CALLS !== undefined) {
      console.info(
        `${received.length} of ${CALLS} answers received, ${kills} kills: charged ${charged}, kept ${kept}, earned ${earned} nanocredits`,
      );
    }
  });
});
