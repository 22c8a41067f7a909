/** What the bodies of requests may hold together, over the wire: at the bound and one past it, on every route that reads one. */
import { once } from "node:events";
import { type ClientRequest, type IncomingMessage, type OutgoingHttpHeaders, request } from "node:http";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import type { Caller, KeyCaller } from "../../src/context.js";
import { streamBody } from "../../src/http/body.js";
import { REQUEST_BODIES_BYTES_DEFAULT } from "../../src/limits.js";
import { recordRoutes } from "../../src/rest/router.js";
import { BodyBudget } from "../../src/services/requests/body-budget.js";
import {
  ACCOUNT_BODIES_PART,
  ADDRESS_BODIES_PART,
  ANONYMOUS_ADDRESS_BODIES_PART,
  PUBLISHABLE_ADDRESS_BODIES_PART,
  PUBLISHABLE_BODIES_PART,
  PUBLISHABLE_BODY_BYTES_MAX,
} from "../../src/services/requests/limits.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { chatChunks } from "../support/openai-bodies.js";
import { sse, waitFor } from "../support/upstream-replies.js";
import { type Client, createClient, expectEnvelope } from "./client.js";
import { connectRealtime } from "./realtime-client.js";
import { createStranger } from "./seed.js";
import { anonymous, bodyOf, sendRaw, serve } from "./serve.js";

const BYTES = 4 * 1024 * 1024;
const ACCOUNT_BYTES = BYTES / ACCOUNT_BODIES_PART;
const CHAT = "/v1/chat/completions";
const hello = { model: "acme/free", messages: [{ role: "user", content: "Hello" }] };

let app: TestApp;
let client: Client;
const parked: ClientRequest[] = [];

beforeAll(async () => {
  app = await createTestApp({ config: { requestBodiesBytes: BYTES } });
  client = createClient(app.baseUrl, app.key);
});
afterEach(async () => {
  for (const sending of parked.splice(0)) sending.destroy();
  await expect.poll(held).toBe(0);
});
afterAll(() => app.close());

function held(): number {
  return app.services.bodies.heldBytes;
}

function begin(method: string, path: string, headers: OutgoingHttpHeaders, key = app.key): ClientRequest {
  const sending = request(app.baseUrl + path, { method, headers: { Authorization: `Bearer ${key}`, ...headers } });
  sending.on("error", () => undefined);
  parked.push(sending);
  return sending;
}

/** A request of which only the head and a byte arrive. Resolves when its body is counted. */
async function park(bytes: number, path = CHAT, key = app.key): Promise<ClientRequest> {
  const before = held();
  const sending = begin("POST", path, { "Content-Type": "application/json", "Content-Length": bytes }, key);
  sending.write("{");
  await expect.poll(held).toBe(before + bytes);
  return sending;
}

