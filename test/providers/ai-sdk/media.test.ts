import { readdirSync, readFileSync } from "node:fs";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { ProviderError } from "../../../src/formats/upstream-error.js";
import { NO_USAGE } from "../../../src/lib/usage.js";
import type { Vendor } from "../../../src/providers/ai-sdk/vendor.js";
import { VENDOR_NAMES, VENDORS, type VendorName } from "../../../src/providers/ai-sdk/vendors.js";
import type { ImageCall, SpeechCall, TranscriptionCall, VideoCall } from "../../../src/providers/media.js";
import type { Provider } from "../../../src/providers/provider.js";
import { type ConnectOptions, connectVendor, VENDOR_KEY } from "../../support/ai-sdk.js";
import { type FakeUpstream, startFakeUpstream } from "../../support/fake-upstream.js";
import { flood, hang, json, raw } from "../../support/upstream-replies.js";

const PNG = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "base64");
const MP4 = Buffer.from("0000001c667479706d703432000000006d70343269736f6d61766331", "hex");

let upstream: FakeUpstream;
const open: Provider[] = [];
beforeEach(async () => {
  upstream = await startFakeUpstream();
});
afterEach(() => upstream.close());
afterAll(() => Promise.all(open.map((provider) => provider.close())));

function connect(vendor: VendorName, options: ConnectOptions = {}): Provider {
  const provider = connectVendor(upstream, vendor, options);
  open.push(provider);
  return provider;
}

const signal = new AbortController().signal;
const image: ImageCall = {
  upstreamModel: "",
  signal,
  extra: {},
  prompt: "a red square",
  size: { width: 1024, height: 768 },
  count: 1,
  seed: null,
  negativePrompt: null,
  quality: null,
  isTransparent: false,
  format: null,
  reasoning: null,
  images: [],
  mask: null,
};
const video: VideoCall = {
  upstreamModel: "",
  signal,
  extra: {},
  prompt: "a wave",
  size: null,
  aspectRatio: "16:9",
  seconds: 5,
  hasAudio: false,
  seed: null,
  negativePrompt: null,
  images: [],
  onProgress: () => undefined,
};
const speech: SpeechCall = {
  upstreamModel: "",
  signal,
  extra: {},
  input: "Hello.",
  voice: "rachel",
  format: "mp3",
  speed: null,
  instructions: null,
};
const recording: TranscriptionCall = {
  upstreamModel: "",
  signal,
  extra: {},
  audio: { bytes: Buffer.from("RIFF"), contentType: "audio/wav", name: "a.wav" },
  language: null,
  prompt: null,
  temperature: null,
  wantsSegments: false,
  wantsWords: false,
};

async function failureOf(promise: Promise<unknown> | undefined): Promise<ProviderError> {
  const error = await promise?.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(ProviderError);
  return error as ProviderError;
}

async function join(chunks: AsyncIterable<Uint8Array> | undefined): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const chunk of chunks ?? []) parts.push(chunk);
  return Buffer.concat(parts);
}

describe("the vendors' rows", () => {
  it("import no package of the AI SDK before a call", () => {
    const folder = new URL("../../../src/providers/ai-sdk/", import.meta.url);
    const lines = readdirSync(folder).flatMap((file) => readFileSync(new URL(file, folder), "utf8").split(";\n"));

    const imports = lines.filter((line) => /from "@ai-sdk\/|^import "@ai-sdk/m.test(line));
    expect(imports.length).toBeGreaterThan(0);
    expect(imports.filter((line) => !/import type\b/.test(line))).toEqual([]);
  });

  it.each(VENDOR_NAMES)("%s has a package that knows every model its row offers", async (name) => {
    const vendor: Vendor = VENDORS[name];
    const { load, chat, image, video, speech, transcription, embedding } = vendor;
    const models = await load({ apiKey: VENDOR_KEY, fetch });
    if (chat) expect(models.languageModel?.("m").specificationVersion).toBe("v3");
    if (image) expect(models.imageModel?.("m").specificationVersion).toBe("v3");
    if (video) expect(models.videoModel?.("m").specificationVersion).toBe("v3");
    if (speech) expect(models.speechModel?.("m").specificationVersion).toBe("v3");
    if (transcription) expect(models.transcriptionModel?.("m").specificationVersion).toBe("v3");
    if (embedding) expect(models.embeddingModel?.("m").specificationVersion).toBe("v3");
  });
});

