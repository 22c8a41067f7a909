/**
 * Fields that change what a vendor bills, or which model answers: over each wire format every one of them is refused by name and costs
 * nothing, unless the model's entry prices it, and is charged as stated then. Realtime: realtime-billing.test.ts.
 */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { BILLED_FIELDS } from "../../src/services/catalog/billed-fields.js";
import type { Modality } from "../../src/services/catalog/modality.js";
import { CREDIT, closeBooks, createPayer, type Payer } from "../e2e/money.js";
import { execute } from "../graphql/client.js";
import {
  ChatDocument,
  CreateEmbeddingsDocument,
  CreateModerationDocument,
  CreateSpeechDocument,
  GenerateImageDocument,
  GenerateMusicDocument,
  StartVideoDocument,
} from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { type FakeUpstream, startFakeUpstream } from "../support/fake-upstream.js";
import { createFakeVideos, readClip } from "../support/fake-videos.js";
import { chatCompletion, wireUsage } from "../support/openai-bodies.js";
import { OPERATIONS } from "../support/operations.js";
import { imagesObject, picture } from "../support/pictures.js";
import { recording } from "../support/recordings.js";
import { json } from "../support/upstream-replies.js";
import { type Answer, type Client, createClient } from "./client.js";

const PRICES = { promptTextPrice: "0.000001", completionTextPrice: "0.000002" };
const MESSAGES = [{ role: "user", content: "Hello" }];

let app: TestApp;
let claude: FakeUpstream;
let payer: Payer;
let client: Client;

beforeAll(async () => {
  claude = await startFakeUpstream();
  const text = { modality: "text", upstream: "acme" };
  const image = { modality: "image", upstream: "acme", title: "Picture", prices: { completionImagePrice: "0.04" } };
  const video = { modality: "video", upstream: "acme", upstreamModel: "v", title: "Video", prices: { completionVideoPrice: "0.1" } };
  app = await createTestApp({
    upstreams: [{ id: "claude", wireFormat: "anthropic", baseUrl: claude.baseUrl, apiKey: "claude-key" }],
    models: [
      { ...text, id: "acme/plain", upstreamModel: "plain", title: "Plain", prices: PRICES },
      {
        ...text,
        id: "acme/priced",
        upstreamModel: "priced",
        title: "Priced",
        prices: { ...PRICES, promptCacheWritePrice: "0.00000125", promptCacheWriteHourPrice: "0.000002" },
        longContext: [{ abovePromptTokens: 1_000, prices: { promptTextPrice: "0.000002", completionTextPrice: "0.000003" } }],
        pricedFields: {
          service_tier: { flex: { multiplier: "0.5" }, priority: { prices: { completionTextPrice: "0.00001" }, multiplier: 2 } },
          web_search_options: { "*": { perRequest: "0.01" } },
          "tools.type": { web_search: { perRequest: "0.025" } },
          "provider_options.acme": { "*": {} },
        },
      },
      {
        ...text,
        id: "claude/hour",
        upstream: "claude",
        upstreamModel: "claude-sonnet-5",
        title: "Hour",
        prices: { ...PRICES, promptCacheWritePrice: "0.00000125", promptCacheWriteHourPrice: "0.000002" },
      },
      { ...image, id: "acme/graded", upstreamModel: "dall-e-3" },
      {
        ...image,
        id: "acme/graded-priced",
        upstreamModel: "dall-e-3",
        pricedFields: {
          size: { "1024x1024": {}, "1792x1024": { prices: { completionImagePrice: "0.08" } } },
          quality: { standard: {}, low: {}, hd: { multiplier: "1.5" } },
        },
      },
      {
        ...image,
        id: "acme/graded-other",
        upstreamModel: "own-pictures",
        pricedFields: { quality: { low: { multiplier: "0.5" }, standard: {}, hd: { multiplier: "2" } } },
      },
      { ...video, id: "acme/unsized" },
      { ...video, id: "acme/sized", pricedFields: { size: { "1280x720": {}, "1792x1024": { prices: { completionVideoPrice: "0.5" } } } } },
    ],
  });
  payer = await createPayer(app, { pack: 10n * CREDIT });
  client = createClient(app.baseUrl, payer.key);
});
afterAll(async () => {
  await app.close();
  await claude.close();
});

type Fields = Readonly<Record<string, unknown>>;

