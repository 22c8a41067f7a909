/** The probe of an upstream, over both prefixes and GraphQL (docs/spec/community-models.md#probe). */

import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { PROBE_INTERVAL_MS } from "../../src/services/community-models/limits.js";
import { codes, execute, ok } from "../graphql/client.js";
import { TestCommunityModelDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { createMovableClock } from "../support/clock.js";
import { createMember, type Member, registerModel } from "../support/community-models.js";
import { readClip } from "../support/fake-videos.js";
import { chatCompletion } from "../support/openai-bodies.js";
import { imagesObject, picture } from "../support/pictures.js";
import { responseObject, textItem } from "../support/responses-bodies.js";
import { closeSocket, errorReply, json, type Reply, raw } from "../support/upstream-replies.js";
import { type Answer, type Client, createClient, expectEnvelope } from "./client.js";

const PROBE_SECONDS = PROBE_INTERVAL_MS / 1000;
const TOKEN = "token-to-be-tried-0123";

const clock = createMovableClock();
let app: TestApp;
let client: Client;
let member: Member;
let origin: string;

beforeAll(async () => {
  app = await createTestApp({ config: { upstreamAllowHosts: ["127.0.0.1"] }, clock });
  member = await createMember(app);
  client = createClient(app.baseUrl, member.key);
  origin = `http://127.0.0.1:${app.upstream.port}`;
});
// Past the last probe.
beforeEach(() => clock.advance(PROBE_SECONDS));
afterAll(() => app.close());

const text = () => ({ api: "chat_completions", url: `${origin}/their/chat?v=2`, bearerToken: TOKEN, upstreamModel: "theirs" });

const media = (modality: string, path: string) => ({ modality, baseUrl: `${origin}${path}`, upstreamModel: "theirs" });

function probe(body: object = text(), prefix = "/account"): Promise<Answer> {
  return client.post(`${prefix}/my-models/test`, body);
}

function last() {
  const request = app.upstream.requests.at(-1);
  if (!request) throw new Error("The upstream was not called.");
  return request;
}

function expectRefused(answer: Answer, param: string): void {
  expectEnvelope(answer, 400, "BAD_REQUEST");
  expect(answer.json()).toMatchObject({ error: { param } });
}

describe("an upstream that answers", () => {
  it("is called once, with the credential and the cheapest request", async () => {
    const seen = app.upstream.requests.length;
    app.upstream.replyNext(json(chatCompletion({ content: "words-of-the-upstream" })));

    const answer = await probe(text(), "/api/account");

    expect(answer.status).toBe(200);
    expect(answer.json()).toEqual({
      ok: true,
      status: 200,
      upstreamCode: null,
      latencyMs: expect.any(Number),
      message: "The upstream answers as it should.",
    });
    expect(app.upstream.requests.length - seen).toBe(1);
    expect(last()).toMatchObject({ method: "POST", path: "/their/chat?v=2" });
    expect(last().headers).toMatchObject({ authorization: `Bearer ${TOKEN}`, "x-sluice-hops": "1" });
    expect(last().json).toMatchObject({ model: "theirs", max_tokens: 1, stream: false });
    expect(JSON.stringify(last().rawHeaders)).not.toContain(member.key);
  });

  const vectors = { object: "list", data: [{ object: "embedding", index: 0, embedding: [1] }] };
  it.each([
    [
      "responses",
      () => ({ ...text(), api: "responses" }),
      json(responseObject([textItem("ok")])),
      { max_output_tokens: 16 },
      "/their/chat?v=2",
    ],
    ["embedding", () => media("embedding", "/v9/embeddings"), json(vectors), { input: "ping" }, "/v9/embeddings"],
    ["speech", () => media("speech", "/v9"), raw("s", { headers: { "content-type": "audio/mpeg" } }), { input: "Hi" }, "/v9/audio/speech"],
    ["transcription", () => media("transcription", "/v9"), json({ text: "" }), undefined, "/v9/audio/transcriptions"],
    ["image", () => media("image", "/v9"), errorReply(400), { prompt: "" }, "/v9/images/generations"],
    ["video", () => media("video", "/make"), errorReply(422), { prompt: "" }, "/make"],
  ])("of %s gets a cheap request", async (_, toBody, reply, body, path) => {
    app.upstream.replyNext(reply);

    const answer = await probe(toBody());

    expect(answer.json()).toMatchObject({ ok: true });
    expect(last().path).toBe(path);
    if (body) expect(last().json).toMatchObject(body);
  });

  it("of pictures or videos that makes one all the same is there", async () => {
    app.upstream.replyNext(json(imagesObject([await picture()])));
    expect((await probe(media("image", "/v9"))).json()).toMatchObject({ ok: true, status: 200 });
    clock.advance(PROBE_SECONDS);
    app.upstream.replyNext(raw(await readClip(1), { headers: { "content-type": "video/mp4" } }));
    expect((await probe(media("video", "/make"))).json()).toMatchObject({ ok: true, status: 200 });
  });
});

describe("an upstream that does not answer like a model", () => {
  const FAILURES: readonly [string, Reply, object][] = [
    ["refuses the credential", errorReply(401, "words-of-the-upstream"), { status: 401, message: "The upstream refuses the credential." }],
    ["has no such endpoint", errorReply(404, "words-of-the-upstream"), { status: 404 }],
    ["has no capacity", errorReply(429, "words-of-the-upstream"), { status: 429, upstreamCode: null }],
    [
      "has no such model",
      json({ error: { message: "words-of-the-upstream", code: "model_not_found" } }, { status: 404 }),
      { status: 404, upstreamCode: "model_not_found" },
    ],
    ["refuses the request", errorReply(400, "words-of-the-upstream"), { status: 400 }],
    ["fails", errorReply(500, "words-of-the-upstream"), { status: 500, message: "The upstream failed." }],
    ["answers an error with a good status", json({ error: { message: "words-of-the-upstream", code: 403 } }), { status: 403 }],
    ["answers a page", raw("<p>words-of-the-upstream", { headers: { "content-type": "text/html" } }), { status: null }],
    ["answers a redirect", raw("words-of-the-upstream", { status: 302, headers: { location: "http://10.0.0.1/" } }), { status: null }],
    ["breaks off", closeSocket(), { status: null, latencyMs: null }],
  ];

  it.each(FAILURES)("and %s is reported, without its words", async (_, reply, expected) => {
    app.upstream.replyNext(reply);

    const answer = await probe();

    expect(answer.json()).toMatchObject({ ok: false, ...expected });
    expect(answer.text).not.toContain("words-of-the-upstream");
    expect(answer.text).not.toContain(TOKEN);
  });

  it("is reported alike whether its host is unknown or refuses connections", async () => {
    const answers: unknown[] = [];
    for (const url of ["https://no-such-host.invalid/v1", "http://127.0.0.1:1/v1"]) {
      answers.push((await probe({ ...text(), url })).json());
      clock.advance(PROBE_SECONDS);
    }
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
    expect(answers[0]).toEqual({
      ok: false,
      status: null,
      upstreamCode: null,
      latencyMs: null,
      message: "The host of this URL is unknown, is not public, or does not answer.",
    });
  });
});

describe("a registered model", () => {
  it("is probed by its id, with the credential that is kept", async () => {
    const { id } = await registerModel(app, member, { bearerToken: "token-that-is-kept", upstreamModel: "kept", url: `${origin}/kept` });
    app.upstream.replyNext(json(chatCompletion()));

    const answer = await probe({ id });

    expect(answer.json()).toMatchObject({ ok: true });
    expect(last()).toMatchObject({ path: "/kept", headers: { authorization: "Bearer token-that-is-kept" }, json: { model: "kept" } });
    expect(answer.text).not.toContain("token-that-is-kept");
  });

  it("is not probed by another account, nor at another address", async () => {
    const other = await createMember(app);
    const { id } = await registerModel(app, member, {});
    const agent = await registerModel(app, member, { type: "prompt_agent", url: null, api: null });
    const seen = app.upstream.requests.length;

    const foreign = await client.post("/account/my-models/test", { id }, { key: other.key });
    const elsewhere = await probe({ id, url: `${origin}/elsewhere` });
    const withoutUpstream = await probe({ id: agent.id });

    expectEnvelope(foreign, 404, "NOT_FOUND");
    expectRefused(elsewhere, "url");
    expectRefused(withoutUpstream, "id");
    expect(app.upstream.requests.length).toBe(seen);
  });
});

describe("input", () => {
  it.each([
    [{}, "api"],
    [{ api: "chat_completions", upstreamModel: "m" }, "url"],
    [{ api: "chat_completions", url: "https://example.com/" }, "upstreamModel"],
    [{ api: "grpc", url: "https://example.com/", upstreamModel: "m" }, "api"],
    [{ modality: "music", baseUrl: "https://example.com/", upstreamModel: "m" }, "modality"],
    [{ modality: "image", url: "https://example.com/", upstreamModel: "m" }, "baseUrl"],
    [{ modality: "image", baseUrl: "https://example.com/", api: "responses", upstreamModel: "m" }, "api"],
    [{ api: "responses", url: "https://example.com/", baseUrl: "https://example.com/", upstreamModel: "m" }, "baseUrl"],
    [{ api: "responses", url: "https://10.1/", upstreamModel: "m" }, "url"],
    [{ api: "responses", url: "http://localhost/", upstreamModel: "m" }, "url"],
    [{ api: "responses", url: "https://[::ffff:7f00:1]/", upstreamModel: "m" }, "url"],
    [{ modality: "image", baseUrl: "https://user@example.com/", upstreamModel: "m" }, "baseUrl"],
    [{ api: "responses", url: "https://example.com/", upstreamModel: "m", bearerToken: "" }, "bearerToken"],
    [{ api: "responses", url: "https://example.com/", upstreamModel: "m", bearerToken: "two words" }, "bearerToken"],
    [{ api: "responses", url: "https://example.com/", upstreamModel: "m".repeat(254) }, "upstreamModel"],
  ])("%j is refused, and does not count", async (body, param) => {
    expectRefused(await probe(body), param);
    expectRefused(await probe(body), param);
  });
});

describe("probes", () => {
  it("are made once in 30 seconds by an account, over both faces together", async () => {
    const other = await createMember(app);
    app.upstream.replyAlways(json(chatCompletion()));
    const input = { ...text(), api: "CHAT_COMPLETIONS" as const };

    const first = await execute({ ...app, key: member.key }, TestCommunityModelDocument, { input });
    const second = await probe();
    const third = await execute({ ...app, key: member.key }, TestCommunityModelDocument, { input });
    const others = await client.post("/account/my-models/test", text(), { key: other.key });
    clock.advance(PROBE_SECONDS - 2);
    const early = await probe();
    clock.advance(2);
    const again = await probe();

    expect(ok(first).testCommunityModel.test).toMatchObject({ isOk: true, status: 200 });
    expectEnvelope(second, 429, "RATE_LIMITED");
    expect(second.headers.get("retry-after")).toBe("30");
    expect(codes(third)).toEqual(["RATE_LIMITED"]);
    expect(others.status).toBe(200);
    expect(early.status).toBe(429);
    expect(again.status).toBe(200);
    app.upstream.replyAlways(null);
  });
});
