/** Reports of usage before the end of an answer cover the pieces before them, and no more. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { countChatTokens } from "../../src/formats/openai-chat/count.js";
import { countTextTokens } from "../../src/lib/tokenizer.js";
import { subscribeSse } from "../graphql/client.js";
import { StreamChatInFullDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { createMember, registerModel } from "../support/community-models.js";
import { followNextRequest } from "../support/leaving.js";
import { chatChunk, chatChunks, chatCompletion, usageChunk, wireUsage } from "../support/openai-bodies.js";
import { responseObject, textItem } from "../support/responses-bodies.js";
import { json, type Reply, sse, waitFor } from "../support/upstream-replies.js";
import { booksWith, CREDIT, chat, createPayer, parseEvents, readStream, summarize } from "./money.js";

const PIECE = "alpha beta gamma delta epsilon zeta eta theta iota kappa ";
const COUNT = 30;
const TEXT = PIECE.repeat(COUNT);
const OUTPUT_TOKENS = countTextTokens(TEXT);
/** As upstreams count them one by one. */
const PIECE_TOKENS = 13;
const PROMPT_TOKENS = countChatTokens([{ role: "user", content: "Hello" }]);
/** Nanocredits for a token. */
const [PROMPT_PRICE, COMPLETION_PRICE] = [1_000n, 5_000n];
const ZEROS = wireUsage(0, 0);

let app: TestApp;

beforeAll(async () => {
  const prices = { promptTextPrice: "0.000001", completionTextPrice: "0.000005" };
  const plain = { modality: "text", title: "Plain", upstreamModel: "plain", prices };
  app = await createTestApp({
    config: { upstreamAllowHosts: ["127.0.0.1"] },
    models: [
      { ...plain, id: "fake/plain", upstream: "acme" },
      { ...plain, id: "fake/other", upstream: "acme" },
      { ...plain, id: "fake/hidden", upstream: "acme" },
      { ...plain, id: "fake/free", upstream: "acme", prices: { promptTextPrice: "0", completionTextPrice: "0" } },
      { ...plain, id: "fake/dear", upstream: "acme", prices: { promptTextPrice: "0", completionTextPrice: "1" } },
    ],
  });
});
afterAll(() => app.close());

/** `usage` of each chunk by its number, from 0; undefined leaves the field out. */
function chunksWith(usageOf: (index: number) => unknown): Record<string, unknown>[] {
  return Array.from({ length: COUNT }, (_, index) => {
    const usage = usageOf(index);
    return { ...chatChunk({ content: PIECE }), ...(usage !== undefined && { usage }) };
  });
}

function costOf(inputTokens: number, outputTokens: number): bigint {
  return BigInt(inputTokens) * PROMPT_PRICE + BigInt(outputTokens) * COMPLETION_PRICE;
}

/** The report, and the charge of a caller who leaves after all 30 pieces: tokens in, tokens out, and their source. */
const LEFT: readonly (readonly [string, (index: number) => unknown, number, number, string])[] = [
  ["nothing", () => undefined, PROMPT_TOKENS, OUTPUT_TOKENS, "partial"],
  ["null", () => null, PROMPT_TOKENS, OUTPUT_TOKENS, "partial"],
  ["zeros in every chunk", () => ZEROS, PROMPT_TOKENS, OUTPUT_TOKENS, "partial"],
  ["zeros in the first chunk only", (index) => (index === 0 ? ZEROS : undefined), PROMPT_TOKENS, OUTPUT_TOKENS, "partial"],
  ["the prompt in the first chunk only", (index) => (index === 0 ? wireUsage(1_000, 0) : undefined), 1_000, OUTPUT_TOKENS, "partial"],
  ["a total in the middle", (index) => (index === 14 ? wireUsage(1_000, 15 * PIECE_TOKENS) : undefined), 1_000, OUTPUT_TOKENS, "partial"],
  ["running totals", (index) => wireUsage(1_000, (index + 1) * PIECE_TOKENS), 1_000, COUNT * PIECE_TOKENS, "provider"],
  [
    "running totals, then zeros",
    (index) => (index === COUNT - 1 ? ZEROS : wireUsage(1_000, (index + 1) * PIECE_TOKENS)),
    1_000,
    OUTPUT_TOKENS,
    "partial",
  ],
];

const FACES = ["/v1/chat/completions", "/v1/responses", "GraphQL"] as const;