describe("bodies under way", () => {
  it("fill their account's part to the byte, and not a byte more", async () => {
    const bytes = Buffer.byteLength(JSON.stringify(hello));
    const fits = await park(ACCOUNT_BYTES - bytes);

    expect((await client.post(CHAT, hello)).status).toBe(200);
    fits.destroy();
    await expect.poll(held).toBe(0);
    const full = await park(ACCOUNT_BYTES - bytes + 1);
    const refused = await client.post(CHAT, hello);

    expectEnvelope(refused, 503, "SERVICE_UNAVAILABLE");
    expect(refused.headers.get("retry-after")).toBe("2");
    const { key } = await createStranger(app);
    expect((await client.post(CHAT, hello, { key })).status).toBe(200);
    full.destroy();
    await expect.poll(async () => (await client.post(CHAT, hello)).status).toBe(200);
  });

  it("of one address fill its part, across its callers", async () => {
    const strangers = await Promise.all(Array.from({ length: ACCOUNT_BODIES_PART / ADDRESS_BODIES_PART }, () => createStranger(app)));
    for (const { key } of strangers) await park(ACCOUNT_BYTES, CHAT, key);

    expectEnvelope(await client.post(CHAT, hello), 503, "SERVICE_UNAVAILABLE");
  });

  it("are counted on arrival when their length is not declared", async () => {
    await park(ACCOUNT_BYTES - 100);
    const sending = begin("POST", CHAT, { "Content-Type": "application/json", "Transfer-Encoding": "chunked" });
    sending.write("x".repeat(101));

    const [answer] = (await once(sending, "response")) as [IncomingMessage];

    expect([answer.statusCode, answer.headers["retry-after"]]).toEqual([503, "2"]);
    answer.resume();
  });

  it("are held until their request has been answered", async () => {
    let answer = () => {};
    const asked = app.upstream.requests.length;
    app.upstream.replyNext(sse([waitFor(new Promise<void>((resolve) => (answer = resolve))), ...chatChunks(["Late."])]));
    const whole = { ...hello, stream: true, messages: [{ role: "user", content: "x".repeat(ACCOUNT_BYTES - 1_000) }] };
    const waiting = client.post(CHAT, whole);
    await expect.poll(() => app.upstream.requests.length, { timeout: 10_000 }).toBe(asked + 1);

    expect(held()).toBe(Buffer.byteLength(JSON.stringify(whole)));
    answer();

    expect((await waiting).text).toContain("Late.");
    await expect.poll(held).toBe(0);
  });

  it("are the frames of a WebSocket, too, while they arrive and while they run", async () => {
    const connect = () => connectRealtime(app, "", { path: "/v1/responses" });
    const [first, second] = await Promise.all([connect(), connect()]);
    first.socket.send(Buffer.alloc(ACCOUNT_BYTES - 1_000, " "), { fin: false, binary: false });
    await expect.poll(held).toBeGreaterThan(ACCOUNT_BYTES - 2_000);

    second.socket.send(Buffer.alloc(100_000, " "), { fin: false, binary: false });

    expect(await second.next("error")).toMatchObject({ status: 503, error: { code: "SERVICE_UNAVAILABLE" } });
    expect((await second.closed).code).toBe(1013);
    first.socket.send(JSON.stringify({ type: "response.create", model: "acme/free", input: "Hello" }), { binary: false });
    expect(await first.next("response.completed")).toBeDefined();
    first.socket.send(Buffer.alloc(100_000, " "), { fin: false, binary: false });
    await expect.poll(held).toBeGreaterThan(100_000);
    first.socket.close();
    first.socket.terminate();
    await expect.poll(held).toBe(0);
  });

  it("are refused on every route that reads one", async () => {
    const routes = recordRoutes().flatMap(({ path, methods }) =>
      Object.entries(methods).flatMap(([method, { body, form }]) => (body || form ? [{ method, path, isForm: !body }] : [])),
    );
    expect(routes.length).toBeGreaterThan(20);
    await park(ACCOUNT_BYTES);
    // A route that reads no key counts for the anonymous part.
    await park(BYTES / ANONYMOUS_ADDRESS_BODIES_PART, "/api/oauth/token");

    const answers = await Promise.all(
      [...routes, ...["/graphql", "/mcp", "/media/upload"].map((path) => ({ method: "POST", path, isForm: false }))].map(
        async ({ method, path, isForm }) => {
          const type = isForm ? "multipart/form-data; boundary=x" : "application/json";
          const sending = begin(method, path.replaceAll(/[:{*]+(\w+)}?/g, "x").replaceAll("\\x", ":generateContent"), {
            "Content-Type": type,
            "Content-Length": 2_000,
          });
          sending.write("--");
          const [answer] = (await once(sending, "response")) as [IncomingMessage];
          answer.resume();
          return [method, path, answer.statusCode, answer.headers["retry-after"]];
        },
      ),
    );

    // A route that is a session's alone refuses a key before there is a body.
    expect(
      answers.filter(([, path]) => path !== "/account/profile").filter(([, , status, after]) => status !== 503 || after !== "2"),
    ).toEqual([]);
  });
});

