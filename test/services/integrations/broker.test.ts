/**
 * A broker of connected apps over HTTP: its requests, and the handling of answers that are good, wrong, slow or too
 * large.
 */
import { createServer, type RequestListener, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { AppError } from "../../../src/errors.js";
import { systemClock } from "../../../src/lib/clock.js";
import { NO_BROKER } from "../../../src/services/integrations/broker.js";
import { HttpBroker } from "../../../src/services/integrations/http-broker.js";
import { callbackLink, Integrations } from "../../../src/services/integrations/integrations.js";
import {
  BROKER_ANSWER_BYTES_MAX,
  BROKER_REQUESTS_AT_ONCE_MAX,
  CONNECTED_APPS_PER_ACCOUNT_MAX,
} from "../../../src/services/integrations/limits.js";
import { SignedLinks } from "../../../src/services/integrations/signed-links.js";
import { createPayer, databaseOf } from "../../e2e/money.js";
import { type Client, createClient, expectEnvelope } from "../../rest/client.js";
import { createTestApp, type TestApp } from "../../support/app.js";
import { type FakeBroker, startFakeBroker } from "../../support/fake-broker.js";
import { nobody } from "../../support/sign-in.js";
import { visit } from "../../support/visitor.js";

const ACCOUNT = "0199f000-0000-7000-8000-0000000000aa";
const OTHER = "0199f000-0000-7000-8000-0000000000bb";
const UNKNOWN = "0199f000-0000-7000-8000-0000000000cc";
const WANTED = { accountId: ACCOUNT, toolkit: "tasks", callbackUrl: "https://gateway.example/integrations/callback?state=s" };

let fake: FakeBroker;
let broker: HttpBroker;
const { signal } = new AbortController();

beforeAll(async () => {
  fake = await startFakeBroker();
});
afterAll(() => fake.close());
beforeEach(() => {
  broker = new HttpBroker(fake);
});
afterEach(async () => {
  fake.misbehave = null;
  fake.rows.clear();
  fake.requests.length = 0;
  await broker.close();
});

/** The code that something rejects with, and all that could be logged of it. */
async function failureOf(work: Promise<unknown>): Promise<{ code: string; param: string | undefined; text: string }> {
  const error = await work.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof AppError)) throw new Error("No AppError.", { cause: error });
  return { code: error.code, param: error.param, text: `${error.message} ${String((error.cause as Error | undefined)?.stack)}` };
}

const send = (status: number, body: string, headers: Record<string, string> = {}): RequestListener => {
  return (_req, res) => void res.writeHead(status, headers).end(body);
};
const json = (body: unknown) => send(200, JSON.stringify(body));