describe.each(FACES)("a caller who leaves a stream of %s", (face) => {
  it.each(LEFT)(
    "is charged the larger of the last report and the count: %s",
    async (_, usageOf, inputTextTokens, outputTextTokens, usageSource) => {
      const payer = await createPayer(app, { pack: CREDIT });
      app.upstream.replyNext(sse(chunksWith(usageOf), { end: "hang" }));

      const leave = await readAll(face, payer.key);
      const upstreamCall = app.upstream.requests.at(-1);
      leave();

      await upstreamCall?.closedByClient;
      const { rows } = await booksWith(app, payer, 1);
      const costNanocredits = costOf(inputTextTokens, outputTextTokens);
      expect(rows).toMatchObject([{ inputTextTokens, outputTextTokens, usageSource, costNanocredits, status: "cancelled" }]);
    },
  );
});

/** Resolves when the whole text has arrived, with a function that leaves. */
async function readAll(face: (typeof FACES)[number], key: string): Promise<() => void> {
  if (face === "GraphQL") {
    const input = { model: "fake/plain", maxTokens: 5_000, messages: [{ role: "USER" as const, content: "Hello" }] };
    const live = subscribeSse({ ...app, key }, StreamChatInFullDocument, { input });
    for (let content = ""; content !== TEXT; ) {
      const answer = await live.next();
      if (answer?.data?.chatCompletion.__typename === "ChatCompletionDelta") content += answer.data.chatCompletion.content ?? "";
    }
    return () => live.leave();
  }
  const leaving = new AbortController();
  const isChat = face === "/v1/chat/completions";
  const asked = isChat
    ? { messages: [{ role: "user", content: "Hello" }], max_tokens: 5_000 }
    : { input: "Hello", max_output_tokens: 5_000 };
  const response = await fetch(`${app.baseUrl}${face}`, {
    method: "POST",
    headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
    body: JSON.stringify({ model: "fake/plain", stream: true, ...asked }),
    signal: leaving.signal,
  });
  if (isChat) await readStream(response, TEXT);
  else await readResponsesText(response);
  return () => leaving.abort();
}

async function readResponsesText(response: Response): Promise<void> {
  const decoder = new TextDecoder();
  let written = "";
  for await (const bytes of response.body ?? []) {
    written += decoder.decode(bytes, { stream: true });
    const events = parseEvents(written.slice(0, written.lastIndexOf("\n\n") + 2)).map(
      ({ data }) => data as { type?: string; delta?: string },
    );
    const text = events.map(({ type, delta }) => (type === "response.output_text.delta" ? delta : "")).join("");
    if (text === TEXT) return;
  }
  throw new Error("the stream ended before its text had come");
}

describe("a stream that its upstream breaks off", () => {
  it.each([
    ["an error event", sse([...chunksWith(() => ZEROS), { error: { message: "out of memory" } }], { done: false })],
    [
      "a lost connection",
      sse(
        chunksWith(() => ZEROS),
        { end: "cut" },
      ),
    ],
    ["a choice that failed", sse([...chunksWith(() => ZEROS), chatChunk({}, "error")])],
    ["a choice that failed, in Z.ai's word", sse([...chunksWith(() => ZEROS), chatChunk({}, "network_error")])],
  ])("is charged for its deliveries, independent of earlier reports: %s", async (_, reply) => {
    const payer = await createPayer(app, { pack: CREDIT });
    app.upstream.replyNext(reply);

    const { content, error } = summarize(await (await chat(app, payer, { model: "fake/plain", stream: true, max_tokens: 5_000 })).text());

    expect({ content, error }).toMatchObject({ content: TEXT, error: { code: "UPSTREAM_ERROR" } });
    const { rows } = await booksWith(app, payer, 1);
    expect(rows).toMatchObject([{ costNanocredits: costOf(PROMPT_TOKENS, OUTPUT_TOKENS), usageSource: "partial", status: "cancelled" }]);
  });
});

