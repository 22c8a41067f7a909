/** Speech, music and transcriptions over OpenAI's wire format: the exact requests, and everything that an upstream may answer. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { MusicCall, SpeechCall, TranscriptionCall } from "../../../src/providers/media.js";
import { createOpenAiProvider } from "../../../src/providers/openai/openai.js";
import type { Provider, UpstreamTimeouts } from "../../../src/providers/provider.js";
import { type FakeUpstream, startFakeUpstream } from "../../support/fake-upstream.js";
import { bytes, closeSocket, errorReply, flood, hang, json, type Reply, raw, type StreamEnd, sse } from "../../support/upstream-replies.js";

let upstream: FakeUpstream;
type SoundProvider = Required<Pick<Provider, "speech" | "music" | "transcription" | "close">>;
let provider: SoundProvider;
/** For upstreams that must be given up. */
let hasty: SoundProvider;

beforeAll(async () => {
  upstream = await startFakeUpstream();
  const create = (timeouts: UpstreamTimeouts) =>
    createOpenAiProvider({ baseUrl: upstream.baseUrl, apiKey: "upstream-key", timeouts }) as SoundProvider;
  provider = create({ connectMs: 10_000, idleMs: 20_000, totalMs: 60_000 });
  hasty = create({ connectMs: 10_000, idleMs: 400, totalMs: 1_000 });
});
afterEach(() => upstream.replyAlways(null));
afterAll(async () => {
  await upstream.close();
  await Promise.all([provider.close(), hasty.close()]);
});

const never = new AbortController().signal;
const SPEECH: SpeechCall = {
  upstreamModel: "tts-1",
  input: "Hi",
  voice: "alloy",
  format: "mp3",
  speed: null,
  instructions: null,
  extra: {},
  signal: never,
};
const MUSIC: MusicCall = { upstreamModel: "tune", prompt: "A waltz", seconds: null, format: "mp3", seed: null, extra: {}, signal: never };
const RECORDING: TranscriptionCall = {
  upstreamModel: "whisper-1",
  audio: { bytes: Buffer.from([0, 1, 2, 255, 13, 10]), contentType: "audio/wav", name: "audio.wav" },
  language: null,
  prompt: null,
  temperature: null,
  wantsSegments: false,
  wantsWords: false,
  extra: {},
  signal: never,
};

function sound(body: string | Uint8Array, contentType = "audio/mpeg"): Reply {
  return raw(body, { headers: contentType === "" ? {} : { "content-type": contentType } });
}

function streamed(chunks: readonly string[], end: StreamEnd): Reply {
  return {
    kind: "stream",
    status: 200,
    headers: { "content-type": "audio/mpeg" },
    steps: chunks.map((chunk) => bytes(chunk)),
    framing: "lf",
    end,
  };
}

async function speak(
  call: Partial<SpeechCall> = {},
  { speech } = provider,
): Promise<{ readonly contentType: string; readonly text: string }> {
  const { contentType, chunks } = await speech.stream({ ...SPEECH, ...call });
  const parts: Uint8Array[] = [];
  for await (const chunk of chunks) parts.push(chunk);
  return { contentType, text: Buffer.concat(parts).toString() };
}

