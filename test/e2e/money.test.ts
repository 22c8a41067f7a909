/** What a chat costs, to the nanocredit: through real HTTP, from a real upstream, into the ledger. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { countChatTokens } from "../../src/formats/openai-chat/count.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { readEntries } from "../support/ledger.js";
import { chatChunks, chatCompletion, type WireUsage, wireUsage } from "../support/openai-bodies.js";
import { closeSocket, errorReply, json, type Reply, raw, sse } from "../support/upstream-replies.js";
import { CREDIT, chat, closeBooks, createPayer, type Payer, poolOf, summarize } from "./money.js";

/** "Hello" as the one message, as `chat` sends it. */
const PROMPT_TOKENS = countChatTokens([{ role: "user", content: "Hello" }]);
/** Nanocredits for each token of `acme/chat`. */
const PROMPT_PRICE = 1_000n;
const COMPLETION_PRICE = 2_000n;

let app: TestApp;

beforeAll(async () => {
  const model = (id: string, more: object) => ({ id, modality: "text", upstream: "acme", upstreamModel: id.slice(5), title: id, ...more });
  app = await createTestApp({
    models: [
      // Half a nanocredit a prompt token, a little less than half a nanocredit a completion token.
      model("acme/tiny", { prices: { promptTextPrice: "0.0000000005", completionTextPrice: "0.000000000499" } }),
      // Every kind that states no price of its own costs what its base costs; a stated 0 is free.
      model("acme/plain", { prices: { promptTextPrice: "0.000001", promptCachedPrice: "0", completionTextPrice: "0.000002" } }),
      model("acme/asked", { prices: { promptTextPrice: "0.000007", completionTextPrice: "0.000011" }, fallbacks: ["acme/cheap"] }),
      model("acme/read", { prices: { promptTextPrice: "0.00002", completionTextPrice: "0.000001" } }),
      model("acme/cheap", { prices: { promptTextPrice: "0.000001", completionTextPrice: "0.000001" } }),
    ],
  });
});
afterAll(() => app.close());

interface Charged {
  /** Of the header, or of the stream's usage, in credits. */
  readonly cost: number;
  readonly generationId: string;
  readonly usage: { readonly prompt_tokens?: number; readonly completion_tokens?: number };
}

const modes = [
  {
    mode: "a JSON answer",
    run: async (payer: Payer, model: string, usage: unknown, content = "Hello, world."): Promise<Charged> => {
      app.upstream.replyNext(json({ ...chatCompletion({ content, usage: null }), ...(usage !== null && { usage }) }));
      const response = await chat(app, payer, { model });
      expect(response.status).toBe(200);
      const body = (await response.json()) as { usage: Charged["usage"] };
      return {
        cost: Number(response.headers.get("x-cost")),
        generationId: response.headers.get("x-generation-id") ?? "",
        usage: body.usage,
      };
    },
  },
  {
    mode: "a stream",
    run: async (payer: Payer, model: string, usage: unknown, content = "Hello, world."): Promise<Charged> => {
      app.upstream.replyNext(sse(chatChunks([content], { usage: usage as WireUsage | null })));
      const response = await chat(app, payer, { model, stream: true });
      expect(response.status).toBe(200);
      const { isDone, usage: told } = summarize(await response.text());
      expect(isDone).toBe(true);
      return { cost: Number(told?.cost), generationId: response.headers.get("x-generation-id") ?? "", usage: told ?? {} };
    },
  },
];

