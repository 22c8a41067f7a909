/**
 * An upstream's report of usage is charged as far as it is plausible, in every modality, and the excess is reported.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { countChatTokens } from "../../src/formats/openai-chat/count.js";
import { execute, ok } from "../graphql/client.js";
import { ChatInFullDocument } from "../operations/generated/graphql.js";
import { connectRealtime } from "../rest/realtime-client.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { type FakeRealtime, startFakeRealtime } from "../support/fake-realtime.js";
import { createFakeVideos, readClip } from "../support/fake-videos.js";
import { parseMetrics } from "../support/metrics.js";
import { chatChunks, chatCompletion, type WireUsage, wireUsage } from "../support/openai-bodies.js";
import { imagesObject, imageUsage, picture } from "../support/pictures.js";
import { json, sse } from "../support/upstream-replies.js";
import { booksWith, CREDIT, chat, createPayer, type Payer, summarize } from "./money.js";

const PROMPT_TOKENS = countChatTokens([{ role: "user", content: "Hello" }]);
const WARNING = "The upstream reported more usage than is plausible for this request";
/** Nanocredits for a token. */
const [PROMPT_PRICE, COMPLETION_PRICE] = [1_000n, 5_000n];
const CONTEXT = 64_000;

let app: TestApp;
let live: FakeRealtime;

beforeAll(async () => {
  live = await startFakeRealtime();
  const prices = { promptTextPrice: "0.000001", promptCachedPrice: "0.0000001", completionTextPrice: "0.000005" };
  const plain = { modality: "text", title: "Plain", upstreamModel: "plain", upstream: "acme", prices };
  const speaks = { modality: "realtime", title: "Voice", upstream: "live", upstreamModel: "voice", prices };
  app = await createTestApp({
    upstreams: [{ id: "live", wireFormat: "openai", baseUrl: live.baseUrl, apiKey: "live-secret-key" }],
    models: [
      { ...plain, id: "fake/plain", contextLength: CONTEXT },
      { ...plain, id: "fake/logged" },
      { ...plain, id: "fake/unlimited" },
      { ...plain, id: "fake/searching", contextLength: CONTEXT, capabilities: ["search"] },
      {
        modality: "moderation",
        title: "Judge",
        id: "fake/judge",
        upstream: "acme",
        upstreamModel: "judge",
        prices: { promptTextPrice: "0.000001" },
      },
      { ...speaks, id: "live/voice" },
      { ...speaks, id: "live/short", maxOutputTokens: 4_096 },
      {
        modality: "transcription",
        title: "Ears",
        upstream: "live",
        upstreamModel: "ears",
        id: "live/ears",
        prices: { promptAudioPrice: "0.001" },
      },
    ],
  });
});
afterAll(async () => {
  await app.close();
  await live.close();
});

interface Told {
  readonly warnings: string;
  readonly usage: Partial<WireUsage>;
}

const MODES = [
  {
    mode: "whole",
    ask: async (payer: Payer, usage: object, body: object): Promise<Told> => {
      app.upstream.replyNext(json(chatCompletion({ usage: usage as WireUsage })));
      const response = await chat(app, payer, { model: "fake/plain", max_tokens: 100, ...body });
      const answer = (await response.json()) as { usage: Partial<WireUsage> };
      return { warnings: response.headers.get("x-warnings") ?? "", usage: answer.usage };
    },
  },
  {
    mode: "streamed",
    ask: async (payer: Payer, usage: object, body: object): Promise<Told> => {
      app.upstream.replyNext(sse(chatChunks(["Hello", ", ", "world", "."], { usage: usage as WireUsage })));
      const text = await (await chat(app, payer, { model: "fake/plain", max_tokens: 100, stream: true, ...body })).text();
      return { warnings: text, usage: summarize(text).usage ?? {} };
    },
  },
] as const;

