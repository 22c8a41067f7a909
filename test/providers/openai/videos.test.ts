import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { VideoCall, VideoProvider } from "../../../src/providers/media.js";
import { createOpenAiProvider } from "../../../src/providers/openai/openai.js";
import type { Provider } from "../../../src/providers/provider.js";
import { eventually } from "../../support/eventually.js";
import { type FakeUpstream, startFakeUpstream } from "../../support/fake-upstream.js";
import { createFakeVideos, type FakeVideosOptions, formOf, readClip } from "../../support/fake-videos.js";
import { failureOf } from "../../support/provider-calls.js";
import { closeSocket, errorReply, flood, hang, json, raw } from "../../support/upstream-replies.js";

const API_KEY = "vendor-key-0123456789";

let upstream: FakeUpstream;
let provider: Provider;
let video: VideoProvider;
let clip: Buffer;
let noted: string[];

beforeEach(async () => {
  upstream = await startFakeUpstream();
  clip = await readClip(3);
  const timeouts = { connectMs: 10_000, idleMs: 20_000, totalMs: 60_000 };
  noted = [];
  const onUnknownWord = (kind: string, word: string) => void noted.push(`${kind} ${word}`);
  provider = createOpenAiProvider({ baseUrl: upstream.baseUrl, apiKey: API_KEY, timeouts, onUnknownWord });
  video = provider.video as VideoProvider;
});
afterEach(async () => {
  await upstream.close();
  await provider.close();
});

function job(body: object) {
  return json(body, { headers: { "openai-poll-after-ms": "20" } });
}

function film() {
  return raw(clip, { headers: { "content-type": "video/mp4" } });
}

function methods(): string[] {
  return upstream.requests.map(({ method }) => method);
}

function fake(options: Partial<FakeVideosOptions> = {}) {
  const videos = createFakeVideos({ clip, ...options });
  upstream.replyAlways(videos.reply);
  return videos;
}

function call(more: Partial<VideoCall> = {}): VideoCall {
  return {
    upstreamModel: "sora-mock",
    prompt: "A heron lands",
    size: null,
    aspectRatio: null,
    seconds: null,
    hasAudio: false,
    seed: null,
    negativePrompt: null,
    images: [],
    extra: {},
    onProgress: () => undefined,
    signal: new AbortController().signal,
    ...more,
  };
}

describe("D the request to the upstream", () => {
  it("is a form with the prompt, the upstream's model, and the requested fields alone", async () => {
    const videos = fake();

    await video.generate(call());

    expect(Object.fromEntries(videos.forms[0] ?? [])).toEqual({ model: "sora-mock", prompt: "A heron lands" });
    expect(upstream.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
      "POST /v1/videos",
      "GET /v1/videos/video_1",
      "GET /v1/videos/video_1/content",
    ]);
    expect(upstream.requests.map(({ headers }) => headers.authorization)).toEqual(Array(3).fill(`Bearer ${API_KEY}`));
  });

  it("names length and size as OpenAI does, and passes on unknown fields", async () => {
    const videos = fake();

    await video.generate(
      call({ seconds: 8, size: { width: 640, height: 360 }, aspectRatio: "16:9", extra: { style: "noir", lora: { a: 1 } } }),
    );
    await video.generate(call({ aspectRatio: "16:9" }));
    await video.generate(call({ aspectRatio: "9:16", extra: { model: "dearer" } }));

    const forms = videos.forms.map((form) => Object.fromEntries(form));
    expect(forms[0]).toMatchObject({ seconds: "8", size: "640x360", style: "noir", lora: '{"a":1}' });
    expect(forms[1]).toMatchObject({ size: "1280x720" });
    expect(forms[2]).toMatchObject({ size: "720x1280", model: "sora-mock" });
  });

  it("carries the first reference image as a file", async () => {
    fake();
    const image = { bytes: Buffer.from([1, 2, 3]), contentType: "image/png", name: "ref.png" };

    const { warnings } = await video.generate(call({ images: [image, { ...image, name: "second.png" }] }));

    const form = await formOf(await upstream.nextRequest());
    const file = form.get("input_reference") as File;
    expect([file.name, file.type, Buffer.from(await file.arrayBuffer())]).toEqual(["ref.png", "image/png", image.bytes]);
    expect(warnings).toEqual([expect.stringMatching(/^image: .*one reference/)]);
  });

  it("warns of options that the format cannot express, and not of a seed of 0, which is a default", async () => {
    fake();

    const all = await video.generate(call({ hasAudio: true, seed: 7, negativePrompt: "rain" }));
    const none = await video.generate(call({ seed: 0 }));

    expect(all.warnings.map((warning) => warning.split(":")[0])).toEqual(["audio", "seed", "negative_prompt"]);
    expect(none.warnings).toEqual([]);
  });
});

