/**
 * The built server with each store that it can have, alone and together. It makes one generation of each kind on each
 * face, each charged once, and stops.
 */
import { rm } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Answer, type Client, createClient, type UsageJson } from "../rest/client.js";
import { OWNER_KEY } from "../support/app.js";
import { startBuiltServer } from "../support/built-server.js";
import { createEmptyDir, createTestDataDir } from "../support/database.js";
import { findBrokenInvariants, findUnbilled } from "../support/invariants.js";
import { type Kind, OPERATIONS, type Operation } from "../support/operations.js";
import { isPostgresInstalled, POSTGRES_ABSENT } from "../support/postgres.js";
import { isRedisInstalled, REDIS_ABSENT, startRedis, type TestRedis } from "../support/redis.js";
import { isS3Installed, S3_ABSENT, startS3, type TestS3 } from "../support/s3.js";
import { createPostgresDatabase, createTestPool } from "../support/suite-server.js";

interface Stores {
  readonly hasPostgres?: boolean;
  readonly hasRedis?: boolean;
  readonly hasBucket?: boolean;
  readonly workers?: number;
}

const SETUPS: readonly (readonly [string, Stores])[] = [
  ["PostgreSQL, Redis, a bucket and two workers", { hasPostgres: true, hasRedis: true, hasBucket: true, workers: 2 }],
  ["PostgreSQL alone", { hasPostgres: true }],
  ["Redis alone", { hasRedis: true }],
  ["a bucket alone", { hasBucket: true }],
  ["two workers and the PostgreSQL that they need", { hasPostgres: true, workers: 2 }],
];

/** Why a setup cannot be tested here; null when it can. */
function absenceOf({ hasPostgres, hasRedis, hasBucket }: Stores): string | null {
  if (hasPostgres && !isPostgresInstalled) return POSTGRES_ABSENT;
  if (hasRedis && !isRedisInstalled) return REDIS_ABSENT;
  return hasBucket && !isS3Installed ? S3_ABSENT : null;
}

for (const [name, stores] of SETUPS) {
  const absence = absenceOf(stores);
  if (absence !== null) console.warn(`skipped, the built server with ${name}: ${absence}`);
}

/** They work in the process, and have a price. */
const modelOf = (kind: Kind) => (kind === "moderation" ? "sandbox/moderation" : `sandbox/${kind}-paid`);

/** Every way to text, whole and streamed, and of each other kind one on each face. */
const CHOSEN = OPERATIONS.filter(
  ({ kind, face }, index) => kind === "text" || OPERATIONS.findLastIndex((other) => other.kind === kind && other.face === face) === index,
);

/** As small as its kind allows. */
function fieldsOf({ kind, face }: Operation): Record<string, unknown> {
  const smallest = face === "REST" ? { size: "64x64" } : { width: 64, height: 64 };
  if (kind === "video") return face === "REST" ? { ...smallest, seconds: "1" } : { ...smallest, duration: 1 };
  if (kind === "music") return { duration: 1 };
  return {};
}

/** The parts that are loaded at their first use, beside the generations: each with its request. */
const LATE: readonly (readonly [string, (client: Client) => Promise<Answer>])[] = [
  ["readiness", (client) => client.get("/readyz")],
  ["metrics", (client) => client.get("/metrics")],
  [
    "safety",
    (client) => client.post("/v1/chat/completions", { messages: [{ role: "user", content: "Hi" }], safe: ["privacy", "secrets"] }),
  ],
  ["an upload", (client) => client.post("/media/upload", { data: Buffer.from("Hello").toString("base64"), contentType: "text/plain" })],
  ["an upload's address", (client) => client.post("/media/upload", { contentType: "text/plain", size: 5 })],
  [
    "MCP",
    (client) =>
      client.post("/mcp", { jsonrpc: "2.0", id: 1, method: "tools/list" }, { headers: { accept: "application/json, text/event-stream" } }),
  ],
  ["sign-up", (client) => client.post("/graphql", { query: SIGN_UP })],
];
const SIGN_UP = 'mutation { signUp(input: { email: "ada@example.com", password: "correct horse battery" }) { __typename } }';