describe.each(MODES)("the report of a chat, $mode", ({ ask }) => {
  async function rowOf(usage: object, body: object = {}) {
    const payer = await createPayer(app, { pack: 10n * CREDIT });
    const told = await ask(payer, usage, body);
    const { rows } = await booksWith(app, payer, 1);
    return { ...told, row: rows[0] };
  }

  it.each([
    ["the prompt at its bound", wireUsage(2 * PROMPT_TOKENS + 1_000, 4), 2 * PROMPT_TOKENS + 1_000, 4, "provider"],
    ["the prompt one beyond", wireUsage(2 * PROMPT_TOKENS + 1_001, 4), 2 * PROMPT_TOKENS + 1_000, 4, "bounded"],
    ["millions of prompt", wireUsage(7_000_000, 4), 2 * PROMPT_TOKENS + 1_000, 4, "bounded"],
    ["the output at its cap", wireUsage(10, 100), 10, 100, "provider"],
    ["the output one beyond its cap", wireUsage(10, 101), 10, 100, "bounded"],
    ["both far beyond", wireUsage(1_000_000_000, 1_000_000_000), 2 * PROMPT_TOKENS + 1_000, 100, "bounded"],
  ])("is charged as far as its bounds: %s", async (_, usage, input, output, usageSource) => {
    const { row, warnings, usage: told } = await rowOf(usage);

    const costNanocredits = BigInt(input) * PROMPT_PRICE + BigInt(output) * COMPLETION_PRICE;
    expect(row).toMatchObject({ inputTextTokens: input, outputTextTokens: output, usageSource, costNanocredits });
    expect(told).toMatchObject({ prompt_tokens: input, completion_tokens: output });
    expect(warnings.includes(WARNING)).toBe(usageSource === "bounded");
  });

  it("is cut in proportion to its kinds", async () => {
    const most = 2 * PROMPT_TOKENS + 1_000;

    const { row } = await rowOf({ ...wireUsage(100_000, 4), prompt_tokens_details: { cached_tokens: 75_000 } });

    expect((row?.inputTextTokens ?? 0) + (row?.inputCachedTokens ?? 0)).toBe(most);
    expect(row?.inputCachedTokens).toBeCloseTo(most * 0.75, -1);
  });

  it("has a cap for each choice", async () => {
    const { row } = await rowOf(wireUsage(10, 1_000_000), { n: 3 });

    expect(row).toMatchObject({ outputTextTokens: 300, usageSource: "bounded" });
  });

  it.each([
    ["letters that some vocabularies take byte by byte", { messages: [user("નમસ્તે દુનિયા ".repeat(200))] }, 7_000],
    ["digits that some vocabularies take one by one", { messages: [user("123456789".repeat(1_000))] }, 9_000],
    ["a picture", { messages: [user([{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }])] }, 48_000],
    ["declared tools", { tools: [{ type: "function", function: { name: "f", description: "word ".repeat(2_000) } }] }, 4_900],
    [
      "a document, within the model's context",
      { messages: [user([{ type: "file", file: { file_data: "data:application/pdf;base64,AAAA" } }])] },
      CONTEXT,
    ],
    ["a field that is not known", { documents: [{ text: "word ".repeat(1_000) }] }, 10_000],
  ])("is trusted for a prompt that honest vendors count higher: %s", async (_, body, tokens) => {
    const { row } = await rowOf(wireUsage(tokens, 4), body);

    expect(row).toMatchObject({ inputTextTokens: tokens, usageSource: "provider" });
  });

  it("is bounded by the context of a model whose vendor reads more than was sent", async () => {
    const { row } = await rowOf(wireUsage(7_000_000, 4), { model: "fake/searching" });

    expect(row).toMatchObject({ inputTextTokens: CONTEXT, usageSource: "bounded" });
  });
});

function user(content: unknown): object {
  return { role: "user", content };
}

