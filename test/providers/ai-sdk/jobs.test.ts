/** Jobs that vendors' packages poll: words that a package does not know, and trouble after the paid step. */
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { OutboundError } from "../../../src/lib/outbound-guard.js";
import type { VendorName } from "../../../src/providers/ai-sdk/vendors.js";
import type { FetchFile } from "../../../src/providers/openai/client.js";
import type { Provider } from "../../../src/providers/provider.js";
import { connectVendor } from "../../support/ai-sdk.js";
import { type FakeUpstream, startFakeUpstream } from "../../support/fake-upstream.js";
import { picture } from "../../support/pictures.js";
import { closeSocket, errorReply, json, type Reply, raw } from "../../support/upstream-replies.js";

const MP4 = Buffer.from("0000001c667479706d703432000000006d70343269736f6d61766331", "hex");

let upstream: FakeUpstream;
let png: Buffer;
let noted: string[];
const open: Provider[] = [];

beforeEach(async () => {
  upstream = await startFakeUpstream();
  png = await picture();
  noted = [];
});
afterEach(() => upstream.close());
afterAll(() => Promise.all(open.map((provider) => provider.close())));

function connect(vendor: VendorName, fetchFile?: FetchFile): Provider {
  const onUnknownWord = (kind: string, word: string) => void noted.push(`${kind} ${word}`);
  const provider = connectVendor(upstream, vendor, { onUnknownWord, ...(fetchFile && { fetchFile }) });
  open.push(provider);
  return provider;
}

const called = () => ({ upstreamModel: "acme/model", signal: new AbortController().signal, extra: {} });

function draw(provider: Provider) {
  return provider.image?.generate({
    ...called(),
    prompt: "a red square",
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
  });
}

function film(provider: Provider) {
  return provider.video?.generate({
    ...called(),
    prompt: "a wave",
    size: null,
    aspectRatio: null,
    seconds: null,
    hasAudio: false,
    seed: null,
    negativePrompt: null,
    images: [],
    onProgress: () => undefined,
  });
}

function transcribe(provider: Provider) {
  return provider.transcription?.transcribe({
    ...called(),
    audio: { bytes: Buffer.from("RIFF"), contentType: "audio/wav", name: "a.wav" },
    language: null,
    prompt: null,
    temperature: null,
    wantsSegments: false,
    wantsWords: false,
  });
}

interface JobCase {
  readonly run: (provider: Provider) => Promise<object> | undefined;
  /** Before the looks. */
  readonly begun: (state: string) => Reply[];
  readonly look: (state: string, isDone: boolean) => Reply;
  /** The look that ends it, by a word that the package does not know. */
  readonly done: string;
  /** After the looks. */
  readonly fetched: () => Reply[];
}

const VENDOR_JOBS = {
  replicate: {
    run: draw,
    begun: (status) => [json({ id: "p1", status, urls: { get: `${upstream.baseUrl}/predictions/p1` } }, { status: 201 })],
    look: (status, isDone) => {
      const urls = { get: `${upstream.baseUrl}/predictions/p1` };
      return json({ id: "p1", status, urls, output: isDone ? [`${upstream.baseUrl}/1.png`] : null });
    },
    done: "Success",
    fetched: () => [raw(png)],
  },
  luma: {
    run: draw,
    begun: (state) => [json({ id: "l1", state })],
    look: (state, isDone) => json({ id: "l1", state, assets: isDone ? { image: `${upstream.baseUrl}/1.png` } : null }),
    done: "COMPLETED",
    fetched: () => [raw(png)],
  },
  "black-forest-labs": {
    run: draw,
    begun: () => [json({ id: "b1", polling_url: `${upstream.baseUrl}/get_result?id=b1` })],
    look: (status, isDone) => json({ status, result: isDone ? { sample: `${upstream.baseUrl}/1.png` } : null }),
    done: "ready",
    fetched: () => [raw(png)],
  },
  assemblyai: {
    run: transcribe,
    begun: (status) => [json({ upload_url: `${upstream.baseUrl}/up` }), json({ id: "a1", status })],
    look: (status, isDone) => json({ id: "a1", status, text: isDone ? "hello" : null, words: [], audio_duration: 1 }),
    done: "finished",
    fetched: () => [],
  },
  gladia: {
    run: transcribe,
    begun: () => [json({ audio_url: `${upstream.baseUrl}/up` }), json({ result_url: `${upstream.baseUrl}/result` })],
    look: (status, isDone) => {
      const transcription = { full_transcript: "hello", languages: ["en"], utterances: [] };
      return json({ status, result: isDone ? { metadata: { audio_duration: 1 }, transcription } : null });
    },
    done: "Completed",
    fetched: () => [],
  },
  revai: {
    run: transcribe,
    begun: (status) => [json({ id: "r1", status })],
    look: (status) => json({ id: "r1", status }),
    done: "completed",
    fetched: () => [json({ monologues: [{ elements: [{ type: "text", value: "hello", ts: 0, end_ts: 1 }] }] })],
  },
} satisfies Partial<Record<VendorName, JobCase>>;

