/** POST /v1/images/generations and /v1/images/edits, and GET /image/{prompt}: with the official client and by hand. */
import OpenAI, { toFile } from "openai";
import sharp from "sharp";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { IMAGE_INPUTS_MAX } from "../../src/limits.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { type FakeUpstream, startFakeUpstream } from "../support/fake-upstream.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { followNextRequest } from "../support/leaving.js";
import { chatCompletion, wireUsage } from "../support/openai-bodies.js";
import { imagesObject, imageUsage, picture } from "../support/pictures.js";
import { closeSocket, errorReply, flood, gated, json, type Reply, raw } from "../support/upstream-replies.js";
import { type Answer, type Client, createClient, createKey, expectEnvelope, waitForUsage } from "./client.js";

let app: TestApp;
let client: Client;
let openai: OpenAI;
/** Where reference images come from: its host is allowed by name, and not by its address. */
let files: FakeUpstream;
let fileUrl: string;
let png: Buffer;

beforeAll(async () => {
  files = await startFakeUpstream();
  fileUrl = `http://localhost:${files.port}/picture`;
  const gptImage = {
    modality: "image",
    upstream: "acme",
    upstreamModel: "gpt-image-2",
    title: "GPT Image",
    prices: { completionImagePrice: "0.04" },
  };
  // The media host's name has no server behind it: its files can only be read where they are stored.
  const config = { upstreamAllowHosts: ["localhost"], mediaUrl: "https://media.invalid/files" };
  app = await createTestApp({ config, models: [{ id: "acme/gpt-image", ...gptImage }] });
  client = createClient(app.baseUrl, app.key);
  openai = new OpenAI({ apiKey: app.key, baseURL: `${app.baseUrl}/v1`, maxRetries: 0 });
  png = await picture();
});
afterEach(async () => {
  app.upstream.replyAlways(null);
  const { pool } = app.database;
  expect(await findBrokenInvariants(pool, { isIdle: true })).toEqual({});
});
afterAll(async () => {
  await app.close();
  await files.close();
});

const generations = (body: object, options: { key?: string } = {}): Promise<Answer> => client.post("/v1/images/generations", body, options);

function lastAsked() {
  const request = app.upstream.requests.at(-1);
  return { path: request?.path, body: request?.json as Record<string, unknown>, headers: request?.headers };
}

/** The form that an edit sent upstream. */
async function lastForm(): Promise<FormData> {
  const request = app.upstream.requests.at(-1);
  if (!request) throw new Error("The upstream was not asked.");
  return new Response(new Uint8Array(request.body), { headers: { "content-type": request.headers["content-type"] ?? "" } }).formData();
}

/** Refused before any upstream is asked, at no cost. */
async function expectRefused(answering: Promise<Answer>, param: string, code = "BAD_REQUEST", status = 400): Promise<Answer> {
  const asked = app.upstream.requests.length + files.requests.length;
  const answer = await answering;
  expectEnvelope(answer, status, code);
  expect(answer.json<{ error: { param: string } }>().error.param).toBe(param);
  expect(answer.headers.get("x-cost")).toBeNull();
  expect(app.upstream.requests.length + files.requests.length).toBe(asked);
  return answer;
}