describe("the HTTP broker", () => {
  it("is asked as it is described, with its key", async () => {
    const toolkits = await broker.listToolkits("ta&s=k", signal);
    const begun = await broker.connect(WANTED, signal);
    const own = await broker.listConnections(ACCOUNT, signal);
    const removed = await broker.disconnect(ACCOUNT, begun.id, signal);

    expect([toolkits, begun, removed]).toEqual([[], { id: "con/1", url: "https://broker.example/connect/1" }, own[0]]);
    expect(own).toEqual([{ id: "con/1", toolkit: "tasks", name: null, description: "", logo: null, alias: null, status: "initiated" }]);
    expect(new Set(fake.requests.map(({ authorization }) => authorization))).toEqual(new Set([`Bearer ${fake.key}`]));
    const list = `GET /api/connections?account=${ACCOUNT}`;
    expect(fake.requests.map(({ line }) => line)).toEqual([
      "GET /api/toolkits?search=ta%26s%3Dk",
      list,
      "POST /api/connections",
      list,
      list,
      "DELETE /api/connections/con%2F1",
    ]);
    expect(fake.requests[2]?.body).toEqual({ account: ACCOUNT, toolkit: "tasks", callbackUrl: WANTED.callbackUrl });
  });

  it("may leave out what only decorates, and its pictures are web addresses", async () => {
    expect(await broker.listToolkits("", signal)).toEqual([
      { slug: "tasks", name: "Tasks", description: "Things to do.", logo: "https://broker.example/tasks.svg" },
      { slug: "chat", name: "Chat", description: "", logo: null },
    ]);
    expect(fake.requests.map(({ line }) => line)).toEqual(["GET /api/toolkits"]);
  });

  it.each([
    ["a bare list", (rows: unknown) => rows],
    ["items", (rows: unknown) => ({ items: rows, next: null })],
    ["data", (rows: unknown) => ({ data: rows })],
  ])("may list as %s, and accounts of others are skipped", async (_name, wrap) => {
    const row = (id: string, status: string, more: object = {}) => ({ id, toolkit: "tasks", status, ...more });
    const rows = [
      row("a", "ACTIVE", { account: ACCOUNT, alias: "Work", name: "Tasks", secret: "token of the app" }),
      row("b", "active", { account: OTHER }),
      row("c", "initializing"),
      row("d", "revoked"),
      row("e", "expired", { alias: "", logo: "data:text/html,x" }),
    ];
    fake.misbehave = json(wrap(rows));

    const shown = await broker.listConnections(ACCOUNT, signal);

    expect(shown.map(({ id, status }) => [id, status])).toEqual([
      ["a", "active"],
      ["c", "initiated"],
      ["d", "inactive"],
      ["e", "expired"],
    ]);
    expect(shown[0]).toEqual({ id: "a", toolkit: "tasks", name: "Tasks", description: "", logo: null, alias: "Work", status: "active" });
    expect([shown[3]?.alias, shown[3]?.logo]).toEqual([null, null]);
  });

  it("removes nothing of others, nothing unknown, and nothing twice", async () => {
    fake.rows.set("theirs", { id: "theirs", account: OTHER, toolkit: "tasks", status: "active" });
    const { id } = await broker.connect(WANTED, signal);

    expect(await broker.disconnect(ACCOUNT, "theirs", signal)).toBeNull();
    expect(await broker.disconnect(ACCOUNT, "../toolkits", signal)).toBeNull();
    const twice = await Promise.all([1, 2].map(() => broker.disconnect(ACCOUNT, id, signal)));
    expect(twice.filter((ended) => ended !== null)).toEqual([expect.objectContaining({ id })]);
    expect([...fake.rows.keys()]).toEqual(["theirs"]);
  });

  it("reports an unknown toolkit, and too many connections", async () => {
    expect(await failureOf(broker.connect({ ...WANTED, toolkit: "fax" }, signal))).toMatchObject({ code: "BAD_REQUEST", param: "toolkit" });

    for (let index = fake.rows.size; index < CONNECTED_APPS_PER_ACCOUNT_MAX - 1; index += 1) {
      fake.rows.set(`${index}`, { id: `${index}`, account: ACCOUNT, toolkit: "tasks", status: "active" });
    }
    await broker.connect(WANTED, signal);
    expect(fake.rows.size).toBe(CONNECTED_APPS_PER_ACCOUNT_MAX);
    expect(await failureOf(broker.connect(WANTED, signal))).toMatchObject({ code: "CONFLICT" });
    expect(fake.rows.size).toBe(CONNECTED_APPS_PER_ACCOUNT_MAX);
  });
});