const JOBS: readonly [VendorName, JobCase][] = Object.entries(VENDOR_JOBS) as [keyof typeof VENDOR_JOBS, JobCase][];

describe.each(JOBS)("a job of %s", (vendor, { run, begun, look, done, fetched }) => {
  it("continues after words that its package does not know, and notes each", async () => {
    upstream.replyNext(...begun("NOT_START"), look("reticulating", false), look(done, true), ...fetched());

    await expect(run(connect(vendor))).resolves.toBeDefined();

    expect(noted).toEqual(["job-status reticulating"]);
  });

  it("survives passing trouble of a look and of a download", async () => {
    const last = fetched();
    const troubles = [errorReply(503), closeSocket()];
    upstream.replyNext(...begun("queued"), ...troubles, look(done, true), ...(last.length > 0 ? [errorReply(404), ...last] : []));

    await expect(run(connect(vendor))).resolves.toBeDefined();

    expect(upstream.requests.filter(({ method }) => method === "POST")).toHaveLength(begun("").length);
  });

  it("fails by a word of failure that its package does not know", async () => {
    upstream.replyNext(...begun("queued"), look("Request Moderated", false));

    await expect(run(connect(vendor))).rejects.toMatchObject({ name: "ProviderError" });

    expect(noted).toEqual([]);
  });
});

describe("a film of Replicate", () => {
  const urls = () => ({ get: `${upstream.baseUrl}/predictions/v1` });
  const address = "https://files.example/v1.mp4";

  it("that lies elsewhere is fetched again while its host fails, and the prediction is begun once", async () => {
    const troubles = [
      new OutboundError("host", "no answer", new Error("ECONNREFUSED")),
      new OutboundError("answer", "404", undefined, 404),
    ];
    const fetchFile: FetchFile = async () => {
      const trouble = troubles.shift();
      if (trouble) throw trouble;
      return { bytes: MP4, contentType: "video/mp4" };
    };
    upstream.replyNext(json({ id: "v1", status: "starting", urls: urls() }, { status: 201 }));
    upstream.replyNext(json({ id: "v1", status: "succeeded", output: address, urls: urls() }));

    await expect(film(connect("replicate", fetchFile))).resolves.toMatchObject({ contentType: "video/mp4" });

    expect(troubles).toEqual([]);
    expect(upstream.requests.map(({ method }) => method)).toEqual(["POST", "GET"]);
  });

  it("that lies where nothing may be fetched is not fetched again", async () => {
    const refused: string[] = [];
    const fetchFile: FetchFile = async (url) => {
      refused.push(url);
      throw new OutboundError("host", "not public");
    };
    upstream.replyNext(json({ id: "v1", status: "succeeded", output: address, urls: urls() }, { status: 201 }));

    await expect(film(connect("replicate", fetchFile))).rejects.toMatchObject({ kind: "invalid-response" });

    expect(refused).toEqual([address]);
  });
});

describe("a paid step", () => {
  it.each([429, 500, 503, 404])("that is refused with %i is not repeated", async (status) => {
    upstream.replyNext(errorReply(status));

    await expect(draw(connect("replicate"))).rejects.toMatchObject({ kind: "status", status });

    expect(upstream.requests).toHaveLength(1);
  });
});