async function postForm(path: string, fields: Fields, files: Readonly<Record<string, Uint8Array>>): Promise<Answer> {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, typeof value === "string" ? value : JSON.stringify(value));
  for (const [name, bytes] of Object.entries(files)) form.append(name, new Blob([new Uint8Array(bytes)]), name);
  const response = await fetch(app.baseUrl + path, { method: "POST", headers: { Authorization: `Bearer ${payer.key}` }, body: form });
  return toAnswer(response);
}

async function toAnswer(response: Response): Promise<Answer> {
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, json: <Body>() => JSON.parse(text) as Body };
}

const sound = recording(0.1);

type Send = (fields: Fields) => Promise<Answer>;

/** Each way to speak a format, and the table that its fields are looked up in. Responses drop `store` themselves, messages `context_management`. */
const FORMATS: [route: string, modality: Modality, send: Send][] = [
  ...OPERATIONS.filter(({ contract }) => contract.startsWith("POST ")).map((operation): [string, Modality, Send] => {
    const model = operation.kind === "text" ? "acme/plain" : `acme/${operation.kind}`;
    const asking = () => ({ baseUrl: app.baseUrl, wsUrl: app.wsUrl, key: payer.key });
    return [operation.name, operation.kind, async (fields) => toAnswer(await operation.send(asking(), { model, ...fields }))];
  }),
  ["POST /v1/videos, a form", "video", (fields) => postForm("/v1/videos", { model: "acme/video", prompt: "A", ...fields }, {})],
];

/** Nothing was asked of an upstream, nothing held, nothing charged. */
async function expectUntouched(work: () => Promise<unknown>): Promise<void> {
  const asked = () => app.upstream.requests.length + claude.requests.length;
  const [before, books] = [asked(), await closeBooks(app, payer)];
  await work();
  expect(asked()).toBe(before);
  expect(await closeBooks(app, payer)).toEqual(books);
}

function expectRefused(answer: Answer, param: string): void {
  expect([answer.status, answer.text]).toEqual([400, expect.stringContaining(param)]);
  const { code, reason = code, param: named } = answer.json<{ error: { code: unknown; reason?: string; param: string } }>().error;
  expect([reason, named]).toEqual(["BAD_REQUEST", param]);
}