describe("pictures", () => {
  it("of fal are requested one at a time, fetched without the key, and typed by their bytes", async () => {
    const answer = json({
      images: [{ url: "https://cdn.example/1.png", content_type: "image/jpeg", width: 1, height: 1 }],
      prompt: "a red square",
    });
    upstream.replyAlways(answer);
    const fetched: string[] = [];
    const provider = connect("fal", {
      fetchFile: async (url) => {
        fetched.push(url);
        return { bytes: PNG, contentType: "" };
      },
    });
    const result = await provider.image?.generate({
      ...image,
      upstreamModel: "fal-ai/flux/dev",
      count: 2,
      seed: 7,
      format: "png",
      negativePrompt: "blue",
      quality: "hd",
      extra: { odd: 1, provider_options: { fal: { guidanceScale: 3 } } },
      images: [
        { bytes: PNG, contentType: "image/png", name: "a.png" },
        { bytes: PNG, contentType: "image/png", name: "b.png" },
      ],
    });
    const request = await upstream.nextRequest();
    const other = await upstream.nextRequest();

    expect(request).toMatchObject({ method: "POST", path: "/v1/fal-ai/flux/dev", headers: { authorization: `Key ${VENDOR_KEY}` } });
    const reference = `data:image/png;base64,${PNG.toString("base64")}`;
    expect(request.json).toEqual({
      prompt: "a red square",
      seed: 7,
      image_size: { width: 1024, height: 768 },
      num_images: 1,
      image_urls: [reference, reference],
      output_format: "png",
      guidance_scale: 3,
    });
    expect(other.json).toMatchObject({ seed: 8 });
    expect(fetched).toEqual(["https://cdn.example/1.png", "https://cdn.example/1.png"]);
    expect(result?.images).toEqual(Array(2).fill({ bytes: expect.anything(), contentType: "image/png", revisedPrompt: null }));
    expect(Buffer.from(result?.images[0]?.bytes ?? []).equals(PNG)).toBe(true);
    expect(result?.usage).toBeNull();
    expect(result?.warnings).toEqual([
      "negative_prompt: this upstream has no such option.",
      "quality: this upstream has no such option.",
      "odd: this upstream has no such option.",
    ]);
  });

  it.each([
    ["standard", "standard"],
    ["medium", "standard"],
    ["hd", "premium"],
  ])("of Amazon are requested in its own words: %s is %s", async (quality, word) => {
    upstream.replyNext(json({ images: [PNG.toString("base64")] }));

    await connect("amazon-bedrock").image?.generate({ ...image, upstreamModel: "amazon.nova-canvas-v1:0", quality });

    expect((await upstream.nextRequest()).json).toMatchObject({ imageGenerationConfig: { quality: word } });
  });

  it("of Replicate are requested by aspect ratio and waited for", async () => {
    const file = `${upstream.baseUrl.slice(0, -3)}/files/1.png`;
    upstream.replyNext(
      json({ id: "p1", status: "succeeded", output: [file] }, { status: 201 }),
      raw(PNG, { headers: { "content-type": "image/png" } }),
    );
    const result = await connect("replicate").image?.generate({
      ...image,
      upstreamModel: "black-forest-labs/flux-schnell",
      format: "jpeg",
      negativePrompt: "blue",
    });
    const request = await upstream.nextRequest();

    expect(request.path).toBe("/v1/models/black-forest-labs/flux-schnell/predictions");
    expect(request.headers).toMatchObject({ authorization: `Bearer ${VENDOR_KEY}`, prefer: "wait" });
    expect(request.json).toEqual({
      input: { prompt: "a red square", aspect_ratio: "4:3", num_outputs: 1, negative_prompt: "blue", output_format: "jpg" },
    });
    expect(result?.images).toHaveLength(1);
    expect(result?.warnings).toEqual(["size: this upstream makes pictures of an aspect ratio, 4:3 for 1024x768."]);
  });

  it("of Replicate that take longer are polled for, and one that it gives up is its failure", async () => {
    const { baseUrl } = upstream;
    const urls = { get: "https://api.replicate.com/v1/predictions/p1" };
    upstream.replyNext(
      json({ id: "p1", status: "processing", output: null, urls }, { status: 202 }),
      json({ id: "p1", status: "succeeded", output: `${baseUrl}/files/1.png`, urls }),
      raw(PNG),
      json({ id: "p2", status: "failed", output: null, error: "NSFW content detected.", urls }, { status: 201 }),
    );
    const provider = connect("replicate");
    const call = { ...image, upstreamModel: "black-forest-labs/flux-dev" };
    const result = await provider.image?.generate(call);

    expect(upstream.requests.map(({ path }) => path)).toEqual([
      "/v1/models/black-forest-labs/flux-dev/predictions",
      "/v1/predictions/p1",
      "/v1/files/1.png",
    ]);
    expect(upstream.requests[1]?.headers.authorization).toBe(`Bearer ${VENDOR_KEY}`);
    expect(result?.images).toHaveLength(1);
    expect(await failureOf(provider.image?.generate(call))).toMatchObject({
      kind: "status",
      status: 502,
      upstreamMessage: "NSFW content detected.",
    });
  });

  it("of Black Forest Labs are polled for", async () => {
    const base = upstream.baseUrl;
    upstream.replyNext(
      json({ id: "t1", polling_url: `${base}/get_result?id=t1` }),
      json({ status: "Pending" }),
      json({ status: "Ready", result: { sample: `${base}/sample.png` } }),
      raw(PNG, { headers: { "content-type": "image/png" } }),
    );
    const result = await connect("black-forest-labs").image?.generate({ ...image, upstreamModel: "flux-pro-1.1" });

    expect(upstream.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
      "POST /v1/flux-pro-1.1",
      "GET /v1/get_result?id=t1",
      "GET /v1/get_result?id=t1",
      "GET /v1/sample.png",
    ]);
    expect(result?.images[0]?.contentType).toBe("image/png");
  });

  it("of Gemini are billed by the tokens that it reports, of Imagen they come several at a time", async () => {
    const data = PNG.toString("base64");
    upstream.replyNext(
      json({
        candidates: [{ content: { role: "model", parts: [{ inlineData: { mimeType: "image/png", data } }] }, finishReason: "STOP" }],
        usageMetadata: { promptTokenCount: 9, candidatesTokenCount: 1290, totalTokenCount: 1299 },
      }),
      json({ predictions: [{ bytesBase64Encoded: data }, { bytesBase64Encoded: data }, { bytesBase64Encoded: data }] }),
    );
    const provider = connect("google");
    const gemini = await provider.image?.generate({ ...image, upstreamModel: "gemini-3.1-flash-image" });
    const imagen = await provider.image?.generate({ ...image, upstreamModel: "imagen-4.0-generate-001", count: 3 });

    expect(gemini?.usage).toEqual({ ...NO_USAGE, inputTextTokens: 9, outputImageTokens: 1290 });
    expect(imagen?.images).toHaveLength(3);
    expect(upstream.requests[1]?.json).toEqual({
      instances: [{ prompt: "a red square" }],
      parameters: { sampleCount: 3, aspectRatio: "4:3" },
    });
  });

  it("are not read without end", async () => {
    upstream.replyAlways(flood("x".repeat(1024 * 1024)));

    expect(await failureOf(connect("google").image?.generate({ ...image, upstreamModel: "imagen-4.0-generate-001" }))).toMatchObject({
      kind: "invalid-response",
    });
    expect(await (await upstream.nextRequest()).closedByClient).toBeGreaterThan(0);
  });

  it("that are no pictures, or too few, are no answer, and a refusal before anything was sent is the caller's", async () => {
    const provider = connect("google");
    upstream.replyNext(json({ predictions: [{ bytesBase64Encoded: "aGVsbG8=" }] }), json({ predictions: [{ raiFilteredReason: "no" }] }));
    const imagen = { ...image, upstreamModel: "imagen-4.0-generate-001" };

    expect(await failureOf(provider.image?.generate(imagen))).toMatchObject({ kind: "invalid-response" });
    expect(await failureOf(provider.image?.generate(imagen))).toMatchObject({ kind: "invalid-response" });
    const withMask = { ...imagen, mask: { bytes: PNG, contentType: "image/png", name: "m.png" } };
    expect(await failureOf(provider.image?.generate(withMask))).toMatchObject({ kind: "status", status: 400 });
    expect(upstream.requests).toHaveLength(2);
  });
});

