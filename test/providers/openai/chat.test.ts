import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { COMMON } from "../../../src/formats/openai-chat/dialect.js";
import type { ChatBody } from "../../../src/formats/openai-chat/schema.js";
import { NO_USAGE } from "../../../src/lib/usage.js";
import type { OpenAiUpstream } from "../../../src/providers/openai/client.js";
import type { ChatProvider } from "../../../src/providers/provider.js";
import { type FakeUpstream, startFakeUpstream } from "../../support/fake-upstream.js";
import { chatCompletion, errorBody, wireUsage } from "../../support/openai-bodies.js";
import { createOpenAiChatProvider } from "../../support/openai-chat.js";
import { failureOf } from "../../support/provider-calls.js";
import { errorReply, flood, hang, json, raw, sse } from "../../support/upstream-replies.js";

const BODY: ChatBody = { model: "sluice/chat", messages: [{ role: "user", content: "Hi" }], temperature: 0.5, odd: { field: [1] } };
const API_KEY = "vendor-key-0123456789";

let upstream: FakeUpstream;
let provider: ChatProvider & { close(): Promise<void> };
beforeEach(async () => {
  upstream = await startFakeUpstream();
  provider = connect();
});
afterEach(async () => {
  await upstream.close();
  await provider.close();
});

function connect(options: Partial<OpenAiUpstream> = {}) {
  const timeouts = { connectMs: 10_000, idleMs: 20_000, totalMs: 60_000 };
  return createOpenAiChatProvider({ baseUrl: upstream.baseUrl, apiKey: API_KEY, timeouts, ...options });
}

function call(body: ChatBody = BODY, signal = new AbortController().signal) {
  return { upstreamModel: "gpt-mock", body, signal };
}

describe("D the request to the upstream", () => {
  it("is the caller's body with the model replaced and nothing streamed", async () => {
    await provider.complete(call({ ...BODY, stream: true, stream_options: { include_usage: true } }));
    const request = await upstream.nextRequest();

    expect(request).toMatchObject({ method: "POST", path: "/v1/chat/completions" });
    expect(request.json).toEqual({ ...BODY, model: "gpt-mock", stream: false });
    expect(request.headers).toMatchObject({
      authorization: `Bearer ${API_KEY}`,
      "content-type": "application/json",
      "accept-encoding": "identity",
    });
  });

  it("asks every stream for usage and keeps the caller's other stream options", async () => {
    await provider.stream(call({ ...BODY, stream_options: { include_usage: false, include_obfuscation: false } }));
    await provider.stream(call());

    expect((await upstream.nextRequest()).json).toEqual({
      ...BODY,
      model: "gpt-mock",
      stream: true,
      stream_options: { include_usage: true, include_obfuscation: false },
    });
    expect((await upstream.nextRequest()).json).toMatchObject({ stream: true, stream_options: { include_usage: true } });
  });

  it("leaves stream options out for an upstream that refuses them", async () => {
    const old = connect({ dialect: { ...COMMON, streamOptions: false } });

    await old.stream(call({ ...BODY, stream_options: { include_usage: true } }));

    expect((await upstream.nextRequest()).json).toEqual({ ...BODY, model: "gpt-mock", stream: true });
    await old.close();
  });

  it("carries configured headers, a base URL's path and query, and no key when none is configured", async () => {
    const azure = connect({ baseUrl: `${upstream.baseUrl}/deployments/x/?api-version=1`, apiKey: null, headers: { "Api-Key": "k" } });

    await azure.complete(call());
    const request = await upstream.nextRequest();

    expect(request.path).toBe("/v1/deployments/x/chat/completions?api-version=1");
    expect(request.headers["api-key"]).toBe("k");
    expect(request.headers.authorization).toBeUndefined();
    await azure.close();
  });
});

