/** Charges within their quotes, for random requests of every modality, and at the edge of `max_cost` (docs/spec/quotes.md#amounts). */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { formatNanocredits, parseNanocredits } from "../../src/lib/money.js";
import { CREDIT, createPayer, type Payer, summarize } from "../e2e/money.js";
import { formOf, readClip } from "../support/fake-videos.js";
import { chatChunks, chatCompletion, wireUsage } from "../support/openai-bodies.js";
import { createOperationsApp, type OperationsApp } from "../support/operation-upstreams.js";
import { imagesObject, picture } from "../support/pictures.js";
import { recording } from "../support/recordings.js";
import { handler, type Reply } from "../support/upstream-replies.js";
import { type Answer, type Client, createClient } from "./client.js";

const REQUESTS = 200;
const AT_ONCE = 8;

let app: OperationsApp;
let payer: Payer;
let client: Client;

beforeAll(async () => {
  app = await createOperationsApp();
  payer = await createPayer(app, { pack: 1_000_000n * CREDIT });
  client = createClient(app.baseUrl, payer.key);
});
afterAll(() => app.close());

/** Mulberry32: the same numbers in every run. */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

class Draw {
  private readonly random: () => number;

  constructor(seed: number) {
    this.random = createRandom(seed);
  }

  whole(least: number, most: number): number {
    return least + Math.floor(this.random() * (most - least + 1));
  }

  one<Item>(items: readonly Item[]): Item {
    return items[this.whole(0, items.length - 1)] as Item;
  }

  chance(part: number): boolean {
    return this.random() < part;
  }

  /** Words, digits, code and letters of other alphabets. */
  text(wordsMost: number): string {
    const words = Array.from({ length: this.whole(1, wordsMost) }, () => this.one(WORDS));
    return words.join(" ");
  }
}

const WORDS = ["fox", "sea", "lighthouse", "1234567890", "const x = {};", "größer", "狐狸在夜里", "лиса", "🦊", "xqzvkpw", "a", "\n\n"];

interface Asked {
  readonly path: string;
  /** Null: a GET. */
  readonly body: Record<string, unknown> | null;
}

type Make = (draw: Draw, index: number) => Asked;

const MODALITIES: readonly (readonly [string, Make])[] = [
  ["chat", (draw) => ({ path: "/v1/chat/completions", body: { model: "sandbox/text-paid", messages: chatOf(draw), ...optionsOf(draw) } })],
  [
    "a chat at an upstream that counts by its own vocabulary",
    (draw) => ({ path: "/v1/chat/completions", body: { model: "acme/chat", messages: chatOf(draw), ...optionsOf(draw) } }),
  ],
  [
    "completions",
    (draw) => ({ path: "/v1/completions", body: { model: "sandbox/text-paid", prompt: draw.text(200), max_tokens: draw.whole(1, 500) } }),
  ],
  [
    "messages",
    (draw) => ({ path: "/v1/messages", body: { model: "sandbox/text-paid", messages: chatOf(draw), max_tokens: draw.whole(1, 500) } }),
  ],
  ["responses", (draw) => ({ path: "/v1/responses", body: { model: "sandbox/text-paid", input: draw.text(200) } })],
  [
    "generateContent",
    (draw) => ({
      path: "/v1beta/models/sandbox/text-paid:generateContent",
      body: { contents: [{ role: "user", parts: [{ text: draw.text(200) }] }] },
    }),
  ],
  [
    "text by GET",
    (draw, index) => ({ path: `/text/${encodeURIComponent(`${index} ${draw.text(20).trim()}`)}?model=sandbox/text-paid`, body: null }),
  ],
  ["embeddings", (draw) => ({ path: "/v1/embeddings", body: { model: "sandbox/embedding-paid", input: [draw.text(100), draw.text(3)] } })],
  [
    "reranking",
    (draw) => ({
      path: "/v1/rerank",
      body: {
        model: "sandbox/rerank-paid",
        query: draw.text(5),
        documents: Array.from({ length: draw.whole(1, 150) }, () => draw.text(9)),
      },
    }),
  ],
  [
    "images",
    (draw) => ({
      path: "/v1/images/generations",
      body: { model: "sandbox/image-paid", prompt: `fox ${draw.text(20)}`, n: draw.whole(1, 2), size: draw.one(["64x64", "128x64"]) },
    }),
  ],
  [
    "music",
    (draw, index) => ({
      path: `/audio/tune%20${index}?model=sandbox/music-paid&duration=${draw.one([1, 1.5, 2, 3])}&response_format=wav`,
      body: null,
    }),
  ],
  ["video", (draw, index) => ({ path: `/video/fox%20${index}?model=acme/video&duration=${draw.one([1, 3, 10])}`, body: null })],
  ["moderations", (draw) => ({ path: "/v1/moderations", body: { model: "acme/priced-moderation", input: [draw.text(80), draw.text(5)] } })],
  [
    "images priced by tokens",
    (draw) => ({
      path: "/v1/images/generations",
      body: { model: "acme/image-tokens", prompt: `fox ${draw.text(20)}`, n: draw.whole(1, 3) },
    }),
  ],
  [
    "speech",
    (draw) => ({ path: "/v1/audio/speech", body: { model: "sandbox/speech-paid", input: `fox ${draw.text(4)}`, response_format: "wav" } }),
  ],
];

