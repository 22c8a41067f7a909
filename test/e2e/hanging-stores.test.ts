/**
 * PostgreSQL and Redis that accept connections and never answer: every request is answered, or refused in the envelope,
 * while they are stopped; delivered answers are charged once when they go on.
 */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DATABASE_LOOK_MS, DATABASE_PING_MS } from "../../src/store/database-watch.js";
import { executeText } from "../graphql/client.js";
import { type Client, createClient } from "../rest/client.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { eventually } from "../support/eventually.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { chatChunks, chatCompletion } from "../support/openai-bodies.js";
import { type Kind, OPERATIONS } from "../support/operations.js";
import { isPostgresInstalled, type TestPostgres } from "../support/postgres.js";
import { isRedisInstalled, startRedis, type TestRedis } from "../support/redis.js";
import { requirePostgres } from "../support/shared-database.js";
import { handler } from "../support/upstream-replies.js";
import { createPayer, type Payer } from "./money.js";

const modelOf = (kind: Kind) => (kind === "moderation" ? "sandbox/moderation" : `sandbox/${kind}-paid`);
const WAITED = OPERATIONS.filter(({ delivery }) => delivery !== "job");
const CREDITS = 1_000_000_000_000n;
/** Milliseconds that a caller may be held (docs/operating.md). */
const HELD_MS_MAX = 6_000;

it("notices a silent database before its callers have waited too long", () => {
  // A statement that begins just before a ping that is not answered looks a second later, and finds out then.
  expect(2 * DATABASE_LOOK_MS + DATABASE_PING_MS).toBeLessThanOrEqual(HELD_MS_MAX);
});

