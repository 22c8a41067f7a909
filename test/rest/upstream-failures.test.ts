/**
 * An upstream's failure in fitting words: only a failed connection "could not be reached", and an answer that had begun
 * "ended early", on every face alike. And the facts that a stream adds at its end because its head had left before they
 * were known.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { STREAM_HEAD_WAIT_MS } from "../../src/limits.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { type FakeRealtime, startFakeRealtime } from "../support/fake-realtime.js";
import { chatChunk, chatChunks } from "../support/openai-bodies.js";
import { OPERATIONS } from "../support/operations.js";
import { bytes, closeSocket, errorReply, gated, json, type Reply, raw, sse } from "../support/upstream-replies.js";
import { type Client, createClient } from "./client.js";
import { connectRealtime } from "./realtime-client.js";

const REACHED_NOBODY = "The upstream could not be reached.";
const HUNG_UP = "The upstream closed the connection without an answer.";
const BROKE = "The upstream's answer ended early: the connection broke before all of it had come.";
const STOPPED = "The upstream's answer ended early: it stopped without saying that it was finished.";

let app: TestApp;
let realtime: FakeRealtime;
let client: Client;

beforeAll(async () => {
  realtime = await startFakeRealtime();
  app = await createTestApp({
    upstreams: [
      { id: "dead", wireFormat: "openai", baseUrl: "http://127.0.0.1:1/v1", apiKey: "none" },
      { id: "live", wireFormat: "openai", baseUrl: realtime.baseUrl, apiKey: "live-secret-key" },
    ],
    models: [
      { id: "dead/chat", modality: "text", upstream: "dead", upstreamModel: "gone", title: "Gone", prices: {} },
      { id: "live/voice", modality: "realtime", upstream: "live", upstreamModel: "voice", title: "Voice", prices: {} },
    ],
  });
  client = createClient(app.baseUrl, app.key);
});
afterEach(() => {
  vi.useRealTimers();
});
afterAll(async () => {
  await app.close();
  await realtime.close();
});

/** The message of an error, wherever in the answer it stands. */
function messageIn(text: string): unknown {
  const line = text.startsWith("{")
    ? text
    : (text.split("\n").findLast((one) => one.startsWith("data: ")) ?? "data: {}").slice("data: ".length);
  const { error } = JSON.parse(line) as { error?: { message?: unknown } };
  return error?.message;
}

const messages = [{ role: "user", content: "Hi" }];
const STREAMS = OPERATIONS.filter(({ kind, delivery }) => kind === "text" && delivery === "stream").map(
  (stream) => [stream.name, stream] as const,
);

const begun = [chatChunk({ content: "Hel" })];

describe("the failure of a stream", () => {
  it.each(STREAMS)("is reported by %s in fitting words", async (_name, stream) => {
    const messageOf = async (model: string) => (await stream.ask(app, { model })).message;
    const told = async (...replies: Reply[]) => {
      app.upstream.replyNext(...replies);
      return messageOf("acme/free");
    };

    expect(await messageOf("dead/chat")).toBe(REACHED_NOBODY);
    expect(await told(closeSocket())).toBe(HUNG_UP);
    expect(await told(closeSocket({ reset: true }))).toBe(HUNG_UP);
    // Before the first content, and after it.
    expect(await told(sse([], { done: false }))).toBe(STOPPED);
    expect(await told(sse(begun, { done: false }))).toBe(STOPPED);
    expect(await told(sse([], { end: "cut" }))).toBe(BROKE);
    expect(await told(sse(begun, { end: "cut" }))).toBe(BROKE);
    expect(await told(sse([...begun, bytes("data: {\n\n")]))).toBe("The upstream's stream holds an event that is not a JSON object.");
    expect(await told(raw("<p>", { headers: { "content-type": "text/html" } }))).toBe(
      "The upstream answered a stream request with neither a stream nor JSON.",
    );
  });
});

