/** The access log: one line for each request when it is over, on every transport, and none that holds what callers wrote. */

import fc from "fast-check";
import { type Logger, pino } from "pino";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { formatNanocredits } from "../../src/lib/money.js";
import { RequestNote } from "../../src/lib/request-note.js";
import { AccessLog } from "../../src/services/metrics/access-log.js";
import { connect, execute, executeText, subscribeSse, subscribeWith } from "../graphql/client.js";
import {
  type ChatCompletionInput,
  ChatDocument,
  GenerationJobByIdDocument,
  SignInDocument,
  StreamChatDocument,
  WhoAmIDocument,
} from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { type FakeRealtime, startFakeRealtime } from "../support/fake-realtime.js";
import { chatChunks } from "../support/openai-bodies.js";
import { errorReply, sse } from "../support/upstream-replies.js";
import { type Client, createClient, createKey } from "./client.js";
import { connectRealtime, refuseRealtime } from "./realtime-client.js";

const CHAT = { model: "acme/chat", messages: [{ role: "user", content: "Hello" }] };

let app: TestApp;
let live: FakeRealtime;
let client: Client;
beforeAll(async () => {
  live = await startFakeRealtime();
  app = await createTestApp({
    config: { accessLogAddress: true, metrics: { token: "hush-metrics-token", isOpen: false } },
    upstreams: [{ id: "live", wireFormat: "openai", baseUrl: live.baseUrl, apiKey: "hush-live-key" }],
    models: [
      {
        id: "live/voice",
        modality: "realtime",
        upstream: "live",
        upstreamModel: "gpt",
        title: "Voice",
        prices: { completionTextPrice: "0.000002" },
      },
    ],
  });
  client = createClient(app.baseUrl, app.key);
});
beforeEach(() => app.upstream.replyAlways(null));
afterAll(async () => {
  await app.close();
  await live.close();
});

type Line = Readonly<Record<string, unknown>>;

const requestLines = (): Line[] => app.logs.filter(({ msg }) => msg === "request");

/** The line of the request with this id: it is written a moment after the answer. */
async function lineOf(requestId: string | null | undefined): Promise<Line> {
  const lines = () => requestLines().filter((line) => line.requestId === requestId);
  await expect.poll(lines).toHaveLength(1);
  return lines()[0] as Line;
}

/** The lines that are written from now on: as many as that, and no more. */
function following(): (count: number) => Promise<Line[]> {
  const before = requestLines().length;
  return async (count) => {
    await expect.poll(() => requestLines().length - before).toBe(count);
    return requestLines().slice(before);
  };
}

describe("A request's line", () => {
  it("states the generation, its cost and where the time went", async () => {
    const { headers } = await client.post("/v1/chat/completions", CHAT);

    const line = await lineOf(headers.get("x-request-id"));
    expect(line).toMatchObject({
      level: 30,
      method: "POST",
      route: "/v1/chat/completions",
      status: 200,
      model: "acme/chat",
      cost: headers.get("x-cost"),
      generationId: headers.get("x-generation-id"),
      accountId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      keyId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      address: expect.stringMatching(/127\.0\.0\.1$/),
    });
    expect(line.ms).toBeGreaterThanOrEqual(line.ownMs as number);
  });

  it("states the same of a stream, after its last byte, and of a broken one the reason", async () => {
    app.upstream.replyNext(sse(chatChunks(["a"])), sse(chatChunks(["a"], { finishReason: null, usage: null }), { end: "cut" }));
    const whole = await client.post("/v1/chat/completions", { ...CHAT, stream: true });
    const broken = await client.post("/v1/chat/completions", { ...CHAT, stream: true });

    const route = { route: "/v1/chat/completions", status: 200, model: "acme/chat", cost: expect.stringMatching(/^0\.0000/) };
    expect(await lineOf(whole.headers.get("x-request-id"))).toMatchObject(route);
    expect(await lineOf(broken.headers.get("x-request-id"))).toMatchObject({ ...route, code: "UPSTREAM_ERROR" });
  });

  it("names the route by its pattern, below every prefix, or none", async () => {
    const pairs = [
      ["/api/account/keys/hush-id", "/account/keys/{id}", 404],
      ["/media/hush-media", "/media/{media}", 404],
      ["/v1/models/acme/chat", "/v1/models/{id}", 200],
      ["/hush-nowhere", null, 404],
    ] as const;
    for (const [path, route, status] of pairs) {
      const { headers } = await client.get(path);
      expect(await lineOf(headers.get("x-request-id")), path).toMatchObject({ method: "GET", route, status });
    }
  });

  it("says of a cached answer that it cost nothing", async () => {
    const [, hit] = [await client.get("/text/again?seed=5"), await client.get("/text/again?seed=5")];

    expect(hit.headers.get("x-cache")).toBe("HIT");
    expect(await lineOf(hit.headers.get("x-request-id"))).toMatchObject({
      model: "acme/chat",
      cost: "0",
      generationId: hit.headers.get("x-generation-id"),
    });
  });

  it("is there for a request that is refused, with its code, and not for health that is good", async () => {
    const next = following();
    await client.get("/healthz", { key: null });
    await client.get("/metrics", { key: "hush-metrics-token" });
    await client.post("/v1/chat/completions", CHAT, { key: null });

    expect(await next(1)).toMatchObject([{ route: "/v1/chat/completions", status: 401, code: "UNAUTHORIZED" }]);
  });
});

