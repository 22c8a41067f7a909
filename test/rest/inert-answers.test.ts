/**
 * Answers that a browser never runs (docs/spec/http.md#inert-answers). An upstream chooses bytes and their type, and a
 * link to them may be sent to a person who is signed in here.
 */
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseConfig } from "../../src/config/config.js";
import { GENERATED_TYPES } from "../../src/lib/content-types.js";
import { recordRoutes } from "../../src/rest/router.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { createMember, type Member, registerModel } from "../support/community-models.js";
import { readClip } from "../support/fake-videos.js";
import { imagesObject, picture } from "../support/pictures.js";
import { recording } from "../support/recordings.js";
import { json, type Reply, raw } from "../support/upstream-replies.js";

const PAGE = "<!doctype html><script>fetch('/account/keys', { method: 'POST' })</script>";
/** What an upstream may call its answer. */
const EVIL_TYPES = [
  "constructor",
  "toString",
  "__proto__",
  "hasOwnProperty",
  "text/html",
  "TEXT/HTML",
  "text/html;charset=x",
  "text/html; charset=utf-8",
  "image/svg+xml",
  "Application/XHTML+XML",
  "audio/html+xml",
  "audio/mpeg, text/html",
  "audio/mpeg; x=text/html",
  "video/mp4, text/html",
  "multipart/x-mixed-replace",
  "*/*",
  "x",
  `audio/${"a".repeat(10_000)}`,
  "a".repeat(10_000),
];
const RATE_LIMITS = parseConfig({}).rateLimits;
const INERT = "default-src 'none'; sandbox";

let app: TestApp;
let me: Member;
/** Private models of an account like any other. */
let voice: string;
let camera: string;
let painter: string;
let counter = 0;

beforeAll(async () => {
  app = await createTestApp({
    config: { upstreamAllowHosts: ["127.0.0.1"], rateLimits: { ...RATE_LIMITS, anonymousRequestsPer10Seconds: 10_000 } },
  });
  me = await createMember(app);
  const register = async (modality: "speech" | "video" | "image", path: string) =>
    (await registerModel(app, me, { modality, api: null, url: app.upstream.baseUrl + path })).modelId;
  voice = await register("speech", "/audio/speech");
  camera = await register("video", "/film");
  painter = await register("image", "/images/generations");
});
afterAll(() => app.close());

function ask(path: string, init: RequestInit = {}): Promise<Response> {
  return fetch(app.baseUrl + path, { redirect: "manual", ...init, headers: { authorization: `Bearer ${me.key}`, ...init.headers } });
}

function post(path: string, body: object): Promise<Response> {
  return ask(path, { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } });
}

/** A prompt that is not cached yet. */
function fresh(): string {
  counter += 1;
  return `piece%20${counter}`;
}

function expectInert({ headers, url, status }: Response): void {
  const told = { url, status, policy: headers.get("content-security-policy"), sniffing: headers.get("x-content-type-options") };
  expect(told).toEqual({ url, status, policy: expect.stringMatching(`^${INERT}(; frame-ancestors 'none')?$`), sniffing: "nosniff" });
}

function expectClosedType({ headers, status }: Response): void {
  const known: readonly (string | null)[] = status === 200 ? GENERATED_TYPES : ["application/json; charset=utf-8"];
  expect(known).toContain(headers.get("content-type"));
}

describe("a page from an upstream that calls it `constructor`", () => {
  it("is a sound that a browser runs nothing of, by the link that is sent around and from the cache", async () => {
    app.upstream.replyNext(raw(PAGE, { headers: { "content-type": "audio/constructor" } }));
    const path = `/audio/${fresh()}?model=${encodeURIComponent(voice)}&key=${me.key}`;

    for (const cache of ["MISS", "HIT"]) {
      const answer = await fetch(app.baseUrl + path);

      expect([answer.status, answer.headers.get("content-type"), answer.headers.get("x-cache")]).toEqual([200, "audio/mpeg", cache]);
      expectInert(answer);
    }
  });

  it("is refused when not even the type says that it is sound", async () => {
    app.upstream.replyNext(raw(PAGE, { headers: { "content-type": "constructor" } }));

    const answer = await fetch(`${app.baseUrl}/audio/${fresh()}?model=${encodeURIComponent(voice)}&key=${me.key}`);

    expect(answer.status).toBe(502);
    expectClosedType(answer);
    expectInert(answer);
  });
});