describe("a billed field", () => {
  it.each(FORMATS)("is refused by name: %s", async (route, modality, send) => {
    const names = [...BILLED_FIELDS[modality].values()]
      .map(({ name }) => name)
      .filter((name) => !route.startsWith("POST /v1/responses") || name !== "store")
      .filter((name) => !route.startsWith("POST /v1/messages") || name !== "context_management")
      // Fields of Gemini's format have names of their own.
      .filter((name) => !route.startsWith("POST /v1beta/") || !["candidate_count", "modalities"].includes(name))
      // The text to complete.
      .filter((name) => !route.startsWith("POST /v1/completions") || name !== "prompt");

    await expectUntouched(async () => {
      const answers = await Promise.all(names.map((name) => send({ [name]: "dearer" })));

      expect(names).toContain("service_tier");
      for (const [index, answer] of answers.entries()) expectRefused(answer, names[index] ?? "");
    });
  });

  it.each<[Fields, string]>([
    [{ serviceTier: "priority" }, "serviceTier"],
    [{ "Service-Tier": "flex" }, "Service-Tier"],
    [{ Models: ["acme/dear"] }, "Models"],
    [{ plugins: [{ id: "web" }] }, "plugins"],
    [{ web_search_options: {} }, "web_search_options"],
    [{ store: true }, "store"],
    [{ modalities: ["text", "audio"] }, "modalities"],
    [{ Model: "gpt-5-pro" }, "Model"],
    [{ MAX_TOKENS: 9 }, "MAX_TOKENS"],
    [{ tools: [{ type: "function", function: { name: "a" } }, { type: "web_search" }] }, "tools.1.type"],
    [{ tools: [{ type: "function", function: { name: "a" }, googleSearch: {} }] }, "tools.0.googleSearch"],
    [
      { messages: [{ role: "user", content: [{ type: "text", text: "a", cache_control: { type: "ephemeral", ttl: "1h" } }] }] },
      "messages.0.content.0.cache_control.ttl",
    ],
    [{ tools: [{ type: "function", function: { name: "a" }, cache_control: { ttl: "1h" } }] }, "tools.0.cache_control.ttl"],
    [
      {
        messages: [
          ...MESSAGES,
          {
            role: "assistant",
            content: "a",
            reasoning_details: [{ text: "b", extra_content: { anthropic: { cacheControl: { ttl: "1h" } } } }],
          },
        ],
      },
      "messages.1.reasoning_details.0.extra_content.anthropic.cacheControl.ttl",
    ],
    [{ provider_options: { anthropic: { speed: "fast" } } }, "provider_options.anthropic.speed"],
    [{ provider_options: { anthropic: { inferenceGeo: "us" } } }, "provider_options.anthropic.inferenceGeo"],
    [{ provider_options: { anthropic: { fallbacks: "default" } } }, "provider_options.anthropic.fallbacks"],
    [
      { provider_options: { anthropic: { cacheControl: { type: "ephemeral", ttl: "1h" } } } },
      "provider_options.anthropic.cacheControl.ttl",
    ],
    [{ providerOptions: { google: { serviceTier: "priority" } } }, "providerOptions.google.serviceTier"],
    [{ providerOptions: { google: { cachedContent: "x" } } }, "providerOptions.google.cachedContent"],
    [{ provider_options: { bedrock: { additionalModelRequestFields: {} } } }, "provider_options.bedrock.additionalModelRequestFields"],
    [{ provider_options: { gateway: { models: ["a"] } } }, "provider_options.gateway"],
    [{ provider_options: "all" }, "provider_options"],
  ])("is found under its other names and inside of others: %j", async (fields, param) => {
    await expectUntouched(async () => {
      expectRefused(await client.post("/v1/chat/completions", { model: "acme/plain", messages: MESSAGES, ...fields }), param);
    });
  });

  it("is found in the list of a form, and among the options of vendors of media", async () => {
    await expectUntouched(async () => {
      expectRefused(
        await postForm("/v1/audio/transcriptions", { model: "acme/transcription", "models[]": "a" }, { file: sound }),
        "models",
      );
      const options = { google: { sampleCount: 4 } };
      expectRefused(
        await client.post("/v1/videos", { model: "acme/video", prompt: "A", provider_options: options }),
        "provider_options.google.sampleCount",
      );
    });
  });

  it("is refused on the other face", async () => {
    const target = { ...app, key: payer.key };
    const extra = { service_tier: "priority" };

    await expectUntouched(async () => {
      const answers = await Promise.all([
        execute(target, ChatDocument, { input: { model: "acme/plain", messages: [{ role: "USER", content: "Hello" }], extra } }),
        execute(target, CreateEmbeddingsDocument, { input: { input: [{ text: "Hello" }], extra } }),
        execute(target, CreateModerationDocument, { input: { input: [{ text: "Hello" }], extra } }),
        execute(target, CreateSpeechDocument, { input: { input: "Hello", extra } }),
        execute(target, GenerateMusicDocument, { input: { prompt: "Hello", extra } }),
        execute(target, GenerateImageDocument, { input: { prompt: "Hello", extra } }),
      ]);
      const size = { model: "acme/unsized", prompt: "A", width: 1920, height: 1080 };
      const video = await execute(target, StartVideoDocument, { input: size });

      const refused = answers.map(({ errors }) => errors?.[0]?.extensions.param ?? errors?.[0]?.message);
      expect(refused).toEqual(answers.map(() => "extra.service_tier"));
      expect(video.errors?.[0]?.extensions).toMatchObject({ code: "BAD_REQUEST", param: "size" });
    });
  });

  it("is ignored with a value that changes nothing", async () => {
    const fields = { service_tier: "auto", store: false, plugins: null, modalities: ["text"], speed: "standard" };
    const options = { anthropic: { thinking: { type: "disabled" }, speed: "standard" } };

    const answer = await client.post("/v1/chat/completions", {
      model: "acme/plain",
      messages: MESSAGES,
      ...fields,
      provider_options: options,
    });

    expect(answer.status).toBe(200);
    expect(app.upstream.requests.at(-1)?.json).toMatchObject({ ...fields, provider_options: options });
  });

  it("is refused with the allowed values", async () => {
    const answer = await client.post("/v1/chat/completions", { model: "acme/priced", messages: MESSAGES, service_tier: "scale" });

    expect(answer.json<{ error: { message: string } }>().error.message).toBe(
      'service_tier "scale" changes what the vendor of acme/priced bills or which model answers, and has no price here. ' +
        'Leave it out or send "auto" or "default" or "flex" or "priority". An operator can price it in the catalog (pricedFields of the model).',
    );
  });
});