describe("a stream's delivered text", () => {
  const reasoning = { outputTextTokens: 0, outputReasoningTokens: OUTPUT_TOKENS };
  const text = { outputTextTokens: OUTPUT_TOKENS, outputReasoningTokens: 0 };

  it.each([
    ["reasoning", { reasoning_content: PIECE }, reasoning],
    ["reasoning beside an empty name", { content: "", reasoning_content: "", reasoning: PIECE }, reasoning],
    ["reasoning under two names", { reasoning_content: PIECE, reasoning: PIECE }, reasoning],
    ["reasoning in GitHub's name", { content: "", reasoning_text: PIECE }, reasoning],
    ["reasoning in Anthropic's name", { thinking: PIECE }, reasoning],
    ["reasoning in details alone", { content: "", reasoning_details: [{ type: "reasoning.text", text: PIECE }] }, reasoning],
    ["a summary of reasoning in details", { content: "", reasoning_details: [{ type: "reasoning.summary", summary: PIECE }] }, reasoning],
    ["a call of a function, as it was before tools", { function_call: { arguments: PIECE } }, text],
  ])("is counted under every field name: %s", async (_, delta, counted) => {
    const payer = await createPayer(app, { pack: CREDIT });
    const chunks = Array.from({ length: COUNT }, () => ({ ...chatChunk(delta), usage: ZEROS }));
    app.upstream.replyNext(sse([...chunks, { error: { message: "out of memory" } }], { done: false }));

    await (await chat(app, payer, { model: "fake/plain", stream: true, max_tokens: 5_000 })).text();

    const { rows } = await booksWith(app, payer, 1);
    expect(rows).toMatchObject([{ ...counted, costNanocredits: costOf(PROMPT_TOKENS, OUTPUT_TOKENS), usageSource: "partial" }]);
  });

  it("is cut at its hold under every field name", async () => {
    const payer = await createPayer(app, { pack: 100n * CREDIT });
    const call = { function_call: { name: "write", arguments: TEXT } };
    app.upstream.replyNext(sse([chatChunk(call), chatChunk({}, "function_call"), usageChunk(wireUsage(0, 500))]));

    const written = await (await chat(app, payer, { model: "fake/dear", stream: true, max_tokens: 100 })).text();

    expect(written).not.toContain(PIECE);
    const { rows } = await booksWith(app, payer, 1);
    expect(rows).toMatchObject([{ costNanocredits: 100n * CREDIT }]);
  });
});

describe("a stream that is cut at its hold", () => {
  it("is charged all of the hold, independent of earlier reports", async () => {
    const payer = await createPayer(app, { pack: 1_035n * CREDIT });
    const words = Array.from({ length: 1_200 }, () => ({ ...chatChunk({ content: " word" }), usage: ZEROS }));
    app.upstream.replyNext(sse(words, { end: "hang" }));

    const { error, usage } = summarize(await (await chat(app, payer, { model: "fake/dear", stream: true })).text());

    expect(error).toMatchObject({ code: "INSUFFICIENT_BALANCE" });
    expect(usage?.cost).toBe(1_035);
    const { rows } = await booksWith(app, payer, 1);
    expect(rows).toMatchObject([{ costNanocredits: 1_035n * CREDIT, status: "cancelled" }]);
  });
});