function chatOf(draw: Draw): object[] {
  return Array.from({ length: draw.whole(1, 4) }, (_, index) => ({
    role: index % 2 === 0 ? "user" : "assistant",
    content: `a${draw.text(80)}`,
  }));
}

function optionsOf(draw: Draw): object {
  return {
    ...(draw.chance(0.5) && { max_tokens: draw.whole(1, 400) }),
    ...(draw.chance(0.2) && { n: 2 }),
    ...(draw.chance(0.3) && { stream: true }),
  };
}

/** Reports from a third of our count to nearly twice of it, and writes at most its limit. */
function strictUpstream(draw: Draw): Reply {
  return handler(async ({ json: asked }, response) => {
    const { messages, stream, n = 1, ...caps } = asked as { messages: object[]; stream?: boolean; n?: number; max_tokens?: number };
    const characters = JSON.stringify(messages).length;
    const written = Math.min(caps.max_tokens ?? 1_500, draw.whole(1, 1_500));
    const usage = wireUsage(Math.max(1, Math.floor((characters / 4) * (0.3 + draw.whole(0, 100) / 100))), written * n);
    const content = "word ".repeat(written);
    const choices = Array.from({ length: n }, (_, index) => ({ index, message: { role: "assistant", content }, finish_reason: "stop" }));
    if (!stream) {
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ ...chatCompletion({ usage }), choices }));
      return;
    }
    const pieces = chatChunks([content], { usage: { ...usage, completion_tokens: written, total_tokens: usage.prompt_tokens + written } });
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(`${pieces.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("")}data: [DONE]\n\n`);
  });
}

const painted = await picture();
const clips = new Map(await Promise.all(([1, 3, 10] as const).map(async (seconds) => [String(seconds), await readClip(seconds)] as const)));

function replyTo(name: string, draw: Draw): Reply {
  if (name === "video") return videoUpstream();
  if (name === "moderations")
    return handler(async ({ json: asked }, response) => {
      const { input } = asked as { input: string[] };
      const tokens = Math.max(1, Math.floor((input.join("").length / 4) * (0.4 + draw.whole(0, 100) / 100)));
      const results = input.map(() => ({ flagged: false, categories: { hate: false }, category_scores: { hate: 0.1 } }));
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ id: "modr-1", results, usage: { prompt_tokens: tokens, total_tokens: tokens } }));
    });
  if (name === "images priced by tokens")
    return handler(async ({ json: asked }, response) => {
      const { n = 1 } = asked as { n?: number };
      const usage = { input_tokens: draw.whole(1, 60), output_tokens: n * draw.whole(1, 4_160), total_tokens: 0 };
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ ...imagesObject(Array.from({ length: n }, () => painted)), usage }));
    });
  return strictUpstream(draw);
}

/** The length that was asked for decides which clip is answered. */
function videoUpstream(): Reply {
  const jobs = new Map<string, string>();
  const type = { "content-type": "application/json", "openai-poll-after-ms": "1" };
  return handler(async (request, response) => {
    const seconds = request.method === "POST" ? String((await formOf(request)).get("seconds")) : "";
    if (request.method === "POST") {
      const id = `video_${jobs.size}`;
      jobs.set(id, seconds);
      response.writeHead(200, type).end(JSON.stringify({ id, object: "video", status: "queued", progress: 0 }));
      return;
    }
    const [, id = ""] = /videos\/([^/?]+)/.exec(request.path) ?? [];
    if (request.path.includes("/content")) response.writeHead(200, { "content-type": "video/mp4" }).end(clips.get(jobs.get(id) ?? ""));
    else response.writeHead(200, type).end(JSON.stringify({ id, object: "video", status: "completed", progress: 100 }));
  });
}