describe("the output of an upstream that lies about it", () => {
  it.each<[string, (type: string) => Reply | Promise<Reply>, () => Promise<Response>]>([
    ["GET /audio with speech", (type) => typed(PAGE, type), () => ask(`/audio/${fresh()}?model=${voice}`)],
    ["POST /v1/audio/speech", (type) => typed(PAGE, type), () => post("/v1/audio/speech", { model: voice, input: fresh() })],
    ["GET /audio with music", (type) => typed(recording(0.2), type), () => askAsOwner(`/audio/${fresh()}?model=acme/music`)],
    ["GET /video", async (type) => typed(await readClip(1), type), () => ask(`/video/${fresh()}?model=${camera}`)],
    ["GET /image", async (type) => dataUrl(await picture(), type), () => ask(`/image/${fresh()}?model=${painter}`)],
  ])("gets a type of the gateway's: %s", async (_name, reply, request) => {
    const served = new Set<number>();
    for (const type of EVIL_TYPES) {
      app.upstream.replyNext(await reply(type));

      const answer = await request();

      expectClosedType(answer);
      expectInert(answer);
      served.add(answer.status);
      await answer.arrayBuffer();
    }
    expect(served).toContain(200);
  });
});

function typed(body: string | Uint8Array, type: string): Reply {
  return raw(body, { headers: { "content-type": type } });
}

function dataUrl(bytes: Buffer, type: string): Reply {
  return json({ created: 1, data: [{ b64_json: `data:${type};base64,${bytes.toString("base64")}` }] });
}

function askAsOwner(path: string): Promise<Response> {
  return ask(path, { headers: { authorization: `Bearer ${app.key}` } });
}

describe("content that was stored under an invalid type", () => {
  it("is bytes that a browser saves: a cached answer, a link", async () => {
    const { prisma } = app.database;
    const path = `/image/${fresh()}?model=acme/image`;
    app.upstream.replyNext(json(imagesObject([await picture()])));
    await askAsOwner(path);
    await prisma.$executeRaw`UPDATE content_cache_entry SET answer = jsonb_set(answer, '{contentType}', '"text/html"')`;
    const link = await app.services.mediaLinks.publish(await ownerContext(), { bytes: Buffer.from(PAGE), contentType: "audio/pcm" });
    await prisma.$executeRaw`UPDATE media_file SET content_type = 'audio/html+xml' WHERE id = ${link.id}`;

    const cached = await askAsOwner(path);
    const linked = await ask(`/media/${link.id}`);

    expect(cached.headers.get("x-cache")).toBe("HIT");
    for (const answer of [cached, linked]) {
      expect(answer.headers.get("content-type")).toBe("application/octet-stream");
      expectInert(answer);
    }
  });
});

async function ownerContext() {
  const caller = await app.services.apiKeys.authenticate(app.key);
  return { caller, requestId: "r", clientAddress: "", log: { warn: () => undefined }, signal: AbortSignal.any([]) } as never;
}

/**
 * The gateway's pages that are shown without a session: each has a policy of its own, under which it runs no script but
 * the reference's, and cannot be framed. The others redirect to one of these.
 */
const OWN_PAGES = [
  "/api/auth/callback/github",
  "/authorize",
  "/checkout",
  "/docs",
  "/integrations/callback",
  "/integrations/connect",
  "/receipt",
  "/set-password",
  "/sign-in",
  "/sign-in/github",
  "/sign-out",
  "/sign-up",
];
const OWN_POLICY = /^default-src 'none'; .*base-uri 'none'.*frame-ancestors 'none'$/;