describe("a report beyond its bound", () => {
  it("is shown on GraphQL, in the log at first and in a metric always", async () => {
    const metric = async () =>
      parseMetrics(await (await fetch(`${app.baseUrl}/metrics`)).text()).sum("sluice_usage_bounded_total", { model: "fake/logged" });
    const before = await metric();
    const payer = await createPayer(app, { pack: CREDIT });
    const input = { model: "fake/logged", maxTokens: 10, messages: [{ role: "USER" as const, content: "Hello" }] };

    for (let round = 0; round < 2; round += 1) {
      app.upstream.replyNext(json(chatCompletion({ usage: wireUsage(10, 1_000_000) })));
      const { receipt } = ok(await execute({ ...app, key: payer.key }, ChatInFullDocument, { input })).createChatCompletion;
      expect(receipt).toMatchObject({ usageSource: "BOUNDED", usage: { outputTextTokens: 10 } });
    }

    expect((await metric()) - before).toBe(2);
    const lines = app.logs.filter((line) => line.event === "usage-bounded" && line.model === "fake/logged");
    expect(lines).toMatchObject([
      {
        upstream: "acme",
        reported: { inputTextTokens: 10, outputTextTokens: 1_000_000 },
        charged: { inputTextTokens: 10, outputTextTokens: 10 },
      },
    ]);
  });

  it("is charged as far as the delivered text, where that is more than the upstream's limit", async () => {
    const payer = await createPayer(app, { pack: 10n * CREDIT });
    const content = "word ".repeat(1_000);
    app.upstream.replyNext(json(chatCompletion({ content, usage: wireUsage(10, 1_001) })));

    await (await chat(app, payer, { model: "fake/unlimited", max_tokens: 500 })).arrayBuffer();

    expect((await booksWith(app, payer, 1)).rows).toMatchObject([{ outputTextTokens: 1_001, usageSource: "provider" }]);
  });

  it("may come from the sandbox, whose callers dictate its reports", async () => {
    const payer = await createPayer(app, { pack: 100n * CREDIT });

    await (
      await chat(app, payer, { model: "sandbox/text-paid", max_tokens: 10, messages: [user("[tokens in=50000 out=7000] Hi")] })
    ).arrayBuffer();

    expect((await booksWith(app, payer, 1)).rows).toMatchObject([
      { inputTextTokens: 50_000, outputTextTokens: 7_000, usageSource: "provider" },
    ]);
  });
});