describe("speech", () => {
  it("is requested with the stated fields, and unknown fields that do not overrule them", async () => {
    upstream.replyNext(sound("abc"));

    await speak({ speed: 2, instructions: "Slow.", extra: { emotion: "joy", model: "another", voice: "another" } });

    const request = upstream.requests.at(-1);
    expect(request).toMatchObject({ method: "POST", path: "/v1/audio/speech" });
    expect(request?.headers).toMatchObject({ authorization: "Bearer upstream-key", "content-type": "application/json" });
    expect(request?.json).toEqual({
      model: "tts-1",
      input: "Hi",
      voice: "alloy",
      response_format: "mp3",
      speed: 2,
      instructions: "Slow.",
      emotion: "joy",
    });
  });

  it.each([
    ["audio/mpeg", "mp3", "audio/mpeg"],
    ["audio/mp3; charset=binary", "mp3", "audio/mpeg"],
    ["audio/x-wav", "wav", "audio/wav"],
    ["application/ogg", "opus", "audio/ogg"],
    ["application/octet-stream", "flac", "audio/flac"],
    ["", "aac", "audio/aac"],
    ["audio/opus", "opus", "audio/opus"],
  ] as const)("answered as %s for %s is %s", async (stated, format, contentType) => {
    upstream.replyNext(sound("abc", stated));

    expect(await speak({ format })).toEqual({ contentType, text: "abc" });
  });

  it("is never events, which the gateway does not request", async () => {
    upstream.replyNext(sse([{ type: "speech.audio.delta" }]));

    await expect(speak()).rejects.toMatchObject({ kind: "invalid-response" });
  });

  it.each([
    ["a page", raw("<html>", { headers: { "content-type": "text/html" } }), { kind: "invalid-response" }],
    ["JSON", json({ url: "https://example.org/a.mp3" }), { kind: "invalid-response" }],
    [
      "an error with status 200",
      json({ error: { message: "Key upstream-key.", code: 429 } }),
      { kind: "status", status: 429, upstreamMessage: "Key [redacted]." },
    ],
    ["a status", errorReply(400, "No such voice.", "voice"), { kind: "status", status: 400, upstreamParam: "voice" }],
    ["a closed connection", closeSocket(), { kind: "closed" }],
    ["silence", hang(), { kind: "timeout" }],
    ["a beginning, then a cut", streamed(["abc"], "cut"), { kind: "cut" }],
    ["a beginning, then silence", streamed(["abc"], "hang"), { kind: "timeout" }],
  ])("rejects when it is answered with %s", async (_what, reply, error) => {
    upstream.replyNext(reply);

    const isTimeout = error.kind === "timeout";
    await expect(speak({}, isTimeout ? hasty : provider)).rejects.toMatchObject({ name: "ProviderError", ...error });
  });

  it("cancels the upstream's answer when its reader leaves, and when the signal says so", async () => {
    upstream.replyNext(streamed(["abc"], "hang"), streamed(["abc"], "hang"));
    const leaving = new AbortController();

    const first = await provider.speech.stream(SPEECH);
    for await (const _chunk of first.chunks) break;
    const second = await provider.speech.stream({ ...SPEECH, signal: leaving.signal });
    const reading = second.chunks[Symbol.asyncIterator]();
    await reading.next();
    leaving.abort(new Error("gone"));

    await expect(reading.next()).rejects.toThrow("gone");
    for (const request of upstream.requests.slice(-2)) await expect(request.closedByClient).resolves.toBeGreaterThan(0);
  });

  it("is read no faster than it is consumed", async () => {
    upstream.replyNext(flood(Buffer.alloc(64 * 1024, 1), { headers: { "content-type": "audio/mpeg" } }));

    const { chunks } = await provider.speech.stream(SPEECH);
    const reading = chunks[Symbol.asyncIterator]();
    await reading.next();
    await new Promise((resolve) => setTimeout(resolve, 200));
    const sent = upstream.requests.at(-1)?.bytesSent() ?? 0;
    await reading.return?.();

    expect(sent).toBeLessThan(20 * 1024 * 1024);
  });
});

describe("music", () => {
  it("goes over /audio/speech, with the length and the seed that were stated", async () => {
    upstream.replyNext(sound("abc", "audio/wav"), sound("abc", "audio/wav"));

    const answer = await provider.music.generate({ ...MUSIC, seconds: 12.5, seed: 4, extra: { style: "slow" } });
    await provider.music.generate(MUSIC);

    const [long, plain] = upstream.requests.slice(-2);
    expect(long?.path).toBe("/v1/audio/speech");
    expect(long?.json).toEqual({ model: "tune", input: "A waltz", response_format: "mp3", duration: 12.5, seed: 4, style: "slow" });
    expect(plain?.json).toEqual({ model: "tune", input: "A waltz", response_format: "mp3" });
    expect(answer).toMatchObject({ contentType: "audio/wav", durationMs: null, usage: null, warnings: [] });
    expect(Buffer.from(answer.bytes).toString()).toBe("abc");
  });

  it.each([
    ["nothing", sound("")],
    ["JSON", json({})],
    ["a flood", flood(Buffer.alloc(1024 * 1024), { headers: { "content-type": "audio/mpeg" }, bytesMax: 80 * 1024 * 1024 })],
  ])("rejects when it is answered with %s", async (_what, reply) => {
    upstream.replyNext(reply);

    await expect(provider.music.generate(MUSIC)).rejects.toMatchObject({ name: "ProviderError", kind: "invalid-response" });
  });
});

