/** Pictures over OpenAI's wire format: the exact requests, and every form in which an answer comes. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ProviderError } from "../../../src/formats/upstream-error.js";
import { OutboundError, OutboundGuard } from "../../../src/lib/outbound-guard.js";
import type { ImageCall } from "../../../src/providers/media.js";
import { toImageUsage } from "../../../src/providers/openai/images.js";
import { createOpenAiProvider } from "../../../src/providers/openai/openai.js";
import type { Provider } from "../../../src/providers/provider.js";
import { type FakeUpstream, startFakeUpstream } from "../../support/fake-upstream.js";
import { imagesObject, imageUsage, picture } from "../../support/pictures.js";
import { errorReply, hang, json, type Reply, raw, sse } from "../../support/upstream-replies.js";

const API_KEY = "sk-upstream-secret-1234567890";
const timeouts = { connectMs: 10_000, idleMs: 20_000, totalMs: 60_000 };

let upstream: FakeUpstream;
let provider: Provider;
let png: Buffer;
/** The URLs that the provider fetches, and their pictures. */
let fetched: string[];
let file: Uint8Array | Error;
/** What its next attempts fail with, in order. */
let troubles: Error[];

beforeAll(async () => {
  upstream = await startFakeUpstream();
  png = await picture();
  provider = createOpenAiProvider({
    baseUrl: upstream.baseUrl,
    apiKey: API_KEY,
    timeouts,
    fetchFile: async (url) => {
      fetched.push(url);
      const trouble = troubles.shift();
      if (trouble) throw trouble;
      if (file instanceof Error) throw file;
      return { bytes: file, contentType: "text/html" };
    },
  });
});
beforeEach(() => {
  fetched = [];
  troubles = [];
  file = png;
});
afterAll(async () => {
  await provider.close();
  await upstream.close();
});

function call(more: Partial<ImageCall> = {}): ImageCall {
  return {
    upstreamModel: "flux-2",
    signal: new AbortController().signal,
    extra: {},
    prompt: "A fox",
    size: null,
    count: 1,
    seed: null,
    negativePrompt: null,
    quality: null,
    isTransparent: false,
    format: null,
    reasoning: null,
    images: [],
    mask: null,
    ...more,
  };
}

function generate(more: Partial<ImageCall> = {}) {
  if (!provider.image) throw new Error("The provider makes no pictures.");
  return provider.image.generate(call(more));
}

async function ask(more: Partial<ImageCall>) {
  upstream.replyNext(json(imagesObject([png])));
  const { warnings } = await generate(more);
  return { body: upstream.requests.at(-1)?.json, warnings };
}

const EVERYTHING: Partial<ImageCall> = {
  size: { width: 512, height: 768 },
  count: 3,
  seed: 7,
  negativePrompt: "cats",
  quality: "hd",
  isTransparent: true,
  format: "png",
  reasoning: true,
  extra: { style: "vivid", model: "another", n: 99 },
};