describe("a model that prices them", () => {
  async function costOfChat(fields: Fields, usage = wireUsage(100, 50), model = "acme/priced") {
    app.upstream.replyNext(json(chatCompletion({ content: "Hi.", usage })));
    const answer = await client.post("/v1/chat/completions", { model, messages: MESSAGES, ...fields });
    expect([answer.status, answer.text]).toEqual([200, expect.anything()]);
    return { cost: answer.headers.get("x-cost"), held: Number(answer.headers.get("x-held")), asked: app.upstream.requests.at(-1)?.json };
  }

  // 100 x 0.000001 + 50 x 0.000002 = 0.0002
  it.each<[Fields, string]>([
    [{}, "0.0002"],
    [{ service_tier: "flex" }, "0.0001"],
    // 100 x 0.000002 + 50 x 0.00002
    [{ service_tier: "priority" }, "0.0012"],
    [{ web_search_options: { search_context_size: "high" } }, "0.0102"],
    [{ web_search_options: {}, service_tier: "flex" }, "0.0101"],
    [{ tools: [{ type: "web_search" }] }, "0.0252"],
    [{ provider_options: { acme: { anything: 1 } } }, "0.0002"],
  ])("passes %j on and charges %s", async (fields, cost) => {
    const answered = await costOfChat(fields);

    expect(answered.cost).toBe(cost);
    expect(answered.asked).toMatchObject(fields);
  });

  it("passes a priced tool of a response on, and leaves the same one out where it has no price", async () => {
    const body = { input: "Hello", tools: [{ type: "web_search" }] };
    app.upstream.replyNext(...[1, 2].map(() => json(chatCompletion({ content: "Hi.", usage: wireUsage(100, 50) }))));
    const priced = await client.post("/v1/responses", { model: "acme/priced", ...body, tool_choice: { type: "web_search" } });
    expect(app.upstream.requests.at(-1)?.json).toMatchObject({ tools: body.tools, tool_choice: { type: "web_search" } });
    const plain = await client.post("/v1/responses", { model: "acme/plain", ...body });

    expect([priced.headers.get("x-cost"), priced.headers.get("x-warnings")]).toEqual(["0.0252", null]);
    expect([plain.headers.get("x-cost"), plain.headers.get("x-warnings")]).toEqual(["0.0002", expect.stringContaining("web_search")]);
    expect(app.upstream.requests.at(-1)?.json).not.toHaveProperty("tools");
  });

  it("is held and charged the same for a stream", async () => {
    app.upstream.answer.usage = wireUsage(100, 50);
    const body = { model: "acme/priced", messages: MESSAGES, stream: true, service_tier: "priority" };

    const answer = await client.post("/v1/chat/completions", body);

    expect(answer.text).toContain('"cost":0.0012');
  });

  it("charges all of a long prompt at its price, and holds for one that is near to it", async () => {
    // 1,001 x 0.000002 + 10 x 0.000003
    expect((await costOfChat({}, wireUsage(1_001, 10))).cost).toBe("0.002032");
    // 1,000 x 0.000001 + 10 x 0.000002
    expect((await costOfChat({}, wireUsage(1_000, 10))).cost).toBe("0.00102");
    const near = await costOfChat({ messages: [{ role: "user", content: "word ".repeat(900) }], max_tokens: 10 }, wireUsage(900, 10));
    expect(near.held).toBeGreaterThan(900 * 0.000002);
    expect(near.cost).toBe("0.00092");
  });

  it("charges an hour's cache at its price, where the upstream reports it separately", async () => {
    const messages = [{ role: "user", content: [{ type: "text", text: "a", cache_control: { type: "ephemeral", ttl: "1h" } }] }];
    const written = (details: object) => wireUsage(100, 50, { prompt_tokens_details: { cache_write_tokens: 60, ...details } });

    // 40 x 0.000001 + 60 x 0.000002 + 50 x 0.000002
    expect((await costOfChat({ messages }, written({}))).cost).toBe("0.00026");
    // 40 x 0.000001 + 50 x 0.00000125 + 10 x 0.000002 + 50 x 0.000002
    const told = written({ cache_creation_token_details: { ephemeral_1h_input_tokens: 10 } });
    expect((await costOfChat({ messages }, told)).cost).toBe("0.0002225");
    expect((await costOfChat({}, written({}))).cost).toBe("0.000215");
  });

  it("sends Anthropic the hour and meters its report", async () => {
    claude.replyNext(
      json({
        id: "msg_1",
        type: "message",
        role: "assistant",
        model: "claude-sonnet-5",
        content: [{ type: "text", text: "Hi." }],
        stop_reason: "end_turn",
        usage: {
          input_tokens: 40,
          cache_creation_input_tokens: 60,
          cache_read_input_tokens: 0,
          cache_creation: { ephemeral_5m_input_tokens: 50, ephemeral_1h_input_tokens: 10 },
          output_tokens: 50,
        },
      }),
    );
    const content = [{ type: "text", text: "a", cache_control: { type: "ephemeral", ttl: "1h" } }];

    const answer = await client.post("/v1/chat/completions", { model: "claude/hour", messages: [{ role: "user", content }] });

    expect(claude.requests.at(-1)?.json).toMatchObject({
      messages: [{ content: [{ text: "a", cache_control: { type: "ephemeral", ttl: "1h" } }] }],
    });
    expect(answer.headers.get("x-cost")).toBe("0.0002225");
  });

  it("shows their prices", async () => {
    const { pricing } = (await client.get("/v1/models/acme/priced")).json<{ pricing: object }>();

    expect(pricing).toMatchObject({
      input_text_tokens: "0.000001",
      input_cache_write_hour_tokens: "0.000002",
      input_text_tokens_above_1000: "0.000002",
      output_text_tokens_above_1000: "0.000003",
    });
  });
});