/** In nanocredits. */
function costOf(answer: Answer): bigint {
  const header = answer.headers.get("x-cost");
  if (header !== null) return parseNanocredits(header) as bigint;
  return BigInt(Math.round((summarize(answer.text).usage?.cost ?? Number.NaN) * 1e9));
}

function send({ path, body }: Asked): Promise<Answer> {
  return body === null ? client.get(path) : client.post(path, body);
}

interface Quote {
  readonly least: string;
  readonly expected: string;
  readonly most: string;
}

async function quoteOf({ path, body }: Asked): Promise<Readonly<Record<keyof Quote, bigint>>> {
  const answer = await client.post("/v1/quote", { path, ...(body && { body }) });
  expect(answer.status, answer.text).toBe(200);
  return toAmounts(answer.json<Quote>());
}

function toAmounts({ least, expected, most }: Quote) {
  return { least: parse(least), expected: parse(expected), most: parse(most) };
}

function parse(credits: string): bigint {
  return parseNanocredits(credits) as bigint;
}

/** `least <= charge <= most`, and the amounts where it does not hold. */
async function expectWithin(asked: Asked): Promise<void> {
  const { least, expected, most } = await quoteOf(asked);
  const answer = await send(asked);
  expect(answer.status, answer.text.slice(0, 500)).toBe(200);
  const cost = costOf(answer);
  const isWithin = least <= cost && cost <= most && least <= expected && expected <= most;
  expect({ isWithin, ...(!isWithin && { asked, least, cost, most, expected }) }).toEqual({ isWithin: true });
}

