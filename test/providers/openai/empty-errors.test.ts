/** An `error` without content in a healthy answer is none, wherever OpenAI's formats have the field. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasErrorContent } from "../../../src/formats/openai-chat/errors.js";
import { OpenAiClient } from "../../../src/providers/openai/client.js";
import { toEndpointAbilities } from "../../../src/providers/openai/endpoint.js";
import { createOpenAiProvider } from "../../../src/providers/openai/openai.js";
import type { Provider } from "../../../src/providers/provider.js";
import { type FakeUpstream, startFakeUpstream } from "../../support/fake-upstream.js";
import { readClip } from "../../support/fake-videos.js";
import { moderation, verdict } from "../../support/moderation-bodies.js";
import { chatCompletion } from "../../support/openai-bodies.js";
import { imagesObject, picture } from "../../support/pictures.js";
import { responseObject, responseStream, textItem } from "../../support/responses-bodies.js";
import { json, raw } from "../../support/upstream-replies.js";

const EMPTY = [null, "", " ", {}, [], false, 0, { code: "", message: "" }, { code: 0, message: "", param: null }, { details: {} }];
const FAILURES = ["No.", true, ["No."], { message: "No." }, { code: 403, message: "" }, { code: "", details: [{ msg: "No." }] }];

const timeouts = { connectMs: 10_000, idleMs: 20_000, totalMs: 60_000 };

let upstream: FakeUpstream;
let provider: Provider;
let client: OpenAiClient;
let png: Buffer;
let clip: Buffer;

beforeAll(async () => {
  upstream = await startFakeUpstream();
  provider = createOpenAiProvider({ baseUrl: upstream.baseUrl, apiKey: null, timeouts });
  client = new OpenAiClient({ baseUrl: `${upstream.baseUrl}/exact`, isExact: true, apiKey: null, timeouts });
  png = await picture();
  clip = await readClip(1);
});
afterAll(async () => {
  await provider.close();
  await client.close();
  await upstream.close();
});

/** Each modality that answers a JSON object: that object, and the call that it answers. */
const MODALITIES: Readonly<Record<string, { answer: () => object; call: () => Promise<unknown> | undefined }>> = {
  chat: {
    answer: () => chatCompletion({ content: "Hi" }),
    call: () => provider.chat?.complete({ ...called(), body: { messages: [{ role: "user", content: "Hi" }] } }),
  },
  responses: {
    answer: () => responseObject([textItem("Hi")]),
    call: () => endpoint("text").chat?.complete({ ...called(), body: { messages: [{ role: "user", content: "Hi" }] } }),
  },
  image: {
    answer: () => imagesObject([png]),
    call: () =>
      provider.image?.generate({
        ...called(),
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
      }),
  },
  embedding: {
    answer: () => ({ data: [{ index: 0, embedding: [1, 0] }], usage: { prompt_tokens: 1 } }),
    call: () =>
      provider.embedding?.embed({
        ...called(),
        inputs: ["fox"],
        isSingle: true,
        dimensions: null,
        encodingFormat: null,
      }),
  },
  transcription: {
    answer: () => ({ text: "hello" }),
    call: () =>
      provider.transcription?.transcribe({
        ...called(),
        audio: { bytes: Buffer.from("RIFF"), contentType: "audio/wav", name: "a.wav" },
        language: null,
        prompt: null,
        temperature: null,
        wantsSegments: false,
        wantsWords: false,
      }),
  },
  moderation: {
    answer: () => moderation([verdict([])]),
    call: () => provider.moderation?.moderate({ ...called(), inputs: ["fox"] }),
  },
  "video at an exact address": {
    answer: () => ({ data: [{ b64_json: clip.toString("base64") }] }),
    call: () => endpoint("video").video?.generate(filmed()),
  },
};

function called() {
  return { upstreamModel: "their-model", extra: {}, signal: new AbortController().signal };
}

function filmed() {
  return {
    ...called(),
    prompt: "A fox",
    size: null,
    aspectRatio: null,
    seconds: null,
    hasAudio: false,
    seed: null,
    negativePrompt: null,
    images: [],
    onProgress: () => undefined,
  };
}

function endpoint(modality: string) {
  const fetchFile = () => Promise.reject(new Error("no files here"));
  return toEndpointAbilities({ url: `${upstream.baseUrl}/exact`, modality, api: "responses" }, client, fetchFile);
}

describe("an error", () => {
  it.each(EMPTY.map((error) => [error]))("%j says nothing", (error) => {
    expect(hasErrorContent(error)).toBe(false);
  });

  it.each(FAILURES.map((error) => [error]))("%j says that something failed", (error) => {
    expect(hasErrorContent(error)).toBe(true);
  });

  it("that nests deeper than it is searched says that something failed", () => {
    expect(hasErrorContent({ a: { b: { c: { d: {} } } } })).toBe(true);
    expect(hasErrorContent({ a: { b: { c: {} } } })).toBe(false);
  });
});

describe.each(Object.entries(MODALITIES))("an answer of %s", (_name, { answer, call }) => {
  it("is taken with an error that says nothing", async () => {
    for (const error of EMPTY) {
      upstream.replyNext(json({ ...answer(), error }));
      await expect(call(), JSON.stringify(error)).resolves.toBeDefined();
    }
  });

  it("is refused with an error that says something", async () => {
    for (const error of FAILURES) {
      upstream.replyNext(json({ ...answer(), error }));
      await expect(call(), JSON.stringify(error)).rejects.toMatchObject({ kind: "status" });
    }
  });
});

describe("a stream of Responses events", () => {
  const streamed = async (error: unknown) => {
    upstream.replyNext(responseStream(responseObject([textItem("Hi")], { error })));
    const chunks = [];
    const body = { messages: [{ role: "user", content: "Hi" }] };
    for await (const batch of (await endpoint("text").chat?.stream({ ...called(), body })) ?? []) chunks.push(batch);
    return chunks;
  };

  it("ends whole with an error that says nothing, and fails with one that says something", async () => {
    for (const error of EMPTY) await expect(streamed(error), JSON.stringify(error)).resolves.not.toEqual([]);
    for (const error of FAILURES) await expect(streamed(error), JSON.stringify(error)).rejects.toMatchObject({ kind: "status" });
  });
});

describe("a video job", () => {
  const job = (fields: object) => json({ id: "v1", ...fields }, { headers: { "openai-poll-after-ms": "20" } });

  it.each(EMPTY.map((error) => [error]))("goes on with the error %j while it runs and when it is completed", async (error) => {
    upstream.replyNext(
      job({ status: "queued", error }),
      job({ status: "in_progress", error }),
      job({ status: "completed", error }),
      raw(clip, { headers: { "content-type": "video/mp4" } }),
    );

    await expect(provider.video?.generate(filmed())).resolves.toMatchObject({ contentType: "video/mp4" });
  });
});
