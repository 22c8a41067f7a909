import { fileTypeFromBuffer } from "file-type";
import { describe, expect, it } from "vitest";
import { SPEECH_FORMATS, type SpeechCall, type SpeechFormat } from "../../../src/providers/media.js";
import { SANDBOX_VOICES } from "../../../src/providers/sandbox/media/voices.js";
import { decodeSound, hasFfmpeg, hasFfprobe, loudnessOf, probe, withFfprobe } from "../../support/media-files.js";
import { collect, openSandbox, speechCall } from "../../support/sandbox-media.js";

const { speech } = openSandbox();
/** Its silence is soon too long. */
const { speech: impatient } = openSandbox({ idleMs: 2_000 });

async function say(call: Parameters<typeof speechCall>[0]): Promise<Uint8Array> {
  return collect((await speech.stream(speechCall(call))).chunks);
}

/** Samples of a sentence in the format that is nothing but samples. */
async function sampled(call: Partial<SpeechCall>): Promise<Int16Array> {
  const bytes = await say({ input: "One two three four five, this is the sandbox.", format: "pcm", ...call });
  return new Int16Array(bytes.slice().buffer);
}

describe("sandbox speech", () => {
  it.each<[SpeechFormat, string, string, string]>([
    ["mp3", "audio/mpeg", "audio/mpeg", "mp3"],
    ["opus", "audio/ogg", "audio/ogg; codecs=opus", "opus"],
    ["aac", "audio/aac", "audio/aac", "aac"],
    ["flac", "audio/flac", "audio/flac", "flac"],
    ["wav", "audio/wav", "audio/wav", "pcm_s16le"],
  ])(`comes as %s${withFfprobe}`, async (format, contentType, detected, codec) => {
    const stream = await speech.stream(speechCall({ input: "Hello, this is the sandbox.", format }));
    const bytes = await collect(stream.chunks);

    expect(stream.contentType).toBe(contentType);
    expect((await fileTypeFromBuffer(bytes))?.mime).toBe(detected);
    if (!hasFfprobe) return;
    const { streams, format: container, complaints } = await probe(bytes, format);
    expect(complaints).toBe("");
    expect(streams).toMatchObject([{ codec_name: codec, channels: 1 }]);
    expect(Number(container.duration)).toBeGreaterThan(1);
    expect(Number(container.duration)).toBeLessThan(4);
  });

  it.skipIf(!hasFfmpeg)("sounds the same in every format (left out where ffmpeg is not installed)", async () => {
    const input = "Hello, this is the sandbox.";
    const plain = await sampled({ input });

    for (const format of SPEECH_FORMATS.filter((other) => other !== "pcm")) {
      const samples = await decodeSound(await say({ input, format }), format);
      expect(loudnessOf(samples) / loudnessOf(plain), format).toBeCloseTo(1, 0);
      expect(samples.length / plain.length, format).toBeCloseTo(1, 0);
    }
  });

  it("is loud enough, and pauses between sentences", async () => {
    const samples = await sampled({ input: "Hello there. Hello again." });
    const windows = Array.from({ length: Math.floor(samples.length / 1_200) }, (_, index) =>
      loudnessOf(samples.subarray(index * 1_200, (index + 1) * 1_200)),
    );

    expect(loudnessOf(samples)).toBeGreaterThan(0.02);
    expect(Math.min(...windows)).toBeLessThan(Math.max(...windows) / 50);
    expect(Math.max(...windows)).toBeLessThan(0.9);
  });

  it("has 35 voices, each with its own sound", async () => {
    const lengths = new Set<string>();

    for (const voice of SANDBOX_VOICES) {
      const samples = await sampled({ input: "Hello", voice });
      expect(loudnessOf(samples), voice).toBeGreaterThan(0.01);
      lengths.add(`${samples.length}:${Math.round(loudnessOf(samples) * 1e6)}`);
    }

    expect(SANDBOX_VOICES).toHaveLength(35);
    expect(lengths.size).toBe(35);
  });

  it.each([0.25, 0.5, 2, 4])("speaks at %s times its speed", async (speed) => {
    const [normal, changed] = [await sampled({}), await sampled({ speed })];

    const ratio = normal.length / changed.length;

    // Pauses do not shrink as words do.
    expect(ratio / speed).toBeGreaterThan(0.75);
    expect(ratio / speed).toBeLessThan(1.35);
  });

  it("speaks other scripts than the Latin one", async () => {
    const [russian, silent] = [await sampled({ input: "Привет, мир" }), await sampled({ input: "..." })];

    expect(loudnessOf(russian)).toBeGreaterThan(0.02);
    expect(russian.length).toBeGreaterThan(silent.length * 1.5);
  });

  it("takes brackets and tags for words, not for instructions", async () => {
    const [plain, tagged] = [
      await sampled({ input: "say word now" }),
      await sampled({ input: "say <prosody rate='10'>word</prosody> now" }),
    ];

    expect(tagged.length).toBeGreaterThan(plain.length);
  });

  it("sends the beginning while it speaks on", async () => {
    const { chunks } = await speech.stream(speechCall({ input: "This is a sentence of some length. ".repeat(12), format: "mp3" }));
    const sizes: number[] = [];
    for await (const chunk of chunks) sizes.push(chunk.length);

    expect(sizes.length).toBeGreaterThan(8);
    expect(Math.max(...sizes)).toBeLessThan(sizes.reduce((sum, size) => sum + size, 0) / 3);
  });

  it("stops when its reader leaves, and goes on serving others", async () => {
    const long = "This is a sentence of some length. ".repeat(250);
    const streams = await Promise.all(Array.from({ length: 12 }, () => speech.stream(speechCall({ input: long, format: "pcm" }))));
    for (const { chunks } of streams) {
      for await (const _chunk of chunks) break;
    }

    expect((await say({ input: "Still here." })).length).toBeGreaterThan(1_000);
  });

  it.each<[string, Partial<SpeechCall>, string]>([
    ["a voice that there is not", { voice: "hal" }, "voice"],
    ["too slow a speed", { speed: 0.24 }, "speed"],
    ["too fast a speed", { speed: 4.01 }, "speed"],
    ["a file that would be too long to keep", { input: "a".repeat(5_001), speed: 0.25, format: "wav" }, "speed"],
  ])("refuses %s", async (_what, call, param) => {
    await expect(speech.stream(speechCall({ input: "x", ...call }))).rejects.toMatchObject({ status: 400, upstreamParam: param });
  });

  it("says that it takes no instructions", async () => {
    const { warnings, chunks } = await speech.stream(speechCall({ input: "x", instructions: "whisper" }));
    await collect(chunks);

    expect(warnings).toHaveLength(1);
  });
});