describe("POST /v1/images/generations", () => {
  it("answers the official client, charged for the picture", async () => {
    app.upstream.replyNext(
      json(imagesObject([png], { data: [{ b64_json: png.toString("base64"), revised_prompt: 'A "red" fox\nat dawn' }] })),
    );

    const { data, response } = await openai.images.generate({ model: "acme/image", prompt: "A fox" }).withResponse();

    expect(Buffer.from(data.data?.[0]?.b64_json ?? "", "base64")).toEqual(png);
    expect(data.data?.[0]?.revised_prompt).toBe('A "red" fox\nat dawn');
    expect(data.created).toBeGreaterThan(1_700_000_000);
    expect(data.usage).toBeUndefined();
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "x-cost": "0.04",
      "x-held": "0.04",
      "x-model-used": "acme/image",
      "server-timing": expect.stringMatching(/gateway;dur=[\d.]+, upstream;dur=[\d.]+/),
    });
    expect(lastAsked()).toMatchObject({
      path: "/v1/images/generations",
      body: { model: "upstream-image", prompt: "A fox", n: 1, size: "1024x1024", response_format: "b64_json" },
    });
    expect(lastAsked().body).not.toHaveProperty("seed");
    const row = await waitForUsage(client, (candidate) => candidate.request_id === response.headers.get("x-generation-id"));
    expect(row).toMatchObject({ type: "generate.image", model: "acme/image", cost_usd: 0.04, status: "ok" });
  });

  it("takes the default model, and passes on unknown fields", async () => {
    app.upstream.replyNext(json(imagesObject([png])));

    const answer = await generations({
      prompt: "A fox",
      size: "512x768",
      seed: 7,
      quality: "high",
      nologo: true,
      style: "vivid",
      user: "u-1",
    });

    expect(answer.headers.get("x-model-used")).toBe("acme/image");
    expect(lastAsked().body).toEqual({
      model: "upstream-image",
      prompt: "A fox",
      n: 1,
      size: "512x768",
      seed: 7,
      quality: "high",
      response_format: "b64_json",
      style: "vivid",
      user: "u-1",
    });
  });

  /** The default parameters of the wrappers, read in the source of each. */
  const wrappers = [
    ["@langchain/openai's DallEAPIWrapper", { n: 1, size: "1024x1024", response_format: "url", style: "vivid", quality: "standard" }],
    ["langchain_community's DallEAPIWrapper", { n: 1, size: "1024x1024", quality: "standard" }],
  ] as const;
  it.each(wrappers)("takes the default parameters of %s", async (_who, defaults) => {
    app.upstream.replyAlways(json(imagesObject([png])));
    const body = { ...defaults, prompt: "A fox", user: "u-1" };

    const [plain, openAi, own] = [
      await generations({ ...body, model: "acme/image" }),
      await generations({ ...body, model: "acme/gpt-image" }),
      await generations({ ...body, model: "sandbox/image" }),
    ];

    expect([plain.status, openAi.status, own.status]).toEqual([200, 200, 200]);
    expect(plain.headers.get("x-cost")).toBe("0.04");
    const asked = app.upstream.requests.slice(-2).map(({ json: sent }) => sent as Record<string, unknown>);
    expect(asked[0]).toMatchObject({ ...defaults, response_format: "b64_json", user: "u-1" });
    // The newer models have no such quality, no style and one form of answer.
    expect(asked[1]).toEqual({ model: "gpt-image-2", prompt: "A fox", n: 1, size: "1024x1024", quality: "medium", user: "u-1" });
  });

  it("takes auto for a quality and a size as if neither was stated", async () => {
    app.upstream.replyAlways(json(imagesObject([png])));
    const auto = { prompt: "A fox", quality: "auto", size: "auto" };

    await openai.images.generate({ ...auto, model: "acme/gpt-image", quality: "auto", size: "auto" });
    await openai.images.edit({
      ...auto,
      model: "acme/gpt-image",
      quality: "auto",
      size: "auto",
      image: await toFile(png, "a.png", { type: "image/png" }),
    });

    const [made] = app.upstream.requests.slice(-2).map(({ json: sent }) => sent as Record<string, unknown>);
    expect(made).toMatchObject({ size: "1024x1024", quality: "medium" });
    const form = await lastForm();
    expect([form.get("size"), form.get("quality")]).toEqual([null, "medium"]);
  });

  it("charges each delivered picture, and at most the requested number", async () => {
    app.upstream.replyNext(json(imagesObject([png, png, png])));
    const few = await generations({ prompt: "Foxes", n: 4 });
    app.upstream.replyNext(json(imagesObject([png, png, png])));
    const many = await generations({ prompt: "Foxes", n: 2 });

    expect(few.headers.get("x-held")).toBe("0.16");
    expect(few.headers.get("x-cost")).toBe("0.12");
    expect(many.headers.get("x-cost")).toBe("0.08");
    expect(many.json<{ data: object[] }>().data).toHaveLength(2);
  });

  it("answers each caller their own large picture, after others have left or been answered", async () => {
    const large = (prompt: string) => Buffer.concat([png, Buffer.alloc(400_000, prompt)]);
    app.upstream.replyAlways({
      kind: "handler",
      handle: ({ json: asked }, response) => {
        const body = JSON.stringify(imagesObject([large((asked as { prompt: string }).prompt)]));
        response.writeHead(200, { "content-type": "application/json", "content-length": body.length }).end(body);
      },
    });
    for (let round = 0; round < 4; round += 1) {
      const leaving = new AbortController();
      const left = fetch(`${app.baseUrl}/v1/images/generations`, {
        method: "POST",
        headers: { authorization: `Bearer ${app.key}`, "content-type": "application/json" },
        body: JSON.stringify({ prompt: `left ${round}` }),
        signal: leaving.signal,
      });
      await left;
      leaving.abort();
      const prompts = Array.from({ length: 6 }, (_, index) => `picture ${index} of round ${round}`);
      const answers = await Promise.all(prompts.map((prompt) => generations({ prompt })));

      const got = answers.map((answer) => answer.json<{ data: [{ b64_json: string }] }>().data[0].b64_json);
      expect(got.map((text, index) => text === large(prompts[index] ?? "").toString("base64"))).toEqual(prompts.map(() => true));
    }
  });

  it("charges the tokens that the upstream reports, and shows them", async () => {
    app.upstream.replyNext(json(imagesObject([png], imageUsage(10, 0, 272))));

    const answer = await generations({ model: "acme/image-tokens", prompt: "A fox", quality: "low" });

    // 10 x 0.000005 + 272 x 0.00004
    expect(answer.headers.get("x-cost")).toBe("0.01093");
    expect(answer.headers.get("x-usage-output-image-tokens")).toBe("272");
    expect(answer.json()).toMatchObject({
      usage: { input_tokens: 10, output_tokens: 272, total_tokens: 282, input_tokens_details: { text_tokens: 10, image_tokens: 0 } },
    });
  });

  it("estimates tokens that the upstream does not report, by size and quality, and says so", async () => {
    app.upstream.replyNext(json(imagesObject([png])));

    const answer = await generations({ model: "acme/image-tokens", prompt: "fox", quality: "high", size: "1024x1536" });

    // One token of text, and 4160 x 1.5 of picture.
    expect(answer.headers.get("x-cost")).toBe("0.249605");
    expect(answer.headers.get("x-held")).toBe("0.249605");
    const row = await waitForUsage(client, (candidate) => candidate.request_id === answer.headers.get("x-generation-id"));
    expect(row).toMatchObject({ usage_source: "estimated", output_image_tokens: 6240, input_text_tokens: 1 });
    expect(answer.json()).not.toHaveProperty("usage");
  });

  it("fetches a picture that its own upstream names by URL", async () => {
    files.replyNext(raw(png, { headers: { "content-type": "image/png" } }));
    // By its address, which no user may name: the operator's upstream is trusted.
    app.upstream.replyNext(json(imagesObject([`http://127.0.0.1:${files.port}/made.png`])));

    const answer = await generations({ prompt: "A fox" });

    expect(Buffer.from(answer.json<{ data: { b64_json: string }[] }>().data[0]?.b64_json ?? "", "base64")).toEqual(png);
    expect((await files.nextRequest()).headers).not.toHaveProperty("authorization");
  });

  it("publishes the picture and answers its link", async () => {
    app.upstream.replyNext(json(imagesObject([png])));

    const answer = await generations({ prompt: "A fox", response_format: "url" });

    const [image] = answer.json<{ data: { url: string; b64_json?: string }[] }>().data;
    expect(image).not.toHaveProperty("b64_json");
    expect(image?.url).toMatch(/^https:\/\/media\.invalid\/files\/[0-9a-f]{16}$/);
    expect(answer.headers.get("x-cost")).toBe("0.04");
  });

  it("takes its own link as a picture, wherever it runs, and no other of its addresses", async () => {
    app.upstream.replyAlways(json(imagesObject([png])));
    const { data } = (await generations({ prompt: "A fox", response_format: "url" })).json<{ data: { url: string }[] }>();
    const url = data[0]?.url ?? "";

    const edited = await client.post("/v1/images/edits", { prompt: "Add a hat", image: url });

    expect(edited.status).toBe(200);
    const sent = (await lastForm()).get("image") as File;
    expect(Buffer.from(await sent.arrayBuffer())).toEqual(png);
    const unknown = await client.post("/v1/images/edits", { prompt: "a", image: url.replace(/[0-9a-f]{16}$/, "0123456789abcdef") });
    expect(unknown.json()).toMatchObject({ error: { code: "BAD_REQUEST", param: "image" } });
    const media = url.slice(0, url.lastIndexOf("/"));
    for (const other of [`${media}/../account/balance`, `${media}/${"0".repeat(16)}?a`, media]) {
      expectEnvelope(await client.post("/v1/images/edits", { prompt: "a", image: other }), 400, "BAD_REQUEST");
    }
  });

  it("converts to the requested format, at the picture's own size", async () => {
    app.upstream.replyNext(json(imagesObject([await picture(120, 80)])));

    const answer = await generations({ prompt: "A fox", output_format: "webp" });

    const bytes = Buffer.from(answer.json<{ data: { b64_json: string }[] }>().data[0]?.b64_json ?? "", "base64");
    expect(await sharp(bytes).metadata()).toMatchObject({ format: "webp", width: 120, height: 80, hasAlpha: true });
  });

  it("redacts the findings of the safety features, in both prompts, before anything leaves", async () => {
    app.upstream.replyNext(json(imagesObject([png])));

    const answer = await generations({ prompt: "A card for ann@example.com", negative_prompt: "bob@example.com", safe: "privacy" });

    expect(lastAsked().body).toMatchObject({ prompt: "A card for [REDACTED_EMAIL]", negative_prompt: "[REDACTED_EMAIL]" });
    expect(lastAsked().body).not.toHaveProperty("safe");
    expect(answer.headers.get("x-safety-redacted")).toBe("privacy");
    await expectRefused(generations({ prompt: "a", safe: "magic" }), "safe");
  });

  it("are finished when the caller leaves, and charged", async () => {
    const { key } = await createKey(app, { creditBudget: 1 });
    const answer = gated(imagesObject([png]));
    app.upstream.replyNext(answer.reply);
    const seen = app.upstream.requests.length;
    const leaving = new AbortController();
    const caller = followNextRequest(app.baseUrl);
    const answering = fetch(`${app.baseUrl}/v1/images/generations`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ prompt: "A fox" }),
      signal: leaving.signal,
    }).catch(() => null);
    while (app.upstream.requests.length === seen) await new Promise((resolve) => setImmediate(resolve));

    leaving.abort();
    await answering;
    await caller.hasLeft();
    answer.open();

    await expect.poll(async () => (await client.get("/account/key", { key })).json()).toMatchObject({ creditBudget: 0.96 });
    const { usage } = (await client.get("/account/key/usage", { key })).json() as { usage: unknown[] };
    expect(usage).toMatchObject([{ status: "cancelled", cost_usd: 0.04 }]);
  });

  it("replaces the seed -1 by a random one", async () => {
    app.upstream.replyAlways(json(imagesObject([png])));

    await generations({ prompt: "A fox", seed: -1 });
    const first = lastAsked().body.seed;
    await generations({ prompt: "A fox", seed: -1 });

    expect(first).toBeGreaterThanOrEqual(0);
    expect(lastAsked().body.seed).not.toBe(first);
  });

  it("rewrites the prompt with the default text model when enhance is true, as a separate charge", async () => {
    app.upstream.replyNext(
      json(chatCompletion({ content: "A red fox at dawn, oil on canvas", usage: wireUsage(50, 10) })),
      json(imagesObject([png])),
    );

    const answer = await generations({ prompt: "A fox", enhance: true });

    const [rewriting, drawing] = app.upstream.requests.slice(-2);
    expect(rewriting?.json).toMatchObject({ model: "upstream-chat", messages: [{ role: "system" }, { role: "user", content: "A fox" }] });
    expect(drawing?.json).toMatchObject({ prompt: "A red fox at dawn, oil on canvas" });
    expect(answer.json()).toMatchObject({ data: [{ revised_prompt: "A red fox at dawn, oil on canvas" }] });
    expect(answer.headers.get("x-cost")).toBe("0.04");
    const row = await waitForUsage(client, ({ type, input_text_tokens }) => type === "generate.text" && input_text_tokens === 50);
    expect(row).toMatchObject({ model: "acme/chat", cost_usd: 0.00007 });
  });

  it("names the options that a model of OpenAI's does not take, and leaves them out", async () => {
    app.upstream.replyNext(json(imagesObject([png])));

    const answer = await generations({
      model: "acme/gpt-image",
      prompt: "A fox",
      seed: 5,
      negative_prompt: "cats",
      transparent: true,
      output_format: "png",
    });

    expect(lastAsked().body).toEqual({
      model: "gpt-image-2",
      prompt: "A fox",
      n: 1,
      size: "1024x1024",
      quality: "medium",
      background: "transparent",
      output_format: "png",
    });
    expect(answer.headers.get("x-warnings")).toBe("seed has no effect on this model.; negative_prompt has no effect on this model.");
  });

  it("takes reference images, which make it an edit upstream", async () => {
    files.replyNext(raw(png, { headers: { "content-type": "text/plain" } }));
    app.upstream.replyNext(json(imagesObject([png])));

    const answer = await generations({ prompt: "A fox", image: fileUrl });

    expect(answer.status).toBe(200);
    expect(lastAsked().path).toBe("/v1/images/edits");
    const image = (await lastForm()).get("image") as File;
    expect(image).toMatchObject({ type: "image/png", name: "image-1.png" });
    expect(Buffer.from(await image.arrayBuffer())).toEqual(png);
  });

  const refused: readonly (readonly [body: object, param: string])[] = [
    [{}, "prompt"],
    [{ prompt: "" }, "prompt"],
    [{ prompt: " \n" }, "prompt"],
    [{ prompt: "a\0b" }, "prompt"],
    [{ prompt: "a".repeat(32_001) }, "prompt"],
    [{ prompt: "a", size: "1024X" }, "size"],
    [{ prompt: "a", size: "0x0" }, "size"],
    [{ prompt: "a", size: "63x64" }, "size"],
    [{ prompt: "a", size: "64x4097" }, "size"],
    [{ prompt: "a", size: "1024" }, "size"],
    [{ prompt: "a", n: 0 }, "n"],
    [{ prompt: "a", n: 11 }, "n"],
    [{ prompt: "a", n: 1.5 }, "n"],
    [{ prompt: "a", seed: -2 }, "seed"],
    [{ prompt: "a", quality: "ultra" }, "quality"],
    [{ prompt: "a", response_format: "png" }, "response_format"],
    [{ prompt: "a", enhance: "yes" }, "enhance"],
    [{ prompt: "a", stream: true }, "stream"],
    [{ prompt: "a", output_format: "jpeg", background: "transparent" }, "output_format"],
    [{ prompt: "a", model: "acme/chat" }, "model"],
    [{ prompt: "a", model: "acme/imag" }, "model"],
    [{ prompt: "a", image: "ftp://example.com/a.png" }, "image"],
    [{ prompt: "a", image: "http://example.com/a.png" }, "image"],
    [{ prompt: "a", image: ["http://localhost/a.png", "https://10.0.0.1/a.png"] }, "image"],
    [{ prompt: "a", image: "data:image/png,abc" }, "image"],
    [{ prompt: "a", image: "data:image/svg+xml;base64,PHN2Zy8+" }, "image"],
    [{ prompt: "a", image: Array.from({ length: 11 }, () => "http://localhost/a.png") }, "image"],
  ];
  for (const [body, param] of refused) {
    it(`refuses ${JSON.stringify(body).slice(0, 90)}`, () => expectRefused(generations(body), param));
  }

  it("takes every limit at its bound", async () => {
    app.upstream.replyAlways(json(imagesObject(Array.from({ length: 10 }, () => png))));

    const answers = await Promise.all([
      generations({ prompt: "a".repeat(32_000), size: "64x4096", n: 10 }),
      generations({ prompt: "a", size: "4096x64", n: 1, seed: 0 }),
    ]);

    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  });

  it("costs nothing without a key, with a key that may not, or without the money", async () => {
    const { key: restricted } = await createKey(app, { allowedModels: ["acme/chat"] });
    const { key: poor } = await createKey(app, { creditBudget: 0.0399 });
    const asked = app.upstream.requests.length;

    expectEnvelope(await client.post("/v1/images/generations", { prompt: "a" }, { key: null }), 401, "UNAUTHORIZED");
    expectEnvelope(await generations({ prompt: "a" }, { key: restricted }), 403, "FORBIDDEN");
    expectEnvelope(await generations({ prompt: "a" }, { key: poor }), 402, "KEY_BUDGET_EXHAUSTED");
    expect(app.upstream.requests).toHaveLength(asked);
  });
});

