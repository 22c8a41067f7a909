/** Speech, music and transcriptions over GraphQL, and how files are sent to it. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import {
  CreateSpeechDocument,
  CreateTranscriptionDocument,
  type CreateTranscriptionInput,
  CreateTwoTranscriptionsDocument,
  GenerateMusicDocument,
  MyUsageChargesDocument,
  type SpeechInput,
  StreamSpeechDocument,
  type StreamSpeechSubscription,
} from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { recording } from "../support/recordings.js";
import { bytes, errorReply, hang, json, type Reply, raw, type StreamEnd } from "../support/upstream-replies.js";
import { type Answer, authorization, codes, execute, executeText, ok, type Subscribe, TRANSPORTS, textOf } from "./client.js";

const HELLO = { model: "acme/speech", input: "Hello." };

let app: TestApp;

beforeAll(async () => {
  app = await createTestApp();
});
afterEach(async () => {
  app.upstream.replyAlways(null);
  const { pool } = app.database;
  await expect.poll(() => findBrokenInvariants(pool, { isIdle: true })).toEqual({});
});
afterAll(() => app.close());

function sound(body: string | Uint8Array, contentType = "audio/mpeg"): Reply {
  return raw(body, { headers: { "content-type": contentType } });
}

function streamed(chunks: readonly string[], end: StreamEnd = "complete"): Reply {
  return {
    kind: "stream",
    status: 200,
    headers: { "content-type": "audio/mpeg" },
    steps: chunks.map((chunk) => bytes(chunk)),
    framing: "lf",
    end,
  };
}

function lastAsked(): Record<string, unknown> {
  return app.upstream.requests.at(-1)?.json as Record<string, unknown>;
}

async function usageOf(generationId: string | undefined) {
  const { usage } = ok(await execute(app, MyUsageChargesDocument)).me;
  return usage?.nodes.find(({ restId }) => restId === generationId);
}

describe("createSpeech", () => {
  it("answers the sound and its receipt", async () => {
    app.upstream.replyNext(sound("abc"));

    const answer = await execute(app, CreateSpeechDocument, {
      input: { ...HELLO, voice: "bill", responseFormat: "OPUS", speed: 2, instructions: "Slow.", extra: { emotion: "joy" } },
    });

    expect(ok(answer).createSpeech).toMatchObject({
      speech: { audio: Buffer.from("abc").toString("base64"), contentType: "audio/mpeg" },
      // 6 characters x 0.000015
      receipt: { modelId: "acme/speech", cost: "0.00009", held: "0.00009", status: "OK", usageSource: "ESTIMATED" },
    });
    expect(lastAsked()).toEqual({
      model: "upstream-speech",
      input: "Hello.",
      voice: "bill",
      response_format: "opus",
      speed: 2,
      instructions: "Slow.",
      emotion: "joy",
    });
  });

  const refusals: readonly (readonly [what: string, more: Partial<SpeechInput>, param: string])[] = [
    ["a voice that is not there", { voice: "hal" }, "voice"],
    ["a text that is too long", { input: "x".repeat(10_001) }, "input"],
    ["a speed out of bounds", { speed: 5 }, "speed"],
    ["a model of something else", { model: "acme/chat" }, "model"],
    ["extra that asks for events", { extra: { stream_format: "sse" } }, "extra.stream_format"],
    ["extra that says the same twice", { voice: "bill", extra: { voice: "alloy" } }, "extra.voice"],
  ];
  it.each(refusals)("refuses %s as REST does", async (_what, more, param) => {
    const { errors, data } = await execute(app, CreateSpeechDocument, { input: { ...HELLO, ...more } });

    expect(errors?.[0]?.extensions).toMatchObject({ code: "BAD_REQUEST", param });
    expect(data).toEqual({ createSpeech: null });
  });

  it("charges nothing when the upstream fails", async () => {
    app.upstream.replyNext(errorReply(500), sound(""));

    expect(codes(await execute(app, CreateSpeechDocument, { input: HELLO }))).toEqual(["UPSTREAM_ERROR"]);
    expect(codes(await execute(app, CreateSpeechDocument, { input: HELLO }))).toEqual(["UPSTREAM_ERROR"]);
  });

  it("needs a key", async () => {
    expect(codes(await execute({ ...app, key: null }, CreateSpeechDocument, { input: HELLO }))).toEqual(["UNAUTHORIZED"]);
  });
});

describe("generateMusic", () => {
  it("answers the piece, its length, and the prompt as it was used", async () => {
    const tune = recording(1.5);
    app.upstream.replyNext(sound(tune, "audio/wav"));

    const answer = await execute(app, GenerateMusicDocument, {
      input: { prompt: "A waltz", duration: 2.5, seed: 3, responseFormat: "WAV" },
    });

    expect(ok(answer).generateMusic).toMatchObject({
      music: { audio: tune.toString("base64"), contentType: "audio/wav", durationSeconds: 1.5 },
      receipt: { cost: "0.015", held: "0.025", usageSource: "PROVIDER", usage: { outputAudioSeconds: 1.5 } },
    });
    expect(lastAsked()).toEqual({ model: "upstream-music", input: "A waltz", response_format: "wav", duration: 2.5, seed: 3 });
  });

  it.each([
    ["no prompt", { prompt: " " }, "prompt"],
    ["a duration out of bounds", { prompt: "x", duration: 301 }, "duration"],
  ])("refuses %s", async (_what, input, param) => {
    expect((await execute(app, GenerateMusicDocument, { input })).errors?.[0]?.extensions).toMatchObject({ code: "BAD_REQUEST", param });
  });
});

interface Part {
  readonly operations?: unknown;
  readonly map?: unknown;
  readonly files?: Readonly<Record<string, Uint8Array>>;
  readonly headers?: Record<string, string>;
}

const PREFLIGHTED = { "graphql-preflight": "1" };

async function send({
  operations,
  map,
  files = {},
  headers = PREFLIGHTED,
}: Part): Promise<{ readonly status: number; readonly answer: Answer }> {
  const form = new FormData();
  if (operations !== undefined) form.set("operations", typeof operations === "string" ? operations : JSON.stringify(operations));
  if (map !== undefined) form.set("map", typeof map === "string" ? map : JSON.stringify(map));
  for (const [name, content] of Object.entries(files)) form.set(name, new Blob([new Uint8Array(content)], { type: "audio/wav" }), "a.wav");
  const response = await fetch(`${app.baseUrl}/graphql`, { method: "POST", headers: { ...authorization(app), ...headers }, body: form });
  return { status: response.status, answer: (await response.json()) as Answer };
}

function transcribe(file: Uint8Array, input: Omit<CreateTranscriptionInput, "file"> = {}) {
  const brought = new File([new Uint8Array(file)], "a.wav", { type: "audio/wav" });
  return execute(app, CreateTranscriptionDocument, { input: { ...input, file: brought } });
}

describe("createTranscription", () => {
  it("takes the recording in a form, and answers the text and its receipt", async () => {
    app.upstream.replyNext(
      json({
        text: "Hello.",
        language: "english",
        segments: [{ start: 0, end: 1, text: " Hello." }],
        words: [{ start: 0, end: 1, word: "Hello" }],
      }),
    );

    const answer = await transcribe(recording(2), {
      responseFormat: "VERBOSE_JSON",
      timestampGranularities: ["SEGMENT", "WORD"],
      language: "en",
    });

    const payload = ok(answer).createTranscription;
    expect(payload).toMatchObject({
      transcription: {
        text: "Hello.",
        language: "english",
        durationSeconds: 2,
        segments: [{ start: 0, end: 1, text: " Hello." }],
        words: [{ start: 0, end: 1, text: "Hello" }],
      },
      // 2 seconds x 0.0001
      receipt: { cost: "0.0002", held: "0.0002", status: "OK" },
    });
    expect(JSON.parse(payload.transcription.formatted)).toMatchObject({ task: "transcribe", text: "Hello." });
  });

  it("answers subtitles", async () => {
    app.upstream.replyNext(json({ text: "Hello." }));

    const payload = ok(await transcribe(recording(1), { responseFormat: "SRT" })).createTranscription;

    expect(payload.transcription).toMatchObject({ formatted: "1\n00:00:00,000 --> 00:00:01,000\nHello.\n\n", segments: null, words: null });
  });

  it("refuses a file that is no recording, and the wrong model, as REST does", async () => {
    const text = await transcribe(Buffer.from("Hello. ".repeat(100)));
    const model = await transcribe(recording(1), { model: "acme/chat" });

    expect(text.errors?.[0]?.extensions).toMatchObject({ code: "BAD_REQUEST", param: "file" });
    expect(model.errors?.[0]?.extensions).toMatchObject({ code: "BAD_REQUEST", param: "model" });
  });
});

describe("a form with files", () => {
  const query = textOf(CreateTranscriptionDocument);
  const operations = { query, variables: { input: { file: null } } };
  const map = { 0: ["variables.input.file"] };
  const files = { 0: recording(1) };

  it("is refused without a header that a browser would preflight, even with a key", async () => {
    const { status, answer } = await send({ operations, map, files, headers: {} });

    expect(status).toBe(403);
    expect(codes(answer)).toEqual(["FORBIDDEN"]);
  });

  it("needs no files", async () => {
    expect((await send({ operations: { query: "{ __typename }" }, map: {} })).answer.data).toEqual({ __typename: "Query" });
  });

  it("brings one file to several places", async () => {
    app.upstream.replyAlways(json({ text: "Hello." }));
    const both = { query: textOf(CreateTwoTranscriptionsDocument), variables: { a: { file: null }, b: { file: null } } };

    const { answer } = await send({ operations: both, map: { 0: ["variables.a.file", "variables.b.file"] }, files });

    expect(answer.data).toEqual({ a: { transcription: { text: "Hello." } }, b: { transcription: { text: "Hello." } } });
  });

  const refusals: readonly (readonly [what: string, part: Part])[] = [
    ["no operations", { map, files }],
    ["operations that are no JSON", { operations: "{", map, files }],
    ["operations that are a list", { operations: [operations], map, files }],
    [
      "operations nested without end",
      { operations: `{"query":"{__typename}","variables":${"[".repeat(5_000)}${"]".repeat(5_000)}}`, map: {} },
    ],
    ["a map that is no JSON", { operations, map: "{", files }],
    ["a map that is a list", { operations, map: [["variables.input.file"]], files }],
    ["a map of no lists", { operations, map: { 0: "variables.input.file" }, files }],
    ["a map of numbers", { operations, map: { 0: [5] }, files }],
    ["a map to a file that is not there", { operations, map: { 1: ["variables.input.file"] }, files }],
    ["a map to a text", { operations, map: { operations: ["variables.input.file"] }, files }],
    ["a map to a place that holds something", { operations: { query, variables: { input: { file: 1 } } }, map, files }],
    ["a map to a place that is not there", { operations, map: { 0: ["variables.input.more.file"] }, files }],
    ["a map to what objects inherit", { operations, map: { 0: ["variables.__proto__.file"] }, files }],
    ["a map to the query itself", { operations: { query: null }, map: { 0: ["query"] }, files }],
    ["a file in two places of which one is taken", { operations, map: { 0: ["variables.input.file", "variables.input.file"] }, files }],
    ["too many places", { operations, map: { 0: Array.from({ length: 65 }, () => "variables.input.file") }, files }],
    ["too many files", { operations, map, files: Object.fromEntries(Array.from({ length: 18 }, (_, index) => [index, recording(0.01)])) }],
  ];
  it.each(refusals)("is refused with %s", async (_what, part) => {
    const asked = app.upstream.requests.length;

    const { status, answer } = await send(part);

    expect(status).toBe(400);
    expect(codes(answer)).toEqual(["BAD_REQUEST"]);
    expect(app.upstream.requests.length).toBe(asked);
    expect("file" in {}).toBe(false);
  });

  it("is refused when it ends too soon, or has no boundary", async () => {
    const ask = async (contentType: string, body: string) => {
      const headers = { ...authorization(app), ...PREFLIGHTED, "content-type": contentType };
      const response = await fetch(`${app.baseUrl}/graphql`, { method: "POST", headers, body });
      return { status: response.status, codes: codes((await response.json()) as Answer) };
    };
    const part = '--b\r\nContent-Disposition: form-data; name="operations"\r\n\r\n{"query":"{__typename}"}';

    expect(await ask("multipart/form-data; boundary=b", part)).toEqual({ status: 400, codes: ["BAD_REQUEST"] });
    expect(await ask("multipart/form-data", part)).toEqual({ status: 400, codes: ["BAD_REQUEST"] });
  });

  it("is refused when it is larger than any body", async () => {
    const { status, answer } = await send({ operations, map, files: { 0: Buffer.alloc(33 * 1024 * 1024) } });

    expect(status).toBe(413);
    expect(codes(answer)).toEqual(["PAYLOAD_TOO_LARGE"]);
  });

  it("is the only way to bring a file", async () => {
    const inText = await executeText(app, { query: 'mutation { createTranscription(input: { file: "x" }) { __typename } }' });
    const inVariables = await execute(app, CreateTranscriptionDocument, { input: { file: "x" } });
    const inJson = await send({
      operations: { query: textOf(CreateSpeechDocument), variables: { input: { ...HELLO, extra: { sound: null } } } },
      map: { 0: ["variables.input.extra.sound"] },
      files,
    });

    for (const answer of [inText, inVariables, inJson.answer]) expect(codes(answer)).toEqual(["BAD_REQUEST"]);
  });
});

function events(answers: readonly Answer<StreamSpeechSubscription>[]) {
  return answers.map((answer) => ok(answer).speech);
}

describe.each(TRANSPORTS)("speech over %s", (_name, subscribe: Subscribe) => {
  it("streams the sound, and ends with the receipt of its usage row", async () => {
    app.upstream.replyNext(streamed(["abc", "def"]));

    const all = events(await subscribe(app, StreamSpeechDocument, { input: HELLO }).rest());

    const chunks = all.flatMap((event) => (event.__typename === "SpeechChunk" ? [event] : []));
    expect(Buffer.concat(chunks.map(({ audio }) => Buffer.from(audio, "base64"))).toString()).toBe("abcdef");
    expect(chunks[0]).toMatchObject({ contentType: "audio/mpeg" });
    const end = all.at(-1);
    expect(end).toMatchObject({ __typename: "SpeechEnd", receipt: { cost: "0.00009", status: "OK" } });
    expect(await usageOf(end?.generationId)).toMatchObject({ status: "OK", cost: "0.00009" });
  });

  it("closes the upstream when it is left, and charges the whole text", async () => {
    app.upstream.replyNext(streamed(["abcdef"], "hang"));
    const seen = app.upstream.requests.length;

    const live = subscribe(app, StreamSpeechDocument, { input: HELLO });
    const first = ok(await live.next()).speech;
    live.leave();

    await expect(app.upstream.requests[seen]?.closedByClient).resolves.toBeGreaterThan(0);
    await expect.poll(() => usageOf(first.generationId)).toMatchObject({ status: "CANCELLED", usageSource: "PARTIAL", cost: "0.00009" });
  });

  it("closes the upstream when it is left before that has answered", async () => {
    app.upstream.replyNext(hang());
    const seen = app.upstream.requests.length;

    const live = subscribe(app, StreamSpeechDocument, { input: HELLO });
    const waiting = live.next().catch(() => null);
    await expect.poll(() => app.upstream.requests.length).toBe(seen + 1);
    live.leave();

    await expect(app.upstream.requests[seen]?.closedByClient).resolves.toBeGreaterThan(0);
    await waiting;
  });

  it("reports that the upstream broke off", async () => {
    app.upstream.replyNext(streamed(["abc"], "cut"));

    const answers = await subscribe(app, StreamSpeechDocument, { input: HELLO }).rest();

    expect(answers.at(-1)?.errors?.map(({ extensions }) => extensions.code)).toEqual(["UPSTREAM_ERROR"]);
    expect(answers.flatMap(codes)).toHaveLength(1);
  });

  it("refuses the same input as createSpeech", async () => {
    const voice = await subscribe(app, StreamSpeechDocument, { input: { ...HELLO, voice: "hal" } }).rest();
    const nobody = await subscribe({ ...app, key: null }, StreamSpeechDocument, { input: HELLO }).rest();
    app.upstream.replyNext(errorReply(500));
    const broken = await subscribe(app, StreamSpeechDocument, { input: HELLO }).rest();

    expect(voice[0]?.errors?.[0]?.extensions).toMatchObject({ code: "BAD_REQUEST", param: "voice" });
    expect(nobody.flatMap(codes)).toEqual(["UNAUTHORIZED"]);
    expect(broken.flatMap(codes)).toEqual(["UPSTREAM_ERROR"]);
  });
});
