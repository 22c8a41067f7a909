/** Streams that stop early: left by the caller, cut by the upstream, or stopped without credits. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { countChatTokens } from "../../src/formats/openai-chat/count.js";
import { countTextTokens } from "../../src/lib/tokenizer.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { chatChunk, chatChunks, chatCompletion, usageChunk, wireUsage } from "../support/openai-bodies.js";
import { event, hang, json, type Reply, sse } from "../support/upstream-replies.js";
import { booksWith, CREDIT, chat, closeBooks, createPayer, type Payer, readStream, summarize, writtenOff } from "./money.js";

const PIECES = [" alpha", " beta", " gamma", " delta", " epsilon"];
const PROMPT_TOKENS = countChatTokens([{ role: "user", content: "Hello" }]);
/** Nanocredits for each token of `acme/chat`. */
const PROMPT_PRICE = 1_000n;
const COMPLETION_PRICE = 2_000n;
const REASONING_PRICE = 4_000n;

let app: TestApp;

beforeAll(async () => {
  const model = (id: string) => ({ id, modality: "text", upstream: "acme", upstreamModel: id.slice(5), title: id });
  app = await createTestApp({
    models: [1, 2, 3, 4].map((number) => ({ ...model(`acme/dear-${number}`), prices: { promptTextPrice: "0", completionTextPrice: "1" } })),
  });
});
afterAll(() => app.close());

/** The role, these pieces, and then nothing until the caller leaves. */
function unfinished(pieces: readonly string[]): Reply {
  const deltas = pieces.map((content) => chatChunk({ content }));
  return sse([chatChunk({ role: "assistant", content: "" }), ...deltas], { end: "hang" });
}

/** Resolves when the gateway, which runs in this process, has the headers of the upstream's next answer. */
function headersFromUpstream(): Promise<void> {
  return new Promise((resolve) => {
    const name = "undici:request:headers";
    const onHeaders = (message: unknown) => {
      const { request } = message as { request: { origin: string | URL } };
      if (new URL(request.origin).port !== String(app.upstream.port)) return;
      unsubscribe(name, onHeaders);
      // They are handed on within this turn of the event loop.
      setImmediate(resolve);
    };
    subscribe(name, onHeaders);
  });
}

function costOf(outputTokens: number): bigint {
  return BigInt(PROMPT_TOKENS) * PROMPT_PRICE + BigInt(outputTokens) * COMPLETION_PRICE;
}

describe("a caller who leaves a stream", () => {
  it.each([0, 1, 2, 3, 4, 5])(
    "after %i chunks of text is charged once, for the prompt and the delivered part, and the upstream is closed",
    async (count) => {
      const payer = await createPayer(app, { pack: CREDIT });
      const delivered = PIECES.slice(0, count).join("");
      app.upstream.replyNext(unfinished(PIECES.slice(0, count)));
      const leaving = new AbortController();

      const response = await chat(app, payer, { model: "acme/chat", stream: true }, { signal: leaving.signal });
      const request = app.upstream.requests.at(-1);
      await readStream(response, delivered);
      leaving.abort();

      await request?.closedByClient;
      const { rows, account } = await booksWith(app, payer, 1);
      const cost = costOf(countTextTokens(delivered));
      expect(rows).toMatchObject([
        {
          id: response.headers.get("x-generation-id"),
          costNanocredits: cost,
          status: "cancelled",
          usageSource: "partial",
          inputTextTokens: PROMPT_TOKENS,
          outputTextTokens: countTextTokens(delivered),
        },
      ]);
      expect(account.buckets.pack).toBe(CREDIT - cost);
    },
  );

  it("before its first byte pays for the prompt that the upstream has read", async () => {
    const payer = await createPayer(app, { pack: CREDIT });
    const leaving = new AbortController();
    app.upstream.replyNext(sse([], { end: "hang" }));
    const accepted = headersFromUpstream();
    const asking = chat(app, payer, { model: "acme/chat", stream: true }, { signal: leaving.signal }).catch(() => null);
    await accepted;

    leaving.abort();
    await asking;

    await app.upstream.requests.at(-1)?.closedByClient;
    const { rows } = await booksWith(app, payer, 1);
    expect(rows).toMatchObject([{ costNanocredits: BigInt(PROMPT_TOKENS) * PROMPT_PRICE, status: "cancelled", usageSource: "partial" }]);
  });

  it("or waits for an upstream that never answers is charged nothing", async () => {
    const payer = await createPayer(app, { pack: CREDIT });
    const leaving = new AbortController();
    app.upstream.replyNext(hang());
    const calls = app.upstream.requests.length;
    const asking = chat(app, payer, { model: "acme/chat", stream: true }, { signal: leaving.signal }).catch(() => null);
    await expect.poll(() => app.upstream.requests.length).toBe(calls + 1);

    leaving.abort();
    await asking;

    await app.upstream.requests.at(-1)?.closedByClient;
    const { rows, account } = await closeBooks(app, payer);
    expect(rows).toEqual([]);
    expect(account.buckets.pack).toBe(CREDIT);
  });

  it("is charged the upstream's report when it has arrived", async () => {
    const payer = await createPayer(app, { pack: CREDIT });
    const withUsage = { ...chatChunk({ content: PIECES[0] }), usage: wireUsage(700, 70) };
    app.upstream.replyNext(sse([withUsage, chatChunk({ content: PIECES[1] })], { end: "hang" }));
    const leaving = new AbortController();

    const response = await chat(app, payer, { model: "acme/chat", stream: true }, { signal: leaving.signal });
    await readStream(response, PIECES.slice(0, 2).join(""));
    leaving.abort();

    const { rows } = await booksWith(app, payer, 1);
    // 700 x 1,000 + 70 x 2,000
    expect(rows).toMatchObject([{ costNanocredits: 840_000n, status: "cancelled", usageSource: "provider" }]);
  });
});