describe.skipIf(!isPostgresInstalled || !isRedisInstalled)("stores that hang", () => {
  let postgres: TestPostgres;
  let redis: TestRedis;
  let app: TestApp;
  let payer: Payer;
  let client: Client;

  beforeAll(async () => {
    [postgres, redis] = await Promise.all([requirePostgres(), startRedis() as Promise<TestRedis>]);
    app = await createTestApp({ config: { databaseUrl: postgres.url, redisUrl: redis.url, contentCacheTimes: {} } });
    payer = await createPayer(app, { pack: CREDITS, permissions: ["keys", "balance", "usage"] });
    client = createClient(app.baseUrl, payer.key);
  });
  afterAll(async () => {
    redis.thaw();
    postgres.thaw();
    await app.close();
    await Promise.all([postgres.stop(), redis.stop()]);
  });

  const asking = () => ({ baseUrl: app.baseUrl, wsUrl: app.wsUrl, key: payer.key });
  const generate = () => Promise.all(WAITED.map(({ kind, ask }) => ask(asking(), { model: modelOf(kind), ...shortest(kind) })));
  const shortest = (kind: Kind) => (kind === "video" || kind === "music" ? { duration: 1 } : {});
  const query = async (text: string) => (await executeText(asking(), { query: text })).errors?.[0]?.extensions.code ?? null;
  const findCharged = async () => {
    const rows = await app.database.prisma.usageRecord.findMany({ where: { accountId: payer.accountId }, select: { id: true } });
    return rows.map(({ id }) => id);
  };

  /** What waits for the database or for Redis beside generations, on each face. */
  const others = () =>
    Promise.all([
      client.get("/account/usage").then(codeOf),
      client.get("/account/keys").then(codeOf),
      client.post("/account/keys", { name: "another" }).then(codeOf),
      client.post("/media/upload", { data: Buffer.from("Hello").toString("base64"), contentType: "text/plain" }).then(codeOf),
      client.get("/media/0123456789abcdef").then(codeOf),
      client.post("/v1/chat/completions", CHAT, { headers: { "Idempotency-Key": randomUUID() } }).then(codeOf),
      client.get("/account/balance", { key: `sk_${"x".repeat(40)}` }).then(codeOf),
      query("{ me { handle } }"),
      query('mutation { createApiKey(input: { name: "another" }) { key } }'),
      query('mutation { signIn(input: { email: "ada@example.com", password: "correct horse battery" }) { __typename } }'),
    ]);
  const CHAT = { model: "sandbox/text-paid", messages: [{ role: "user", content: "Hello" }] };
  const codeOf = ({ status, text }: { status: number; text: string }) =>
    status < 400 ? null : (JSON.parse(text) as { error: { code: string } }).error.code;

  it("delay and refuse nothing when it is Redis", async () => {
    redis.freeze();

    const told = await generate();
    const codes = await others();

    expect(told.flatMap(({ code, message }, index) => (code === null ? [] : [`${WAITED[index]?.name}: ${code} ${message}`]))).toEqual([]);
    expect(codes).toEqual([null, null, null, null, "NOT_FOUND", null, "UNAUTHORIZED", null, null, "UNAUTHORIZED"]);
    expect((await client.get("/readyz")).status).toBe(200);
    redis.thaw();
    await eventually(async () => expect(await findCharged()).toEqual(expect.arrayContaining(told.map(({ generationId }) => generationId))));
  });

  it("refuse requests that need PostgreSQL, and charge delivered answers when it goes on", async () => {
    const before = await findCharged();
    postgres.freeze();

    const [told, codes] = await Promise.all([generate(), others()]);
    const ready = await client.get("/readyz");
    const later = await Promise.all([generate(), others()]);

    const delivered = [...told, ...later[0]].filter(({ code }) => code === null);
    const refusals = [...told, ...later[0]].flatMap(({ code }) => code ?? []);
    expect(new Set(refusals)).toEqual(new Set(["SERVICE_UNAVAILABLE"]));
    expect(new Set([...codes, ...later[1]].filter((code) => code !== null && code !== "UNAUTHORIZED"))).toEqual(
      new Set(["SERVICE_UNAVAILABLE"]),
    );
    expect(ready.status).toBe(503);
    postgres.thaw();
    await eventually(async () => expect((await client.get("/readyz")).status).toBe(200));
    await eventually(async () => {
      const charged = (await findCharged()).filter((id) => !before.includes(id));
      expect(charged.sort()).toEqual(delivered.map(({ generationId }) => String(generationId)).sort());
    });
    expect((await generate()).flatMap(({ code }) => code ?? [])).toEqual([]);
    expect(await findBrokenInvariants(app.database.pool)).toEqual({});
  });

  it("let every answer finish that an upstream had begun before PostgreSQL stopped, and charge each once", async () => {
    const messages = [{ role: "user", content: "Hello" }];
    const chatted = "mutation ($input: ChatCompletionInput!) { createChatCompletion(input: $input) { receipt { generationId } } }";
    const asks: readonly (() => Promise<string | undefined | null>)[] = [
      async () => (await client.post("/v1/chat/completions", { model: "acme/chat", messages })).headers.get("x-generation-id"),
      async () =>
        (await client.post("/v1/chat/completions", { model: "acme/chat", messages, stream: true })).headers.get("x-generation-id"),
      async () =>
        (
          await client.post("/v1/chat/completions", { model: "acme/chat", messages }, { headers: { "Idempotency-Key": randomUUID() } })
        ).headers.get("x-generation-id"),
      async () => (await client.get(`/text/${randomUUID()}?model=acme/chat`)).headers.get("x-generation-id"),
      async () => {
        const { data } = await executeText(asking(), {
          query: chatted,
          variables: { input: { model: "acme/chat", messages: [{ role: "USER", content: "Hello" }] } },
        });
        return (data as { createChatCompletion: { receipt: { generationId: string } } }).createChatCompletion.receipt.generationId;
      },
    ];
    let open: () => void = () => undefined;
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    const chunks = chatChunks(["Hi"]);
    app.upstream.replyAlways(
      handler(async ({ json }, response) => {
        await opened;
        const isStreamed = (json as { stream?: boolean }).stream === true;
        response.writeHead(200, { "content-type": isStreamed ? "text/event-stream" : "application/json" });
        if (isStreamed) response.end(`${chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("")}data: [DONE]\n\n`);
        else response.end(JSON.stringify(chatCompletion({ content: "Hi" })));
      }),
    );
    const before = app.upstream.requests.length;
    const answers = Promise.all(asks.map((ask) => ask()));
    await eventually(() => expect(app.upstream.requests.length - before).toBe(asks.length));
    postgres.freeze();

    open();
    const ids = await answers;

    postgres.thaw();
    expect(ids.every(Boolean)).toBe(true);
    await eventually(async () => expect(await findCharged()).toEqual(expect.arrayContaining(ids)));
    await eventually(async () => expect((await client.get("/readyz")).status).toBe(200));
    expect(await findBrokenInvariants(app.database.pool)).toEqual({});
  });

  it("make the gateway unready when no flush succeeds under load, and ready again when one does", async () => {
    const FUNCTIONS = ["credit_flush", "credit_move", "credit_spend"];
    const rename = async (to: (name: string) => string, from: (name: string) => string) => {
      for (const name of FUNCTIONS) await app.database.pool.query(`ALTER FUNCTION ${from(name)} RENAME TO ${to(name)}`);
    };
    const same = (name: string) => name;
    const broken = (name: string) => `${name}_broken`;
    const ask = () => client.post("/v1/chat/completions", CHAT);
    await rename(broken, same);

    await eventually(async () => {
      await ask();
      expect((await client.get("/readyz")).status).toBe(503);
    });
    await rename(same, broken);

    expect((await ask()).status).toBe(200);
    await eventually(async () => expect((await client.get("/readyz")).status).toBe(200));
    await eventually(async () => expect(app.infrastructure.settler.refused.count).toBe(0));
    expect(await findBrokenInvariants(app.database.pool)).toEqual({});
  });
});
