/**
 * SIGKILL between a charge and its webhook, repeatedly: every charge is announced. And the receiver that
 * docs/webhooks.md shows, pasted.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { openDatabase } from "../../src/store/database.js";
import { createClient } from "../rest/client.js";
import { createTestApp, OWNER_KEY, testModels } from "../support/app.js";
import { SERVER_PROGRAM } from "../support/compile.js";
import { createTestDataDir, silentLog } from "../support/database.js";
import { type FakeUpstream, startFakeUpstream } from "../support/fake-upstream.js";
import { startWebhookReceiver, verifyWebhook, type WebhookReceiver } from "../support/webhook-receiver.js";

const PROJECT = fileURLToPath(new URL("../../", import.meta.url));
const KILLS = 2;
const CALLERS = 8;
/** A kill comes in the middle of the calls after so many answers. */
const ANSWERS_BEFORE_KILL = 25;
const CHAT = { model: "acme/chat", messages: [{ role: "user", content: "Hi" }] };

let upstream: FakeUpstream;
let receiver: WebhookReceiver;

beforeAll(async () => {
  [upstream, receiver] = await Promise.all([startFakeUpstream(), startWebhookReceiver()]);
});
afterAll(async () => {
  await upstream.close();
  await receiver.close();
});

interface Gateway {
  readonly baseUrl: string;
  readonly child: ChildProcess;
}

async function startGateway(dataDir: string): Promise<Gateway> {
  const env = {
    ...{ PATH: process.env.PATH, LOG_LEVEL: "error", PORT: "0", DATA_DIR: dataDir, MODELS_FILE: join(dataDir, "models.json") },
    ...{ OWNER_API_KEY: OWNER_KEY, ACME_KEY: "acme-secret-key", UPSTREAM_ALLOW_HOSTS: "127.0.0.1" },
  };
  const child = spawn(process.execPath, [SERVER_PROGRAM], { env, stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const baseUrl = await lineOf(child, /ready at\s+(\S+)/);
  return { baseUrl, child };
}

/** What the first line that matches holds in its first group. */
async function lineOf(child: ChildProcess, pattern: RegExp): Promise<string> {
  if (!child.stdout) throw new Error("nothing of its output is read");
  const lines = createInterface(child.stdout);
  return new Promise((resolve, reject) => {
    lines.on("line", (line) => {
      const [, found] = pattern.exec(line) ?? [];
      if (found !== undefined) resolve(found);
    });
    child.once("exit", (code) => reject(new Error(`ended with code ${code} before it had said so`)));
  });
}

async function end({ child }: Gateway, signal: "SIGKILL" | "SIGTERM"): Promise<void> {
  const exited = once(child, "exit");
  child.kill(signal);
  await exited;
}

/** Calls until the gateway is gone; kills it after enough answers. */
async function callUntilKilled(gateway: Gateway): Promise<void> {
  const client = createClient(gateway.baseUrl, OWNER_KEY);
  let answers = 0;
  let killed: Promise<void> | null = null;
  const call = async () => {
    for (;;) {
      const status = await client.post("/v1/chat/completions", CHAT).then(
        (answer) => answer.status,
        () => null,
      );
      if (status === null) return;
      answers += 1;
      if (answers === ANSWERS_BEFORE_KILL) killed = end(gateway, "SIGKILL");
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, call));
  await killed;
}

it("announces every charge of a gateway that is killed repeatedly, queued once each", { timeout: 180_000 }, async () => {
  const { dataDir, remove } = await createTestDataDir();
  onTestFinished(remove);
  const models = {
    upstreams: [{ id: "acme", wireFormat: "openai", baseUrl: upstream.baseUrl, apiKey: "env:ACME_KEY" }],
    models: testModels(),
  };
  await writeFile(join(dataDir, "models.json"), JSON.stringify(models));
  let gateway = await startGateway(dataDir);
  const created = await createClient(gateway.baseUrl, OWNER_KEY).post("/account/webhooks", {
    url: receiver.url,
    events: ["usage.recorded"],
  });
  const { secret } = created.json<{ secret: string }>();

  for (let kill = 0; kill < KILLS; kill += 1) {
    await callUntilKilled(gateway);
    gateway = await startGateway(dataDir);
  }
  const told = () => new Set(receiver.received.map(({ body }) => (JSON.parse(body) as { data: { id: string } }).data.id));
  await expect.poll(() => told().size, { timeout: 60_000 }).toBeGreaterThanOrEqual(KILLS * ANSWERS_BEFORE_KILL);
  await end(gateway, "SIGTERM");

  const database = await openDatabase({ databaseUrl: null, dataDir, log: silentLog });
  onTestFinished(() => database.close());
  const [rows, deliveries] = await Promise.all([
    database.prisma.usageRecord.findMany({ select: { id: true } }),
    database.prisma.webhookDelivery.findMany({ select: { eventKey: true, status: true, id: true } }),
  ]);
  expect(rows.length).toBeGreaterThanOrEqual(KILLS * ANSWERS_BEFORE_KILL);
  // Each once, and none missing: not one that was charged just before a kill.
  expect(deliveries.map(({ eventKey }) => eventKey).sort()).toEqual(rows.map(({ id }) => id).sort());
  // Every delivery that is marked as such has arrived, and none twice under different ids.
  const delivered = deliveries.filter(({ status }) => status === "delivered");
  const ids = new Set(receiver.received.map(({ headers }) => headers["webhook-id"]));
  expect(delivered.filter(({ id }) => !ids.has(id))).toEqual([]);
  expect(ids.size).toBe(told().size);
  const last = receiver.received.at(-1);
  expect(last && verifyWebhook(secret, last).type).toBe("usage.recorded");
});

it("is received by the program that the documents show", async () => {
  const app = await createTestApp({ config: { upstreamAllowHosts: ["127.0.0.1"] } });
  onTestFinished(() => app.close());
  // Below the project, where the package that it imports is found.
  const directory = await mkdtemp(join(PROJECT, "node_modules/.cache/sluice-receiver-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  const text = await readFile(join(PROJECT, "docs/webhooks.md"), "utf8");
  const [, program = ""] = /^```js\n(.*?)^```$/ms.exec(text) ?? [];
  await writeFile(join(directory, "receiver.mjs"), program);
  const client = createClient(app.baseUrl, app.key);
  const { id, secret } = (await client.post("/account/webhooks", { url: "http://127.0.0.1:9/", events: ["usage.recorded"] })).json<{
    id: string;
    secret: string;
  }>();

  const child = spawn(process.execPath, [join(directory, "receiver.mjs")], {
    env: { PATH: process.env.PATH, WEBHOOK_SECRET: secret, PORT: "0" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill());
  const port = await lineOf(child, /listening on port (\d+)/);
  const told = lineOf(child, /^usage\.recorded (.*)$/);
  await client.request("PATCH", `/account/webhooks/${id}`, { body: { url: `http://127.0.0.1:${port}/` } });
  const chat = await client.post("/v1/chat/completions", CHAT);

  expect(JSON.parse(await told)).toMatchObject({ id: chat.headers.get("x-generation-id"), cost_usd: Number(chat.headers.get("x-cost")) });
  const forged = await fetch(`http://127.0.0.1:${port}/`, { method: "POST", body: "{}", headers: { "webhook-id": "forged" } });
  expect(forged.status).toBe(400);
});
