/** Stored responses against the server as it is shipped, through several processes, and after a process was killed. */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import OpenAI, { NotFoundError } from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { METER_NOTE_MS } from "../../src/limits.js";
import { openDatabase } from "../../src/store/database.js";
import { createTestApp, OWNER_KEY, type TestApp, testModels } from "../support/app.js";
import { type BuiltServer, startBuiltServer } from "../support/built-server.js";
import { createEmptyDir, createTestDataDir, silentLog } from "../support/database.js";
import { eventually } from "../support/eventually.js";
import { type FakeUpstream, startFakeUpstream } from "../support/fake-upstream.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { chatChunks, wireUsage } from "../support/openai-bodies.js";
import { isPostgresInstalled, POSTGRES_ABSENT } from "../support/postgres.js";
import { findOpenAiPython, OPENAI_PYTHON_ABSENT } from "../support/python-clients.js";
import { createPostgresDatabase, type SuiteDatabase } from "../support/suite-server.js";
import { sse, waitFor } from "../support/upstream-replies.js";

const PYTHON_PROGRAM = fileURLToPath(new URL("../support/programs/openai_stored_client.py", import.meta.url));
const WORD_PACE_MS = 20;
/** They take longer than the interval at which the meter of a stream is noted. */
const WORDS_BEFORE_KILL = (2 * METER_NOTE_MS) / WORD_PACE_MS;
const WORDS = 10 * WORDS_BEFORE_KILL;
const python = await findOpenAiPython();

function clientOf({ baseUrl }: { readonly baseUrl: string }, apiKey = OWNER_KEY): OpenAI {
  return new OpenAI({ apiKey, baseURL: `${baseUrl.replace("localhost", "127.0.0.1")}/v1`, maxRetries: 0 });
}

describe("the built server", () => {
  let server: BuiltServer;
  let dataDir: string;
  let remove: () => Promise<void>;
  beforeAll(async () => {
    ({ dataDir, remove } = await createTestDataDir());
    server = await startBuiltServer({ dataDir, env: { RESPONSES_STORED_DAYS: "7", LOG_LEVEL: "info" } });
  });
  afterAll(async () => {
    await server.stop();
    await remove();
  });

  it("stores, continues, lists and deletes responses with OpenAI's client for Node", async () => {
    const openai = clientOf(server);
    const model = "sandbox/text";
    const first = await openai.responses.create({ model, input: "[echo] One" });
    const second = await openai.responses.create({ model, input: "[echo] Two", previous_response_id: first.id });
    const third = await openai.responses.stream({ model, input: "[echo] Three", previous_response_id: second.id }).finalResponse();

    expect([first.output_text, second.output_text, third.output_text]).toEqual(["One", "Two", "Three"]);
    expect((await openai.responses.inputItems.list(third.id, { order: "asc" })).data).toHaveLength(5);
    await openai.responses.delete(third.id);
    await expect(openai.responses.retrieve(third.id)).rejects.toBeInstanceOf(NotFoundError);
    expect(JSON.stringify(server.log)).not.toContain("[echo]");
  });

  it.skipIf(python === null)(
    `does the same with the client for Python (left out where it is absent: ${OPENAI_PYTHON_ABSENT})`,
    async () => {
      const env = { ...process.env, SLUICE_URL: `${server.baseUrl.replace("localhost", "127.0.0.1")}/v1`, SLUICE_KEY: OWNER_KEY };
      const { stdout } = await promisify(execFile)(python ?? "", [PYTHON_PROGRAM], { env });

      const missing = [404, "NotFoundError"];
      expect(JSON.parse(stdout)).toEqual({
        thread: ["One", "Two", "Three", true],
        retrieved: true,
        items: ["message", "message", "message", "message", "message"],
        deleted: [missing, missing],
        broken: [400, "BadRequestError"],
        background: ["queued", "completed", "Later"],
        resumed: [true, "response.completed", "Streamed later on"],
        conversation: [true, ["message", "message", "message"], { topic: "names" }],
        changed: [true, 1, { topic: "ends" }],
        gone: [true, missing],
      });
    },
  );
});