describe("An operation of GraphQL", () => {
  it("is named as its caller named it, as far as that is a name", async () => {
    const next = following();
    await execute(app, WhoAmIDocument);
    await executeText(app, { query: `query ${"n".repeat(100)} { me { id } }` });
    await executeText(app, { query: "{ me { id } }" });
    await executeText(app, { query: "query hush { nothing }", operationName: "hush" });

    expect((await next(4)).map(({ operation, status, code }) => [operation, status, code])).toEqual([
      ["WhoAmI", 200, undefined],
      ["n".repeat(64), 200, undefined],
      ["query", 200, undefined],
      [undefined, 200, "BAD_REQUEST"],
    ]);
  });

  it("states its generation also when its caller limits the cost", async () => {
    const next = following();
    await execute(app, ChatDocument, { input: { model: "acme/chat", messages: [{ role: "USER", content: "Hi" }], maxCost: "1" } });

    expect(await next(1)).toMatchObject([{ route: "/graphql", model: "acme/chat", cost: expect.stringMatching(/^0\.0000/) }]);
  });

  it("has a line at its end, over server-sent events and on a WebSocket alike", async () => {
    const next = following();
    const socket = connect(app);
    const input: ChatCompletionInput = { model: "acme/free", messages: [{ role: "USER", content: "Hi" }] };
    await subscribeSse(app, StreamChatDocument, { input }).rest();
    await subscribeWith(socket, StreamChatDocument, { input }).rest();
    await subscribeWith(socket, WhoAmIDocument).rest();
    await subscribeWith(socket, { query: "{ nothing }" }).rest();
    await socket.dispose();

    const spoken = { route: "/graphql", operation: "StreamChat", model: "acme/free", cost: "0", status: 200 };
    expect(await next(4)).toMatchObject([
      { method: "POST", ...spoken },
      { method: "WEBSOCKET", ...spoken },
      { method: "WEBSOCKET", route: "/graphql", operation: "WhoAmI", status: 200 },
      { method: "WEBSOCKET", route: "/graphql", code: "BAD_REQUEST", status: 400 },
    ]);
  });
});

describe("A realtime session", () => {
  it("has one line when it is charged, and one when it is refused", async () => {
    const next = following();
    const session = await connectRealtime(app, "?model=live/voice");
    const generationId = session.headers["x-generation-id"];
    session.socket.close();
    await session.closed;
    await refuseRealtime(app, "?model=hush-model");

    const lines = await next(2);
    const over = lines.find(({ status }) => status === 101);
    expect(over).toMatchObject({ method: "WEBSOCKET", route: "/v1/realtime", model: "live/voice", generationId, cost: "0" });
    expect(lines.find(({ status }) => status === 400)).toMatchObject({ route: "/v1/realtime", code: "BAD_REQUEST" });
  });
});

