/** POST /v1/audio/transcriptions: with the official client and by hand. */
import OpenAI, { toFile } from "openai";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { TRANSCRIPTION_FILE_BYTES_MAX } from "../../src/limits.js";
import { MediaInspector } from "../../src/services/generation/media/media-inspector.js";
import { execute } from "../graphql/client.js";
import { CreateTranscriptionDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { fourBillionSamples } from "../support/hostile-recordings.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { recording, streamedRecording } from "../support/recordings.js";
import { closeSocket, errorReply, json, type Reply, raw } from "../support/upstream-replies.js";
import { createKey, type UsageJson } from "./client.js";
import { createStranger } from "./seed.js";

let app: TestApp;
let openai: OpenAI;

beforeAll(async () => {
  const transcription = { modality: "transcription", upstream: "acme", upstreamModel: "whisper" };
  app = await createTestApp({
    models: [
      { ...transcription, id: "acme/dear-ears", title: "Dear", prices: { promptAudioPrice: "1" } },
      { ...transcription, id: "acme/free-ears", title: "Free", prices: { promptAudioPrice: "0" } },
      { ...transcription, id: "acme/one-ear", title: "One", prices: { promptAudioPrice: "0.0001" }, perUserRpm: 1 },
      { ...transcription, id: "acme/two-ears", title: "Two", prices: { promptAudioPrice: "0.0001" }, fallbacks: ["acme/transcription"] },
    ],
  });
  openai = new OpenAI({ apiKey: app.key, baseURL: `${app.baseUrl}/v1`, maxRetries: 0 });
});
afterEach(async () => {
  app.upstream.replyAlways(null);
  const { pool } = app.database;
  expect(await findBrokenInvariants(pool, { isIdle: true })).toEqual({});
});
afterAll(() => app.close());

const VERBOSE = {
  task: "transcribe",
  language: "english",
  duration: 2.5,
  text: "Hello there. <General> Kenobi & co.",
  segments: [
    { id: 0, seek: 0, start: 0, end: 1.25, text: " Hello there.", tokens: [1], temperature: 0 },
    { id: 1, seek: 0, start: 1.25, end: 3661.5, text: " <General>\n\n Kenobi & co.", tokens: [2], temperature: 0 },
  ],
  words: [{ word: "Hello", start: 0, end: 0.5 }],
};

interface Answered {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly error: { readonly code: string; readonly param: string | null; readonly message: string } | null;
}

type Fields = Readonly<Record<string, string | readonly string[]>>;

async function post(
  file: Uint8Array | null,
  fields: Fields = {},
  key: string | null = app.key,
  name = "speech.wav",
  path = "/v1/audio/transcriptions",
): Promise<Answered> {
  const form = new FormData();
  for (const [field, values] of Object.entries(fields)) for (const value of [values].flat()) form.append(field, value);
  if (file !== null) form.append("file", new Blob([new Uint8Array(file)]), name);
  const headers: Record<string, string> = key === null ? {} : { authorization: `Bearer ${key}` };
  const response = await fetch(app.baseUrl + path, { method: "POST", headers, body: form });
  const text = await response.text();
  const error = response.ok ? null : (JSON.parse(text) as { error: Answered["error"] }).error;
  return { status: response.status, headers: response.headers, text, error };
}

async function lastForm(): Promise<FormData> {
  const request = app.upstream.requests.at(-1);
  if (!request) throw new Error("The upstream was not asked.");
  return new Response(new Uint8Array(request.body), { headers: { "content-type": request.headers["content-type"] ?? "" } }).formData();
}

async function rowOf(answer: Answered): Promise<Record<string, unknown> | undefined> {
  const response = await fetch(`${app.baseUrl}/account/usage?limit=1000`, { headers: { authorization: `Bearer ${app.key}` } });
  const { usage } = (await response.json()) as UsageJson;
  return usage.find((row) => row.request_id === answer.headers.get("x-generation-id"));
}

async function rowsCount(): Promise<number> {
  const response = await fetch(`${app.baseUrl}/account/usage?limit=1000`, { headers: { authorization: `Bearer ${app.key}` } });
  return ((await response.json()) as UsageJson).count;
}

describe("POST /v1/audio/transcriptions", () => {
  it("answers the official client, priced by the seconds of the recording", async () => {
    app.upstream.replyNext(json({ text: "Hello." }));
    const wav = recording(2.5);

    const { data, response } = await openai.audio.transcriptions
      .create({
        model: "acme/transcription",
        file: await toFile(wav, "my secret name.wav"),
        language: "en",
        prompt: "Names: Ada",
        temperature: 0.2,
      })
      .withResponse();

    expect(data).toEqual({ text: "Hello." });
    // 2.5 seconds x 0.0001
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "x-cost": "0.00025",
      "x-held": "0.00025",
      "x-usage-input-audio-seconds": "2.5",
      "x-model-used": "acme/transcription",
    });
    const form = await lastForm();
    const { file, ...fields } = Object.fromEntries(form) as { file: File } & Record<string, string>;
    expect(fields).toEqual({
      model: "upstream-transcription",
      language: "en",
      prompt: "Names: Ada",
      temperature: "0.2",
      response_format: "json",
    });
    expect(file.name).toBe("audio.wav");
    expect(file.type).toBe("audio/wav");
    expect(Buffer.from(await file.arrayBuffer())).toEqual(wav);
  });

  it("answers diarized_json with the speakers to the official client", async () => {
    const segments = [
      { id: "seg_a", type: "transcript.text.segment", start: 0, end: 1, text: " Hello.", speaker: "agent" },
      { id: "seg_b", type: "transcript.text.segment", start: 1, end: 2.5, text: " Hi.", speaker: "A" },
    ];
    app.upstream.replyNext(json({ task: "transcribe", duration: 2.5, text: "Hello. Hi.", segments }));

    const answer = await openai.audio.transcriptions.create({
      model: "acme/transcription",
      file: await toFile(recording(2.5), "a.wav"),
      response_format: "diarized_json",
    });

    const form = await lastForm();
    expect([form.get("response_format"), form.getAll("timestamp_granularities[]")]).toEqual(["diarized_json", []]);
    expect(answer).toMatchObject({
      task: "transcribe",
      duration: 2.5,
      text: "Hello. Hi.",
      segments: [
        { id: "seg_0", start: 0, end: 1, speaker: "agent" },
        { id: "seg_1", start: 1, end: 2.5, speaker: "A" },
      ],
    });
  });

  it("fails without a charge where the upstream names no speakers", async () => {
    app.upstream.replyNext(json(VERBOSE));

    const answer = await post(recording(1), { model: "acme/transcription", response_format: "diarized_json" });

    expect([answer.status, answer.error?.code]).toEqual([502, "UPSTREAM_ERROR"]);
  });

  it("answers verbose_json with segments and words to the official client", async () => {
    app.upstream.replyNext(json(VERBOSE));

    const answer = await openai.audio.transcriptions.create({
      model: "acme/transcription",
      file: await toFile(recording(2.5), "a.wav"),
      response_format: "verbose_json",
      timestamp_granularities: ["word", "segment"],
    });

    expect((await lastForm()).getAll("timestamp_granularities[]")).toEqual(["segment", "word"]);
    expect(answer).toMatchObject({
      task: "transcribe",
      language: "english",
      duration: 2.5,
      text: VERBOSE.text,
      segments: [{ id: 0, start: 0, end: 1.25, text: " Hello there." }, { id: 1 }],
      words: [{ word: "Hello", start: 0, end: 0.5 }],
    });
  });

  it("keeps the upstream's fields of its segments, and fills those that strict clients need", async () => {
    const told = { tokens: [50364, 2425], temperature: 0.2, avg_logprob: -0.28, compression_ratio: 0.85, no_speech_prob: 0.01 };
    const segments = [
      { id: 7, seek: 250, start: 0, end: 1, text: " Hi", ...told },
      { start: 1, end: 2, text: " ho" },
    ];
    app.upstream.replyNext(json({ text: "Hi ho", segments }));

    const answer = await post(recording(2), { response_format: "verbose_json" });

    const untold = { seek: 0, tokens: [], temperature: 0, avg_logprob: 0, compression_ratio: 1, no_speech_prob: 0 };
    const filled = { id: 1, start: 1, end: 2, text: " ho", ...untold };
    expect(JSON.parse(answer.text)).toMatchObject({ language: "unknown", segments: [segments[0], filled] });
  });

  const formats: readonly (readonly [format: string, type: string, text: string])[] = [
    ["json", "application/json; charset=utf-8", JSON.stringify({ text: VERBOSE.text })],
    ["text", "text/plain; charset=utf-8", `${VERBOSE.text}\n`],
    [
      "srt",
      "application/x-subrip; charset=utf-8",
      "1\n00:00:00,000 --> 00:00:01,250\nHello there.\n\n2\n00:00:01,250 --> 01:01:01,500\n<General>\nKenobi & co.\n\n",
    ],
    [
      "vtt",
      "text/vtt; charset=utf-8",
      "WEBVTT\n\n00:00:00.000 --> 00:00:01.250\nHello there.\n\n00:00:01.250 --> 01:01:01.500\n&lt;General&gt;\nKenobi &amp; co.\n\n",
    ],
  ];
  it.each(formats)("answers %s", async (format, type, text) => {
    app.upstream.replyNext(json(VERBOSE));

    const answer = await post(recording(1), { response_format: format });

    expect(answer.headers.get("content-type")).toBe(type);
    expect(answer.text).toBe(text);
  });

  it("makes one caption of a text without times", async () => {
    app.upstream.replyNext(json({ text: "Hello." }));

    expect((await post(recording(1.5), { response_format: "srt" })).text).toBe("1\n00:00:00,000 --> 00:00:01,500\nHello.\n\n");
  });

  it("answers a stream of one delta to the official client", async () => {
    app.upstream.replyNext(json({ text: "Hello." }));

    const stream = await openai.audio.transcriptions.create({
      model: "acme/transcription",
      file: await toFile(recording(1), "a.wav"),
      stream: true,
    });
    const events = [];
    for await (const event of stream) events.push(event);

    expect(events).toMatchObject([
      { type: "transcript.text.delta", delta: "Hello." },
      { type: "transcript.text.done", text: "Hello." },
    ]);
    expect((await lastForm()).has("stream")).toBe(false);
  });

  it("measures the data, not the header", async () => {
    app.upstream.replyAlways(json({ text: "Hello." }));

    expect((await post(streamedRecording(3))).headers.get("x-cost")).toBe("0.0003");
    expect((await post(recording(0.001))).headers.get("x-cost")).toBe("0.0000001");
    // Under another name, it has the same format.
    expect((await post(recording(1), {}, app.key, "a.mp3")).headers.get("x-cost")).toBe("0.0001");
    expect(((await lastForm()).get("file") as File).name).toBe("audio.wav");
  });

  it.each([
    ["hours", { duration: 10_800 }],
    ["milliseconds", { duration: 1_000 }],
    ["a usage of seconds", { usage: { type: "duration", seconds: 60 } }],
  ])("charges a second more than was measured of an upstream that heard more than that, and says so: %s", async (_, heard) => {
    app.upstream.replyNext(json({ ...VERBOSE, duration: undefined, ...heard }));

    const answer = await post(recording(1), { response_format: "verbose_json" });

    expect(answer.headers.get("x-cost")).toBe("0.0002");
    expect(answer.headers.get("x-usage-input-audio-seconds")).toBe("2");
    expect(answer.headers.get("x-warnings")).toContain("more usage than is plausible");
    expect(await rowOf(answer)).toMatchObject({ usage_source: "bounded", cost_usd: 0.0002 });
  });

  it("charges the measured length where an upstream heard no more than a second more", async () => {
    app.upstream.replyNext(json({ text: "Hello.", usage: { type: "duration", seconds: 2 } }));

    expect((await post(recording(1))).headers.get("x-cost")).toBe("0.0001");
  });

  it("passes on unknown fields", async () => {
    app.upstream.replyNext(json({ text: "Hello." }));

    await post(recording(1), { "include[]": "logprobs", "chunking_strategy[type]": "server_vad", hotwords: "a,b" });

    const form = await lastForm();
    expect([form.get("include[]"), form.get("chunking_strategy[type]"), form.get("hotwords")]).toEqual(["logprobs", "server_vad", "a,b"]);
  });

  it("takes a file at its bound, and refuses one past it", async () => {
    app.upstream.replyNext(json({ text: "Noise." }));
    const seconds = (TRANSCRIPTION_FILE_BYTES_MAX - 44) / 16_000;
    const wav = recording(1);
    const large = Buffer.concat([wav, Buffer.alloc(TRANSCRIPTION_FILE_BYTES_MAX - wav.length)]);
    large.writeUInt32LE(large.length - 8, 4);
    large.writeUInt32LE(large.length - 44, 40);

    const answer = await post(large);
    expect(answer.status).toBe(200);
    expect(Number(answer.headers.get("x-usage-input-audio-seconds"))).toBeCloseTo(seconds, 2);

    const { status, error } = await post(Buffer.concat([large, Buffer.alloc(1)]));
    expect(status).toBe(413);
    expect(error).toMatchObject({ code: "PAYLOAD_TOO_LARGE", param: "file" });
  });

  const refusals: readonly (readonly [what: string, file: Uint8Array | null, fields: Fields, param: string])[] = [
    ["no file", null, {}, "file"],
    ["an empty file", Buffer.alloc(0), {}, "file"],
    ["text", Buffer.from("This is not a recording. ".repeat(200)), {}, "file"],
    ["a picture", Buffer.from("89504e470d0a1a0a0000000d49484452", "hex"), {}, "file"],
    ["a head without sound", recording(1).subarray(0, 44), {}, "file"],
    ["an MP3 that is only zeros", Buffer.concat([Buffer.from("ID3\x04\0\0\0\0\0\0", "latin1"), Buffer.alloc(5_000)]), {}, "file"],
    ["another format", recording(1), { response_format: "xml" }, "response_format"],
    ["a temperature above 1", recording(1), { temperature: "1.1" }, "temperature"],
    ["a temperature below 0", recording(1), { temperature: "-0.1" }, "temperature"],
    ["a temperature that is no number", recording(1), { temperature: "warm" }, "temperature"],
    ["a language that is none", recording(1), { language: "the language of birds" }, "language"],
    [
      "unknown granularities",
      recording(1),
      { response_format: "verbose_json", "timestamp_granularities[]": "letter" },
      "timestamp_granularities.0",
    ],
    ["granularities of json", recording(1), { "timestamp_granularities[]": "word" }, "timestamp_granularities"],
    ["a stream of subtitles", recording(1), { stream: "true", response_format: "srt" }, "stream"],
    ["an unknown model", recording(1), { model: "acme/nothing" }, "model"],
    ["a model of something else", recording(1), { model: "acme/speech" }, "model"],
    ["a field that is given twice", recording(1), { model: ["acme/transcription", "acme/transcription"] }, "model"],
  ];
  it.each(refusals)("refuses %s", async (_what, file, fields, param) => {
    const asked = app.upstream.requests.length;

    const { status, error } = await post(file, fields);

    expect(status).toBe(400);
    expect(error).toMatchObject({ code: "BAD_REQUEST", param });
    expect(app.upstream.requests.length).toBe(asked);
  });

  it("refuses JSON, a caller without a key, and one who cannot pay", async () => {
    const { key } = await createKey(app, { creditBudget: 2 });
    const asked = app.upstream.requests.length;

    const headers = { authorization: `Bearer ${app.key}`, "content-type": "application/json" };
    expect((await fetch(`${app.baseUrl}/v1/audio/transcriptions`, { method: "POST", headers, body: "{}" })).status).toBe(415);
    expect((await post(recording(1), {}, null)).error?.code).toBe("UNAUTHORIZED");
    expect((await post(recording(2.001), { model: "acme/dear-ears" }, key)).error?.code).toBe("KEY_BUDGET_EXHAUSTED");
    expect(app.upstream.requests.length).toBe(asked);

    app.upstream.replyNext(json({ text: "Hello." }));
    expect((await post(recording(2), { model: "acme/dear-ears" }, key)).status).toBe(200);
  });

  it("is not kept from others by files that claim four billion samples", async () => {
    const { key: stranger } = await createStranger(app);
    const hostile = Array.from({ length: 12 }, () => post(fourBillionSamples(), { model: "acme/free-ears" }, app.key, "speech.m4a"));
    app.upstream.replyNext(json({ text: "Hello." }));

    const honest = await post(recording(1), { model: "acme/free-ears" }, stranger);

    expect(honest.status).toBe(200);
    for (const refused of await Promise.all(hostile)) expect(refused.error).toMatchObject({ code: "BAD_REQUEST", param: "file" });
  });

  it("reads no recording of a caller who is over a limit or cannot pay", async () => {
    const looked = vi.spyOn(MediaInspector.prototype, "audio");
    const { key: stranger } = await createStranger(app);
    app.upstream.replyNext(json({ text: "Hello." }));

    expect((await post(recording(1), { model: "acme/one-ear" })).status).toBe(200);
    expect(looked).toHaveBeenCalledTimes(1);
    expect((await post(recording(1), { model: "acme/one-ear" })).error?.code).toBe("RATE_LIMITED");
    expect((await post(recording(1), {}, stranger)).error?.code).toBe("INSUFFICIENT_BALANCE");
    expect(looked).toHaveBeenCalledTimes(1);
    looked.mockRestore();
  });

  it("sends the fallback the whole recording", async () => {
    app.upstream.replyNext(errorReply(503), json({ text: "Hello." }));
    const wav = recording(1);

    const answer = await post(wav, { model: "acme/two-ears" });

    expect(answer.headers.get("x-fallback")).toBe("acme/transcription");
    expect(Buffer.from(await ((await lastForm()).get("file") as File).arrayBuffer())).toEqual(wav);
  });

  const failures: readonly (readonly [what: string, reply: Reply, status: number])[] = [
    ["400", errorReply(400, "Too noisy."), 400],
    ["401", errorReply(401), 502],
    ["500", errorReply(500), 502],
    ["a page", raw("<html>", { headers: { "content-type": "text/html" } }), 502],
    ["JSON without a text", json({ words: [] }), 502],
    ["an error with status 200", json({ error: { message: "No.", code: 429 } }), 502],
    ["a closed connection", closeSocket(), 502],
  ];
  it.each(failures)("charges nothing when the upstream answers %s", async (_what, reply, status) => {
    const before = await rowsCount();
    app.upstream.replyNext(reply);

    expect((await post(recording(1))).status).toBe(status);

    expect(await rowsCount()).toBe(before);
  });
});

