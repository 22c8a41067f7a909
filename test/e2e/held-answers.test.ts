/**
 * A caller receives no more than the hold pays for, and pays for an answer that an upstream has begun
 * (docs/spec/credits.md).
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { followNextRequest } from "../support/leaving.js";
import { chatChunk, chatChunks, chatCompletion, usageChunk, wireUsage } from "../support/openai-bodies.js";
import { errorReply, gated, handler, json, type Reply, sse } from "../support/upstream-replies.js";
import { booksWith, CREDIT, chat, closeBooks, createPayer, databaseOf, type Payer, readStream, summarize, writtenOff } from "./money.js";

/** Credits of one output token, in nanocredits: an answer of 5,000 tokens costs 5 credits. */
const TOKEN = CREDIT / 1_000n;
const ANSWER_TOKENS = 5_000;

let app: TestApp;

beforeAll(async () => {
  const model = (id: string, more: object) => ({ id, modality: "text", upstream: "acme", upstreamModel: id.slice(5), title: id, ...more });
  const prices = { promptTextPrice: "0", completionTextPrice: "0.001" };
  app = await createTestApp({
    models: [
      // One for each test: what an account is answered also says where others begin.
      ...["long", "heedless", "steered", "bound", "share", "strict", "piece", "left", "refused"].map((name) =>
        model(`acme/${name}`, { prices }),
      ),
      model("acme/short", { prices, maxOutputTokens: 100 }),
      ...["thinker", "reporting", "silent"].map((name) => model(`acme/${name}`, { prices, capabilities: ["reasoning"] })),
      model("acme/speaker", { prices: { ...prices, completionAudioPrice: "0.002" }, outputModalities: ["text", "audio"] }),
      model("acme/reader", { prices: { promptTextPrice: "0.001", completionTextPrice: "0" } }),
    ],
  });
});
afterAll(() => app.close());

interface Asked {
  readonly max_tokens?: number;
  readonly max_completion_tokens?: number;
  readonly n?: number;
}

/** An upstream that writes long answers, up to its token limit, and reports their length. */
function writesAtLength(heeds = true): Reply {
  return handler((request, response) => {
    const asked = request.json as Asked;
    const cap = heeds ? (asked.max_tokens ?? asked.max_completion_tokens ?? ANSWER_TOKENS) : ANSWER_TOKENS;
    const tokens = Math.min(cap, ANSWER_TOKENS);
    const content = " word".repeat(tokens);
    const completion = chatCompletion({ content, usage: wireUsage(0, tokens), finishReason: tokens < ANSWER_TOKENS ? "length" : "stop" });
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(completion));
  });
}

interface Delivered {
  readonly refused: number;
  readonly tokens: number;
}

/** Concurrent callers and their answers. */
async function askAtOnce(payer: Payer, count: number, body: object): Promise<Delivered> {
  const answers = await Promise.all(
    Array.from({ length: count }, async () => {
      const response = await chat(app, payer, body);
      const { choices } = (await response.json()) as { choices?: { message: { content: string } }[] };
      return { status: response.status, tokens: (choices?.[0]?.message.content.length ?? 0) / " word".length };
    }),
  );
  return {
    refused: answers.filter(({ status }) => status === 402).length,
    tokens: answers.reduce((sum, { tokens }) => sum + tokens, 0),
  };
}

async function writeOffs(payer: Payer): Promise<bigint> {
  const rows = await databaseOf(app).prisma.usageRecord.findMany({ where: { accountId: payer.accountId } });
  const each = await Promise.all(rows.map(({ id }) => writtenOff(app, id)));
  return each.reduce((sum, amount) => sum + amount, 0n);
}

describe("forty concurrent callers with one credit among them", () => {
  it.each([
    ["an upstream that heeds its bound", "acme/long", true],
    ["an upstream that does not", "acme/heedless", false],
    ["a mean that another account has driven down", "acme/steered", true],
  ])("receive together as much as one credit pays, with %s", async (_, model, heeds) => {
    if (model === "acme/steered") {
      const steering = await createPayer(app, { pack: 100n * CREDIT });
      app.upstream.replyAlways(json(chatCompletion({ content: "a", usage: wireUsage(0, 1) })));
      await Promise.all(Array.from({ length: 20 }, () => chat(app, steering, { model, max_tokens: 1 })));
    }
    const payer = await createPayer(app, { pack: CREDIT });
    app.upstream.replyAlways(writesAtLength(heeds));

    // A hold from a tenth of a credit is less than four answers of a new account.
    const first = await askAtOnce(payer, 1, { model, max_tokens: 100 });
    const delivered = await askAtOnce(payer, 40, { model });

    app.upstream.replyAlways(null);
    const { account } = await closeBooks(app, payer);
    const charged = CREDIT - account.buckets.pack;
    expect(BigInt(Math.ceil(first.tokens + delivered.tokens)) * TOKEN).toBeLessThanOrEqual(charged);
    expect(charged).toBeLessThanOrEqual(CREDIT);
    // No caller pays much more than they receive, either: tokens are counted in the same way here.
    expect(BigInt(Math.ceil(first.tokens + delivered.tokens)) * TOKEN * 100n).toBeGreaterThanOrEqual(charged * 95n);
    if (heeds) expect(await writeOffs(payer)).toBe(0n);
  });
});