describe(`two processes on one database${isPostgresInstalled ? "" : ` (skipped: ${POSTGRES_ABSENT})`}`, () => {
  const processes: TestApp[] = [];
  const dataDirs: string[] = [];
  let database: SuiteDatabase | null = null;
  let upstream: FakeUpstream;
  beforeAll(async () => {
    upstream = await startFakeUpstream();
    if (!isPostgresInstalled) return;
    database = await createPostgresDatabase();
    for (let count = 0; count < 2; count += 1) {
      const dataDir = await createEmptyDir();
      dataDirs.push(dataDir);
      const config = { databaseUrl: database.url, encryptionKey: "the same for every process", storedResponsesDays: 1 };
      processes.push(await createTestApp({ upstream, dataDir, config }));
    }
  });
  afterAll(async () => {
    for (const app of processes) await app.close();
    for (const dataDir of dataDirs) await rm(dataDir, { recursive: true });
    await database?.drop();
    await upstream.close();
  });

  it.skipIf(!isPostgresInstalled)("cancel a background response that the other one generates, and follow its events", async () => {
    const [a, b] = processes as [TestApp, TestApp];
    const [begin, half, ...rest] = chatChunks(["Half", " done."], { usage: wireUsage(10, 4) });
    const never = new Promise<void>(() => undefined);
    upstream.replyNext(sse([begin as never, half as never, waitFor(never), ...(rest as never[])]));
    const { id } = await clientOf(a)
      .responses.create({
        ...{ model: "acme/chat", max_output_tokens: 50, input: "Hello", background: true, stream: true },
      })
      .then(async (stream) => {
        for await (const event of stream) if (event.type === "response.created") return event.response;
        throw new Error("The stream has no beginning.");
      });

    const types: string[] = [];
    for await (const event of await clientOf(b).responses.retrieve(id, { stream: true })) {
      types.push(event.type);
      if (event.type === "response.output_text.delta") break;
    }
    const cancelled = await clientOf(b).responses.cancel(id);

    expect(types[0]).toBe("response.created");
    expect(cancelled).toMatchObject({ status: "cancelled", usage: { output_tokens: 1 } });
    expect(await a.database.prisma.usageRecord.count({ where: { status: "cancelled" } })).toBe(1);
  });
});

it("settles a background response of a killed process once, and says that it failed", { timeout: 120_000 }, async () => {
  const upstream = await startFakeUpstream();
  const { dataDir, remove } = await createTestDataDir();
  const modelsFile = join(dataDir, "models.json");
  const upstreams = [{ id: "acme", wireFormat: "openai", baseUrl: upstream.baseUrl, apiKey: "env:ACME_KEY" }];
  await writeFile(modelsFile, JSON.stringify({ upstreams, models: testModels() }));
  const env = { RESPONSES_STORED_DAYS: "7", MODELS_FILE: modelsFile, ACME_KEY: "acme-secret-key" };
  const words = Array.from({ length: WORDS }, () => "word ");
  upstream.replyNext(sse(chatChunks(words, { usage: wireUsage(10, WORDS) }), { paceMs: WORD_PACE_MS }));
  let server = await startBuiltServer({ dataDir, env });
  try {
    const { id } = await clientOf(server)
      .responses.create({ model: "acme/chat", input: "Hello", background: true, stream: true })
      .then(async (stream) => {
        let deltas = 0;
        let response: { id: string } | null = null;
        for await (const event of stream) {
          if (event.type === "response.created") response = event.response;
          if (event.type === "response.output_text.delta") deltas += 1;
          if (deltas === WORDS_BEFORE_KILL && response) return response;
        }
        throw new Error("The stream ended before the kill.");
      });
    server.child.kill("SIGKILL");
    await once(server.child, "exit");
    server = await startBuiltServer({ dataDir, env });

    const failed = await eventually(async () => {
      const response = await clientOf(server).responses.retrieve(id);
      expect(response.status).toBe("failed");
      return response;
    });
    expect(failed.error).toMatchObject({ code: "server_error" });
    expect(failed.usage?.output_tokens).toBeGreaterThan(0);
    await server.stop();
    const database = await openDatabase({ databaseUrl: null, dataDir, log: silentLog });
    const rows = await database.prisma.usageRecord.findMany();
    expect(rows).toMatchObject([{ status: "cancelled", usageSource: "partial" }]);
    expect(rows[0]?.outputTextTokens).toBe(failed.usage?.output_tokens);
    expect(await findBrokenInvariants(database.pool, { isIdle: true })).toEqual({});
    await database.close();
  } finally {
    server.child.kill("SIGKILL");
    await upstream.close();
    await remove();
  }
});