describe("POST /v1/audio/translations", () => {
  it("answers the official client with the upstream's translation, priced as a transcription", async () => {
    app.upstream.replyNext(json({ text: "Good morning." }));

    const { data, response } = await openai.audio.translations
      .create({ model: "acme/transcription", file: await toFile(recording(2.5), "a.wav"), prompt: "Greetings" })
      .withResponse();

    expect(data).toEqual({ text: "Good morning." });
    expect(response.headers.get("x-cost")).toBe("0.00025");
    expect(app.upstream.requests.at(-1)?.path).toBe("/v1/audio/translations");
    const { file: _, ...fields } = Object.fromEntries(await lastForm());
    expect(fields).toEqual({ model: "upstream-transcription", prompt: "Greetings", response_format: "json" });
  });

  it("is English in verbose_json, without granularities", async () => {
    app.upstream.replyNext(json({ ...VERBOSE, task: "translate" }));

    const answer = await openai.audio.translations.create({
      model: "acme/transcription",
      file: await toFile(recording(2.5), "a.wav"),
      response_format: "verbose_json",
    });

    expect((await lastForm()).getAll("timestamp_granularities[]")).toEqual([]);
    expect(answer).toMatchObject({ task: "translate", language: "english", duration: 2.5, segments: [{}, {}] });
  });

  it.each([
    [{ response_format: "diarized_json" }, "response_format"],
    [{ response_format: "verbose_json", "timestamp_granularities[]": "word" }, "timestamp_granularities"],
  ])("refuses %j", async (fields, param) => {
    const before = app.upstream.requests.length;
    const answer = await post(recording(1), { model: "acme/transcription", ...fields }, app.key, "speech.wav", "/v1/audio/translations");

    expect([answer.status, answer.error?.param]).toEqual([400, param]);
    expect(app.upstream.requests.length).toBe(before);
  });

  it("is the same over GraphQL", async () => {
    app.upstream.replyNext(json({ text: "Good evening." }));

    const { data, errors } = await execute(app, CreateTranscriptionDocument, {
      input: { file: new File([new Uint8Array(recording(1))], "a.wav"), model: "acme/transcription", isTranslation: true },
    });

    expect(errors).toBeUndefined();
    expect(data?.createTranscription?.transcription.text).toBe("Good evening.");
    expect(app.upstream.requests.at(-1)?.path).toBe("/v1/audio/translations");
  });
});