describe("films", () => {
  it("of Replicate are started, polled for and fetched", async () => {
    const { baseUrl } = upstream;
    const urls = { get: "https://api.replicate.com/v1/predictions/v1" };
    upstream.replyNext(
      json({ id: "v1", status: "starting", urls }, { status: 201 }),
      json({ id: "v1", status: "succeeded", output: `${baseUrl}/files/v1.mp4`, urls }),
      raw(MP4, { headers: { "content-type": "video/mp4" } }),
    );
    const result = await connect("replicate").video?.generate({
      ...video,
      upstreamModel: "minimax/video-01",
      negativePrompt: "fog",
      hasAudio: true,
    });

    expect(upstream.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
      "POST /v1/models/minimax/video-01/predictions",
      "GET /v1/predictions/v1",
      "GET /v1/files/v1.mp4",
    ]);
    expect(upstream.requests[0]?.json).toMatchObject({
      input: { prompt: "a wave", aspect_ratio: "16:9", duration: 5, negative_prompt: "fog" },
    });
    expect(result).toMatchObject({ contentType: "video/mp4", durationMs: null, usage: null });
    expect(Buffer.from(result?.bytes ?? []).equals(MP4)).toBe(true);
    expect(result?.warnings).toEqual(["audio: this upstream has no such option."]);
  });

  it("are not waited for by a caller who has gone", async () => {
    upstream.replyNext(json({ id: "v1", status: "starting", urls: { get: `${upstream.baseUrl}/predictions/v1` } }, { status: 201 }));
    upstream.replyAlways(hang());
    const controller = new AbortController();
    const film = connect("replicate").video?.generate({ ...video, upstreamModel: "minimax/video-01", signal: controller.signal });
    await upstream.nextRequest();
    const reason = new Error("gone");
    controller.abort(reason);

    await expect(film).rejects.toBe(reason);
  });
});

