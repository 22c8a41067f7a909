import { fileTypeFromBuffer } from "file-type";
import { describe, expect, it } from "vitest";
import type { MusicCall, SpeechFormat } from "../../../src/providers/media.js";
import { decodeSound, hasFfmpeg, hasFfprobe, loudnessOf, probe, withFfprobe } from "../../support/media-files.js";
import { musicCall, openSandbox } from "../../support/sandbox-media.js";

const { music } = openSandbox();

const play = (call: Partial<MusicCall> = {}) => music.generate(musicCall({ prompt: "a happy dance", ...call }));

describe("a sandbox tune", () => {
  it("is MP3 of ten seconds by default", async () => {
    const made = await play({ seconds: null });

    expect(made).toMatchObject({ contentType: "audio/mpeg", durationMs: 10_000, usage: { outputAudioMilliseconds: 10_000 }, warnings: [] });
    expect(await fileTypeFromBuffer(made.bytes)).toMatchObject({ mime: "audio/mpeg" });
    // 128 kbit a second.
    expect(made.bytes.length).toBeGreaterThan(155_000);
    expect(made.bytes.length).toBeLessThan(170_000);
  });

  it.skipIf(!hasFfprobe).each<[SpeechFormat, string]>([
    ["mp3", "mp3"],
    ["opus", "opus"],
    ["aac", "aac"],
    ["flac", "flac"],
    ["wav", "pcm_s16le"],
  ])(`lasts for the requested time as %s${withFfprobe}`, async (format, codec) => {
    const { bytes } = await play({ format, seconds: 2.5 });

    const { streams, complaints } = await probe(bytes, format);

    expect(complaints).toBe("");
    expect(streams).toMatchObject([{ codec_name: codec, sample_rate: "48000", channels: 1 }]);
    if (!hasFfmpeg) return;
    const seconds = (await decodeSound(bytes, format)).length / 24_000;
    expect(Math.abs(seconds - 2.5)).toBeLessThan(0.1);
  });

  it("is the same for the same prompt and seed, and another for another seed", async () => {
    const [one, again, other, sad] = await Promise.all([play(), play(), play({ seed: 2 }), play({ prompt: "sad rain" })]);

    expect(Buffer.compare(one.bytes, again.bytes)).toBe(0);
    expect(Buffer.compare(one.bytes, other.bytes)).not.toBe(0);
    expect(Buffer.compare(one.bytes, sad.bytes)).not.toBe(0);
  });

  it("has a melody: its loudest pitch changes from note to note", async () => {
    const { bytes } = await play({ prompt: "calm", seconds: 6, format: "pcm" });
    const samples = new Int16Array(bytes.slice().buffer);

    const windows = Array.from({ length: 20 }, (_, index) => samples.subarray(index * 6_000, index * 6_000 + 4_800));
    const loudest = windows.map((window) => loudestPitch(window));

    expect(samples.length).toBe(6 * 24_000);
    expect(loudnessOf(samples)).toBeGreaterThan(0.03);
    expect(new Set(loudest).size).toBeGreaterThan(3);
    // A chord progression, not noise: every pitch is heard again.
    expect(new Set(loudest).size).toBeLessThan(14);
  });

  it("fades out at its end and never cracks", async () => {
    const { bytes } = await play({ seconds: 3, format: "pcm" });
    const samples = new Int16Array(bytes.slice().buffer);

    expect(loudnessOf(samples.subarray(-480))).toBeLessThan(0.01);
    expect(samples.every((sample) => Math.abs(sample) < 32_000)).toBe(true);
  });

  it.each([0, -1, 301])("of %s seconds is refused", async (seconds) => {
    await expect(play({ seconds })).rejects.toMatchObject({ status: 400, upstreamParam: "duration" });
  });

  it("obeys directives", async () => {
    await expect(play({ prompt: "[fail 402] x" })).rejects.toMatchObject({ kind: "status", status: 402 });
    expect((await play({ prompt: "[no usage] x" })).usage).toBeNull();
  });
});

/** MIDI number of the note from A2 up that has the most of the sound's energy (Goertzel). */
function loudestPitch(samples: Int16Array): number {
  let best = { pitch: 0, power: 0 };
  for (let pitch = 57; pitch < 90; pitch += 1) {
    const omega = (2 * Math.PI * 440 * 2 ** ((pitch - 69) / 12)) / 24_000;
    let [one, two] = [0, 0];
    for (const sample of samples) [one, two] = [sample + 2 * Math.cos(omega) * one - two, one];
    const power = one * one + two * two - 2 * Math.cos(omega) * one * two;
    if (power > best.power) best = { pitch, power };
  }
  return best.pitch;
}
