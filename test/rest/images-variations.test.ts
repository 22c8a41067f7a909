/** POST /v1/images/variations: with the official client and by hand. */
import OpenAI, { toFile } from "openai";
import sharp from "sharp";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { execute, ok } from "../graphql/client.js";
import { VaryImageDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { imagesObject, imageUsage, picture } from "../support/pictures.js";
import { errorReply, json } from "../support/upstream-replies.js";
import { type Client, createClient, createKey, expectEnvelope, waitForUsage } from "./client.js";

let app: TestApp;
let client: Client;
let openai: OpenAI;
let png: Buffer;
let data: string;

beforeAll(async () => {
  const image = { modality: "image", upstream: "acme", title: "Image", prices: { completionImagePrice: "0.04" } };
  app = await createTestApp({
    models: [
      { ...image, id: "acme/plain", upstreamModel: "plain" },
      { ...image, id: "acme/dall-e-2", upstreamModel: "dall-e-2", variations: true, fallbacks: ["acme/plain", "acme/image"] },
    ],
  });
  client = createClient(app.baseUrl, app.key);
  openai = new OpenAI({ apiKey: app.key, baseURL: `${app.baseUrl}/v1`, maxRetries: 0 });
  png = await picture();
  data = `data:image/png;base64,${png.toString("base64")}`;
});
afterAll(async () => {
  const { pool } = app.database;
  expect(await findBrokenInvariants(pool, { isIdle: true })).toEqual({});
  await app.close();
});

async function lastForm(): Promise<{ readonly path: string; readonly form: FormData }> {
  const request = app.upstream.requests.at(-1);
  if (!request) throw new Error("The upstream was not asked.");
  const headers = { "content-type": request.headers["content-type"] ?? "" };
  return { path: request.path, form: await new Response(new Uint8Array(request.body), { headers }).formData() };
}

describe("POST /v1/images/variations", () => {
  it("sends the official client's image without a prompt, and charges each variation of a model priced by tokens", async () => {
    app.upstream.replyNext(json(imagesObject([png, png], imageUsage(0, 323, 2_112))));

    const varied = await openai.images.createVariation({
      model: "acme/image-tokens",
      image: await toFile(png, "../../secret name.png", { type: "image/png" }),
      n: 2,
      size: "256x256",
      response_format: "b64_json",
      user: "u-1",
    });

    expect(varied.data?.map(({ b64_json }) => b64_json)).toEqual([png.toString("base64"), png.toString("base64")]);
    const { path, form } = await lastForm();
    expect(path).toBe("/v1/images/variations");
    expect([...form.keys()].sort()).toEqual(["image", "model", "n", "response_format", "size", "user"]);
    expect([form.get("model"), form.get("n"), form.get("size"), form.get("user")]).toEqual([
      "upstream-image-tokens",
      "2",
      "256x256",
      "u-1",
    ]);
    expect((form.get("image") as File).name).toBe("image-1.png");
    const row = await waitForUsage(client, ({ input_image_tokens }) => input_image_tokens === 323);
    // 323 x 0.00001 + 2112 x 0.00004
    expect(row.cost_usd).toBe(0.08771);
  });

  it("takes a link, and answers links", async () => {
    app.upstream.replyNext(json(imagesObject([png])));

    const answer = await client.post("/v1/images/variations", { model: "acme/image", image: data, response_format: "url" });

    expect([answer.status, answer.headers.get("x-cost")]).toEqual([200, "0.04"]);
    expect(answer.json<{ data: { url: string }[] }>().data[0]?.url).toMatch(/^http/);
  });

  it("is served by the first model that can when none is named", async () => {
    app.upstream.replyNext(json(imagesObject([png])));

    const answer = await client.post("/v1/images/variations", { image: data });

    expect([answer.status, answer.headers.get("x-model-used")]).toEqual([200, "acme/image"]);
  });

  it("skips fallbacks without variations", async () => {
    app.upstream.replyNext(errorReply(500), json(imagesObject([png])));

    const answer = await client.post("/v1/images/variations", { model: "acme/dall-e-2", image: data });

    expect([answer.status, answer.headers.get("x-fallback")]).toEqual([200, "acme/image"]);
  });

  it("refuses another model, naming those that the key may call", async () => {
    const { key } = await createKey(app, { allowedModels: ["acme/plain", "acme/dall-e-2"] });
    const asked = app.upstream.requests.length;

    const answer = await client.post("/v1/images/variations", { model: "acme/plain", image: data }, { key });

    expectEnvelope(answer, 400, "BAD_REQUEST");
    expect(answer.json()).toMatchObject({
      error: {
        param: "model",
        message: "acme/plain makes no variations. Models that do: acme/dall-e-2. POST /v1/images/edits takes an image and a prompt.",
      },
    });
    expect(app.upstream.requests).toHaveLength(asked);
  });

  it("says when a key may call no model that can", async () => {
    const { key } = await createKey(app, { allowedModels: ["acme/plain"] });

    const answer = await client.post("/v1/images/variations", { image: data }, { key });

    expectEnvelope(answer, 400, "BAD_REQUEST");
    expect(answer.text).toContain("No model here makes variations.");
  });

  it.each([
    ["image", {}],
    ["image", { image: "nonsense" }],
    ["image", { image: ["https://example.com/a.png", "https://example.com/b.png"] }],
    ["prompt", { prompt: "At night" }],
    ["mask", { mask: "https://example.com/a.png" }],
    ["n", { n: 11 }],
    ["size", { size: "1x1" }],
    ["stream", { stream: true }],
  ])("refuses a wrong %s: %j", async (param, fields) => {
    const body = param === "image" ? fields : { image: data, ...fields };
    const answer = await client.post("/v1/images/variations", { model: "acme/image", ...body });

    expectEnvelope(answer, 400, "BAD_REQUEST");
    expect(answer.json<{ error: { param: string } }>().error.param).toMatch(new RegExp(`^${param}`));
  });

  it("draws other pictures of the sandbox's model, at the price of its twin", async () => {
    const answer = await client.post("/v1/images/variations", { model: "sandbox/image-paid", image: data, n: 2, size: "96x64" });
    const pictures = answer.json<{ data: { b64_json: string }[] }>().data.map(({ b64_json }) => Buffer.from(b64_json, "base64"));

    expect([answer.status, answer.headers.get("x-cost")]).toEqual([200, "0.02"]);
    const [one, other] = await Promise.all(pictures.map((bytes) => sharp(bytes).metadata()));
    expect([one?.width, one?.height, other?.width]).toEqual([96, 64, 96]);
    expect(pictures[0]).not.toEqual(pictures[1]);
  });
});

describe("varyImage", () => {
  it("makes the same call", async () => {
    app.upstream.replyNext(json(imagesObject([png])));

    const file = new File([new Uint8Array(png)], "picture.png");
    const answer = await execute(app, VaryImageDocument, { input: { model: "acme/image", file, n: 1, extra: { user: "u-2" } } });

    expect(ok(answer).varyImage).toMatchObject({ images: [{ base64: png.toString("base64") }], receipt: { cost: "0.04" } });
    const { path, form } = await lastForm();
    expect([path, form.get("user"), form.get("prompt")]).toEqual(["/v1/images/variations", "u-2", null]);
  });

  it("refuses two images", async () => {
    const file = new File([new Uint8Array(png)], "picture.png");
    const { errors } = await execute(app, VaryImageDocument, { input: { model: "acme/image", file, image: data } });

    expect(errors?.[0]?.message).toContain("image");
  });
});