describe("directives", () => {
  const long = "First sentence here. Second sentence here. Third sentence here.";

  it("fail before anything is sent", async () => {
    await expect(speech.stream(speechCall({ input: "[fail 529] x" }))).rejects.toMatchObject({ kind: "status", status: 529 });
    await expect(speech.stream(speechCall({ input: "[tokens x=1] x" }))).rejects.toMatchObject({ status: 400, upstreamParam: "input" });
  });

  it.each([
    ["[cut after 2]", 2, { kind: "cut" }],
    ["[cut]", 1, { kind: "cut" }],
    ["[error mid-stream]", 1, { kind: "status", status: 500 }],
    ["[hang after 2]", 2, { kind: "timeout" }],
  ])("%s breaks a stream", async (directive, chunks, error) => {
    const asked = error.kind === "timeout" ? impatient : speech;
    const stream = await asked.stream(speechCall({ input: `${directive} ${long}`, format: "pcm" }));
    let received = 0;
    const reading = (async () => {
      for await (const _chunk of stream.chunks) received += 1;
    })();

    await expect(reading).rejects.toMatchObject({ name: "ProviderError", ...error });
    expect(received).toBe(chunks);
  });

  it("hang at once without a number", async () => {
    await expect(impatient.stream(speechCall({ input: "[hang] x" }))).rejects.toMatchObject({ kind: "timeout" });
  });

  it("are not read out", async () => {
    const lengthOf = async (input: string) => (await sampled({ input })).length;

    expect(await lengthOf("[delay 1ms] Hello")).toBe(await lengthOf("Hello"));
    expect(await lengthOf("[repeat 3 hello]")).toBe(await lengthOf("hello hello hello"));
  });
});