describe("an upstream that cuts a stream", () => {
  const text = PIECES.join("");

  async function readCut(payer: Payer, reply: Reply) {
    app.upstream.replyNext(reply);
    const response = await chat(app, payer, { model: "acme/chat", stream: true });
    expect(response.status).toBe(200);
    return summarize(await response.text());
  }

  it.each([
    ["the connection is lost", sse(chatChunks(PIECES).slice(0, -2), { end: "cut" })],
    ["the body ends without a finish_reason", sse(chatChunks(PIECES).slice(0, -2), { done: false })],
    ["an error event comes", sse([...chatChunks(PIECES).slice(0, -2), { error: { message: "out of memory" } }], { done: false })],
    ["something unreadable comes", sse([...chatChunks(PIECES).slice(0, -2), event("{not json")], { done: false })],
  ])("is reported as an error event, and the delivered part is charged: %s", async (_, reply) => {
    const payer = await createPayer(app, { pack: CREDIT });

    const { content, isDone, error } = await readCut(payer, reply);

    expect(content).toBe(text);
    expect(isDone).toBe(false);
    expect(error).toMatchObject({ code: "UPSTREAM_ERROR" });
    const { rows } = await booksWith(app, payer, 1);
    expect(rows).toMatchObject([{ costNanocredits: costOf(countTextTokens(text)), status: "cancelled", usageSource: "partial" }]);
  });

  it("after reasoning and a tool call is paid for those at their prices", async () => {
    const payer = await createPayer(app, { pack: CREDIT });
    const reasoning = "Let me think about the weather in Paris.";
    const call = { name: "get_weather", arguments: '{"city":"Paris"}' };

    await readCut(
      payer,
      sse(
        [chatChunk({ reasoning_content: reasoning }), chatChunk({ tool_calls: [{ index: 0, id: "1", type: "function", function: call }] })],
        {
          end: "cut",
        },
      ),
    );

    const { rows } = await booksWith(app, payer, 1);
    const reasoningTokens = countTextTokens(reasoning);
    const callTokens = countTextTokens(call.name + call.arguments);
    expect(rows).toMatchObject([{ outputReasoningTokens: reasoningTokens, outputTextTokens: callTokens }]);
    expect(rows[0]?.costNanocredits).toBe(costOf(callTokens) + BigInt(reasoningTokens) * REASONING_PRICE);
  });

  it("before any delivery is paid nothing", async () => {
    const payer = await createPayer(app, { pack: CREDIT });
    app.upstream.replyNext(sse([chatChunk({ role: "assistant", content: "" })], { end: "cut" }));

    await (await chat(app, payer, { model: "acme/chat", stream: true })).arrayBuffer();

    expect((await closeBooks(app, payer)).rows).toEqual([]);
  });

  it("when it was whole but for [DONE] is paid in full", async () => {
    const payer = await createPayer(app, { pack: CREDIT });

    const { isDone, usage } = await readCut(payer, sse(chatChunks(PIECES, { usage: wireUsage(100, 10) }), { done: false }));

    expect(isDone).toBe(true);
    expect(usage?.cost).toBe(0.00012);
    const { rows } = await booksWith(app, payer, 1);
    expect(rows).toMatchObject([{ costNanocredits: 120_000n, status: "ok", usageSource: "provider" }]);
  });
});