describe("speech", () => {
  it("of ElevenLabs knows the voices by their names, and refuses a format that it has not", async () => {
    upstream.replyAlways(raw(Buffer.alloc(100_000, 1), { headers: { "content-type": "audio/mpeg" } }));
    const provider = connect("elevenlabs");
    const spoken = await provider.speech?.stream({
      ...speech,
      upstreamModel: "eleven_multilingual_v2",
      speed: 1.1,
      instructions: "whisper",
    });
    const request = await upstream.nextRequest();

    expect(request).toMatchObject({ method: "POST", path: "/v1/text-to-speech/21m00Tcm4TlvDq8ikWAM?output_format=mp3_44100_128" });
    expect(request.headers["xi-api-key"]).toBe(VENDOR_KEY);
    expect(request.json).toEqual({ text: "Hello.", model_id: "eleven_multilingual_v2", voice_settings: { speed: 1.1 } });
    expect(spoken).toMatchObject({ contentType: "audio/mpeg", warnings: ["instructions: this upstream has no such option."] });
    expect(await join(spoken?.chunks)).toHaveLength(100_000);

    const flac = failureOf(provider.speech?.stream({ ...speech, upstreamModel: "eleven_multilingual_v2", format: "flac" }));
    expect(await flac).toMatchObject({ status: 400, upstreamParam: "response_format" });
    expect(upstream.requests).toHaveLength(1);
  });

  it("of Deepgram has its voice in the model's name", async () => {
    upstream.replyAlways(raw("OggS", { headers: { "content-type": "audio/ogg" } }));
    const spoken = await connect("deepgram").speech?.stream({ ...speech, upstreamModel: "aura-2-helena-en", format: "opus" });

    expect((await upstream.nextRequest()).path).toBe("/v1/speak?model=aura-2-helena-en&encoding=opus&container=ogg");
    expect(spoken).toMatchObject({ contentType: "audio/ogg", warnings: ["voice: this upstream's voice is part of the model's name."] });
  });

  it("fails with the vendor's words", async () => {
    upstream.replyAlways(json({ detail: { status: "voice_not_found", message: "No such voice." } }, { status: 400 }));
    const failure = failureOf(connect("elevenlabs").speech?.stream({ ...speech, upstreamModel: "eleven_multilingual_v2" }));

    expect(await failure).toMatchObject({ kind: "status", status: 400, upstreamMessage: "No such voice." });
  });
});