describe("an upstream that fails", () => {
  const failures: readonly (readonly [what: string, reply: () => Reply, status: number, code: string])[] = [
    ["answers 400", () => errorReply(400, "Your prompt was rejected.", "prompt"), 400, "BAD_REQUEST"],
    ["answers 401", () => errorReply(401), 502, "UPSTREAM_ERROR"],
    ["answers 429", () => errorReply(429), 502, "UPSTREAM_ERROR"],
    ["answers 500", () => errorReply(500), 502, "UPSTREAM_ERROR"],
    ["closes the socket", () => closeSocket(), 502, "UPSTREAM_ERROR"],
    ["answers HTML", () => raw("<html>", { headers: { "content-type": "text/html" } }), 502, "UPSTREAM_ERROR"],
    ["answers no pictures", () => json({ created: 1, data: [] }), 502, "UPSTREAM_ERROR"],
    ["answers something without data", () => json({ created: 1 }), 502, "UPSTREAM_ERROR"],
    ["answers text as base64", () => json({ data: [{ b64_json: Buffer.from("hello, world").toString("base64") }] }), 502, "UPSTREAM_ERROR"],
    ["answers broken base64", () => json({ data: [{ b64_json: `${png.toString("base64").slice(0, 40)}"!"` }] }), 502, "UPSTREAM_ERROR"],
    ["names a picture that is not there", () => json(imagesObject([`http://127.0.0.1:${files.port}/gone`])), 502, "UPSTREAM_ERROR"],
    ["floods", () => flood(Buffer.alloc(1024 * 1024, 0x20)), 502, "UPSTREAM_ERROR"],
    ["reports an error in a 200", () => json({ error: { message: "No.", code: 400 } }), 400, "BAD_REQUEST"],
  ];
  for (const [what, reply, status, code] of failures) {
    it(`and ${what} costs nothing`, async () => {
      const { key } = await createKey(app, { creditBudget: 1 });
      app.upstream.replyNext(reply());

      const answer = await generations({ prompt: "A fox" }, { key });

      expectEnvelope(answer, status, code);
      const info = await client.get("/account/key", { key });
      expect(info.json()).toMatchObject({ creditBudget: 1 });
    });
  }

  it("is followed by its fallback, at the price of the requested model", async () => {
    app.upstream.replyNext(errorReply(503), json(imagesObject([png])));

    const answer = await generations({ model: "acme/image-with-fallback", prompt: "A fox" });

    expect(Object.fromEntries(answer.headers)).toMatchObject({
      "x-model-used": "acme/image",
      "x-fallback": "acme/image",
      "x-cost": "0.04",
    });
    expect(app.upstream.requests.slice(-2).map(({ json: body }) => (body as { model: string }).model)).toEqual([
      "upstream-image-with-fallback",
      "upstream-image",
    ]);
  });

  it("is followed by its fallback when its answer is no picture", async () => {
    app.upstream.replyNext(json({ data: [{ b64_json: "aGVsbG8=" }] }), json(imagesObject([png])));

    const answer = await generations({ model: "acme/image-with-fallback", prompt: "A fox" });

    expect(answer.headers.get("x-fallback")).toBe("acme/image");
  });

  it("is not followed by its fallback when it refuses the prompt", async () => {
    app.upstream.replyNext(errorReply(400, "Your prompt was rejected."));

    expectEnvelope(await generations({ model: "acme/image-with-fallback", prompt: "A fox" }), 400, "BAD_REQUEST");
  });
});