describe("a caller's part", () => {
  const secret: KeyCaller = {
    ...{ kind: "key", accountId: "a", isOperator: false, apiKeyId: "k", apiKeyName: "k", apiKeyType: "secret", permissions: new Set() },
    ...{ allowedModels: null, modelLists: [], hasBudget: false, expiresAt: null },
  };
  const publishable: KeyCaller = { ...secret, apiKeyId: "p", apiKeyType: "publishable" };
  const onSlow = () => undefined;
  const most = (caller: Caller, hasFiles = false, budget = new BodyBudget(REQUEST_BODIES_BYTES_DEFAULT)) => {
    const allowance = budget.allow(caller, "192.0.2.1");
    const bytes = allowance.begin({ declaredBytes: null, bytesMax: 64 * 1024 * 1024, onSlow, hasFiles });
    allowance.release();
    return bytes;
  };

  it("bounds a single body: less for a publishable key, least for an anonymous caller", () => {
    const MIB = 1024 * 1024;

    expect([most(secret), most(publishable), most(publishable, true), most({ kind: "anonymous" })]).toEqual([
      64 * MIB,
      PUBLISHABLE_BODY_BYTES_MAX,
      REQUEST_BODIES_BYTES_DEFAULT / PUBLISHABLE_ADDRESS_BODIES_PART,
      100 * 1024,
    ]);
    // What could never be let in is too large, and not for another time.
    expect(most(secret, false, new BodyBudget(MIB))).toBe(MIB / ACCOUNT_BODIES_PART);
  });

  it("of publishable keys at any number of addresses leaves the account's own keys the rest", () => {
    const budget = new BodyBudget(REQUEST_BODIES_BYTES_DEFAULT);
    const declaredBytes = PUBLISHABLE_BODY_BYTES_MAX;
    const take = (caller: Caller, address: string) =>
      budget.allow(caller, address).begin({ declaredBytes, bytesMax: declaredBytes, onSlow });
    const count = REQUEST_BODIES_BYTES_DEFAULT / PUBLISHABLE_BODIES_PART / declaredBytes;

    for (let index = 0; index < count; index += 1) take(publishable, `192.0.2.${index}`);

    expect(() => take(publishable, "192.0.2.200")).toThrow(expect.objectContaining({ code: "SERVICE_UNAVAILABLE" }));
    expect(take(secret, "192.0.2.200")).toBe(declaredBytes);
  });
});

describe("a body that is sent too slowly", () => {
  it.each([
    ["JSON", "/json", "application/json", "{"],
    ["a form", "/form", "multipart/form-data; boundary=x", '--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nabc'],
    ["a file", "/file", "image/png", "abc"],
  ])("is cut off, as %s", async (_what, path, type, beginning) => {
    const bodies = new BodyBudget(REQUEST_BODIES_BYTES_DEFAULT, { graceMs: 50, bytesPerSecondMin: 1_000, lookMs: 10 });
    const server = await serve(
      (route, endpoint) => {
        const form = { fields: z.looseObject({}), files: { file: { countMax: 1 } }, fileBytesMax: 1_000_000, bytesMax: 1_000_000 };
        route("/json", { POST: endpoint({ id: null, isPublic: true, body: z.looseObject({}), handler: () => ({}) }) });
        route("/form", { POST: endpoint({ id: null, isPublic: true, form, handler: () => ({}) }) });
        route("/file", {
          POST: endpoint({
            id: null,
            isPublic: true,
            handler: async (_ctx, { exchange, allowance }) => {
              for await (const _ of streamBody(exchange.req, allowance));
              return {};
            },
          }),
        });
      },
      anonymous,
      {},
      bodies,
    );
    const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: ${type}\r\nContent-Length: 90000\r\n\r\n`;

    const answer = await sendRaw(server.port, head + beginning);

    expect(answer).toContain("HTTP/1.1 400 Bad Request");
    expect(bodyOf(answer).error).toMatchObject({ code: "BAD_REQUEST", message: expect.stringContaining("too slowly") });
    expect(bodies.heldBytes).toBe(0);
    await server.close();
  });
});