describe("transcription", () => {
  it("of Deepgram states the recording's length and its words", async () => {
    const words = [
      { word: "hello", start: 0.1, end: 0.5, confidence: 1 },
      { word: "there", start: 0.6, end: 1, confidence: 1 },
    ];
    upstream.replyAlways(
      json({
        metadata: { duration: 12.3456 },
        results: { channels: [{ detected_language: "en", alternatives: [{ transcript: "Hello there.", confidence: 1, words }] }] },
      }),
    );
    const provider = connect("deepgram");
    const answer = await provider.transcription?.transcribe({
      ...recording,
      upstreamModel: "nova-3",
      prompt: "names",
      temperature: 0,
      wantsSegments: true,
    });
    const request = await upstream.nextRequest();

    expect(request).toMatchObject({ method: "POST", path: "/v1/listen?model=nova-3&diarize=false&detect_language=true&smart_format=true" });
    expect(request.headers).toMatchObject({ authorization: `Token ${VENDOR_KEY}`, "content-type": "audio/wav" });
    expect(request.body.toString()).toBe("RIFF");
    expect(answer).toEqual({
      text: "Hello there.",
      language: "en",
      durationMs: 12_346,
      segments: [{ text: "hello there", start: 0.1, end: 1 }],
      words: [
        { text: "hello", start: 0.1, end: 0.5 },
        { text: "there", start: 0.6, end: 1 },
      ],
      usage: null,
      warnings: ["prompt: this upstream has no such option.", "temperature: this upstream has no such option."],
    });
    await provider.transcription?.transcribe({ ...recording, upstreamModel: "nova-3", language: "de" });
    expect((await upstream.nextRequest()).path).toBe("/v1/listen?model=nova-3&diarize=false&language=de&smart_format=true");
  });

  it("of ElevenLabs travels as a form, and does not take the last word for the end", async () => {
    const words = [
      { text: "Hi", type: "word", start: 0, end: 0.4 },
      { text: " ", type: "spacing", start: 0.4, end: 0.5 },
    ];
    upstream.replyAlways(json({ language_code: "en", language_probability: 1, text: "Hi", words }));
    const answer = await connect("elevenlabs").transcription?.transcribe({ ...recording, upstreamModel: "scribe_v1", language: "en" });
    const request = await upstream.nextRequest();

    expect(request.path).toBe("/v1/speech-to-text");
    expect(request.headers["content-type"]).toMatch(/^multipart\/form-data; boundary=/);
    const form = request.body.toString();
    for (const field of ['name="model_id"\r\n\r\nscribe_v1', 'name="language_code"\r\n\r\nen', 'filename="audio.wav"'])
      expect(form).toContain(field);
    expect(answer).toMatchObject({ text: "Hi", language: "en", durationMs: null, words: [{ text: "Hi", start: 0, end: 0.4 }] });
  });
});

describe("embeddings", () => {
  it("of Cohere come in batches, with the tokens of all of them", async () => {
    const inputs = Array.from({ length: 100 }, (_, index) => `text ${index}`);
    const batch = (size: number, tokens: number) =>
      json({
        id: "e",
        embeddings: { float: Array.from({ length: size }, () => [0.1, 0.2]) },
        texts: [],
        meta: { billed_units: { input_tokens: tokens } },
      });
    upstream.replyNext(batch(96, 200), batch(4, 9));
    const answer = await connect("cohere").embedding?.embed({ upstreamModel: "embed-v4.0", signal, extra: {}, inputs, dimensions: 512 });

    expect(upstream.requests.map(({ path }) => path)).toEqual(["/v1/embed", "/v1/embed"]);
    expect(upstream.requests[0]?.json).toMatchObject({ model: "embed-v4.0", output_dimension: 512 });
    expect(answer?.vectors).toHaveLength(100);
    expect(answer?.usage).toEqual({ ...NO_USAGE, inputTextTokens: 209 });
  });

  it("of Gemini are counted by the gateway, because it reports no tokens", async () => {
    upstream.replyAlways(json({ embedding: { values: [1, 2, 3] } }));
    const answer = await connect("google").embedding?.embed({
      upstreamModel: "gemini-embedding-001",
      signal,
      extra: {},
      inputs: ["hi"],
      dimensions: null,
    });

    expect(answer).toMatchObject({ vectors: [[1, 2, 3]], usage: null });
  });

  it("are not made of token numbers", async () => {
    const answer = connect("google").embedding?.embed({
      upstreamModel: "gemini-embedding-001",
      signal,
      extra: {},
      inputs: [[1, 2]],
      dimensions: null,
    });

    expect(await failureOf(answer)).toMatchObject({ status: 400, upstreamParam: "input" });
  });
});
