/** WebSockets and subscriptions over server-sent events count together, by key and by client address. */
import { once } from "node:events";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { CreateApiKeyDocument, StreamChatDocument, UsageRecordedDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { chatChunks } from "../support/openai-bodies.js";
import { sse } from "../support/upstream-replies.js";
import { type Answer, codes, execute, ok, post, subscribeSse, textOf } from "./client.js";

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp({ config: { trustProxyHops: 1 } });
});
afterAll(() => app.close());

interface Open {
  leave(): void;
  /** Kept: fetch cancels the body of an answer that is garbage, which closes its connection. */
  readonly response?: Response;
}

const open: Open[] = [];
afterEach(() => {
  for (const connection of open.splice(0)) connection.leave();
});

/** One customer of a provider has at least a /64 to choose addresses from. */
const addressIn = (network: number, host: number) => ({ "x-forwarded-for": `2001:db8:1:${network.toString(16)}::${host}` });

async function createKey(): Promise<string> {
  const { createApiKey } = ok(await execute(app, CreateApiKeyDocument, { input: { name: "live", accountPermissions: ["USAGE"] } }));
  return String(createApiKey.key);
}

async function subscribe(key: string, headers: Record<string, string>): Promise<Response> {
  const leaving = new AbortController();
  const document = { query: textOf(UsageRecordedDocument) };
  const response = await post({ ...app, key }, document, { accept: "text/event-stream", ...headers }, leaving.signal);
  if (response.ok) open.push({ leave: () => leaving.abort(), response });
  return response;
}

/** Initialised; null where its upgrade is refused. */
async function connect(key: string, headers: Record<string, string>): Promise<WebSocket> {
  const socket = new WebSocket(app.wsUrl, "graphql-transport-ws", { headers });
  open.push({ leave: () => socket.terminate() });
  await once(socket, "open");
  socket.send(JSON.stringify({ type: "connection_init", payload: { authorization: `Bearer ${key}` } }));
  return socket;
}

async function refusalOf(response: Response): Promise<{ status: number; retryAfter: string | null; codes: string[]; message: string }> {
  const data = (await response.text()).split("\n").find((line) => line.startsWith("data: {"));
  const answer = JSON.parse(data?.slice("data: ".length) ?? "{}") as Answer;
  return {
    status: response.status,
    retryAfter: response.headers.get("retry-after"),
    codes: codes(answer),
    message: answer.errors?.[0]?.message ?? "",
  };
}

describe("live connections", () => {
  it("are at most 100 of a key, sockets and event streams together", async () => {
    const key = await createKey();
    for (let index = 0; index < 60; index += 1) await once(await connect(key, addressIn(index, 1)), "message");
    for (let index = 60; index < 100; index += 1) expect((await subscribe(key, addressIn(index, 1))).status).toBe(200);

    const stream = await refusalOf(await subscribe(key, addressIn(200, 1)));
    const [code, reason] = (await once(await connect(key, addressIn(200, 1)), "close")) as [number, Buffer];

    expect(stream).toEqual({
      status: 429,
      retryAfter: "1",
      codes: ["RATE_LIMITED"],
      message: expect.stringMatching(/^At most 100 connections are open at once with one key, WebSockets and subscriptions/),
    });
    expect([code, String(reason)]).toEqual([4429, expect.stringMatching(/^At most 100 connections are open at once with one key/)]);
  });

  it("are at most 100 of a client address, over all its keys", async () => {
    const keys = [await createKey(), await createKey()] as const;
    for (let index = 0; index < 50; index += 1) await once(await connect(keys[0], addressIn(300, index)), "message");
    for (let index = 50; index < 100; index += 1) expect((await subscribe(keys[1], addressIn(300, index))).status).toBe(200);

    const stream = await refusalOf(await subscribe(keys[1], addressIn(300, 200)));
    const [refused] = (await once(new WebSocket(app.wsUrl, { headers: addressIn(300, 200) }), "error")) as [Error];
    const elsewhere = await subscribe(keys[1], addressIn(301, 1));

    expect(stream).toMatchObject({ status: 429, retryAfter: "1", message: expect.stringMatching(/100 connections .* from one address/) });
    expect(refused.message).toContain("429");
    expect(elsewhere.status).toBe(200);
  });

  it("have room again when one is closed", async () => {
    const key = await createKey();
    for (let index = 0; index < 100; index += 1) expect((await subscribe(key, addressIn(400 + index, 1))).status).toBe(200);
    const [first] = open;

    const full = await subscribe(key, addressIn(600, 1));
    first?.leave();

    expect(full.status).toBe(429);
    await expect.poll(async () => (await subscribe(key, addressIn(600, 1))).status).toBe(200);
  });

  it("exclude the streams of generations, which end by themselves", async () => {
    const key = await createKey();
    for (let index = 0; index < 100; index += 1) expect((await subscribe(key, addressIn(700 + index, 1))).status).toBe(200);
    app.upstream.replyNext(sse(chatChunks(["Hello"])));

    const input = { model: "acme/free", messages: [{ role: "USER", content: "Hi" }] } as const;
    const answers = await subscribeSse({ ...app, key, headers: addressIn(900, 1) }, StreamChatDocument, { input }).rest();

    expect(answers.flatMap(codes)).toEqual([]);
    expect(JSON.stringify(answers)).toContain("Hello");
  });
});