describe.each(modes)("the cost of $mode", ({ run }) => {
  /** The answer's cost, the usage row's, the ledger's, the account's and the key's are one. */
  async function costOf(model: string, usage: unknown, content?: string) {
    const payer = await createPayer(app, { pack: CREDIT });
    const charged = await run(payer, model, usage, content);
    const { rows, account, key } = await closeBooks(app, payer);
    expect(rows.map(({ id }) => id)).toEqual([charged.generationId]);
    const [row] = rows;
    const cost = row?.costNanocredits ?? -1n;
    expect(charged.cost).toBe(Number(cost) / 1e9);
    expect(account.buckets.pack).toBe(CREDIT - cost);
    expect(key.spent).toBe(cost);
    const entries = await readEntries(poolOf(app), charged.generationId);
    expect(entries).toEqual(
      cost === 0n
        ? []
        : [
            ["pack", -cost],
            ["revenue", cost],
          ],
    );
    return { cost, row, usage: charged.usage };
  }

  it("is the sum over every kind of token at its own price", async () => {
    const usage = {
      ...wireUsage(1_000, 500),
      prompt_tokens_details: { cached_tokens: 300, cache_write_tokens: 100, audio_tokens: 50, image_tokens: 20 },
      completion_tokens_details: { reasoning_tokens: 120, audio_tokens: 30 },
    };

    const { cost, row } = await costOf("acme/chat", usage);

    // Input: 1,000 - 300 - 100 - 50 - 20 = 530 text. Output: 500 - 120 - 30 = 350 text. In nanocredits:
    //   530 x  1,000 =   530,000    350 x  2,000 = 700,000
    //   300 x    500 =   150,000    120 x  4,000 = 480,000
    //   100 x  1,250 =   125,000     30 x 20,000 = 600,000
    //    50 x 10,000 =   500,000
    //    20 x  3,000 =    60,000    together 1,365,000 + 1,780,000
    expect(cost).toBe(3_145_000n);
    expect(row).toMatchObject({
      inputTextTokens: 530,
      inputCachedTokens: 300,
      inputCacheWriteTokens: 100,
      inputAudioTokens: 50,
      inputImageTokens: 20,
      outputTextTokens: 350,
      outputReasoningTokens: 120,
      outputAudioTokens: 30,
      status: "ok",
      usageSource: "provider",
    });
  });

  it("charges a kind without its own price at the base price, and a price of 0 as free", async () => {
    const usage = {
      ...wireUsage(100, 50),
      prompt_tokens_details: { cached_tokens: 40, audio_tokens: 10 },
      completion_tokens_details: { reasoning_tokens: 20 },
    };

    const { cost } = await costOf("acme/plain", usage);

    // 50 text x 1,000 + 10 audio x 1,000 + 40 cached x 0 + 50 output of any kind x 2,000
    expect(cost).toBe(160_000n);
  });

  it.each([
    // 0.5 and 1.5 nanocredits are rounded up, 0.499 and 2 x 0.5 + 0.499 down.
    [1, 0, 1n],
    [3, 0, 2n],
    [0, 1, 0n],
    [2, 1, 1n],
    // 1,000 x 0.5 + 1,000,000 x 0.499
    [1_000, 1_000_000, 499_500n],
  ])(
    "is rounded once, half up: %i prompt and %i completion tokens at half a nanocredit and less cost %i",
    async (prompt, completion, expected) => {
      const { cost } = await costOf("acme/tiny", wireUsage(prompt, completion), completion === 0 ? "" : undefined);

      expect(cost).toBe(expected);
    },
  );

  it("is counted when the upstream reports no usage, and the caller sees the count", async () => {
    const { cost, row, usage } = await costOf("acme/chat", null);

    // "Hello" "," " world" "."
    expect(row).toMatchObject({ inputTextTokens: PROMPT_TOKENS, outputTextTokens: 4, usageSource: "estimated", status: "ok" });
    expect(cost).toBe(BigInt(PROMPT_TOKENS) * PROMPT_PRICE + 4n * COMPLETION_PRICE);
    expect(usage).toMatchObject({ prompt_tokens: PROMPT_TOKENS, completion_tokens: 4 });
  });

  it("is 0 when the upstream reports zeros and delivered nothing", async () => {
    const { cost, row } = await costOf("acme/chat", wireUsage(0, 0), "");

    expect(cost).toBe(0n);
    expect(row).toMatchObject({ usageSource: "provider", meterSource: "pack", inputTextTokens: 0, outputTextTokens: 0 });
  });

  it.each([
    ["negative", { prompt_tokens: -5, completion_tokens: 4, total_tokens: -1 }],
    ["enormous", { prompt_tokens: 10, completion_tokens: 1e12, total_tokens: 1e12 + 10 }],
    ["beyond every number", { prompt_tokens: 10, completion_tokens: 1e300 }],
    ["text", { prompt_tokens: "10", completion_tokens: "4", total_tokens: "14" }],
    ["fractional", { prompt_tokens: 10.5, completion_tokens: 4, total_tokens: 14.5 }],
    ["absurd in a detail", { ...wireUsage(10, 4), prompt_tokens_details: { cached_tokens: -1 } }],
    ["half there", { prompt_tokens: 10 }],
    ["no object", [10, 4]],
  ])("is counted when the upstream's usage is %s, and the caller sees the count", async (_, usage) => {
    const { cost, row, usage: told } = await costOf("acme/chat", usage);

    expect(row).toMatchObject({ inputTextTokens: PROMPT_TOKENS, outputTextTokens: 4, usageSource: "estimated" });
    expect(cost).toBe(BigInt(PROMPT_TOKENS) * PROMPT_PRICE + 4n * COMPLETION_PRICE);
    expect(told).toMatchObject({ prompt_tokens: PROMPT_TOKENS, completion_tokens: 4 });
  });

  it("never counts a detail for more than its total leaves", async () => {
    const { cost, row } = await costOf("acme/chat", { ...wireUsage(100, 4), prompt_tokens_details: { cached_tokens: 1_000 } });

    expect(row).toMatchObject({ inputTextTokens: 0, inputCachedTokens: 100 });
    // 100 x 500 + 4 x 2,000
    expect(cost).toBe(58_000n);
  });

  it("is at the price of the requested model when a fallback answers", async () => {
    app.upstream.replyNext(errorReply(500));

    const { cost, row } = await costOf("acme/asked", wireUsage(10, 4));

    // 10 x 7,000 + 4 x 11,000
    expect(cost).toBe(114_000n);
    expect(row).toMatchObject({ model: "acme/asked", modelUsed: "acme/cheap" });
  });

  it("is more than the hold when the answer is, as far as the balance goes", async () => {
    const payer = await createPayer(app, { pack: 5_000_000n });

    const { cost, generationId } = await run(payer, "acme/read", wireUsage(1_000, 4));

    // 1,000 x 20,000 + 4 x 1,000 = 20,004,000 of which 5,000,000 are there.
    expect(cost).toBe(0.005);
    const { rows, account } = await closeBooks(app, payer);
    expect(rows[0]?.costNanocredits).toBe(5_000_000n);
    expect(account.buckets.pack).toBe(0n);
    expect(await readEntries(poolOf(app), generationId)).toEqual([
      ["pack", -5_000_000n],
      ["write_off", -15_004_000n],
      ["revenue", 20_004_000n],
    ]);
  });

  it("draws the buckets in their order", async () => {
    const payer = await createPayer(app, { tier: 3_000_000n, crypto: 4_000_000n, pack: CREDIT });

    const { generationId } = await run(payer, "acme/chat", wireUsage(0, 5_000));

    const { rows } = await closeBooks(app, payer);
    expect(rows[0]?.meterSource).toBe("crypto");
    expect(await readEntries(poolOf(app), generationId)).toEqual([
      ["tier", -3_000_000n],
      ["crypto", -4_000_000n],
      ["pack", -3_000_000n],
      ["revenue", 10_000_000n],
    ]);
  });

  it("is 0 for a free model, which runs at balance 0 and is recorded", async () => {
    const payer = await createPayer(app);

    const { cost, generationId } = await run(payer, "acme/free", wireUsage(1_000, 1_000));

    expect(cost).toBe(0);
    const { rows } = await closeBooks(app, payer);
    expect(rows).toMatchObject([{ id: generationId, costNanocredits: 0n, inputTextTokens: 1_000, outputTextTokens: 1_000 }]);
  });
});