describe("POST /v1/images/edits", () => {
  it("takes the files of the official client", async () => {
    const jpeg = await picture(64, 64, "jpeg");
    app.upstream.replyNext(json(imagesObject([png], imageUsage(8, 323, 1_056))));

    const edited = await openai.images.edit({
      model: "acme/image-tokens",
      prompt: "Add a hat",
      image: [await toFile(png, "../../secret name.png", { type: "image/png" }), await toFile(jpeg, "two.txt", { type: "text/plain" })],
      mask: await toFile(png, "mask.png", { type: "image/png" }),
      n: 1,
      size: "1024x1024",
      input_fidelity: "high",
    });

    expect(edited.data?.[0]?.b64_json).toBe(png.toString("base64"));
    expect(lastAsked().path).toBe("/v1/images/edits");
    const form = await lastForm();
    expect([...form.keys()].sort()).toEqual(
      ["image[]", "image[]", "input_fidelity", "mask", "model", "n", "prompt", "response_format", "size"].sort(),
    );
    const images = form.getAll("image[]") as File[];
    // Known by their bytes, and named by us.
    expect(images.map(({ name, type }) => ({ name, type }))).toEqual([
      { name: "image-1.png", type: "image/png" },
      { name: "image-2.jpeg", type: "image/jpeg" },
    ]);
    expect(Buffer.from((await images[1]?.arrayBuffer()) ?? new ArrayBuffer(0))).toEqual(jpeg);
    expect(form.get("prompt")).toBe("Add a hat");
    const row = await waitForUsage(client, ({ input_image_tokens }) => input_image_tokens === 323);
    // 8 x 0.000005 + 323 x 0.00001 + 1056 x 0.00004
    expect(row.cost_usd).toBe(0.04551);
  });

  it("takes URLs, also as data, in JSON", async () => {
    files.replyNext(raw(png, { headers: { "content-type": "image/png" } }));
    app.upstream.replyNext(json(imagesObject([png])));

    const answer = await client.post("/v1/images/edits", {
      prompt: "Add a hat",
      image: [fileUrl, `data:image/png;base64,${png.toString("base64")}`],
    });

    expect(answer.headers.get("x-cost")).toBe("0.04");
    const form = await lastForm();
    expect(form.getAll("image[]")).toHaveLength(2);
    expect(form.has("size")).toBe(false);
    const fetched = files.requests.at(-1);
    expect(fetched?.headers).not.toHaveProperty("authorization");
    expect(fetched?.headers).toMatchObject({ accept: "image/*", "accept-encoding": "identity" });
  });

  it("takes OpenAI's JSON form of images and mask", async () => {
    const data = `data:image/png;base64,${png.toString("base64")}`;
    files.replyNext(raw(png, { headers: { "content-type": "image/png" } }));
    app.upstream.replyNext(json(imagesObject([png])));

    const answer = await client.post("/v1/images/edits", {
      prompt: "Add a hat",
      images: [{ image_url: fileUrl }, { image_url: data }],
      mask: { image_url: data },
    });

    expect(answer.headers.get("x-cost")).toBe("0.04");
    const form = await lastForm();
    expect([form.getAll("image[]").length, form.has("mask"), form.has("images")]).toEqual([2, true, false]);
  });

  it("takes as many images in either form", async () => {
    const data = `data:image/png;base64,${png.toString("base64")}`;
    const images = Array.from({ length: IMAGE_INPUTS_MAX }, () => ({ image_url: data }));
    app.upstream.replyNext(json(imagesObject([png])));

    expect((await client.post("/v1/images/edits", { prompt: "a", images })).status).toBe(200);
    await expectRefused(client.post("/v1/images/edits", { prompt: "a", images: [...images, { image_url: data }] }), "images");
  });

  it("takes a URL in a form, with numbers and booleans as texts", async () => {
    files.replyNext(raw(png));
    app.upstream.replyNext(json(imagesObject([png, png])));
    const form = new FormData();
    for (const [name, value] of Object.entries({ prompt: "Add a hat", image: fileUrl, n: "2", seed: "9", transparent: "1" }))
      form.set(name, value);

    const response = await fetch(`${app.baseUrl}/v1/images/edits`, {
      method: "POST",
      headers: { authorization: `Bearer ${app.key}` },
      body: form,
    });

    expect(response.headers.get("x-cost")).toBe("0.08");
    expect(Object.fromEntries([...(await lastForm())].filter(([name]) => name !== "image"))).toMatchObject({
      n: "2",
      seed: "9",
      background: "transparent",
    });
  });

  const refusedBodies: readonly (readonly [body: object, param: string])[] = [
    [{ prompt: "a" }, "image"],
    [{ prompt: "a", image: [] }, "image"],
    [{ prompt: "a", images: [] }, "images"],
    [{ prompt: "a", images: [{}] }, "images.0.image_url"],
    [{ prompt: "a", images: [{ file_id: "file-1" }] }, "images.0.file_id"],
    [{ prompt: "a", images: [{ image_url: "https://169.254.169.254/latest" }] }, "image"],
    [{ prompt: "a", images: [{ image_url: "http://localhost/a.png" }], image: "http://localhost/a.png" }, "images"],
    [{ prompt: "a", image: "http://localhost/a.png", mask: { file_id: "file-1" } }, "mask.file_id"],
    [{ image: "http://localhost/a.png" }, "prompt"],
    [{ prompt: "a", image: "https://169.254.169.254/latest" }, "image"],
    [{ prompt: "a", image: "http://localhost/a.png", mask: "file:///etc/passwd" }, "mask"],
    [{ prompt: "a", image: "http://localhost/a.png", n: "2" }, "n"],
  ];
  for (const [body, param] of refusedBodies) {
    it(`refuses ${JSON.stringify(body)}`, () => expectRefused(client.post("/v1/images/edits", body), param));
  }

  const pictures: readonly (readonly [what: string, reply: () => Reply | Promise<Reply>])[] = [
    ["HTML", () => raw("<!doctype html>", { headers: { "content-type": "image/png" } })],
    ["SVG", () => raw('<svg xmlns="http://www.w3.org/2000/svg"/>', { headers: { "content-type": "image/svg+xml" } })],
    ["an error", () => errorReply(404)],
    ["a redirect", () => raw("", { status: 302, headers: { location: "http://localhost/" } })],
    ["nothing", () => raw("")],
    ["half a header", () => raw(png.subarray(0, 16))],
    ["30,000 x 30,000 pixels", async () => raw(bomb(png))],
    ["more than 20 MiB", () => flood(Buffer.alloc(1024 * 1024), { headers: { "content-type": "image/png" } })],
  ];
  for (const [what, reply] of pictures) {
    it(`refuses a URL that gives ${what}, and no upstream is asked`, async () => {
      const asked = app.upstream.requests.length;
      files.replyNext(await reply());

      const answer = await client.post("/v1/images/edits", { prompt: "a", image: fileUrl });

      expectEnvelope(answer, 400, "BAD_REQUEST");
      expect(answer.json()).toMatchObject({ error: { param: "image" } });
      expect(app.upstream.requests).toHaveLength(asked);
    });
  }

  it("refuses a form without a picture, with a text as a picture, or with too many", async () => {
    const send = async (files: readonly Blob[]) => {
      const form = new FormData();
      form.set("prompt", "a");
      for (const file of files) form.append("image[]", file, "a.png");
      const response = await fetch(`${app.baseUrl}/v1/images/edits`, {
        method: "POST",
        headers: { authorization: `Bearer ${app.key}` },
        body: form,
      });
      return { status: response.status, ...((await response.json()) as { error: object }) };
    };
    const blob = new Blob([new Uint8Array(png)]);

    expect(await send([])).toMatchObject({ status: 400, error: { param: "image" } });
    expect(await send([new Blob(["hello"])])).toMatchObject({ status: 400, error: { param: "image" } });
    expect(await send(Array.from({ length: 11 }, () => blob))).toMatchObject({ status: 400, error: { param: "image" } });
    app.upstream.replyNext(json(imagesObject([png])));
    expect(await send(Array.from({ length: 10 }, () => blob))).toMatchObject({ status: 200 });
  });
});