describe("a text from the caller", () => {
  /** The key of the query, the header, the subprotocol and the socket. */
  let key: string;
  beforeAll(async () => {
    key = (await createKey(app, { name: "hush-name" })).key;
  });

  /** Each a request with secrets, marked `hush-`, in the places that it has. */
  function requests(seed: number): (() => Promise<unknown>)[] {
    const nobody = { key: null };
    const form = (path: string, fields: Record<string, string>) =>
      client.request("POST", path, {
        ...nobody,
        headers: { "Content-Type": "application/x-www-form-urlencoded" },
        body: String(new URLSearchParams(fields)),
      });
    const prompts = ["/text/hush-prompt", "/image/hush-prompt", "/audio/hush-prompt", "/video/hush-prompt"];
    return [
      ...prompts.flatMap((path) => [
        () => client.get(`${path}?key=${key}&seed=${seed}&hush-query=1`, nobody),
        () => client.get(`${path}?key=${key}&model=hush-model`, nobody),
      ]),
      () =>
        client.get(`/text/hush-prompt?seed=${seed + 2}`, {
          headers: { "X-Request-Id": key, "Idempotency-Key": "hush-idempotency", Cookie: "session=hush-cookie" },
        }),
      () => client.get("/v1/models", { key: "sk_hush-wrong-key" }),
      () => client.get("/v1/models", { ...nobody, headers: { Authorization: "Basic hush-basic" } }),
      () =>
        client.post("/v1/chat/completions", { ...CHAT, messages: [{ role: "user", content: "hush-prompt" }], user: "hush-user" }, { key }),
      () => client.post("/v1/chat/completions", '{"model": "hush-broken'),
      () => client.get("/metrics", { key: "hush-metrics-guess" }),
      () =>
        client.post(
          "/api/device/token",
          { device_code: "hush-device-code", grant_type: "urn:ietf:params:oauth:grant-type:device_code" },
          nobody,
        ),
      () => client.get("/device?user_code=hush-user-code", nobody),
      () => form("/device/decision", { user_code: "hush-user-code", form_token: "hush-form-token" }),
      () =>
        client.get("/authorize?redirect_uri=https%3A%2F%2Fhush-redirect.example%2F&state=hush-state&code_challenge=hush-challenge", nobody),
      () =>
        form("/api/oauth/token", {
          grant_type: "authorization_code",
          code: "hush-code",
          code_verifier: "hush-verifier",
          redirect_uri: "https://hush.example",
        }),
      () => client.get("/media/blobs/media/hush-name?signature=hush-signature&expires=1", nobody),
      () => client.get("/media/hush-media?X-Amz-Signature=hush-signature", nobody),
      () => client.post("/media/upload", { contentType: "image/png", size: 4, name: "hush-file.png", tags: ["hush-tag"] }),
      () => client.get("/account/keys/hush-key-id"),
      () => execute(app, GenerationJobByIdDocument, { id: "hush-variable" }),
      () => execute(app, SignInDocument, { input: { email: "hush@example.com", password: "hush-password" } }),
      () => fetch(`${app.baseUrl}/graphql?key=${key}&query=%7B%20me%20%7B%20id%20%7D%20%7D&hush-query=1`).then((answer) => answer.text()),
      () => refuseRealtime(app, `?model=hush-model&key=${key}`, { key: null }),
      () => refuseRealtime(app, "?model=hush-model", { key: null, protocols: ["realtime", `openai-insecure-api-key.${key}`] }),
    ];
  }

  it("appears in no line, wherever it was sent and however the request ended", async () => {
    const linesBefore = app.logs.length;
    const asked = [...requests(1), ...requests(2)];
    const before = requestLines().length;

    // Once with an upstream that answers, once with one that fails: a failure has more log lines.
    for (const [index, ask] of asked.entries()) {
      if (index === asked.length / 2) app.upstream.replyAlways(errorReply(500));
      await ask();
    }
    const uploaded = (await client.post("/media/upload", { contentType: "image/png", size: 4 })).json<{ uploadUrl: string }>();
    const { pathname, search } = new URL(uploaded.uploadUrl);
    await client.request("PUT", pathname + search, { key: null, body: "no picture" });

    // Some were sent on to another page.
    await expect.poll(() => requestLines().length - before).toBeGreaterThanOrEqual(asked.length + 2);
    const text = JSON.stringify(app.logs.slice(linesBefore));
    expect(app.logs.slice(linesBefore).some(({ level, route }) => level === 40 && route === "/text/{prompt}")).toBe(true);
    const name = pathname.slice(pathname.lastIndexOf("/") + 1);
    for (const secret of ["hush", key, app.key, search.slice(1), name])
      expect(secret.length > 3 && text.includes(secret), secret).toBe(false);
    expect([...text.matchAll(/.{60}hush.{20}/g)].map(String)).toEqual([]);
  });
});