describe("the failure of a whole answer", () => {
  it.each([
    ["that breaks off", () => sse([bytes('{"choices":')], { end: "cut", headers: { "content-type": "application/json" } }), BROKE, "false"],
    ["that is shorter than it says", () => sse([bytes("{}")], { end: "cut", headers: { "content-length": "1000" } }), BROKE, "false"],
    ["that is none", () => closeSocket(), HUNG_UP, null],
    ["that is no JSON", () => raw("<p>"), "The upstream's answer is not a JSON object.", "false"],
    ["that is a redirect", () => raw("", { status: 302, headers: { location: "/" } }), /a redirect \(302\)/, "false"],
    ["that is encoded", () => raw("x", { headers: { "content-encoding": "gzip" } }), /encoded its answer/, "false"],
    ["without choices", () => json({ choices: 1 }), "The upstream's answer has no readable choices.", "false"],
  ])("%s", async (_what, reply, message, shouldRetry) => {
    app.upstream.replyNext(reply());

    const answer = await client.post("/v1/chat/completions", { model: "acme/free", messages });

    expect(answer.status).toBe(502);
    expect(messageIn(answer.text)).toEqual(typeof message === "string" ? message : expect.stringMatching(message));
    // Repeating what an upstream had begun would have it done twice.
    expect(answer.headers.get("x-should-retry")).toBe(shouldRetry);
  });
});

it("reports a cut by the upstream to a realtime session", async () => {
  const caller = await connectRealtime(app, "?model=live/voice", { key: app.key });
  const session = await realtime.nextSession();
  session.send({ type: "session.created", session: { type: "realtime" } });
  await caller.next("session.created");
  session.socket.terminate();

  expect(await caller.next("error")).toMatchObject({ error: { message: expect.stringContaining("The session ended early") } });
  await caller.closed;
});

describe("the last chunk of a stream", () => {
  const lastChunkOf = (text: string) => JSON.parse(text.split("\n\n").at(-3)?.slice("data: ".length) ?? "") as Record<string, unknown>;
  const ask = (model: string, more: object = {}) =>
    fetch(`${app.baseUrl}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${app.key}`, "content-type": "application/json" },
      body: JSON.stringify({ model, messages, stream: true, ...more }),
    });

  it("names a fallback that was found after the head had left, and where the time went", async () => {
    const primary = gated({}, 500);
    app.upstream.replyNext(primary.reply, sse(chatChunks(["Hello"])));
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"], shouldAdvanceTime: true });
    const seen = app.upstream.requests.length;
    const answering = ask("acme/with-fallback");
    await expect.poll(() => app.upstream.requests.length).toBe(seen + 1);
    vi.advanceTimersByTime(STREAM_HEAD_WAIT_MS);
    const { headers, ...answer } = await answering.then(async (response) => {
      primary.open();
      return { headers: response.headers, text: await response.text() };
    });

    expect([headers.has("x-model-used"), headers.has("x-fallback"), headers.get("x-cache")]).toEqual([false, false, "MISS"]);
    expect(headers.get("server-timing")).toMatch(/^gateway;dur=[\d.]+, upstream;dur=[\d.]+$/);
    expect(lastChunkOf(answer.text)).toMatchObject({
      model: "acme/with-fallback",
      usage: { prompt_tokens: 10, cost: expect.any(Number) },
      receipt: {
        generation_id: headers.get("x-generation-id"),
        model_used: "acme/chat-b",
        fallback: "acme/chat-b",
        gateway_ms: expect.any(Number),
        upstream_ms: expect.any(Number),
        response_time_ms: expect.any(Number),
        time_to_first_token_ms: expect.any(Number),
      },
    });
  });

  it("states the same beside its usage, and when the model itself answered", async () => {
    app.upstream.replyNext(sse(chatChunks(["Hello"])), errorReply(500), sse(chatChunks(["Hello"])));

    const own = lastChunkOf(await (await ask("acme/chat", { stream_options: { include_usage: true } })).text());
    const early = await ask("acme/with-fallback");
    const events = (await client.post("/v1/responses", { model: "acme/chat", input: "Hi", stream: true })).text;

    expect(own).toMatchObject({ choices: [], receipt: { model_used: "acme/chat", fallback: null } });
    expect(early.headers.get("x-fallback")).toBe("acme/chat-b");
    expect(lastChunkOf(await early.text())).toMatchObject({ receipt: { fallback: "acme/chat-b" } });
    const completed = events.split("\n").findLast((line) => line.startsWith("data: ")) ?? "";
    expect(JSON.parse(completed.slice("data: ".length))).toMatchObject({
      type: "response.completed",
      response: { model: "acme/chat", receipt: { model_used: "acme/chat", upstream_ms: expect.any(Number) } },
    });
  });
});
