/** Stopping behind a balancer: not ready first, requests still answered, then closed (SHUTDOWN_DELAY_MS). */
import { rm } from "node:fs/promises";
import { afterEach, describe, expect, it } from "vitest";
import { OWNER_KEY } from "../support/app.js";
import { type BuiltServer, startBuiltServer } from "../support/built-server.js";
import { createEmptyDir, createTestDataDir } from "../support/database.js";
import { eventually } from "../support/eventually.js";
import { isPostgresInstalled, POSTGRES_ABSENT } from "../support/postgres.js";
import { createPostgresDatabase } from "../support/suite-server.js";

/** Many requests long, on a slow machine too. */
const DELAY_MS = 3_000;
/** Never waited for. */
const ENDLESS_MS = 300_000;
const WORKERS = 2;
const CLOSED = "closed";

if (!isPostgresInstalled) console.warn(`skipped, stopping several workers: ${POSTGRES_ABSENT}`);

const removals: (() => unknown)[] = [];
afterEach(async () => {
  for (const remove of removals.splice(0)) await remove();
});

async function start(delayMs: number, workers: number): Promise<BuiltServer> {
  const env = { SHUTDOWN_DELAY_MS: String(delayMs) };
  if (workers === 1) {
    const { dataDir, remove } = await createTestDataDir();
    removals.push(remove);
    return startBuiltServer({ dataDir, env });
  }
  const [database, dataDir] = await Promise.all([createPostgresDatabase(), createEmptyDir()]);
  removals.push(database.drop, () => rm(dataDir, { recursive: true }));
  return startBuiltServer({ dataDir, env: { ...env, DATABASE_URL: database.url, WORKERS: String(workers) } });
}

/** On a connection of its own. */
async function ask({ baseUrl }: BuiltServer, path: string, body?: object): Promise<number | typeof CLOSED> {
  const headers = { authorization: `Bearer ${OWNER_KEY}`, "content-type": "application/json", connection: "close" };
  const response = await fetch(baseUrl + path, { headers, ...(body && { method: "POST", body: JSON.stringify(body) }) }).catch(() => null);
  if (response === null) return CLOSED;
  await response.arrayBuffer();
  return response.status;
}

const chat = (server: BuiltServer, content = "Hi") =>
  ask(server, "/v1/chat/completions", { model: "sandbox/text-paid", messages: [{ role: "user", content }] });

describe.each([
  ["one process", 1, true],
  ["several workers", WORKERS, isPostgresInstalled],
])("a gateway of %s after a signal to stop", (_, workers, canRun) => {
  it.skipIf(!canRun)("is not ready first, goes on answering, and then is closed", async () => {
    const server = await start(DELAY_MS, workers);
    const kept = await fetch(`${server.baseUrl}/healthz`);
    const answers: unknown[] = [[await ask(server, "/readyz"), await chat(server)]];

    server.child.kill("SIGTERM");
    await server.logged(/^not ready any more/);
    // A supervisor may tell every process of the gateway.
    for (const { workerPid } of server.log.filter(({ msg }) => msg === "a worker is ready")) process.kill(Number(workerPid), "SIGTERM");
    const last = await fetch(`${server.baseUrl}/healthz`);
    // It is under way when the time is up.
    const underWay = chat(server, `[delay ${DELAY_MS}ms]`);
    while (!answers.some((answer) => answer === CLOSED)) {
      const readiness = await ask(server, "/readyz");
      answers.push(readiness === CLOSED ? CLOSED : [readiness, await chat(server)]);
    }

    expect([kept.headers.get("connection"), last.headers.get("connection")]).toEqual(["keep-alive", "close"]);
    const served = answers.slice(1, -1);
    // The last of several may have been asked when it was closed already.
    const sure = served.slice(0, Math.max(1, served.length - 1));
    expect(sure).toEqual(sure.map(() => [503, 200]));
    expect(answers[0]).toEqual([200, 200]);
    expect(await underWay).toBe(200);
    expect(await server.ended).toEqual({ code: 0, signal: null, error: "" });
    const words = server.log.map(({ msg }) => msg).filter((msg) => /^(?:not ready|stopping)/.test(msg));
    expect(words).toEqual([expect.stringMatching(/^not ready/), expect.stringMatching(/^stopping/)]);
  });

  it.skipIf(!canRun)("ends at once after a second signal", async () => {
    const server = await start(ENDLESS_MS, workers);

    server.child.kill("SIGTERM");
    await server.logged(/^not ready any more/);
    server.child.kill("SIGINT");

    const { code, signal } = await server.ended;
    expect([code, signal]).toEqual(workers === 1 ? [null, "SIGINT"] : [1, null]);
  });
});

it("refuses a call that waits for more credits of its run when it stops", async () => {
  const server = await start(0, 1);
  const send = async (path: string, key: string, body?: object) => {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const answer = await fetch(server.baseUrl + path, { headers, ...(body && { method: "POST", body: JSON.stringify(body) }) });
    return { status: answer.status, retryAfter: answer.headers.get("retry-after"), json: (await answer.json()) as Record<string, unknown> };
  };
  const { id, key } = (await send("/v1/runs", OWNER_KEY, { max_cost: 0.000000001, on_limit: "ask" })).json as { id: string; key: string };
  const waiting = send("/v1/chat/completions", key, { model: "sandbox/text-paid", messages: [{ role: "user", content: "Hi" }] });
  await eventually(async () => expect((await send(`/v1/runs/${id}`, OWNER_KEY)).json.asked).toBeGreaterThan(0));

  const { code } = await server.stop();

  expect(await waiting).toMatchObject({ status: 503, retryAfter: "1", json: { error: { code: "SERVICE_UNAVAILABLE" } } });
  expect(code).toBe(0);
});
