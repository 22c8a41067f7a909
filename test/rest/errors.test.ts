import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { chatChunks } from "../support/openai-bodies.js";
import { errorReply, sse } from "../support/upstream-replies.js";
import { type Client, createClient, createKey, expectEnvelope } from "./client.js";
import { bodyOf, sendRaw } from "./serve.js";

let app: TestApp;
let client: Client;

beforeAll(async () => {
  app = await createTestApp();
  client = createClient(app.baseUrl, app.key);
});
afterAll(() => app.close());

describe("the service", () => {
  it("says what it is and where to go", async () => {
    const answer = await client.get("/", { key: null });

    expect(answer.status).toBe(200);
    const { name, links } = answer.json<{ name: string; links: Record<string, string> }>();
    expect(name).toBe("Sluice");
    for (const path of [links.models, links.catalog, links.health, links.readiness]) {
      expect((await client.get(path ?? "", { key: null })).status).toBe(200);
    }
  });

  it("lives and is ready, whoever asks", async () => {
    for (const key of [null, "sk_wrong"]) {
      expect((await client.get("/healthz", { key })).json()).toEqual({ status: "ok" });
      expect((await client.get("/readyz", { key })).json()).toEqual({ status: "ready" });
    }
  });
});

describe("errors over HTTP", () => {
  it("answers what is not HTTP in the envelope", async () => {
    const port = Number(new URL(app.baseUrl).port);

    const answer = await sendRaw(port, "GET / HTTP/1.1\r\nHost: x\r\nBad Header\r\n\r\n");

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

describe("a key in the URL", () => {
  it("stands in no log line, whatever becomes of the request", async () => {
    const { key } = await createKey(app, { accountPermissions: ["usage"] });
    app.upstream.replyNext(errorReply(500), sse(chatChunks(["a"], { finishReason: null, usage: null }), { end: "cut" }));
    const before = app.logs.length;

    expect((await client.get(`/text/hi?key=${key}`, { key: null })).status).toBe(502);
    expect((await client.get(`/text/hi?stream=1&key=${key}`, { key: null })).text).toContain("event: error");
    expect((await client.get(`/account/usage?key=${key}&limit=x`, { key: null })).status).toBe(400);
    expect((await client.get(`/nowhere?key=${key}`, { key: null })).status).toBe(404);

    const lines = app.logs.slice(before).map((line) => JSON.stringify(line));
    expect(lines.join("\n")).toContain('"route":"/text/{prompt}"');
    for (const line of lines) expect(line).not.toContain(key);
  });
});