/** Of rate limits, registered documents and limits of routes. */
const REDIS_LATE = /(?:by|to) each process alone, because Redis does not answer$/;

describe("the built server", () => {
  let redis: TestRedis | null;
  let s3: TestS3 | null;
  let redisDatabases = 0;

  beforeAll(async () => {
    [redis, s3] = await Promise.all([startRedis(), startS3()]);
  });
  afterAll(async () => {
    await Promise.all([redis?.stop(), s3?.stop()]);
  });

  async function createPlace({ hasPostgres = false, hasRedis = false, hasBucket = false, workers = 1 }: Stores) {
    const database = hasPostgres ? await createPostgresDatabase() : null;
    const { dataDir, remove } = database ? await createDirectory() : await createTestDataDir();
    const bucket = hasBucket ? await s3?.createBucket() : null;
    if (hasRedis) redisDatabases += 1;
    const env = {
      WORKERS: String(workers),
      // Of an engine's age, which is not the server's matter.
      AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true",
      ...(database && { DATABASE_URL: database.url }),
      ...(hasRedis && { REDIS_URL: `${redis?.url}/${redisDatabases}` }),
      ...(bucket && {
        S3_BUCKET: bucket.bucket,
        S3_ENDPOINT: String(bucket.endpoint),
        S3_REGION: bucket.region,
        S3_ACCESS_KEY_ID: String(bucket.credentials?.accessKeyId),
        S3_SECRET_ACCESS_KEY: String(bucket.credentials?.secretAccessKey),
      }),
    };
    return { dataDir, database, env, remove: () => Promise.all([database?.drop(), remove()]) };
  }

  async function createDirectory() {
    const dataDir = await createEmptyDir();
    return { dataDir, remove: () => rm(dataDir, { recursive: true, force: true }) };
  }

  it.each(SETUPS)("serves each kind of generation with %s, charges each once, and stops", async (_, stores) => {
    const { dataDir, database, env, remove } = await createPlace(stores);
    const server = await startBuiltServer({ dataDir, env });
    const { baseUrl } = server;
    const asking = { baseUrl, wsUrl: `${baseUrl.replace("http", "ws")}/graphql`, key: OWNER_KEY };
    const client = createClient(baseUrl, OWNER_KEY);

    const told = await Promise.all(
      CHOSEN.map((operation) => operation.ask(asking, { model: modelOf(operation.kind), ...fieldsOf(operation) })),
    );
    const late = await Promise.all(LATE.map(([, ask]) => ask(client)));

    expect(told.flatMap(({ code, message }, index) => (code === null ? [] : [`${CHOSEN[index]?.name}: ${code} ${message}`]))).toEqual([]);
    expect(late.map(({ status, text }, index) => [LATE[index]?.[0], status, text.includes('"errors":')])).toEqual(
      LATE.map(([each]) => [each, 200, false]),
    );
    const ids = told.map(({ generationId }) => String(generationId));
    const unbilled = async () => {
      const { usage } = (await client.get("/account/usage?limit=1000")).json<UsageJson>();
      return ids.filter((id) => !usage.some((row) => row.id === id));
    };
    await expect.poll(unbilled).toEqual([]);
    expect(await server.stop()).toEqual({ code: 0, signal: null, error: "" });
    // Beside other tests the process may read Redis's answer later than a request waits for it, which changes no charge.
    expect(server.log.filter(({ level, msg }) => level >= 40 && !REDIS_LATE.test(String(msg)))).toEqual([]);
    if (database) {
      const pool = createTestPool(database.url, 1);
      expect(await findUnbilled(pool, ids)).toEqual([]);
      expect(await findBrokenInvariants(pool, { isIdle: true })).toEqual({});
      await pool.end();
    }
    await remove();
  });
});