describe.each([{ stream: false }, { stream: true }])("with stream: $stream, nothing is charged, held or recorded", ({ stream }) => {
  it("and the call is not to be repeated when the upstream had begun to work on it", async () => {
    const payer = await createPayer(app, { pack: CREDIT });
    const retryHeader = async (reply: Reply): Promise<string | null> => {
      app.upstream.replyNext(reply);
      const response = await chat(app, payer, { model: "acme/chat", stream });
      await response.arrayBuffer();
      expect(response.status).toBe(502);
      return response.headers.get("x-should-retry");
    };

    expect(await retryHeader(errorReply(500))).toBeNull();
    expect(await retryHeader(raw("{", { headers: { "content-type": "application/json" } }))).toBe("false");
    expect((await closeBooks(app, payer)).rows).toEqual([]);
  });

  it.each([
    ["refuses", errorReply(400), 400],
    ["does not know our key", errorReply(401), 502],
    ["does not know the model", errorReply(404), 502],
    ["limits our rate", errorReply(429), 502],
    ["fails", errorReply(500), 502],
    ["is overloaded", errorReply(503), 502],
    ["closes the connection", closeSocket(), 502],
    ["resets the connection", closeSocket({ reset: true }), 502],
    ["answers something else", raw("<html>", { headers: { "content-type": "text/html" } }), 502],
    ["answers an error in its body", json({ error: { message: "no" } }), 502],
  ])("when the upstream %s", async (_, reply, status) => {
    const payer = await createPayer(app, { pack: CREDIT });
    app.upstream.replyNext(reply);

    const response = await chat(app, payer, { model: "acme/chat", stream });

    expect(response.status).toBe(status);
    await response.arrayBuffer();
    const { rows, account, key } = await closeBooks(app, payer);
    expect(rows).toEqual([]);
    expect(account).toMatchObject({ buckets: { pack: CREDIT }, held: { pack: 0n } });
    expect(key).toEqual({ spent: 0n, held: 0n });
  });

  it("when the request is refused before an upstream is called", async () => {
    const payer = await createPayer(app, { pack: CREDIT });
    const called = app.upstream.requests.length;

    expect((await chat(app, payer, { model: "acme/none", stream })).status).toBe(400);
    expect((await chat(app, payer, { model: "acme/chat", messages: [], stream })).status).toBe(400);

    expect(app.upstream.requests).toHaveLength(called);
    expect((await closeBooks(app, payer)).rows).toEqual([]);
  });

  it("when the account has tier credits only and the model is paid-only", async () => {
    const payer = await createPayer(app, { tier: 5n * CREDIT });
    const called = app.upstream.requests.length;

    const response = await chat(app, payer, { model: "acme/paid-only", stream });

    expect(response.status).toBe(402);
    expect(await response.json()).toMatchObject({ status: 402, error: { code: "INSUFFICIENT_BALANCE" } });
    expect(response.headers.get("x-should-retry")).toBe("false");
    expect(app.upstream.requests).toHaveLength(called);
    expect((await closeBooks(app, payer)).rows).toEqual([]);
  });

  it("of the tier bucket by a paid-only model that bought credits pay for", async () => {
    const payer = await createPayer(app, { tier: CREDIT, crypto: CREDIT });

    const response = await chat(app, payer, { model: "acme/paid-only", stream });

    expect(response.status).toBe(200);
    await response.arrayBuffer();
    const { rows, account } = await closeBooks(app, payer);
    expect(rows).toMatchObject([{ meterSource: "crypto" }]);
    expect(account.buckets.tier).toBe(CREDIT);
  });
});