describe("transcription", () => {
  async function lastForm(): Promise<[string, FormDataEntryValue][]> {
    const request = upstream.requests.at(-1);
    const headers = { "content-type": request?.headers["content-type"] ?? "" };
    return [...(await new Response(new Uint8Array(request?.body ?? []), { headers }).formData()).entries()];
  }

  it("sends the recording as it is, after everything that was stated", async () => {
    upstream.replyNext(json({ text: "Hi" }));

    await provider.transcription.transcribe({
      ...RECORDING,
      language: "de",
      prompt: "Ärger",
      temperature: 0,
      wantsSegments: true,
      wantsWords: true,
      extra: { include: ["logprobs"], chunking_strategy: { type: "server_vad" }, flag: true, nothing: null },
    });

    const form = await lastForm();
    const file = form.pop()?.[1] as File;
    expect(form).toEqual([
      ["model", "whisper-1"],
      ["language", "de"],
      ["prompt", "Ärger"],
      ["temperature", "0"],
      ["response_format", "verbose_json"],
      ["timestamp_granularities[]", "segment"],
      ["timestamp_granularities[]", "word"],
      ["include[]", "logprobs"],
      ["chunking_strategy[type]", "server_vad"],
      ["flag", "true"],
    ]);
    expect([file.name, file.type]).toEqual(["audio.wav", "audio/wav"]);
    expect(Buffer.from(await file.arrayBuffer())).toEqual(RECORDING.audio.bytes);
    expect(upstream.requests.at(-1)?.headers["content-length"]).toBe(String(upstream.requests.at(-1)?.body.length));
  });

  it("requests plain JSON when no times are needed", async () => {
    upstream.replyNext(json({ text: "Hi" }));

    const answer = await provider.transcription.transcribe(RECORDING);

    expect((await lastForm()).slice(0, 2)).toEqual([
      ["model", "whisper-1"],
      ["response_format", "json"],
    ]);
    expect(answer).toEqual({ text: "Hi", language: null, durationMs: null, segments: null, words: null, usage: null, warnings: [] });
  });

  it.each([
    [{ duration: 2.5 }, 2_500],
    [{ duration: "2.5" }, 2_500],
    [{ usage: { type: "duration", seconds: 3 } }, 3_000],
    [{ duration: -1 }, null],
    [{ duration: 1e300 }, null],
    [{ duration: "long" }, null],
    [{ usage: { type: "tokens", input_tokens: 5 } }, null],
  ])("reads the length in %j", async (told, durationMs) => {
    upstream.replyNext(json({ text: "Hi", ...told }));

    expect((await provider.transcription.transcribe(RECORDING)).durationMs).toBe(durationMs);
  });

  it("leaves out unreadable segments and words", async () => {
    const segments = [
      { start: 0, end: 1, text: "Hi" },
      { id: "seg_1", seek: -1, start: 1, end: 2, text: "ho", tokens: [1, "2"], temperature: "0", avg_logprob: null, no_speech_prob: 0.5 },
      { start: -1, end: 1, text: "x" },
      { start: 0, end: null, text: "x" },
      { start: 0, end: 1 },
      null,
    ];
    upstream.replyNext(json({ text: "Hi", segments, words: "none" }));

    const answer = await provider.transcription.transcribe(RECORDING);

    expect(answer.segments).toEqual([
      { start: 0, end: 1, text: "Hi", decoding: {} },
      { start: 1, end: 2, text: "ho", decoding: { no_speech_prob: 0.5 } },
    ]);
    expect(answer.words).toBeNull();
  });

  it.each([
    ["text", raw("Hi", { headers: { "content-type": "text/plain" } }), { kind: "invalid-response" }],
    ["a stream", sse([{ type: "transcript.text.delta", delta: "Hi" }]), { kind: "invalid-response" }],
    ["no text", json({ text: 5 }), { kind: "invalid-response" }],
    ["an error with status 200", json({ error: { message: "No." } }), { kind: "status", status: 502 }],
    ["a status", errorReply(413, "Too large."), { kind: "status", status: 413 }],
    ["a closed connection", closeSocket({ reset: true }), { kind: "closed" }],
  ])("rejects when it is answered with %s", async (_what, reply, error) => {
    upstream.replyNext(reply);

    await expect(provider.transcription.transcribe(RECORDING)).rejects.toMatchObject({ name: "ProviderError", ...error });
  });
});