describe("a broker that misbehaves", () => {
  const flood = (res: ServerResponse) => {
    res.writeHead(200);
    const more = () => {
      while (!res.destroyed && res.write("x".repeat(65_536)));
      if (!res.destroyed) res.once("drain", more);
    };
    more();
  };
  const full = JSON.stringify([]).padEnd(BROKER_ANSWER_BYTES_MAX, " ");

  it.each<[string, RequestListener, string]>([
    ["says 401", send(401, `wrong key: the key of the broker`), "UPSTREAM_ERROR"],
    ["says 404", send(404, "{}"), "UPSTREAM_ERROR"],
    ["says 429", send(429, "{}", { "Retry-After": "1" }), "UPSTREAM_ERROR"],
    ["says 500", send(500, "<html>"), "UPSTREAM_ERROR"],
    ["says 408", send(408, ""), "UPSTREAM_TIMEOUT"],
    ["redirects", send(302, "", { Location: "/api/elsewhere" }), "UPSTREAM_ERROR"],
    ["says nothing", send(200, ""), "UPSTREAM_ERROR"],
    ["says HTML", send(200, "<html>the key of the broker</html>"), "UPSTREAM_ERROR"],
    ["says null", json(null), "UPSTREAM_ERROR"],
    ["says something else", json({ data: { id: "a" } }), "UPSTREAM_ERROR"],
    ["lists rows without an id", json([{ toolkit: "tasks", status: "active" }]), "UPSTREAM_ERROR"],
    ["lists rows with ids that are paths", json([{ id: "..", toolkit: "tasks", status: "active" }]), "UPSTREAM_ERROR"],
    ["lists numbers", json([1]), "UPSTREAM_ERROR"],
    ["breaks off", (_req, res) => void res.writeHead(200, { "Content-Length": "100" }).write("[", () => res.destroy()), "UPSTREAM_ERROR"],
    ["hangs up", (req) => void req.socket.destroy(), "UPSTREAM_ERROR"],
    ["never ends", (_req, res) => flood(res), "UPSTREAM_ERROR"],
    ["answers a byte too much", send(200, `${full} `), "UPSTREAM_ERROR"],
  ])("causes a failure of its own when it %s, without the broker's words", async (_name, misbehave, code) => {
    fake.misbehave = misbehave;

    const failure = await failureOf(broker.listConnections(ACCOUNT, signal));

    expect(failure.code).toBe(code);
    expect(failure.text).not.toContain(fake.key);
    expect(fake.requests.every(({ line }) => line.startsWith("GET /api/connections?"))).toBe(true);
    fake.misbehave = null;
    expect(await broker.listConnections(ACCOUNT, signal)).toEqual([]);
  });

  it("may answer up to the limit", async () => {
    fake.misbehave = send(200, full);

    expect(await broker.listConnections(ACCOUNT, signal)).toEqual([]);
  });

  it.each([
    ["no address", { id: "a" }],
    ["a script", { id: "a", url: "javascript:alert(1)" }],
    ["a file", { id: "a", url: "file:///etc/passwd" }],
    ["no id", { url: "https://broker.example/" }],
  ])("begins no connection when its answer has %s", async (_name, answer) => {
    fake.misbehave = (req, res) => (req.method === "GET" ? json([]) : json(answer))(req, res);

    expect((await failureOf(broker.connect(WANTED, signal))).code).toBe("UPSTREAM_ERROR");
  });

  it.each<[string, RequestListener]>([
    ["before its answer", () => undefined],
    ["within its answer", (_req, res) => void res.writeHead(200).write("[")],
  ])("times out when it hangs %s", async (_name, misbehave) => {
    fake.misbehave = misbehave;
    const impatient = new HttpBroker(fake, 50);

    expect((await failureOf(impatient.listToolkits("", signal))).code).toBe("UPSTREAM_TIMEOUT");
    await impatient.close();
  });

  it("is cancelled when the caller leaves", async () => {
    const leaving = new AbortController();
    fake.misbehave = () => leaving.abort(new Error("gone"));

    await expect(broker.listToolkits("", leaving.signal)).rejects.toThrow("gone");
    await expect(broker.listToolkits("", leaving.signal)).rejects.toThrow("gone");
  });

  it("has a bounded number of requests waiting for it", async () => {
    fake.misbehave = () => undefined;
    const callers = Array.from({ length: BROKER_REQUESTS_AT_ONCE_MAX }, () => new AbortController());
    const waiting = callers.map((caller) => broker.listToolkits("", caller.signal));

    expect((await failureOf(broker.listToolkits("", signal))).code).toBe("SERVICE_UNAVAILABLE");
    for (const caller of callers) caller.abort(new Error("gone"));
    const settled = await Promise.allSettled(waiting);
    expect(settled.every(({ status }) => status === "rejected")).toBe(true);
    fake.misbehave = null;
    expect(await broker.listToolkits("", signal)).toHaveLength(2);
  });

  it("may not be there at all", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    const gone = new HttpBroker({ url: `http://127.0.0.1:${port}`, key: fake.key });

    expect((await failureOf(gone.listToolkits("", signal))).code).toBe("UPSTREAM_ERROR");
    await gone.close();
  });
});