describe("every route", () => {
  const routes = recordRoutes().flatMap(({ path, methods }) => [
    ...Object.keys(methods).map((method) => [method, path] as const),
    ["PROPFIND", path] as const,
    ["OPTIONS", path] as const,
  ]);

  it("answers inertly, errors and preflights included; only the gateway's own pages have a policy of their own", async () => {
    const pages = new Set<string>();
    const walk = async (method: string, path: string, key: string) => {
      const answer = await ask(path.replace(/[:*]\w+/g, "x"), { method, headers: { authorization: `Bearer ${key}` } });
      await answer.body?.cancel();
      if (!answer.headers.get("content-type")?.startsWith("text/html")) return expectInert(answer);
      pages.add(path);
      expect({ path, policy: answer.headers.get("content-security-policy") }).toEqual({ path, policy: expect.stringMatching(OWN_POLICY) });
      expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
    };
    await Promise.all(routes.flatMap(([method, path]) => [app.key, "sk_wrong"].map((key) => walk(method, path, key))));
    expect([...pages].sort()).toEqual(OWN_PAGES);
  });

  it.each<[string, () => Promise<Response>]>([
    ["a text", () => ask("/text/hello?model=sandbox/text")],
    ["a text that is posted for", () => post("/text", { model: "sandbox/text", messages: [{ role: "user", content: "Hello" }] })],
    ["a streamed text", () => ask("/text/hello?model=sandbox/text&stream=true")],
    ["a chat", () => post("/v1/chat/completions", { model: "sandbox/text", messages: [{ role: "user", content: "Hello" }] })],
    ["a response", () => post("/v1/responses", { model: "sandbox/text", input: "Hello" })],
    ["speech", () => post("/v1/audio/speech", { model: "sandbox/speech", input: "Hello" })],
    ["a transcription", () => transcribe("text")],
    ["subtitles", () => transcribe("vtt")],
    ["an MCP answer", () => post("/mcp", { jsonrpc: "2.0", id: 1, method: "tools/list" })],
    ["an upload", () => ask("/media/upload", { method: "POST", body: PAGE })],
    ["GraphQL", () => post("/graphql", { query: "{ __typename }" })],
    ["an error of GraphQL", () => ask("/graphql", { method: "PATCH" })],
    ["a subscription", () => ask("/graphql?query=subscription{balanceChanged{__typename}}", { headers: { accept: "text/event-stream" } })],
    ["a path that there is not", () => ask("/nowhere")],
    ["a path that cannot be decoded", () => ask("/text/%zz")],
    ["an upgrade that is no WebSocket", () => ask("/v1/realtime")],
  ])("does so for %s", async (_name, request) => {
    const answer = await request();

    expectInert(answer);
    await answer.body?.cancel();
  });

  it("keeps the GraphQL explorer out of frames", async () => {
    const page = await ask("/graphql", { headers: { accept: "text/html" } });

    expect(page.headers.get("content-type")).toMatch(/^text\/html/);
    expect(page.headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
    expect(page.headers.get("x-content-type-options")).toBe("nosniff");
  });

  it.each([
    ["bytes that are not HTTP", "nonsense\r\n\r\n"],
    ["an upgrade that is refused", "GET /v1/realtime HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"],
    ["an upgrade of no path", "GET /text HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"],
  ])("does so for %s", async (_name, request) => {
    const head = await sendRaw(request);

    expect(head).toContain("X-Content-Type-Options: nosniff\r\n");
    expect(head).toContain(`Content-Security-Policy: ${INERT}\r\n`);
  });
});

function transcribe(format: string): Promise<Response> {
  const form = new FormData();
  form.append("model", "sandbox/transcription");
  form.append("response_format", format);
  form.append("file", new Blob([new Uint8Array(recording(0.2))]), "a.wav");
  return ask("/v1/audio/transcriptions", { method: "POST", body: form });
}

async function sendRaw(request: string): Promise<string> {
  const socket = connect(Number(new URL(app.baseUrl).port), "127.0.0.1");
  socket.end(request);
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("latin1");
}