describe("the request", () => {
  it("has the caller's fields alone, with the upstream's key", async () => {
    expect(await ask({})).toEqual({
      body: { model: "flux-2", prompt: "A fox", n: 1, response_format: "b64_json" },
      warnings: [],
    });
    const request = upstream.requests.at(-1);
    expect(request).toMatchObject({ method: "POST", path: "/v1/images/generations" });
    expect(request?.headers).toMatchObject({
      authorization: `Bearer ${API_KEY}`,
      "content-type": "application/json",
      accept: "application/json",
    });
  });

  it("carries every option to an unknown model", async () => {
    expect(await ask(EVERYTHING)).toEqual({
      body: {
        model: "flux-2",
        prompt: "A fox",
        n: 3,
        size: "512x768",
        seed: 7,
        negative_prompt: "cats",
        quality: "hd",
        background: "transparent",
        reasoning: true,
        response_format: "b64_json",
        style: "vivid",
      },
      warnings: [],
    });
  });

  const seed = "seed has no effect on this model.";
  const negative = "negative_prompt has no effect on this model.";
  const background = "background has no effect on this model.";
  const reasoning = "reasoning has no effect on this model.";
  const quality = "quality has no effect on this model.";
  const style = "style has no effect on this model.";
  const common = { prompt: "A fox", n: 3, size: "512x768" };
  it.each([
    ["gpt-image-1.5", { quality: "high", background: "transparent", output_format: "png" }, [style, seed, negative, reasoning]],
    ["chatgpt-image-latest", { quality: "high", background: "transparent", output_format: "png" }, [style, seed, negative, reasoning]],
    ["dall-e-3", { quality: "hd", style: "vivid", response_format: "b64_json" }, [background, seed, negative, reasoning]],
    ["dall-e-2", { response_format: "b64_json" }, [style, quality, background, seed, negative, reasoning]],
  ])("carries supported options to %s, and warns of the rest", async (upstreamModel, fields, warnings) => {
    expect(await ask({ ...EVERYTHING, upstreamModel })).toEqual({ body: { ...common, model: upstreamModel, ...fields }, warnings });
  });

  it.each([
    ["flux-2", "standard"],
    ["gpt-image-2", "medium"],
    ["dall-e-3", "standard"],
    ["dall-e-2", undefined],
  ])("calls standard for %s by its own word for it", async (upstreamModel, quality) => {
    const { body } = await ask({ upstreamModel, quality: "standard" });

    expect((body as { quality?: string }).quality).toBe(quality);
  });

  it("does not warn of options that were not sent", async () => {
    expect(await ask({ upstreamModel: "gpt-image-2", seed: 0, reasoning: false })).toEqual({
      body: { model: "gpt-image-2", prompt: "A fox", n: 1, quality: "medium" },
      warnings: [],
    });
  });

  it("is a form with pictures to edit", async () => {
    upstream.replyNext(json(imagesObject([png])), json(imagesObject([png])));
    const image = { bytes: png, contentType: "image/png", name: "image-1.png" };

    await generate({ images: [image], mask: { ...image, name: "mask.png" }, extra: { options: { a: 1 }, user: "u" }, count: 2 });
    await generate({ images: [image, { ...image, name: "image-2.png" }] });

    const [one, two] = await Promise.all(upstream.requests.slice(-2).map(toForm));
    expect([...(one?.form.keys() ?? [])].sort()).toEqual(["image", "mask", "model", "n", "options", "prompt", "response_format", "user"]);
    expect(one?.path).toBe("/v1/images/edits");
    expect(one?.form.get("options")).toBe('{"a":1}');
    expect(one?.form.get("n")).toBe("2");
    const sent = one?.form.get("image") as File;
    expect(Buffer.from(await sent.arrayBuffer())).toEqual(png);
    expect(two?.form.getAll("image[]")).toMatchObject([
      { name: "image-1.png", type: "image/png" },
      { name: "image-2.png", type: "image/png" },
    ]);
  });
});