describe("a report at the end of an answer", () => {
  const finished = (usages: readonly unknown[]): Reply =>
    sse([...chunksWith(() => undefined), chatChunk({}, "stop"), ...usages.map((usage) => usageChunk(usage as never))]);

  it.each([
    ["zeros", [ZEROS], PROMPT_TOKENS, OUTPUT_TOKENS, "estimated"],
    ["the prompt alone", [wireUsage(1_000, 0)], 1_000, OUTPUT_TOKENS, "estimated"],
    ["a fraction of the text", [wireUsage(1_000, 40)], 1_000, OUTPUT_TOKENS, "estimated"],
    ["the totals, and then zeros", [wireUsage(1_000, 390), ZEROS], 1_000, 390, "provider"],
    ["the totals in another vocabulary", [wireUsage(1_000, 300)], 1_000, 300, "provider"],
  ] as const)("is raised to the delivered amount in a stream: %s", async (_, usages, inputTextTokens, outputTextTokens, usageSource) => {
    const payer = await createPayer(app, { pack: CREDIT });
    app.upstream.replyNext(finished(usages));

    const { isDone, usage } = summarize(await (await chat(app, payer, { model: "fake/plain", stream: true, max_tokens: 5_000 })).text());

    expect(isDone).toBe(true);
    expect(usage).toMatchObject({ prompt_tokens: inputTextTokens, completion_tokens: outputTextTokens });
    const { rows } = await booksWith(app, payer, 1);
    const costNanocredits = costOf(inputTextTokens, outputTextTokens);
    expect(rows).toMatchObject([{ inputTextTokens, outputTextTokens, usageSource, costNanocredits, status: "ok" }]);
  });

  it("is raised to the delivered amount of a whole answer, and the caller sees the charged amount", async () => {
    const payer = await createPayer(app, { pack: CREDIT });
    app.upstream.replyNext(json(chatCompletion({ content: TEXT, usage: ZEROS })));

    const response = await chat(app, payer, { model: "fake/plain", max_tokens: 5_000 });

    expect(await response.json()).toMatchObject({ usage: { prompt_tokens: PROMPT_TOKENS, completion_tokens: OUTPUT_TOKENS } });
    const { rows } = await booksWith(app, payer, 1);
    expect(rows).toMatchObject([{ costNanocredits: costOf(PROMPT_TOKENS, OUTPUT_TOKENS), usageSource: "estimated", status: "ok" }]);
  });

  it("may be zero without a delivery", async () => {
    const payer = await createPayer(app, { pack: CREDIT });
    app.upstream.replyNext(json(chatCompletion({ content: "", usage: ZEROS })));

    await (await chat(app, payer, { model: "fake/plain", max_tokens: 5_000 })).arrayBuffer();

    const { rows } = await booksWith(app, payer, 1);
    expect(rows).toMatchObject([{ costNanocredits: 0n, usageSource: "provider" }]);
  });

  it("of a free model is trusted", async () => {
    const payer = await createPayer(app);
    app.upstream.replyNext(finished([ZEROS]));

    await (await chat(app, payer, { model: "fake/free", stream: true })).text();

    const { rows } = await booksWith(app, payer, 1);
    expect(rows).toMatchObject([{ costNanocredits: 0n, usageSource: "provider", inputTextTokens: 0, outputTextTokens: 0 }]);
  });

  it("is raised to the delivered amount of a registered upstream of the Responses format", async () => {
    const [owner, payer] = [await createMember(app), await createPayer(app, { pack: CREDIT })];
    const prices = { promptTextPrice: 1_000_000n, completionTextPrice: 5_000_000n };
    const { modelId } = await registerModel(app, owner, { visibility: "public", api: "responses", ...prices });
    const usage = { input_tokens: 0, output_tokens: 0, total_tokens: 0 };
    app.upstream.replyNext(json(responseObject([textItem(TEXT)], { usage })));

    await (await chat(app, payer, { model: modelId, max_tokens: 5_000 })).arrayBuffer();

    const { rows } = await booksWith(app, payer, 1);
    expect(rows).toMatchObject([{ costNanocredits: costOf(PROMPT_TOKENS, OUTPUT_TOKENS), usageSource: "estimated" }]);
  });
});

describe("a model that reports clearly more output than it shows", () => {
  it("counts as one with hidden reasoning from then on: a stream of it that is left is read to its report", async () => {
    const payer = await createPayer(app, { pack: CREDIT });
    const ask = (signal?: AbortSignal) =>
      chat(app, payer, { model: "fake/hidden", stream: true, max_tokens: 5_000 }, signal ? { signal } : {});
    app.upstream.replyNext(sse(chatChunks(["Yes."], { usage: wireUsage(10, 900) })));
    const first = await ask();
    await first.text();
    let goOn = () => {};
    const isLeft = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    app.upstream.replyNext(sse([chatChunk({ content: "Yes." }), waitFor(isLeft), chatChunk({}, "stop"), usageChunk(wireUsage(10, 700))]));
    const leaving = new AbortController();
    const request = followNextRequest(app.baseUrl);
    const second = await ask(leaving.signal);
    await readStream(second, "Yes.");

    leaving.abort();
    await request.hasLeft();
    goOn();

    const { rows } = await booksWith(app, payer, 2);
    expect([first, second].map(({ headers }) => headers.get("x-cancel-policy"))).toEqual(["stop", "read-to-usage"]);
    expect(rows.at(-1)).toMatchObject({ outputTextTokens: 700, usageSource: "provider", status: "cancelled" });
  });

  it("is recognized apart from one that counts with another vocabulary", async () => {
    const payer = await createPayer(app, { pack: CREDIT });
    app.upstream.replyNext(sse([...chunksWith(() => undefined), chatChunk({}, "stop"), usageChunk(wireUsage(10, 700))]));
    await (await chat(app, payer, { model: "fake/other", stream: true, max_tokens: 5_000 })).text();
    app.upstream.replyNext(sse(chatChunks(["Yes."])));

    const { headers } = await chat(app, payer, { model: "fake/other", stream: true, max_tokens: 5_000 });

    expect(headers.get("x-cancel-policy")).toBe("stop");
  });
});