describe("a whole answer without a limit", () => {
  it("is limited to its hold, and says that it was cut", async () => {
    const payer = await createPayer(app, { pack: 20n * CREDIT });
    app.upstream.replyNext(writesAtLength());

    const response = await chat(app, payer, { model: "acme/bound" });

    const asked = app.upstream.requests.at(-1)?.json as Asked;
    // Four times the 1,000 tokens that are assumed; a tenth of 20 credits is less.
    expect(asked.max_tokens).toBe(4_000);
    expect(response.headers.get("x-held")).toBe("4");
    expect(response.headers.get("x-warnings")).toContain("cut at 4000 output tokens");
    expect(await response.json()).toMatchObject({ choices: [{ finish_reason: "length" }] });
    expect((await booksWith(app, payer, 1)).rows).toMatchObject([{ costNanocredits: 4n * CREDIT, outputTextTokens: 4_000 }]);
  });

  it("is refused without the credits for its hold, and says what to do", async () => {
    const payer = await createPayer(app, { pack: CREDIT });

    const refused = await chat(app, payer, { model: "acme/refused" });

    const { error } = (await refused.json()) as { error: { code: string; message: string } };
    expect([refused.status, error.code]).toEqual([402, "INSUFFICIENT_BALANCE"]);
    expect(error.message).toContain("(4 credits needed, 1 available): set max_tokens or top up the account.");
  });

  it("holds at most a tenth of the available balance, known or not", async () => {
    const payer = await createPayer(app, { pack: 100n * CREDIT });
    const held: (string | null)[] = [];
    for (let answer = 0; answer < 2; answer += 1) {
      app.upstream.replyNext(json(chatCompletion({ usage: wireUsage(0, 1_000) })));
      held.push((await chat(app, payer, { model: "acme/share" })).headers.get("x-held"));
    }

    expect(held).toEqual(["10", "9.9"]);
    expect(app.upstream.requests.slice(-2).map(({ json: asked }) => (asked as Asked).max_tokens)).toEqual([10_000, 9_900]);
  });

  it("needs no bound when its hold covers the longest answer of the model", async () => {
    const payer = await createPayer(app, { pack: 10n * CREDIT });
    app.upstream.replyNext(json(chatCompletion({ usage: wireUsage(0, 100) })));

    const response = await chat(app, payer, { model: "acme/short" });

    expect(response.headers.get("x-held")).toBe("0.1");
    expect(app.upstream.requests.at(-1)?.json).not.toHaveProperty("max_tokens");
  });

  it("is requested again with less where the upstream refuses such a limit, and with that at once from then on", async () => {
    const payer = await createPayer(app, { pack: 1_000n * CREDIT });
    const tooMuch = errorReply(400, "max_tokens is too large: 100000. This model supports at most 16384 completion tokens.", "max_tokens");
    const answer = () => json(chatCompletion({ usage: wireUsage(0, 10) }));
    app.upstream.replyNext(tooMuch, tooMuch, answer(), answer());
    const before = app.upstream.requests.length;

    const ask = () => chat(app, payer, { model: "acme/strict" });
    const responses = [await ask(), await ask()];

    expect(responses.map(({ status }) => status)).toEqual([200, 200]);
    const bounds = app.upstream.requests.slice(before).map(({ json: asked }) => (asked as Asked).max_tokens);
    expect(bounds).toEqual([100_000, 32_768, 16_384, 16_384]);
  });

  it.each([
    ["functions", { functions: [{ name: "look", description: " word".repeat(1_000) }] }],
    ["tools", { tools: [{ type: "function", function: { name: "look", description: " word".repeat(1_000) } }] }],
    ["a schema", { response_format: { type: "json_schema", json_schema: { name: "it", schema: { description: " word".repeat(1_000) } } } }],
    ["an unknown field", { documents: [{ text: " word".repeat(1_000) }] }],
    ["a document of unknown size", { messages: [{ role: "user", content: [{ type: "file", file: { file_id: "file-1" } }] }] }],
  ])("holds the input that its model reads of %s", async (_, body) => {
    const payer = await createPayer(app, { pack: CREDIT });
    const calls = app.upstream.requests.length;

    const response = await chat(app, payer, { model: "acme/reader", ...body });

    expect(response.status).toBe(402);
    expect(app.upstream.requests.length).toBe(calls);
  });
});

