import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { recordRoutes } from "../../src/rest/router.js";
import { UnknownRoutes } from "../../src/rest/unknown-routes.js";
import { CREDIT, createPayer } from "../e2e/money.js";
import { execute, subscribeSse } from "../graphql/client.js";
import { type ChatCompletionInput, ChatDocument, StreamChatDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { chatChunks, chatCompletion } from "../support/openai-bodies.js";
import { errorReply, json, sse } from "../support/upstream-replies.js";
import { type Client, createClient, createKey, expectEnvelope } from "./client.js";
import { bodyOf, sendRaw } from "./serve.js";

const DEAR = { promptTextPrice: "0", completionTextPrice: "1" };
let app: TestApp;
let client: Client;

beforeAll(async () => {
  app = await createTestApp({
    models: [
      { id: "acme/dear-paid", title: "Dear", modality: "text", upstream: "acme", upstreamModel: "dear", paidOnly: true, prices: DEAR },
      {
        id: "acme/speech-dear",
        title: "Dear",
        modality: "speech",
        upstream: "acme",
        upstreamModel: "dear",
        prices: { completionAudioPrice: "1" },
      },
    ],
  });
  client = createClient(app.baseUrl, app.key);
});
afterAll(() => app.close());

describe("the service", () => {
  it("names itself and where to go", async () => {
    const answer = await client.get("/", { key: null });

    expect(answer.status).toBe(200);
    const { name, links } = answer.json<{ name: string; links: Record<string, string> }>();
    expect(name).toBe("Sluice");
    for (const path of [links.models, links.catalog, links.health, links.readiness]) {
      expect((await client.get(path ?? "", { key: null })).status).toBe(200);
    }
  });

  it("is alive and ready for every caller", async () => {
    for (const key of [null, "sk_wrong"]) {
      expect((await client.get("/healthz", { key })).json()).toEqual({ status: "ok" });
      expect((await client.get("/readyz", { key })).json()).toEqual({ status: "ready" });
    }
  });
});

describe("errors over HTTP", () => {
  it("answers a request that is not HTTP in the envelope", async () => {
    const port = Number(new URL(app.baseUrl).port);

    const answer = await sendRaw(port, "GET / HTTP/1.1\r\nHost: localhost\r\nBad Header\r\n\r\n");

    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(bodyOf(answer)).toMatchObject({ status: 400, success: false, error: { code: "BAD_REQUEST" } });
  });

  it("answers 404 to an address with a long tail of an address that exists", async () => {
    for (const path of [
      "/v1/chat/completions/more",
      "/v1",
      "/account",
      "/api/account",
      "/api/account/keys/a/b",
      "/account/key/usage/daily",
      "/V1/models",
    ]) {
      expectEnvelope(await client.get(path), 404, "NOT_FOUND");
    }
  });
});

describe("an unknown path", () => {
  const base = () => `Set the base URL of your client to ${app.baseUrl.replace("127.0.0.1", "localhost")}/v1`;
  const messageOf = async (method: string, path: string) => {
    const answer = await client.request(method, path, { key: null });
    expectEnvelope(answer, 404, "NOT_FOUND");
    return answer.json<{ error: { message: string } }>().error.message;
  };

  it.each([
    ["/chat/completions", "/v1/chat/completions"],
    ["/completions", "/v1/completions"],
    ["/embeddings", "/v1/embeddings"],
    ["/responses", "/v1/responses"],
    ["/images/generations", "/v1/images/generations"],
    ["/moderations", "/v1/moderations"],
    ["/v1/v1/chat/completions", "/v1/chat/completions"],
    ["/v1/v1/images/edits", "/v1/images/edits"],
    ["/api/v1/chat/completions", "/v1/chat/completions"],
    ["/openai/v1/embeddings", "/v1/embeddings"],
  ])("suggests the right base URL for POST %s", async (path, meant) => {
    expect(await messageOf("POST", path)).toBe(`No such path. Did you mean POST ${meant}? ${base()}: it ends in /v1, and has it once.`);
  });

  it("is 405 when it exists for another method", async () => {
    const speech = await client.post("/audio/speech", {});
    const chat = await client.get("/v1/chat/completions");

    expectEnvelope(speech, 405, "METHOD_NOT_ALLOWED");
    expect(speech.headers.get("allow")).toBe("GET, HEAD, OPTIONS");
    expect(speech.json<{ error: { message: string } }>().error.message).toContain(`Did you mean POST /v1/audio/speech? ${base()}`);
    expect(chat.json<{ error: { message: string } }>().error.message).toBe("This path answers POST, OPTIONS.");
  });

  it.each([
    ["POST", "/v1/files", "media host"],
    ["GET", "/v1/files/file-1/content", "media host"],
    ["POST", "/v1/assistants", "POST /v1/responses"],
    ["POST", "/v1/batches", "one by one"],
    ["POST", "/api/chat", "POST /v1/chat/completions"],
    ["POST", "/v1/realtime/calls", "GET /v1/realtime"],
    ["POST", "/v1/realtime/sessions", "POST /v1/realtime/client_secrets"],
  ])("suggests the gateway's alternative to %s %s", async (method, path, instead) => {
    const message = await messageOf(method, path);

    expect(message).toMatch(/^No such path\. This gateway does not offer it\. /);
    expect(message).toContain(instead);
  });

  it("suggests the gateway's alternative to Gemini's path below a path that answers other methods", async () => {
    const answer = await client.post("/v1/models/x:predict", {});

    expectEnvelope(answer, 405, "METHOD_NOT_ALLOWED");
    expect(answer.text).toContain("This gateway does not offer it. POST /v1/images/generations");
  });

  it.each([
    ["POST", "/v1/chat/completion", "POST /v1/chat/completions"],
    ["POST", "/v1/embedings", "POST /v1/embeddings"],
    ["GET", "/V1/models", "GET /v1/models"],
    ["GET", "//v1/models", "GET /v1/models"],
    ["GET", "/account/key/usge", "GET /account/key/usage"],
    ["POST", "/v1/audio/speach", "POST /v1/audio/speech"],
  ])("suggests the nearest path for %s %s", async (method, path, meant) => {
    expect(await messageOf(method, path)).toBe(`No such path. Did you mean ${meant}?`);
  });

  it.each([
    "/nowhere",
    "/v1/chat/completions/more",
    `/${"a/".repeat(2_000)}`,
    `/v1/${"completions".repeat(500)}`,
    "/%2F%2F",
    "/v1/constructor",
  ])("has no suggestion where no path is near: %.30s", async (path) => {
    expect(await messageOf("POST", path)).toBe("No such path.");
  });

  it("suggests a complete method and path beside each route", () => {
    const unknown = new UnknownRoutes(recordRoutes(), () => "");
    for (const { path, methods } of recordRoutes()) {
      const [method = "GET"] = Object.keys(methods);
      const asked = path.replace(/[:*]\w+/g, "x");
      if (path.length > 2 && path !== "/media/") expect(unknown.hint(method, `${asked.slice(0, -1)}~`)).not.toContain("undefined");
    }
  });
});

describe("a key in the URL", () => {
  it("appears in no log line, however the request ends", async () => {
    const { key } = await createKey(app, { accountPermissions: ["usage"] });
    app.upstream.replyNext(errorReply(500), sse(chatChunks(["a"], { finishReason: null, usage: null }), { end: "cut" }));
    const before = app.logs.length;

    expect((await client.get(`/text/hi?key=${key}`, { key: null })).status).toBe(502);
    expect((await client.get(`/text/hi?stream=1&key=${key}`, { key: null })).text).toContain('data: {"error":');
    expect((await client.get(`/account/usage?key=${key}&limit=x`, { key: null })).status).toBe(400);
    expect((await client.get(`/nowhere?key=${key}`, { key: null })).status).toBe(404);

    const lines = app.logs.slice(before).map((line) => JSON.stringify(line));
    expect(lines.join("\n")).toContain('"route":"/text/{prompt}"');
    for (const line of lines) expect(line).not.toContain(key);
  });
});

describe("the cause of an upstream's refusal", () => {
  const messages = [{ role: "user", content: "Hi" }];
  const said = { error: { message: "Slow down.", type: "tokens", code: "rate_limit_exceeded" } };
  const details = { upstreamStatus: 429, upstreamCode: "rate_limit_exceeded", retryAfterSeconds: 17 };
  const busy = () => json(said, { status: 429, headers: { "retry-after": "17" } });

  it.each<[string, object]>([
    ["/v1/chat/completions", { model: "acme/chat", messages }],
    ["/v1/chat/completions", { model: "acme/chat", messages, stream: true }],
    ["/v1/responses", { model: "acme/chat", input: "Hi" }],
    ["/v1/responses", { model: "acme/chat", input: "Hi", stream: true }],
    ["/text", { model: "acme/chat", messages }],
    ["/v1/embeddings", { model: "acme/embedding", input: "Hi" }],
    ["/v1/images/generations", { model: "acme/image", prompt: "A heron" }],
    ["/v1/audio/speech", { model: "acme/speech", input: "Hi", voice: "alloy" }],
    ["/v1/moderations", { model: "acme/moderation", input: "Hi" }],
  ])("is answered with the time to wait: POST %s %j", async (path, body) => {
    app.upstream.replyNext(busy());

    const answer = await client.post(path, body);

    expectEnvelope(answer, 502, "UPSTREAM_ERROR");
    expect(answer.headers.get("retry-after")).toBe("17");
    expect(answer.json()).toMatchObject({ error: { details } });
  });

  it("is answered on GraphQL, and in a stream that has begun", async () => {
    app.upstream.replyNext(
      busy(),
      busy(),
      sse(chatChunks(["a"], { finishReason: null, usage: null }).concat(said as never), { done: false }),
    );

    const input: ChatCompletionInput = { model: "acme/chat", messages: [{ role: "USER", content: "Hi" }] };
    const whole = await execute(app, ChatDocument, { input });
    const live = await subscribeSse(app, StreamChatDocument, { input }).rest();
    const begun = await client.post("/v1/chat/completions", { model: "acme/chat", messages, stream: true });

    for (const errors of [whole.errors, live.at(-1)?.errors]) {
      expect(errors).toMatchObject([{ extensions: { code: "UPSTREAM_ERROR", details, retryAfterSeconds: 17 } }]);
    }
    expect(begun.status).toBe(200);
    expect(begun.text).toContain('"details":{"upstreamStatus":429,"upstreamCode":"rate_limit_exceeded"}');
  });

  it("is named in the gateway's words, in every wording of the upstream", async () => {
    const codeOf = async (status: number, error: object) => {
      app.upstream.replyNext(json({ error }, { status }));
      return client.post("/v1/chat/completions", { model: "acme/chat", messages }).then((answer) => answer.json<{ error: object }>().error);
    };
    const tooLong = { details: { upstreamStatus: 400, upstreamCode: "context_length_exceeded" } };

    expect(await codeOf(400, { message: "Too long.", code: "context_length_exceeded" })).toMatchObject(tooLong);
    expect(await codeOf(400, { message: "prompt is too long: 9 tokens > 8 maximum", type: "invalid_request_error" })).toMatchObject(
      tooLong,
    );
    expect(await codeOf(503, { message: "Later.", code: 503, status: "UNAVAILABLE" })).toMatchObject({
      details: { upstreamStatus: 503, upstreamCode: "overloaded" },
    });
    const hostile = await codeOf(500, { message: "No.", code: "__proto__", type: "x".repeat(10_000) });
    expect(hostile).toMatchObject({ details: { upstreamStatus: 500 } });
    expect(Object.keys((hostile as { details: object }).details)).toEqual(["upstreamStatus"]);
  });

  it.each(["-5", "0", "1e9", "99999999999999999999", "soon", "17; x", "Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT"])(
    "has no time to wait where the upstream says %s",
    async (value) => {
      app.upstream.replyNext(json(said, { status: 429, headers: { "retry-after": value } }));

      const answer = await client.post("/v1/chat/completions", { model: "acme/chat", messages });

      expect([answer.status, answer.headers.get("retry-after")]).toEqual([502, null]);
    },
  );

  it("takes a date for a time to wait", async () => {
    const date = new Date(Date.now() + 60_000).toUTCString();
    app.upstream.replyNext(json(said, { status: 429, headers: { "retry-after": date } }));

    const answer = await client.post("/v1/chat/completions", { model: "acme/chat", messages });

    expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(1);
    expect(Number(answer.headers.get("retry-after"))).toBeLessThanOrEqual(60);
  });

  it("is that of the called model when its fallbacks have failed too", async () => {
    app.upstream.replyNext(busy(), errorReply(400, "The fallback finds it wanting."));

    const answer = await client.post("/v1/chat/completions", { model: "acme/with-fallback", messages });

    expectEnvelope(answer, 502, "UPSTREAM_ERROR");
    expect(answer.headers.get("retry-after")).toBe("17");
    expect(answer.json()).toMatchObject({ error: { details } });
  });

  it.each([401, 402, 403])("does not look like the caller's key where it is the gateway's: %i", async (status) => {
    app.upstream.replyNext(errorReply(status, "Incorrect API key provided: acme-secret-key"));

    const answer = await client.post("/v1/chat/completions", { model: "acme/chat", messages });

    expectEnvelope(answer, 502, "UPSTREAM_ERROR");
    expect(answer.json()).toMatchObject({ error: { details: { upstreamStatus: status } } });
    expect(answer.text).toContain("which is not your key: the operator of the model has to correct it");
    expect(answer.text).not.toContain("acme-secret-key");
    // The operator's log has one line, however often it happens.
    app.upstream.replyNext(errorReply(status), errorReply(status));
    await client.post("/v1/chat/completions", { model: "acme/chat", messages });
    expectEnvelope(await client.post("/v1/embeddings", { model: "acme/embedding", input: "Hi" }), 502, "UPSTREAM_ERROR");
    const told = app.logs.filter((line) => line.event === "upstream-credential-refused" && line.status === status);
    expect(told).toMatchObject([{ level: 40, upstream: "acme", model: "acme/chat", suppressed: 0 }]);
    expect(JSON.stringify(told)).not.toContain("acme-secret-key");
  });

  it("has the fallback tried where the credential is refused", async () => {
    app.upstream.replyNext(errorReply(401), json(chatCompletion()));

    const answer = await client.post("/v1/chat/completions", { model: "acme/with-fallback", messages });

    expect([answer.status, answer.headers.get("x-fallback")]).toEqual([200, "acme/chat-b"]);
  });
});

describe("the details of a 402", () => {
  const body = { model: "acme/dear", max_tokens: 5, messages: [{ role: "user", content: "Hi" }] };
  const input: ChatCompletionInput = { model: "acme/dear", maxTokens: 5, messages: [{ role: "USER", content: "Hi" }] };
  const refusalOf = async (key: string, path = "/v1/chat/completions", asked: object = body) => {
    const answer = await client.post(path, asked, { key });
    expect(answer.status).toBe(402);
    return answer.json<{ error: { code: string; message: string; details: object } }>().error;
  };

  it("are the required and the available amount, on both faces, with a remedy", async () => {
    const { key } = await createPayer(app, { pack: 2n * CREDIT });

    const error = await refusalOf(key);
    const graphql = await execute({ ...app, key }, ChatDocument, { input });

    expect(error).toMatchObject({
      code: "INSUFFICIENT_BALANCE",
      details: { bound: "balance", required: "5", available: "2" },
      message:
        "The account's balance does not cover the estimated cost of this request (5 credits needed, 2 available): " +
        "set a smaller max_tokens or top up the account.",
    });
    expect(graphql.errors).toMatchObject([{ message: error.message, extensions: { code: error.code, details: error.details } }]);
    // Streams, and answers other than text.
    expect(await refusalOf(key, "/v1/chat/completions", { ...body, stream: true })).toMatchObject({ details: error.details });
    const speech = await refusalOf(key, "/v1/audio/speech", { model: "acme/speech-dear", input: "Hello", voice: "alloy" });
    expect(speech).toMatchObject({ details: { bound: "balance", required: "5", available: "2" } });
    expect(speech.message).toMatch(/\(5 credits needed, 2 available\): ask for less or top up the account\.$/);
  });

  it("leave out the account's balance for a key that may not read it", async () => {
    const { key } = await createPayer(app, { pack: 2n * CREDIT, permissions: [] });

    const error = await refusalOf(key);

    expect(error).toMatchObject({ code: "INSUFFICIENT_BALANCE", details: { bound: "balance", required: "5" } });
    expect(error.details).not.toHaveProperty("available");
    expect(error.message).toContain("(5 credits needed): set");
  });

  it("are the bought credits where no others pay", async () => {
    const { key } = await createPayer(app, { tier: 50n * CREDIT, pack: CREDIT });

    const error = await refusalOf(key, "/v1/chat/completions", { ...body, model: "acme/dear-paid" });

    expect(error).toMatchObject({ code: "INSUFFICIENT_BALANCE", details: { bound: "balance", required: "5", available: "1" } });
  });

  it("name the key with the exhausted budget, and the rest of it", async () => {
    const root = await createKey(app, { creditBudget: 3, accountPermissions: [] });
    const own = await refusalOf(root.key);
    const { key } = await createPayer(app, { pack: 50n * CREDIT, budget: 3n * CREDIT, permissions: ["keys"] });
    const child = (await client.post("/account/keys", { name: "child" }, { key })).json<{ key: string }>();

    const parents = await refusalOf(child.key);

    expect(own).toMatchObject({ code: "KEY_BUDGET_EXHAUSTED", details: { bound: "key_budget", required: "5", available: "3" } });
    expect(own.message).toContain("The key's remaining budget does not cover");
    expect(parents).toMatchObject({ code: "KEY_BUDGET_EXHAUSTED", details: { bound: "parent_key_budget", required: "5", available: "3" } });
  });
});