async function post(path: string, payer: Payer, body: object): Promise<Response> {
  return fetch(`${app.baseUrl}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${payer.key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

describe("the report of embeddings", () => {
  it.each([
    ["a text", "hello", 1],
    ["token numbers", [[1, 2, 3], [4]], 4],
  ])("is charged for at most twice the counted tokens and 1,000: %s", async (_, input, counted) => {
    const payer = await createPayer(app, { pack: CREDIT });
    const data = [input].flat(1).map((_one, index) => ({ index, embedding: [0.5] }));
    app.upstream.replyNext(json({ data, usage: { prompt_tokens: 7_000_000, total_tokens: 7_000_000 } }));

    const response = await post("/v1/embeddings", payer, { model: "acme/embedding", input });

    expect(await response.json()).toMatchObject({ usage: { prompt_tokens: 2 * counted + 1_000 } });
    expect(response.headers.get("x-warnings")).toContain(WARNING);
    expect((await booksWith(app, payer, 1)).rows).toMatchObject([{ inputTextTokens: 2 * counted + 1_000, usageSource: "bounded" }]);
  });
});

describe("a report of zeros", () => {
  it("is ignored for delivered embeddings", async () => {
    const payer = await createPayer(app, { pack: CREDIT });
    app.upstream.replyNext(json({ data: [{ index: 0, embedding: [0.5] }], usage: { prompt_tokens: 0, total_tokens: 0 } }));

    const response = await post("/v1/embeddings", payer, { model: "acme/embedding", input: "hello world" });

    expect(await response.json()).toMatchObject({ usage: { prompt_tokens: 2, total_tokens: 2 } });
    expect((await booksWith(app, payer, 1)).rows).toMatchObject([{ inputTextTokens: 2, usageSource: "estimated", costNanocredits: 40n }]);
  });

  it("is ignored for moderated texts", async () => {
    const payer = await createPayer(app, { pack: CREDIT });
    app.upstream.replyNext(json({ results: [{ flagged: false, categories: {} }], usage: { prompt_tokens: 0, total_tokens: 0 } }));

    await post("/v1/moderations", payer, { model: "fake/judge", input: "hello world" });

    expect((await booksWith(app, payer, 1)).rows).toMatchObject([
      { inputTextTokens: 2, usageSource: "estimated", costNanocredits: 2_000n },
    ]);
  });

  it("is ignored for a delivered picture", async () => {
    const payer = await createPayer(app, { pack: 100n * CREDIT });
    app.upstream.replyNext(json(imagesObject([await picture()], imageUsage(0, 0, 0))));

    const response = await post("/v1/images/generations", payer, { model: "acme/image-tokens", prompt: "A fox", size: "1024x1024" });

    const { rows } = await booksWith(app, payer, 1);
    // 2 x 0.000005 + 1,056 x 0.00004
    expect(rows).toMatchObject([{ outputImageTokens: 1_056, usageSource: "estimated", costNanocredits: 42_250_000n }]);
    expect(await response.json()).toMatchObject({ usage: { output_tokens: 1_056 } });
  });
});

describe("the report of a moderation", () => {
  it("is trusted when it is free", async () => {
    const payer = await createPayer(app);
    app.upstream.replyNext(
      json({ results: [{ flagged: false, categories: {} }], usage: { prompt_tokens: 7_000_000, total_tokens: 7_000_000 } }),
    );

    await post("/v1/moderations", payer, { model: "acme/moderation", input: "hello" });

    expect((await booksWith(app, payer, 1)).rows).toMatchObject([{ inputTextTokens: 7_000_000, usageSource: "provider" }]);
  });
});

describe("the report of pictures", () => {
  it.each([
    ["64x64", "64x64", 4_160],
    ["1024x1024", "1024x1024", 4_160],
    ["1024x1536", "1024x1536", 6_240],
  ])("is charged for at most the dearest quality of the size: %s", async (_, size, most) => {
    const payer = await createPayer(app, { pack: 100n * CREDIT });
    const png = await picture();
    app.upstream.replyNext(json(imagesObject([png], imageUsage(100, 0, 1_000_000))));

    const response = await post("/v1/images/generations", payer, { model: "acme/image-tokens", prompt: "A fox", size });

    expect(await response.json()).toMatchObject({ usage: { output_tokens: most } });
    expect(response.headers.get("x-warnings")).toContain(WARNING);
    const { rows } = await booksWith(app, payer, 1);
    // 100 x 0.000005 + most x 0.00004
    expect(rows).toMatchObject([{ outputImageTokens: most, usageSource: "bounded", costNanocredits: 500_000n + BigInt(most) * 40_000n }]);
  });

  it("is trusted at the bound", async () => {
    const payer = await createPayer(app, { pack: 100n * CREDIT });
    app.upstream.replyNext(json(imagesObject([await picture()], imageUsage(100, 0, 4_160))));

    await post("/v1/images/generations", payer, { model: "acme/image-tokens", prompt: "A fox" });

    expect((await booksWith(app, payer, 1)).rows).toMatchObject([{ outputImageTokens: 4_160, usageSource: "provider" }]);
  });
});

describe("the length of a video without one in its file", () => {
  it("is charged for at most the requested length", async () => {
    const payer = await createPayer(app, { pack: 100n * CREDIT });
    const videos = createFakeVideos({ clip: await readClip("without-length"), seconds: "1000" });
    app.upstream.replyAlways(videos.reply);

    const response = await fetch(`${app.baseUrl}/video/boat?model=acme/video&duration=3`, {
      headers: { authorization: `Bearer ${payer.key}` },
    });

    expect(response.headers.get("x-cost")).toBe("0.3");
    expect((await booksWith(app, payer, 1)).rows).toMatchObject([{ outputVideoMilliseconds: 3_000, usageSource: "bounded" }]);
    app.upstream.replyAlways(null);
  });
});

describe("the reports of a realtime session", () => {
  async function session(model: string) {
    const payer = await createPayer(app, { pack: 100n * CREDIT });
    const [caller, far] = await Promise.all([connectRealtime({ ...app, key: payer.key }, `?model=${model}`), live.nextSession()]);
    const end = async () => {
      far.socket.close(1000);
      await caller.closed;
      return (await booksWith(app, payer, 1)).rows;
    };
    return { caller, far, end };
  }

  it("are charged up to what the model can have read and written", async () => {
    const { far, end } = await session("live/short");
    far.send({ type: "response.created", response: { id: "r1" } });

    far.sendDone({ input_tokens: 7_000_000, output_tokens: 7_000_000, total_tokens: 14_000_000 }, "r1");

    expect(await end()).toMatchObject([{ inputTextTokens: 1_000, outputTextTokens: 4_096, usageSource: "bounded", status: "ok" }]);
  });

  it("are charged up to the caller's limit of its answers", async () => {
    const { caller, far, end } = await session("live/voice");
    caller.send({ type: "session.update", session: { type: "realtime", max_output_tokens: 50 } });
    await far.next("session.update");
    caller.send({ type: "response.create", response: { max_output_tokens: 80 } });
    await far.next("response.create");

    far.sendDone({ input_tokens: 10, output_tokens: 7_000, total_tokens: 7_010 }, "r1");

    expect(await end()).toMatchObject([{ outputTextTokens: 80, usageSource: "bounded" }]);
  });

  it.each([
    { what: "its only answer", before: [], most: 4_000 },
    { what: "one of two answers", before: [{ type: "response.create" }], most: 9_000 },
  ])("are charged up to the caller's limit of $what", async ({ before, most }) => {
    const { caller, far, end } = await session("live/voice");
    for (const event of [...before, { type: "response.create", response: { max_output_tokens: 4_000 } }]) {
      caller.send(event);
      await far.next("response.create");
    }
    far.send({ type: "response.created", response: { id: "r1" } });

    far.sendDone({ input_tokens: 1, output_tokens: 9_000, total_tokens: 9_001 }, "r1");

    expect((await end())[0]).toMatchObject({ outputTextTokens: most });
  });

  it("do not cover later answers, and zeros cover nothing", async () => {
    const { caller, far, end } = await session("live/voice");
    far.send({ type: "response.created", response: { id: "r1" } });
    far.send({
      type: "future.progress",
      event_id: "e1",
      response_id: "r1",
      usage: { input_tokens: 20, output_tokens: 1, total_tokens: 21 },
    });
    far.send({ type: "response.output_text.delta", event_id: "e2", response_id: "r1", delta: "alpha beta gamma delta" });
    far.sendDone({ input_tokens: 0, output_tokens: 0, total_tokens: 0 }, "r1");
    far.send({ type: "response.created", response: { id: "r2" } });
    far.send({ type: "response.output_text.delta", event_id: "e3", response_id: "r2", delta: "epsilon zeta" });
    far.send({ type: "future.progress", event_id: "e4", response_id: "r2", usage: { input_tokens: 0, output_tokens: 0, total_tokens: 0 } });
    await caller.next("future.progress");

    const [row] = await end();

    // Five words of text: four of the first answer, of one more token, and two of the second of two tokens each.
    expect(row?.outputTextTokens).toBeGreaterThanOrEqual(6);
    expect(row?.status).toBe("cancelled");
  });

  it("of a failed answer are charged nothing without a delivery", async () => {
    const { far, end } = await session("live/voice");
    far.send({ type: "response.created", response: { id: "r1" } });
    far.send({
      type: "response.done",
      response: { id: "r1", status: "failed", usage: { input_tokens: 500, output_tokens: 9, total_tokens: 509 } },
    });

    expect(await end()).toMatchObject([{ costNanocredits: 0n }]);
  });
});