describe("a job", () => {
  it("answers the clip with the length that the upstream states", async () => {
    fake({ seconds: "4" });

    const answer = await video.generate(call());

    expect(answer).toMatchObject({ contentType: "video/mp4", durationMs: 4_000, usage: null });
    expect(Buffer.from(answer.bytes)).toEqual(clip);
  });

  it("reports its progress, which never decreases", async () => {
    fake({ progress: [0, 30, 20, 80] });
    const told: number[] = [];

    await video.generate(call({ onProgress: (percent) => told.push(percent) }));

    expect(told).toEqual([30, 80, 100]);
  });

  it("polls ever less often when the upstream states no interval", async () => {
    fake({ progress: [1], pollAfterMs: null });

    await video.generate(call());

    const times = upstream.requests.filter(({ path }) => path.endsWith("video_1")).map(({ receivedAt }) => receivedAt);
    const created = upstream.requests[0]?.receivedAt ?? 0;
    expect((times[0] ?? 0) - created).toBeGreaterThan(450);
    expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThan(700);
  });

  it("survives passing trouble of the upstream while it is polled", async () => {
    fake({ troubles: [500, 429, 503], progress: [50] });

    await expect(video.generate(call())).resolves.toMatchObject({ contentType: "video/mp4" });
  });

  it.each([
    ["unknown", { status: "unknown", progress: 10 }, "unknown"],
    ["NOT_START", { status: "NOT_START" }, null],
    ["2", { status: 2 }, "2"],
    ["(undefined)", {}, "(undefined)"],
  ])("of the status %s is polled again, and an unknown word is noted", async (_name, body, word) => {
    upstream.replyNext(
      job({ id: "v1", ...body }),
      job({ id: "v1", ...body }),
      job({ id: "v1", status: "completed", progress: 100, seconds: "1" }),
      film(),
    );

    await expect(video.generate(call())).resolves.toMatchObject({ contentType: "video/mp4", durationMs: 1_000 });

    expect(methods()).toEqual(["POST", "GET", "GET", "GET"]);
    expect(noted).toEqual(word === null ? [] : Array(2).fill(`job-status ${word}`));
  });

  it("that is not understood is not deleted when its looks fail", async () => {
    upstream.replyNext(job({ id: "v1", status: "dozing" }), errorReply(403));

    expect(await failureOf(video.generate(call()))).toMatchObject({ kind: "status", status: 403 });
    // What follows on the same connection comes after anything that was sent before.
    upstream.replyNext(errorReply(400));
    await failureOf(video.generate(call()));

    expect(methods()).toEqual(["POST", "GET", "POST"]);
  });

  it("that is not understood is deleted when the time is up", async () => {
    const leaving = new AbortController();
    const reason = new Error("time");
    upstream.replyNext(job({ id: "v1", status: "dozing" }), hang());
    const generated = video.generate(call({ signal: leaving.signal }));
    await upstream.nextRequest();
    await upstream.nextRequest();
    leaving.abort(reason);

    await expect(generated).rejects.toBe(reason);
    await eventually(() => expect(methods()).toEqual(["POST", "GET", "DELETE"]));
  });

  it("survives answers of a poll without its state", async () => {
    upstream.replyNext(job({ id: "v1", status: "queued" }));
    upstream.replyNext(raw("<html>", { headers: { "content-type": "text/html" } }), errorReply(404), errorReply(409), errorReply(425));
    upstream.replyNext(job({ status: "completed" }), film());

    await expect(video.generate(call())).resolves.toMatchObject({ contentType: "video/mp4" });
  });

  it("is downloaded again after passing trouble, and never begun again", async () => {
    upstream.replyNext(job({ id: "v1", status: "completed" }));
    upstream.replyNext(errorReply(404), closeSocket(), errorReply(500), film());

    await expect(video.generate(call())).resolves.toMatchObject({ contentType: "video/mp4" });

    expect(upstream.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
      "POST /v1/videos",
      ...Array(4).fill("GET /v1/videos/v1/content"),
    ]);
  });

  it("that is completed and cannot be downloaded is left for the operator to fetch", async () => {
    upstream.replyNext(job({ id: "v1", status: "completed" }), errorReply(403));

    expect(await failureOf(video.generate(call()))).toMatchObject({ kind: "status", status: 403 });
    upstream.replyNext(errorReply(400));
    await failureOf(video.generate(call()));

    expect(methods()).toEqual(["POST", "GET", "POST"]);
  });

  it("is given up and deleted when the trouble does not pass", async () => {
    upstream.replyNext(json({ id: "video_x", status: "queued" }, { headers: { "openai-poll-after-ms": "20" } }));
    for (let look = 0; look < 6; look += 1) upstream.replyNext(errorReply(503));

    const failure = await failureOf(video.generate(call()));

    expect(failure).toMatchObject({ kind: "status", status: 503 });
    await eventually(() => expect(upstream.requests.at(-1)).toMatchObject({ method: "DELETE", path: "/v1/videos/video_x" }));
  });

  it("fails with the upstream's reason: a refusal is the caller's, anything else is not", async () => {
    const videos = fake({ error: { code: "moderation_blocked", message: `No herons, ${API_KEY}.` } });
    const refused = await failureOf(video.generate(call()));
    videos.options.error = { code: "internal_error", message: "Out of ink." };
    const failed = await failureOf(video.generate(call()));

    expect(refused).toMatchObject({ kind: "status", status: 400, upstreamMessage: "No herons, [redacted]." });
    expect(failed).toMatchObject({ kind: "status", status: 502, upstreamMessage: "Out of ink." });
    await eventually(() => expect(videos.deleted).toEqual(["video_1", "video_2"]));
  });

  it("is deleted upstream when the caller leaves", async () => {
    const videos = fake({ progress: Array(1_000).fill(5) });
    const leaving = new AbortController();
    const reason = new Error("gone");

    const generated = video.generate(call({ signal: leaving.signal, onProgress: () => leaving.abort(reason) }));

    await expect(generated).rejects.toBe(reason);
    await eventually(() => expect(videos.deleted).toEqual(["video_1"]));
  });
});