describe("A line's bytes", () => {
  it("are those that pino makes of the same fields", () => {
    const lines: string[] = [];
    const log: Logger = pino({ level: "info" }, { write: (line: string) => void lines.push(line) }).child({ process: 'a "worker"' });
    const accessLog = new AccessLog(log, 1);
    const text = fc.option(fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom('"', "\\", "\n", "\u2028", "é", "x".repeat(50))));
    const amount = fc.bigInt({ min: 0n, max: 10n ** 15n });
    const receipt = fc.record({
      generationId: fc.uuid(),
      model: fc.string(),
      costNanocredits: amount,
      childCostNanocredits: amount,
      gatewayMs: fc.nat(),
    });
    const known = fc.record({ route: text, requestId: text, apiKeyId: text, code: text, operation: text });
    const end = fc.record({ method: fc.string(), status: fc.integer({ min: 100, max: 599 }), isLeft: fc.boolean() });

    fc.assert(
      fc.property(known, fc.array(receipt, { maxLength: 3 }), end, (fields, receipts, over) => {
        const note = Object.assign(new RequestNote(), fields);
        for (const each of receipts) note.finished(each);
        accessLog.requestOver(note, over);
        const { operation, model, generationId, generations, apiKeyId: keyId, requestId, childCostNanocredits: child } = note;
        const told = Object.entries({
          ...{
            method: over.method,
            route: note.route,
            status: over.status,
            code: note.code ?? undefined,
            isLeft: over.isLeft || undefined,
          },
          ...{ ms: 0, operation: operation ?? undefined, model: model ?? undefined, generationId: generationId ?? undefined },
          ...(generations > 0 && { ownMs: note.gatewayMs, cost: formatNanocredits(note.costNanocredits) }),
          ...{ generations: generations > 1 ? generations : undefined, childCost: child > 0n ? formatNanocredits(child) : undefined },
          ...{ keyId: keyId ?? undefined, requestId: requestId ?? undefined },
        }).filter(([, value]) => value !== undefined);
        log.info(Object.fromEntries(told), "request");

        const [own, pinos] = lines.splice(0).map((line) => line.replace(/"time":\d+/, "").replace(/"ms":[\d.]+/, ""));
        expect(own).toBe(pinos);
      }),
    );
  });
});

describe("ACCESS_LOG", () => {
  const linesAt = (share: number | null): string[] => {
    const lines: string[] = [];
    const log: Logger = pino({ level: "info" }, { write: (line: string) => void lines.push(line) });
    const accessLog = new AccessLog(log, share);
    for (const status of [200, 204, 404, 500]) accessLog.requestOver(new RequestNote(), { method: "GET", status, isLeft: false });
    const broken = new RequestNote();
    broken.refused("UPSTREAM_ERROR", "The upstream failed.");
    accessLog.requestOver(broken, { method: "GET", status: 200, isLeft: false });
    return lines.map((line) => String((JSON.parse(line) as Line).status));
  };

  it("leaves out good answers and never failures, unless it is off", () => {
    expect(linesAt(1)).toEqual(["200", "204", "404", "500", "200"]);
    expect(linesAt(0)).toEqual(["404", "500", "200"]);
    expect(linesAt(null)).toEqual([]);
  });
});