describe("the answer", () => {
  it("may hold base64, a data URL or a URL, known by their bytes", async () => {
    const jpeg = await picture(64, 64, "jpeg");
    file = await picture(64, 64, "webp");
    const data = [
      { b64_json: png.toString("base64"), revised_prompt: "A red fox" },
      { b64_json: jpeg.toString("base64").replace(/=+$/, "") },
      { url: `data:image/png;base64,${png.toString("base64")}` },
      { url: "https://files.example/made.webp", revised_prompt: "" },
    ];
    upstream.replyNext(json({ data, ...imageUsage(5, 0, 100) }));

    const { images, usage } = await generate({ count: 4 });

    expect(images.map(({ contentType }) => contentType)).toEqual(["image/png", "image/jpeg", "image/png", "image/webp"]);
    expect(images.map(({ bytes }) => Buffer.from(bytes))).toEqual([png, jpeg, png, file]);
    expect(images.map(({ revisedPrompt }) => revisedPrompt)).toEqual(["A red fox", null, null, null]);
    expect(fetched).toEqual(["https://files.example/made.webp"]);
    expect(usage).toMatchObject({ inputTextTokens: 5, outputImageTokens: 100, outputTextTokens: 0 });
  });

  const refused: readonly (readonly [what: string, reply: () => Reply, kind: string])[] = [
    ["that is no JSON", () => raw("PNG"), "invalid-response"],
    ["that is a list", () => json([]), "invalid-response"],
    ["without pictures", () => json({ data: [] }), "invalid-response"],
    ["whose data is no list", () => json({ data: {} }), "invalid-response"],
    ["with an item of another kind", () => json({ data: ["x"] }), "invalid-response"],
    ["with an empty item", () => json({ data: [{}] }), "invalid-response"],
    ["with something else as base64", () => json({ data: [{ b64_json: Buffer.from("<svg/>").toString("base64") }] }), "invalid-response"],
    [
      "with a picture that is cut short",
      () => json({ data: [{ b64_json: `${png.toString("base64").slice(0, 50)}*` }] }),
      "invalid-response",
    ],
    ["that is a stream", () => sse([{ type: "image_generation.completed" }]), "invalid-response"],
    ["with an error in it", () => json({ error: { message: "No" } }), "status"],
    ["with the status 500", () => errorReply(500), "status"],
  ];
  for (const [what, reply, kind] of refused) {
    it(`${what} is a failure`, async () => {
      upstream.replyNext(reply());

      await expect(generate()).rejects.toMatchObject({ name: "ProviderError", kind });
    });
  }

  it("whose URL fails temporarily is fetched again, and drawn once", async () => {
    const before = upstream.requests.length;
    troubles = [new OutboundError("answer", "not yet", undefined, 404), new OutboundError("host", "away", new Error("ECONNRESET"))];
    upstream.replyNext(json(imagesObject(["https://files.example/late.png"])));

    const { images } = await generate();

    expect(Buffer.from(images[0]?.bytes ?? []).equals(png)).toBe(true);
    expect(fetched).toEqual(Array(3).fill("https://files.example/late.png"));
    expect(upstream.requests.length - before).toBe(1);
  });

  it("whose URL is refused is not fetched again", async () => {
    troubles = [new OutboundError("host", "not public"), new OutboundError("answer", "no", undefined, 403)];
    upstream.replyNext(json(imagesObject(["https://files.example/a.png"])), json(imagesObject(["https://files.example/b.png"])));

    await expect(generate()).rejects.toMatchObject({ kind: "invalid-response" });
    await expect(generate()).rejects.toMatchObject({ kind: "invalid-response" });

    expect(fetched).toEqual(["https://files.example/a.png", "https://files.example/b.png"]);
  });

  it("whose URL cannot be fetched, or gives something else, is a failure", async () => {
    upstream.replyNext(json(imagesObject(["https://files.example/a"])), json(imagesObject(["https://files.example/b"])));
    file = new Error("unreachable");
    await expect(generate()).rejects.toBeInstanceOf(ProviderError);
    file = Buffer.from("<html>");
    await expect(generate()).rejects.toMatchObject({ kind: "invalid-response" });
  });

  it("is not waited for when the caller has left", async () => {
    upstream.replyNext(hang());
    const leaving = new AbortController();
    const answering = generate({ signal: leaving.signal });
    const seen = upstream.requests.length;
    while (upstream.requests.length === seen) await new Promise((resolve) => setImmediate(resolve));

    leaving.abort(new Error("gone"));

    await expect(answering).rejects.toThrow("gone");
    await upstream.requests.at(-1)?.closedByClient;
  });
});

describe("an upstream that a user named", () => {
  it("is connected to through the guard, which checks every connection", async () => {
    const ask = async (allowHosts: readonly string[]) => {
      const guard = new OutboundGuard({ allowHosts });
      const named = createOpenAiProvider({ baseUrl: upstream.baseUrl, apiKey: null, timeouts, connect: guard.connect });
      const answering = named.image?.generate(call()) ?? Promise.reject(new Error("The provider makes no pictures."));
      return answering.finally(() => Promise.all([named.close(), guard.close()]));
    };
    const seen = upstream.connectionsSeen();

    await expect(ask([])).rejects.toMatchObject({ name: "ProviderError", kind: "network" });
    expect(upstream.connectionsSeen()).toBe(seen);
    upstream.replyNext(json(imagesObject([png])));
    expect((await ask(["127.0.0.1"])).images).toHaveLength(1);
  });
});

describe("usage", () => {
  it.each([
    [
      { input_tokens: 10, output_tokens: 20, total_tokens: 30 },
      { inputTextTokens: 10, outputImageTokens: 20, outputTextTokens: 0 },
    ],
    [
      { input_tokens: 10, output_tokens: 20, input_tokens_details: { text_tokens: 4, image_tokens: 6 } },
      { inputTextTokens: 4, inputImageTokens: 6, outputImageTokens: 20 },
    ],
    [
      { input_tokens: 1, output_tokens: 20, output_tokens_details: { image_tokens: 15, text_tokens: 5 } },
      { outputImageTokens: 15, outputTextTokens: 5 },
    ],
  ])("of %j", (reported, usage) => {
    expect(toImageUsage(reported)).toMatchObject(usage);
  });

  it.each([undefined, null, {}, { input_tokens: -1, output_tokens: 2 }, { input_tokens: 1, output_tokens: 1e12 }])(
    "of %j is none",
    (reported) => {
      expect(toImageUsage(reported)).toBeNull();
    },
  );
});

async function toForm({ body, headers, path }: FakeUpstream["requests"][number]) {
  const response = new Response(new Uint8Array(body), { headers: { "content-type": headers["content-type"] ?? "" } });
  return { path, form: await response.formData() };
}
