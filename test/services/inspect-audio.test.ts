/** How long recordings are, in every container that is taken, and of what only looks like one. */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MediaInspector } from "../../src/services/generation/media-inspector.js";
import { recording, streamedRecording } from "../support/recordings.js";

const hasFfmpeg = spawnSync("ffmpeg", ["-version"]).status === 0;

const inspector = new MediaInspector();
afterAll(() => inspector.close());

describe("The length of a recording", () => {
  it("reads the length of a WAV to the millisecond", async () => {
    expect(await inspector.audio(recording(1.234))).toEqual({ contentType: "audio/wav", extension: "wav", durationMs: 1_234 });
  });

  it("goes by the sound that is there, not by what the head says", async () => {
    const cut = recording(10).subarray(0, 44 + 16_000 * 2);

    expect((await inspector.audio(streamedRecording(2)))?.durationMs).toBe(2_000);
    expect((await inspector.audio(cut))?.durationMs).toBe(2_000);
  });

  it("counts the frames of what has no head", async () => {
    expect(await inspector.audio(frames(100))).toEqual({ contentType: "audio/aac", extension: "aac", durationMs: 2_322 });
  });

  it.each([
    ["nothing", Buffer.alloc(0)],
    ["zeros", Buffer.alloc(100_000)],
    ["text", Buffer.from("RIFF and WAVE are words. ".repeat(1_000))],
    ["a head alone", recording(1).subarray(0, 44)],
    ["half a head", recording(1).subarray(0, 20)],
    ["a tag alone", Buffer.concat([Buffer.from("ID3\x04\0\0\0\0\x10\0", "latin1"), Buffer.alloc(4_000)])],
    ["an Ogg page of nothing", Buffer.from(`OggS${"\0".repeat(60)}`)],
    ["FLAC's mark alone", Buffer.from("fLaC\x80\0\0\x22", "latin1")],
    ["Matroska's mark alone", Buffer.from("1a45dfa3a342868101", "hex")],
    ["MP4's mark alone", Buffer.from("000000186674797069736f6d0000020069736f6d69736f32", "hex")],
  ])("finds no sound in %s", async (_what, bytes) => {
    expect(await inspector.audio(bytes)).toBeNull();
  });

  it("lets others take their turn while it reads a large file", async () => {
    const startedAt = performance.now();
    let longestMs = 0;
    let before = startedAt;
    const watch = setInterval(() => {
      longestMs = Math.max(longestMs, performance.now() - before);
      before = performance.now();
    }, 1);

    const facts = await inspector.audio(frames(60_000));
    clearInterval(watch);

    expect(facts?.durationMs).toBe(1_393_197);
    expect(longestMs).toBeGreaterThan(0);
    expect(longestMs).toBeLessThan((before - startedAt) / 2);
  });
});

/** AAC frames of 1,024 samples at 44.1 kHz, each with the smallest head. */
function frames(count: number): Buffer {
  const bytes = 200;
  const frame = Buffer.alloc(bytes);
  frame.set([0xff, 0xf1, 0x50, 0x40, bytes >> 3, ((bytes & 7) << 5) | 0x1f, 0xfc]);
  return Buffer.alloc(bytes * count, frame);
}

describe.skipIf(!hasFfmpeg)("The length of what a real encoder wrote (needs ffmpeg)", () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "sluice-audio-"));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const TONE = ["-hide_banner", "-loglevel", "error", "-y", "-f", "lavfi", "-i", "sine=duration=1.5"];

  it.each([
    ["mp3", "audio/mpeg"],
    ["wav", "audio/wav"],
    ["flac", "audio/flac"],
    ["ogg", "audio/ogg"],
    ["opus", "audio/ogg"],
    ["aac", "audio/aac"],
    ["m4a", "audio/mp4"],
    ["webm", "audio/webm"],
    ["mka", "audio/x-matroska"],
  ])("reads %s", async (extension, contentType) => {
    const file = join(folder, `tone.${extension}`);
    execFileSync("ffmpeg", [...TONE, file]);

    const facts = await inspector.audio(readFileSync(file));

    expect(facts?.contentType).toBe(contentType);
    // Encoders fill up the last frame.
    expect(Math.abs((facts?.durationMs ?? 0) - 1_500)).toBeLessThan(60);
  });

  it("gives up a file whose table claims four billion entries, and reads the next", async () => {
    const file = join(folder, "hostile.m4a");
    execFileSync("ffmpeg", [...TONE, file]);
    const honest = readFileSync(file);
    const hostile = Buffer.from(honest);
    // After a box's name come its version and its flags, then how many entries it has.
    hostile[hostile.indexOf("stts") + 8] = 0xff;
    const hasty = new MediaInspector(1_500);

    expect(await hasty.audio(hostile)).toBeNull();
    expect((await hasty.audio(honest))?.contentType).toBe("audio/mp4");
    await hasty.close();
  });

  it.each([["webm"], ["flac"], ["wav"], ["mp3"]])("reads %s that was streamed, whose head tells no length", async (format) => {
    const bytes = execFileSync("ffmpeg", [...TONE, "-f", format, "pipe:1"], { maxBuffer: 8 * 1024 * 1024 });

    expect(Math.abs(((await inspector.audio(bytes))?.durationMs ?? 0) - 1_500)).toBeLessThan(60);
  });
});