describe("a gateway with an HTTP broker", () => {
  let app: TestApp;
  let client: Client;

  beforeAll(async () => {
    app = await createTestApp({ config: { integrations: { kind: "http", url: fake.url, key: fake.key } } });
    const payer = await createPayer(app, { pack: 1n });
    await databaseOf(app).prisma.apiKey.update({ where: { id: payer.apiKeyId }, data: { permissions: ["keys"] } });
    client = createClient(app.baseUrl, payer.key);
  });
  afterAll(() => app.close());

  function sentCallbackUrl(): string {
    const body = fake.requests.at(-1)?.body;
    return (body as { callbackUrl: string } | undefined)?.callbackUrl ?? "";
  }

  it("connects, reports the state of the connection, and removes the account's own", async () => {
    const begun = await client.post("/account/integrations", { toolkit: "tasks" });
    const { id } = begun.json<{ id: string }>();
    const callbackUrl = sentCallbackUrl();
    const { pathname, search } = new URL(callbackUrl);
    const before = await visit(app.baseUrl, null).open(pathname + search);
    for (const row of fake.rows.values()) fake.rows.set(row.id, { ...row, status: "ACTIVE", name: "<Tasks>" });
    const after = await visit(app.baseUrl, null).open(`${pathname}${search}&connection=${encodeURIComponent(id)}`);
    const listed = await client.get("/account/integrations");
    const stranger = await createClient(app.baseUrl, app.key).request("DELETE", `/account/integrations/${encodeURIComponent(id)}`);
    const removed = await client.request("DELETE", `/account/integrations/${encodeURIComponent(id)}`);

    expect(begun.json()).toEqual({ id: "con/1", url: "https://broker.example/connect/1" });
    expect(callbackUrl).toMatch(/^http:\/\/localhost:\d+\/integrations\/callback\?state=/);
    expect(before.text).toContain("tasks is not connected yet");
    expect(after.html).toContain("<h1>&lt;Tasks&gt; is connected</h1>");
    expect(listed.json<{ data: { id: string; status: string }[] }>().data.map((row) => [row.id, row.status])).toEqual([[id, "active"]]);
    expectEnvelope(stranger, 404, "NOT_FOUND");
    expect(removed.status).toBe(204);
    expect(fake.rows.size).toBe(0);
  });

  it("has no development broker", async () => {
    expect((await visit(app.baseUrl, null).open("/integrations/connect?token=x.y")).status).toBe(404);
  });

  it.each<[string, RequestListener, number, string]>([
    ["fails", send(500, "the key of the broker"), 502, "UPSTREAM_ERROR"],
    ["is late", send(408, ""), 504, "UPSTREAM_TIMEOUT"],
  ])("says so when the broker %s, and logs no key", async (_name, misbehave, status, code) => {
    fake.misbehave = misbehave;

    const answers = [
      await client.get("/account/integrations"),
      await client.get("/account/integrations/toolkits"),
      await client.post("/account/integrations", { toolkit: "tasks" }),
      await client.request("DELETE", "/account/integrations/1"),
    ];

    for (const answer of answers) expectEnvelope(answer, status, code);
    expect(JSON.stringify(app.logs)).not.toContain(fake.key);
  });

  it("connects nothing when brokers are off, and has nothing connected", async () => {
    const integrations = new Integrations({
      broker: NO_BROKER,
      links: new SignedLinks(() => [Buffer.alloc(32)], callbackLink),
      database: databaseOf(app),
      clock: systemClock,
      callbackPageUrl: () => `${app.baseUrl}/integrations/callback`,
    });
    const caller = { kind: "session", accountId: ACCOUNT, isOperator: false, sessionId: "s" } as const;
    const ctx = { ...nobody(), caller };

    expect((await failureOf(integrations.connect(ctx, { toolkit: "notes" }))).code).toBe("SERVICE_UNAVAILABLE");
    expect((await failureOf(integrations.listToolkits(ctx, {}))).code).toBe("SERVICE_UNAVAILABLE");
    expect(await integrations.list(ctx)).toEqual([]);
    expect((await failureOf(integrations.delete(ctx, UNKNOWN))).code).toBe("NOT_FOUND");
    expect((await failureOf(integrations.list(nobody()))).code).toBe("UNAUTHORIZED");
  });
});