describe("a faulty upstream", () => {
  it.each([
    ["answers an error", errorReply(429), { kind: "status", status: 429 }],
    ["answers no job", json({ hello: "world" }), { kind: "invalid-response" }],
    ["answers an error in a 200", json({ error: { message: "No.", code: 403 } }), { kind: "status", status: 403 }],
    ["answers a page", raw("<html>", { headers: { "content-type": "text/html" } }), { kind: "invalid-response" }],
    ["answers a job without an id", json({ status: "queued" }), { kind: "invalid-response" }],
    ["closes the connection", closeSocket(), { kind: "closed" }],
  ])("%s", async (_name, reply, failure) => {
    upstream.replyNext(reply);

    expect(await failureOf(video.generate(call()))).toMatchObject(failure);
  });

  it("sends more than any clip: it is cut off", async () => {
    upstream.replyNext(
      json({ id: "v", status: "completed" }),
      flood(Buffer.alloc(1024 * 1024), { headers: { "content-type": "video/mp4", "content-length": String(10 * 1024 ** 3) } }),
    );

    expect(await failureOf(video.generate(call()))).toMatchObject({ kind: "invalid-response" });
  });

  it("never answers: the caller's signal ends it", async () => {
    upstream.replyNext(json({ id: "v", status: "completed" }), hang());
    const leaving = new AbortController();
    const reason = new Error("gone");
    const generated = video.generate(call({ signal: leaving.signal }));
    await upstream.nextRequest();
    await upstream.nextRequest();
    leaving.abort(reason);

    await expect(generated).rejects.toBe(reason);
  });
});
