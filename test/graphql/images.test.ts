import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { EditImageDocument, GenerateImageDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { imagesObject, imageUsage, picture } from "../support/pictures.js";
import { errorReply, json } from "../support/upstream-replies.js";
import { codes, execute, ok } from "./client.js";

let app: TestApp;
let png: Buffer;
beforeAll(async () => {
  app = await createTestApp();
  png = await picture();
});
afterAll(async () => {
  const { pool } = app.database;
  expect(await findBrokenInvariants(pool, { isIdle: true })).toEqual({});
  await app.close();
});

function file(content: Uint8Array): File {
  return new File([new Uint8Array(content)], "../picture.png");
}

describe("generateImage", () => {
  it("answers the picture and its receipt", async () => {
    app.upstream.replyNext(json(imagesObject([png], imageUsage(10, 0, 272))));

    const answer = await execute(app, GenerateImageDocument, {
      input: {
        model: "acme/image-tokens",
        prompt: "A fox",
        size: "256x128",
        quality: "LOW",
        seed: 4,
        negativePrompt: "cats",
        extra: { style: "vivid" },
      },
    });

    expect(ok(answer).generateImage).toEqual({
      createdAt: expect.stringMatching(/^\d{4}-/),
      images: [{ base64: png.toString("base64"), url: null, contentType: "image/png", revisedPrompt: null }],
      receipt: {
        generationId: expect.any(String),
        modelId: "acme/image-tokens",
        modelUsedId: "acme/image-tokens",
        cost: "0.01093",
        held: expect.any(String),
        usageSource: "PROVIDER",
        usage: { outputImageTokens: 272 },
        warnings: [],
      },
    });
    expect(app.upstream.requests.at(-1)?.json).toMatchObject({
      prompt: "A fox",
      size: "256x128",
      quality: "low",
      seed: 4,
      negative_prompt: "cats",
      style: "vivid",
    });
  });

  it("answers links on request, in the requested format", async () => {
    app.upstream.replyNext(json(imagesObject([png])));

    const answer = await execute(app, GenerateImageDocument, { input: { prompt: "A fox", responseFormat: "URL", outputFormat: "JPEG" } });

    const [image] = ok(answer).generateImage.images;
    expect(image).toMatchObject({ base64: null, contentType: "image/jpeg", url: expect.stringMatching(/\/media\/[0-9a-f]{16}$/) });
  });

  it("refuses the same input as REST, with its own names", async () => {
    const answer = await execute(app, GenerateImageDocument, {
      input: { prompt: "", size: "64x4097", n: 11, images: ["ftp://a.example/"] },
    });
    const guarded = await execute(app, GenerateImageDocument, { input: { prompt: "a", images: ["https://127.0.0.1/"] } });
    const twice = await execute(app, GenerateImageDocument, { input: { prompt: "a", extra: { negative_prompt: "b" } } });

    expect(codes(answer)).toEqual(["BAD_REQUEST"]);
    expect(answer.errors?.[0]?.extensions.details).toMatchObject({
      fieldErrors: { prompt: expect.any(Array), n: expect.any(Array), size: expect.any(Array) },
    });
    expect(guarded.errors?.[0]?.extensions).toMatchObject({ code: "BAD_REQUEST", param: "images" });
    expect(twice.errors?.[0]?.extensions).toMatchObject({ code: "BAD_REQUEST", param: "extra.negative_prompt" });
  });

  it("costs nothing when the upstream fails, or no field selects it", async () => {
    app.upstream.replyNext(errorReply(500));

    expect(codes(await execute(app, GenerateImageDocument, { input: { prompt: "a" } }))).toEqual(["UPSTREAM_ERROR"]);
    expect(codes(await execute({ ...app, key: null }, GenerateImageDocument, { input: { prompt: "a" } }))).toEqual(["UNAUTHORIZED"]);
  });
});

describe("editImage", () => {
  it("takes pictures as files and as data, and a mask", async () => {
    app.upstream.replyNext(json(imagesObject([png])));
    const images = [`data:image/png;base64,${png.toString("base64")}`];
    const files = [file(png), file(await picture(64, 64, "webp"))];

    const answer = await execute(app, EditImageDocument, { input: { prompt: "Add a hat", images, files, mask: file(png) } });

    expect(ok(answer).editImage).toMatchObject({ images: [{ base64: png.toString("base64") }], receipt: { cost: "0.04" } });
    const asked = app.upstream.requests.at(-1);
    const form = await new Response(new Uint8Array(asked?.body ?? []), {
      headers: { "content-type": asked?.headers["content-type"] ?? "" },
    }).formData();
    expect((form.getAll("image[]") as File[]).map(({ type }) => type)).toEqual(["image/png", "image/png", "image/webp"]);
    expect(form.has("mask")).toBe(true);
    expect(form.get("prompt")).toBe("Add a hat");
  });

  it("refuses to edit nothing, and a file that is no picture", async () => {
    const nothing = await execute(app, EditImageDocument, { input: { prompt: "a" } });
    const text = await execute(app, EditImageDocument, { input: { prompt: "a", files: [file(Buffer.from("hello"))] } });
    const mask = await execute(app, EditImageDocument, { input: { prompt: "a", files: [file(png)], mask: file(Buffer.from("hello")) } });

    expect(nothing.errors?.[0]?.extensions).toMatchObject({ code: "BAD_REQUEST", param: "images" });
    expect(text.errors?.[0]?.extensions).toMatchObject({ code: "BAD_REQUEST", param: "images" });
    expect(mask.errors?.[0]?.extensions).toMatchObject({ code: "BAD_REQUEST", param: "mask" });
  });
});