describe("sizes", () => {
  it("are refused where the entry prices none, and listed where it prices others", async () => {
    await expectUntouched(async () => {
      expectRefused(await client.post("/v1/videos", { model: "acme/unsized", prompt: "A", size: "1792x1024" }), "size");
      expectRefused(await client.get("/video/A?model=acme/unsized&width=1920&height=1080"), "size");
      const other = await client.post("/v1/videos", { model: "acme/sized", prompt: "A", size: "1920x1080" });
      expectRefused(other, "size");
      expect(other.text).toContain('send \\"1280x720\\" or \\"1792x1024\\"');
      expectRefused(await client.post("/v1/images/generations", { model: "acme/graded", prompt: "A", size: "1792x1024" }), "size");
      expectRefused(await client.post("/v1/images/generations", { model: "acme/graded", prompt: "A", quality: "hd" }), "quality");
      expectRefused(await client.post("/v1/images/generations", { model: "acme/graded", prompt: "A", quality: "high" }), "quality");
    });
  });

  it("of a video are charged at their own price", async () => {
    const videos = createFakeVideos({ clip: await readClip(1) });
    app.upstream.replyAlways(videos.reply);

    const [small, large] = await Promise.all(
      ["width=1280&height=720", "width=1792&height=1024"].map((size) => client.get(`/video/A?model=acme/sized&duration=1&${size}`)),
    );
    app.upstream.replyAlways(null);

    expect([small?.headers.get("x-cost"), large?.headers.get("x-cost")]).toEqual(["0.1", "0.5"]);
  });

  it("and qualities of a picture are charged at their own price", async () => {
    app.upstream.replyNext(json(imagesObject([await picture()])));
    const body = { model: "acme/graded-priced", prompt: "A", size: "1792x1024", quality: "hd" };

    const answer = await client.post("/v1/images/generations", body);

    expect([answer.status, answer.headers.get("x-cost")]).toEqual([200, "0.12"]);
  });

  it("and OpenAI's two words for a quality are one, at the price and to the upstream that the entry has for it", async () => {
    const qualities = ["auto", "low", "medium", "standard", "high", "hd"];
    for (const _ of qualities) app.upstream.replyNext(json(imagesObject([await picture()])));
    const told = [];
    for (const quality of qualities) {
      const answer = await client.post("/v1/images/generations", { model: "acme/graded-other", prompt: "A", size: "auto", quality });
      const asked = app.upstream.requests.at(-1)?.json as { size?: string; quality?: string };
      told.push([quality, answer.headers.get("x-cost"), asked.size, asked.quality]);
    }

    expect(told).toEqual([
      ["auto", "0.04", "1024x1024", undefined],
      ["low", "0.02", "1024x1024", "low"],
      ["medium", "0.04", "1024x1024", "standard"],
      ["standard", "0.04", "1024x1024", "standard"],
      ["high", "0.08", "1024x1024", "hd"],
      ["hd", "0.08", "1024x1024", "hd"],
    ]);
  });
});