describe("a whole answer", () => {
  it("comes back byte for byte, parsed, with its usage", async () => {
    const text = `${JSON.stringify(chatCompletion({ content: "ä🎉" }), null, 2)}\n`;
    upstream.replyNext(json(text));

    const answer = await provider.complete(call());

    expect(Buffer.from(answer.bytes).toString()).toBe(text);
    expect(answer.completion.choices?.[0]?.message?.content).toBe("ä🎉");
    expect(answer.usage).toEqual({ ...NO_USAGE, inputTextTokens: 10, outputTextTokens: 4 });
  });

  it("has no usage when none is reported or none is plausible", async () => {
    upstream.replyNext(json(chatCompletion({ usage: null })), json(chatCompletion({ usage: wireUsage(-5, 3) })));

    expect((await provider.complete(call())).usage).toBeNull();
    expect((await provider.complete(call())).usage).toBeNull();
  });

  it("is taken without a content type", async () => {
    upstream.replyNext(raw(JSON.stringify(chatCompletion())));

    expect((await provider.complete(call())).usage).not.toBeNull();
  });

  it.each([
    ["a page", raw("<html>Hello</html>", { headers: { "content-type": "text/html" } })],
    ["a page that says it is JSON", json("<html>Hello</html>")],
    ["nothing", json("")],
    ["half an object", json('{"choices":[')],
    ["a list", json([chatCompletion()])],
    ["null", json("null")],
    ["an object without choices", json({ id: "x" })],
    ["choices that are no list", json({ choices: {} })],
    ["choices that cannot be read", json({ choices: [null] })],
    ["a message that cannot be read", json({ choices: [{ message: "hello" }] })],
    ["tool calls that cannot be read", json({ choices: [{ message: { tool_calls: [null] } }] })],
    ["an answer nested beyond any answer", json(`{"choices":[],"x":${"[".repeat(200)}${"]".repeat(200)}}`)],
    ["a redirect", raw("", { status: 307, headers: { location: "http://169.254.169.254/" } })],
    ["a body without end", flood("x".repeat(65_536))],
    ["a bomb", flood(Buffer.alloc(65_536), { headers: { "content-type": "application/json", "content-encoding": "gzip" } })],
  ])("that is %s is an invalid response", async (_name, reply) => {
    upstream.replyNext(reply);

    expect((await failureOf(provider.complete(call()))).kind).toBe("invalid-response");
    expect(upstream.requests).toHaveLength(1);
  });

  it("that holds an error is the upstream's error although its status is 200", async () => {
    upstream.replyNext(json({ error: { code: 429, message: "Slow down." } }), json({ ...errorBody("Oops."), choices: [] }));

    expect(await failureOf(provider.complete(call()))).toMatchObject({ kind: "status", status: 429, upstreamMessage: "Slow down." });
    expect(await failureOf(provider.complete(call()))).toMatchObject({ kind: "status", status: 400, upstreamMessage: "Oops." });
  });
});

describe("a refusal", () => {
  it.each([400, 401, 402, 403, 404, 408, 409, 413, 415, 422, 429, 500, 502, 503, 504, 524])("with %i keeps its status", async (status) => {
    upstream.replyNext(errorReply(status, `Says ${status} to ${API_KEY}.`, "temperature"), errorReply(status));

    const error = await failureOf(provider.complete(call()));
    const streamed = await failureOf(provider.stream(call()));

    expect(error).toMatchObject({
      kind: "status",
      status,
      upstreamMessage: `Says ${status} to [redacted].`,
      upstreamParam: "temperature",
    });
    expect(streamed).toMatchObject({ kind: "status", status });
  });

  it("keeps its status when its body is a page, never comes, or never ends", async () => {
    const hasty = connect({ timeouts: { connectMs: 10_000, idleMs: 300, totalMs: 10_000 } });
    upstream.replyNext(
      raw("<html>Bad gateway</html>", { status: 502, headers: { "content-type": "text/html" } }),
      sse([], { status: 503, end: "hang" }),
    );
    const page = await failureOf(hasty.complete(call()));
    const silent = await failureOf(hasty.stream(call()));

    expect(page).toMatchObject({ status: 502, upstreamMessage: undefined });
    expect(silent).toMatchObject({ status: 503, upstreamMessage: undefined });
    await hasty.close();
  });

  it("is given up when the caller leaves while its body is awaited", async () => {
    upstream.replyNext(sse([], { status: 500, end: "hang" }));
    const controller = new AbortController();

    const waiting = provider.complete(call(BODY, controller.signal));
    const request = await upstream.nextRequest();
    controller.abort(new Error("gone"));

    await expect(waiting).rejects.toThrow("gone");
    await request.closedByClient;
  });
});

describe("time and leaving", () => {
  it("times out when an answer does not begin", async () => {
    const hasty = connect({ timeouts: { connectMs: 10_000, idleMs: 300, totalMs: 2_000 } });
    upstream.replyAlways(hang());

    const [whole, streamed] = await Promise.all([failureOf(hasty.complete(call())), failureOf(hasty.stream(call()))]);

    expect([whole.kind, streamed.kind]).toEqual(["timeout", "timeout"]);
    await hasty.close();
  });

  it("does not take a whole answer that thinks longer than the idle time for silent", async () => {
    const hasty = connect({ timeouts: { connectMs: 10_000, idleMs: 50, totalMs: 20_000 } });
    upstream.replyNext(json(chatCompletion(), { delayMs: 1_500 }));

    expect((await hasty.complete(call())).usage).not.toBeNull();
    await hasty.close();
  });

  it("rejects with the signal's reason, of any type, and closes the connection", async () => {
    const controller = new AbortController();
    upstream.replyNext(hang());

    const waiting = provider.complete(call(BODY, controller.signal));
    const request = await upstream.nextRequest();
    controller.abort("the caller has gone");

    await expect(waiting).rejects.toBe("the caller has gone");
    await request.closedByClient;
  });
});