describe("a long stream without a limit", () => {
  /** One token each, one credit each with `acme/dear`. */
  const words = (count: number) => Array<string>(count).fill(" word");

  /** The payer's answers are known to have 10 tokens, so that 10 credits are held at first. */
  async function createTaughtPayer(model: string, { pack, budget }: { pack: bigint; budget?: bigint }): Promise<Payer> {
    const taught = 30n * CREDIT;
    const payer = await createPayer(app, { pack: pack + taught, ...(budget !== undefined && { budget: budget + taught }) });
    for (let answer = 0; answer < 3; answer += 1) {
      app.upstream.replyNext(json(chatCompletion({ usage: wireUsage(0, 10) })));
      await (await chat(app, payer, { model, max_tokens: 10 })).arrayBuffer();
    }
    return payer;
  }

  it("has its hold extended while there is money, and is charged for all of it", async () => {
    const payer = await createTaughtPayer("acme/dear-1", { pack: 1_000n * CREDIT });
    app.upstream.replyNext(sse(chatChunks(words(200), { usage: wireUsage(0, 200) }), { paceMs: 1 }));

    const response = await chat(app, payer, { model: "acme/dear-1", stream: true });
    const { content, isDone, usage } = summarize(await response.text());

    expect(content).toBe(words(200).join(""));
    expect(isDone).toBe(true);
    expect(usage?.cost).toBe(200);
    const { rows, account } = await closeBooks(app, payer);
    expect(rows.at(-1)).toMatchObject({ costNanocredits: 200n * CREDIT, status: "ok" });
    expect(account.buckets.pack).toBe(800n * CREDIT);
  });

  it.each([
    ["balance", { pack: 35n * CREDIT }, "INSUFFICIENT_BALANCE", "acme/dear-2"],
    ["key's budget", { pack: 1_000n * CREDIT, budget: 35n * CREDIT }, "KEY_BUDGET_EXHAUSTED", "acme/dear-3"],
  ])("stops when the %s is used up, to the last credit, and says so", async (_, credits, code, model) => {
    const payer = await createTaughtPayer(model, credits);
    app.upstream.replyNext(
      sse(
        words(300).map((content) => chatChunk({ content })),
        { paceMs: 2, end: "hang" },
      ),
    );

    const response = await chat(app, payer, { model, stream: true });
    const request = app.upstream.requests.at(-1);
    const { content, isDone, usage, finishReason, error } = summarize(await response.text());

    expect({ isDone, finishReason, error }).toMatchObject({ isDone: false, finishReason: "length", error: { code } });
    expect(usage?.cost).toBe(35);
    await request?.closedByClient;
    const { rows, key } = await booksWith(app, payer, 4);
    expect(rows.at(-1)).toMatchObject({ costNanocredits: 35n * CREDIT, status: "cancelled" });
    expect(key.spent).toBe(65n * CREDIT);
    // The paid part of the last read from the upstream.
    expect(countTextTokens(content)).toBe(35);
    expect(await writtenOff(app, rows.at(-1)?.id ?? "")).toBe(0n);
  });

  it("is delivered only as far as it is paid by an upstream that is faster than the database", async () => {
    const payer = await createTaughtPayer("acme/dear-4", { pack: 35n * CREDIT });
    // Some 2 MB, far more than one read brings.
    const flood = words(10_000).map((content) => chatChunk({ content }));
    app.upstream.replyNext(sse([...flood, chatChunk({}, "length"), usageChunk(wireUsage(0, 10_000))]));

    const response = await chat(app, payer, { model: "acme/dear-4", stream: true });
    const { content, finishReason, error } = summarize(await response.text());

    expect({ finishReason, error }).toMatchObject({ finishReason: "length", error: { code: "INSUFFICIENT_BALANCE" } });
    expect(countTextTokens(content)).toBe(35);
    expect((await booksWith(app, payer, 4)).rows.at(-1)).toMatchObject({ costNanocredits: 35n * CREDIT });
  });

  it("is refused when it states a limit that its credits pay as text, but not as the reasoning that it may be", async () => {
    // 100 tokens of text cost 200,000, of reasoning 400,000.
    const payer = await createPayer(app, { pack: 300_000n });
    const calls = app.upstream.requests.length;

    const response = await chat(app, payer, { model: "acme/chat", stream: true, max_tokens: 100 });

    expect([response.status, await response.json()]).toMatchObject([402, { error: { code: "INSUFFICIENT_BALANCE" } }]);
    expect(app.upstream.requests.length).toBe(calls);
  });

  it("is left alone when it uses up, to the last token, the hold of its stated limit", async () => {
    const payer = await createPayer(app, { pack: 20n * CREDIT });
    app.upstream.replyNext(sse(chatChunks(words(20), { usage: wireUsage(0, 20), finishReason: "length" }), { paceMs: 2 }));

    const response = await chat(app, payer, { model: "acme/dear", stream: true, max_tokens: 20 });

    expect(summarize(await response.text())).toMatchObject({ isDone: true, error: null, usage: { cost: 20 } });
    expect((await closeBooks(app, payer)).account.buckets.pack).toBe(0n);
  });
});