describe("GET /image/{prompt}", () => {
  it("answers a JPEG of the default size for any output of the model, and the same one again at no cost", async () => {
    app.upstream.replyNext(json(imagesObject([await picture(1024, 1024)])));

    const made = await fetch(`${app.baseUrl}/image/a%20fox/and%20a%2Fhen`, { headers: { authorization: `Bearer ${app.key}` } });
    const again = await fetch(`${app.baseUrl}/image/a%20fox/and%20a%2Fhen?seed=0&nologo=true&width=1024&key=${app.key}`);

    const bytes = Buffer.from(await made.arrayBuffer());
    expect(await sharp(bytes).metadata()).toMatchObject({ format: "jpeg", width: 1024, height: 1024 });
    expect(Object.fromEntries(made.headers)).toMatchObject({ "content-type": "image/jpeg", "x-cache": "MISS", "x-cost": "0.04" });
    expect(lastAsked().body).toMatchObject({ prompt: "a fox/and a/hen", size: "1024x1024", seed: 0 });
    expect(Buffer.from(await again.arrayBuffer())).toEqual(bytes);
    expect(Object.fromEntries(again.headers)).toMatchObject({ "content-type": "image/jpeg", "x-cache": "HIT", "x-cost": "0" });
  });

  it("answers a PNG that shows through when it is to be transparent", async () => {
    app.upstream.replyNext(json(imagesObject([await picture(256, 128, "webp")])));

    const response = await fetch(`${app.baseUrl}/image/glass?transparent=1&width=256&height=128&quality=hd&key=${app.key}`);

    const metadata = await sharp(Buffer.from(await response.arrayBuffer())).metadata();
    expect(metadata).toMatchObject({ format: "png", width: 256, height: 128, hasAlpha: true });
    expect(lastAsked().body).toMatchObject({ size: "256x128", background: "transparent", quality: "hd" });
  });

  it("generates it again with no-cache", async () => {
    app.upstream.replyAlways(json(imagesObject([png])));

    await client.get("/image/repeated");
    const repeated = await client.get("/image/repeated?no-cache=true");

    expect(Object.fromEntries(repeated.headers)).toMatchObject({ "x-cache": "MISS", "x-cost": "0.04" });
  });

  it("passes on seed, negative_prompt, reasoning and reference images", async () => {
    files.replyNext(raw(png), raw(png));
    app.upstream.replyNext(json(imagesObject([png])));
    const image = encodeURIComponent(`${fileUrl}?a=1,2|${fileUrl}`);

    const answer = await client.get(`/image/fox?seed=3&negative_prompt=cats&reasoning=true&image=${image}`);

    expect(answer.status).toBe(200);
    expect(
      files.requests
        .slice(-2)
        .map(({ path }) => path)
        .sort(),
    ).toEqual(["/picture", "/picture?a=1,2"]);
    const form = await lastForm();
    expect(Object.fromEntries([...form].filter(([, value]) => typeof value === "string"))).toMatchObject({
      seed: "3",
      negative_prompt: "cats",
      reasoning: "true",
    });
    expect(form.getAll("image[]")).toHaveLength(2);
  });

  it("warns of parameters without an effect on a picture", async () => {
    app.upstream.replyNext(json(imagesObject([png])));

    const answer = await client.get("/image/still?duration=3&audio=1");

    expect(answer.headers.get("x-warnings")).toBe("duration has no effect on a picture.; audio has no effect on a picture.");
  });

  const refused: readonly (readonly [query: string, param: string])[] = [
    ["width=0", "width"],
    ["width=-1", "width"],
    ["width=1e9", "width"],
    ["width=1024px", "width"],
    ["width=63", "width"],
    ["width=4097", "width"],
    ["height=63", "height"],
    ["height=4097", "height"],
    ["height=100.5", "height"],
    ["seed=-2", "seed"],
    ["seed=1.5", "seed"],
    ["enhance=yes", "enhance"],
    ["transparent=TRUE", "transparent"],
    ["quality=ultra", "quality"],
    ["quality=auto", "quality"],
    ["duration=0", "duration"],
    ["duration=11", "duration"],
    ["duration=2.5", "duration"],
    ["aspectRatio=1:1", "aspectRatio"],
    ["no-cache=maybe", "no-cache"],
    ["model=acme/chat", "model"],
    ["image=ftp://example.com/a.png", "image"],
    ["image=http://localhost/a.png|data:image/png;base64,AAAA", "image"],
    [`image=${encodeURIComponent("http://localhost/a.png|https://10.0.0.1")}`, "image"],
    [`image=${Array.from({ length: 11 }, () => "http://localhost/").join(",")}`, "image"],
    ["colour=red", "colour"],
  ];
  for (const [query, param] of refused) {
    it(`refuses ${query}`, () => expectRefused(client.get(`/image/fox?${query}`), param));
  }

  it("refuses an empty prompt, and callers without a key", async () => {
    await expectRefused(client.get("/image/%20"), "prompt");
    expectEnvelope(await client.get("/image/fox", { key: null }), 401, "UNAUTHORIZED");
  });

  it("answers HEAD without generating anything", async () => {
    const asked = app.upstream.requests.length;

    const answer = await client.request("HEAD", "/image/never-made?transparent=true");

    expect(answer).toMatchObject({ status: 200, text: "" });
    expect(answer.headers.get("content-type")).toBe("image/png");
    expect(app.upstream.requests).toHaveLength(asked);
  });

  it("does not charge or keep a failure", async () => {
    app.upstream.replyNext(errorReply(500), json(imagesObject([png])));

    expectEnvelope(await client.get("/image/second-try"), 502, "UPSTREAM_ERROR");
    expect((await client.get("/image/second-try")).headers.get("x-cache")).toBe("MISS");
  });
});

/** A PNG whose header claims 30,000 x 30,000 pixels. */
function bomb(small: Buffer): Buffer {
  const claimed = Buffer.from(small);
  claimed.writeUInt32BE(30_000, 16);
  claimed.writeUInt32BE(30_000, 20);
  return claimed;
}