async function inTurns(makers: readonly (() => Promise<void>)[]): Promise<void> {
  let next = 0;
  const work = async () => {
    for (let index = next++; index < makers.length; index = next++) await makers[index]?.();
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

describe("a charge is within its quote", () => {
  it.each(MODALITIES)(`for ${REQUESTS} random requests: %s`, async (name, make) => {
    const draw = new Draw(32);
    app.upstream.replyAlways(replyTo(name, new Draw(7)));
    const asked = Array.from({ length: REQUESTS }, (_each, index) => make(draw, index));

    await inTurns(asked.map((each) => () => expectWithin(each)));
  });

  it(`for ${REQUESTS} random recordings`, async () => {
    const draw = new Draw(5);
    const lengths = Array.from({ length: REQUESTS }, () => draw.whole(1, 40) / 10);
    const ask = async (path: string, bytes: Uint8Array) => {
      const form = new FormData();
      form.append("model", "sandbox/transcription-paid");
      form.append("file", new Blob([new Uint8Array(bytes)]), "a.wav");
      const response = await fetch(app.baseUrl + path, { method: "POST", headers: { Authorization: `Bearer ${payer.key}` }, body: form });
      const text = await response.text();
      expect(response.status, text).toBe(200);
      return { cost: response.headers.get("x-cost"), text };
    };

    await inTurns(
      lengths.map((seconds) => async () => {
        const bytes = recording(seconds);
        const { text } = await ask("/v1/audio/transcriptions?quote=true", bytes);
        const { least, most } = toAmounts(JSON.parse(text) as Quote);
        const charged = parse((await ask("/v1/audio/transcriptions", bytes)).cost as string);
        expect([least <= charged, charged <= most]).toEqual([true, true]);
      }),
    );
  });
});

/** An upstream that writes as much as it may. */
const untiring = handler(async ({ json: asked }, response) => {
  const { stream, max_tokens: cap = 3_000 } = asked as { stream?: boolean; max_tokens?: number };
  const finishReason = cap === 3_000 ? "stop" : "length";
  const pieces = Array.from({ length: cap }, () => "word ");
  const usage = wireUsage(10, cap);
  if (stream) {
    const chunks = chatChunks(pieces, { usage, finishReason });
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(`${chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("")}data: [DONE]\n\n`);
  } else {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify(chatCompletion({ content: pieces.join(""), usage, finishReason })));
  }
});

type Details = Readonly<Record<string, string>>;

/** Gemini's format has them as metadata. */
function detailsOf(answer: Answer): Details {
  const { details } = answer.json<{ error: { details: Details & readonly { metadata: Details }[] } }>().error;
  return details[0]?.metadata ?? details;
}

const messages = [{ role: "user", content: "Hello" }];
const contents = [{ role: "user", parts: [{ text: "Hello" }] }];
/** How each face says that an answer ended at its length. */
const FACES: readonly (readonly [string, string, object, RegExp])[] = [
  ["chat", "/v1/chat/completions", { model: "acme/chat", messages }, /"finish_reason":"length"/],
  ["chat with a stated limit", "/v1/chat/completions", { model: "acme/chat", messages, max_tokens: 2_500 }, /"finish_reason":"length"/],
  ["completions", "/v1/completions", { model: "acme/chat", prompt: "Hello" }, /"finish_reason":"length"/],
  [
    "responses",
    "/v1/responses",
    { model: "acme/chat", input: "Hello" },
    /"status":"incomplete".*"reason":"max_output_tokens"|"reason":"max_output_tokens".*"status":"incomplete"/s,
  ],
  ["messages", "/v1/messages", { model: "acme/chat", messages, max_tokens: 2_500 }, /"stop_reason":"max_tokens"/],
  ["generateContent", "/v1beta/models/acme/chat:generateContent", { contents }, /"finishReason":"MAX_TOKENS"/],
];

describe("at the edge of max_cost, an answer of text", () => {
  const asks = FACES.flatMap(([name, path, body, ends]) => [
    [name, path, body, ends] as const,
    [
      `${name}, streamed`,
      path.replace(":generate", ":streamGenerate"),
      path.includes(":generate") ? body : { ...body, stream: true },
      ends,
    ] as const,
  ]);

  it.each(asks)("is shortened, and refused without a token: %s", async (name, path, body, ends) => {
    app.upstream.replyAlways(untiring);
    const ask = (maxCost: bigint) => client.post(path, body, { headers: { "X-Max-Cost": formatNanocredits(maxCost) } });
    const refused = await ask(0n);
    const { required, most } = detailsOf(refused);
    const least = parse(required as string);
    expect(parse(most as string)).toBeGreaterThan(least);

    expect((await ask(least - 1n)).status).toBe(402);
    for (const maxCost of [least, least + 1n, 1_000_000n, 1_000_001n]) {
      const answer = await ask(maxCost);
      expect(answer.status, answer.text).toBe(200);
      expect(answer.text).toMatch(ends);
      expect(answer.text).not.toContain("MAX_COST_EXCEEDED");
      if (name.endsWith("streamed")) expect(answer.text).toContain('"cut":"max_cost"');
      else expect([answer.headers.get("x-cut"), parse(answer.headers.get("x-cost") as string) <= maxCost]).toEqual(["max_cost", true]);
    }
    const whole = await ask(parse(most as string));
    expect(whole.text).not.toContain('"cut"');
    expect(whole.headers.get("x-cut")).toBeNull();
  });
});

describe("at the edge of max_cost, a generation of a known price", () => {
  const image = { path: "/v1/images/generations", body: { model: "sandbox/image-paid", prompt: "A fox", n: 2, size: "64x64" } };
  const speech = { path: "/v1/audio/speech", body: { model: "sandbox/speech-paid", input: "A fox", response_format: "wav" } };
  const reranking = { path: "/v1/rerank", body: { model: "sandbox/rerank-paid", query: "A fox", documents: ["fox"] } };
  const embedding = { path: "/v1/embeddings", body: { model: "sandbox/embedding-paid", input: "fox ".repeat(500) } };

  it.each([
    ["images", image],
    ["speech", speech],
    ["reranking", reranking],
    ["embeddings", embedding],
  ])("is refused with its quote one nanocredit below: %s", async (_, { path, body }) => {
    const { expected, most } = await quoteOf({ path, body });
    const ask = (maxCost: bigint) => client.post(path, { ...body, max_cost: formatNanocredits(maxCost) });

    const refused = await ask(expected - 1n);
    expect([refused.status, refused.json<{ error: { code: string } }>().error.code]).toEqual([402, "MAX_COST_EXCEEDED"]);
    const { details } = refused.json<{ error: { details: { most: string; quote: Quote & { model: string } } } }>().error;
    expect([details.most, details.quote.most, details.quote.model]).toEqual([formatNanocredits(most), formatNanocredits(most), body.model]);

    for (const maxCost of [expected, expected + 1n]) {
      const answer = await ask(maxCost);
      expect([answer.status, answer.headers.get("x-cost")]).toEqual([200, formatNanocredits(expected)]);
    }
    const quote = await client.post("/v1/quote", { path, body: { ...body, max_cost: formatNanocredits(expected - 1n) } });
    expect(quote.json<{ notes: string[] }>().notes.at(-1)).toMatch(/refused with 402/);
  });
});