describe("a stream", () => {
  it("that arrives in one piece is cut at its hold", async () => {
    const payer = await createPayer(app, { pack: 2n * CREDIT });
    app.upstream.replyNext(json(chatCompletion({ content: " word".repeat(ANSWER_TOKENS), usage: null })));

    const { content, finishReason, error } = summarize(await (await chat(app, payer, { model: "acme/piece", stream: true })).text());

    expect({ finishReason, error }).toMatchObject({ finishReason: "length", error: { code: "INSUFFICIENT_BALANCE" } });
    expect(content.length / " word".length).toBeLessThanOrEqual(2_000);
    expect(content.length / " word".length).toBeGreaterThan(1_900);
    const { rows, account } = await booksWith(app, payer, 1);
    expect([rows[0]?.costNanocredits, account.buckets.pack]).toEqual([2n * CREDIT, 0n]);
  });

  it("of a model with hidden thoughts is limited like a whole answer", async () => {
    const payer = await createPayer(app, { pack: 20n * CREDIT });
    app.upstream.replyNext(sse(chatChunks(["Done."], { usage: wireUsage(0, 3_000) })));

    await (await chat(app, payer, { model: "acme/thinker", stream: true })).text();

    expect(app.upstream.requests.at(-1)?.json).toMatchObject({ max_tokens: 4_000, stream: true });
    expect((await booksWith(app, payer, 1)).rows).toMatchObject([{ costNanocredits: 3n * CREDIT }]);
  });

  it.each([
    ["reports at its end", "acme/reporting", [usageChunk(wireUsage(0, 3_000))], 3n * CREDIT, "provider"],
    ["never reports", "acme/silent", [], CREDIT, "partial"],
  ])("of such a model that is left and %s is charged for its thoughts", async (_, model, report, cost, source) => {
    const payer = await createPayer(app, { pack: 20n * CREDIT });
    let open: () => void = () => undefined;
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    const rest = [chatChunk({}, "stop"), ...report];
    app.upstream.replyNext(sse([chatChunk({ content: "Well" }), { do: "wait", until: opened }, ...rest]));
    const leaving = new AbortController();
    const caller = followNextRequest(app.baseUrl);
    const response = await chat(app, payer, { model, stream: true }, { signal: leaving.signal });
    await readStream(response, "Well");

    leaving.abort();
    await caller.hasLeft();
    open();

    expect((await booksWith(app, payer, 1)).rows).toMatchObject([{ costNanocredits: cost, status: "cancelled", usageSource: source }]);
  });

  it("of a model that speaks is charged for the delivered sound", async () => {
    const payer = await createPayer(app, { pack: 20n * CREDIT });
    // Two seconds of 16-bit sound at 24 kHz: 40 tokens of 50 ms at 0.002.
    const audio = { id: "audio_1", data: Buffer.alloc(96_000).toString("base64") };
    app.upstream.replyNext(sse([chatChunk({ audio }), { error: { message: "broken" } }], { done: false }));

    await (await chat(app, payer, { model: "acme/speaker", stream: true, modalities: ["text", "audio"] })).text();

    expect((await booksWith(app, payer, 1)).rows).toMatchObject([
      { costNanocredits: 80n * TOKEN, outputAudioTokens: 40, status: "cancelled" },
    ]);
  });
});

describe("a caller who leaves", () => {
  it("a whole answer pays for it when it arrives", async () => {
    const payer = await createPayer(app, { pack: 20n * CREDIT });
    const answer = gated(chatCompletion({ content: "Too late.", usage: wireUsage(0, 500) }));
    app.upstream.replyNext(answer.reply);
    const calls = app.upstream.requests.length;
    const leaving = new AbortController();
    const caller = followNextRequest(app.baseUrl);
    const asking = chat(app, payer, { model: "acme/left" }, { signal: leaving.signal }).catch(() => null);
    await expect.poll(() => app.upstream.requests.length).toBe(calls + 1);

    leaving.abort();
    await asking;
    await caller.hasLeft();
    answer.open();

    expect((await booksWith(app, payer, 1)).rows).toMatchObject([{ costNanocredits: CREDIT / 2n, status: "cancelled" }]);
  });

  it("gets no fallback, and pays nothing without an answer", async () => {
    const payer = await createPayer(app, { pack: 20n * CREDIT });
    const answer = gated({ error: { message: "broken" } }, 500);
    app.upstream.replyNext(answer.reply);
    const calls = app.upstream.requests.length;
    const leaving = new AbortController();
    const caller = followNextRequest(app.baseUrl);
    const asking = chat(app, payer, { model: "acme/with-fallback" }, { signal: leaving.signal }).catch(() => null);
    await expect.poll(() => app.upstream.requests.length).toBe(calls + 1);

    leaving.abort();
    await asking;
    await caller.hasLeft();
    answer.open();

    const { rows, account } = await closeBooks(app, payer);
    expect(rows).toEqual([]);
    expect(account.buckets.pack).toBe(20n * CREDIT);
    expect(app.upstream.requests.length).toBe(calls + 1);
  });
});
