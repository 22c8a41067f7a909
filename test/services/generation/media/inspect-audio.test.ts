/** Duration of recordings in each accepted container, and refusal of files that only look like one. */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MEDIA_INSPECTIONS_WAITING_PER_ACCOUNT_MAX } from "../../../../src/limits.js";
import { MediaInspector } from "../../../../src/services/generation/media/media-inspector.js";
import { claimsTooMuch } from "../../../../src/services/generation/media/read-media.js";
import { box, type Claims, mp4Claiming, numbers } from "../../../support/hostile-recordings.js";
import { recording, streamedRecording } from "../../../support/recordings.js";

const hasFfmpeg = spawnSync("ffmpeg", ["-version"]).status === 0;

const inspector = new MediaInspector();
afterAll(() => inspector.close());

const audio = (bytes: Uint8Array) => inspector.audio({ accountId: "account", bytes });

describe("the duration of a recording", () => {
  it("reads the length of a WAV to the millisecond", async () => {
    expect(await audio(recording(1.234))).toEqual({ contentType: "audio/wav", extension: "wav", durationMs: 1_234 });
  });

  it("follows the data, not the header", async () => {
    const cut = recording(10).subarray(0, 44 + 16_000 * 2);

    expect((await audio(streamedRecording(2)))?.durationMs).toBe(2_000);
    expect((await audio(cut))?.durationMs).toBe(2_000);
  });

  it("counts the frames of a file without a header", async () => {
    expect(await audio(frames(100))).toEqual({ contentType: "audio/aac", extension: "aac", durationMs: 2_322 });
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
    expect(await audio(bytes)).toBeNull();
  });

  it("yields to other requests while it reads a large file", async () => {
    let turns = 0;
    let isReading = true;
    const turn = () => {
      turns += 1;
      if (isReading) setImmediate(turn);
    };
    setImmediate(turn);

    const facts = await audio(frames(60_000));
    isReading = false;

    expect(facts?.durationMs).toBe(1_393_197);
    expect(turns).toBeGreaterThan(2);
  });
});

describe("a size that a file claims", () => {
  it("is trusted up to the file's size", async () => {
    const samples = 1_000;
    const honest = mp4Claiming({ samples, dataBytes: samples });
    const most = honest.byteLength;

    expect((await audio(honest))?.contentType).toBe("audio/mp4");
    expect(claimsTooMuch(mp4Claiming({ samples: most, dataBytes: samples }))).toBe(false);
    expect(claimsTooMuch(mp4Claiming({ samples: most + 1, dataBytes: samples }))).toBe(true);
  });

  it.each<[string, Claims]>([
    ["samples", { samples: 0xffff_ffff }],
    ["samples of many bytes", { sampleBytes: 0xffff_ffff }],
    ["sizes that are not there", { sampleBytes: 0, samples: 100 }],
    ["samples in a chunk", { samplesPerChunk: 0xffff_ffff }],
    ["chunks", { firstChunk: 0xffff_ffff }],
    ["offsets of time", { tables: [box("ctts", numbers(0, 1, 0xffff_ffff, 1))] }],
    ["key samples", { tables: [box("stss", numbers(0, 0xffff_ffff, 1))] }],
    ["chunks far away", { tables: [box("co64", numbers(0, 0xffff_ffff, 0, 1))] }],
    ["short sizes of no bits", { tables: [box("stz2", numbers(0, 0, 0xffff_ffff))] }],
    ["entries in a table that is cut", { tables: [box("stts", numbers(0))] }],
    ["samples of a fragment", { tables: [box("moof", box("traf", box("trun", numbers(0, 0xffff_ffff))))] }],
    ["boxes in boxes", { tables: [Array.from({ length: 30 }).reduce<Buffer>((inner) => box("edts", inner), box("free"))] }],
  ])("is ignored when it is four billion %s", async (_what, claims) => {
    expect(claimsTooMuch(mp4Claiming(claims))).toBe(true);
  });
});

describe("accounts with files to read", () => {
  it("have one file read at a time, so that other accounts do not wait", async () => {
    const slow = mp4Claiming({ samples: 200_000, dataBytes: 200_000 });
    const done: string[] = [];
    // Threads that have yet to start would take longer than all that is read here.
    await Promise.all(["first", "second"].map((accountId) => inspector.audio({ accountId, bytes: recording(0.1) })));
    const read = async (accountId: string, bytes: Uint8Array) => {
      await inspector.audio({ accountId, bytes });
      done.push(accountId);
    };

    const all = Array.from({ length: 6 }, () => read("hostile", slow));
    await Promise.all([...all, read("honest", recording(0.1))]);

    expect(done).toHaveLength(7);
    expect(done.at(-1)).toBe("hostile");
  });

  it("have a bounded queue; the results of upstreams wait in any case", async () => {
    const bytes = recording(0.1);
    const read = (more: object = {}) => inspector.audio({ accountId: "busy", bytes, ...more }).then((facts) => facts?.durationMs);
    const letIn = Array.from({ length: 1 + MEDIA_INSPECTIONS_WAITING_PER_ACCOUNT_MAX }, () => read());

    const refused = read();
    const made = read({ isAnswer: true });
    const other = inspector.audio({ accountId: "other", bytes });

    await expect(refused).rejects.toMatchObject({ code: "SERVICE_UNAVAILABLE", retryAfterSeconds: 1 });
    expect(new Set(await Promise.all([...letIn, made]))).toEqual(new Set([100]));
    expect((await other)?.durationMs).toBe(100);
    expect(await read()).toBe(100);
  });
});

/** AAC frames of 1,024 samples at 44.1 kHz, each with the smallest head. */
function frames(count: number): Buffer {
  const bytes = 200;
  const frame = Buffer.alloc(bytes);
  frame.set([0xff, 0xf1, 0x50, 0x40, bytes >> 3, ((bytes & 7) << 5) | 0x1f, 0xfc]);
  return Buffer.alloc(bytes * count, frame);
}

describe.skipIf(!hasFfmpeg)("the duration of a real encoder's output (needs ffmpeg)", () => {
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

    const facts = await audio(readFileSync(file));

    expect(facts?.contentType).toBe(contentType);
    // Encoders fill up the last frame.
    expect(Math.abs((facts?.durationMs ?? 0) - 1_500)).toBeLessThan(60);
  });

  it("finds no sound in a file whose table claims four billion entries, and reads the next", async () => {
    const file = join(folder, "hostile.m4a");
    execFileSync("ffmpeg", [...TONE, file]);
    const honest = readFileSync(file);
    const hostile = Buffer.from(honest);
    // After a box's name come its version and its flags, then how many entries it has.
    hostile[hostile.indexOf("stts") + 8] = 0xff;
    const hasty = new MediaInspector(1_500);

    expect(await hasty.audio({ accountId: "a", bytes: hostile })).toBeNull();
    expect((await hasty.audio({ accountId: "a", bytes: honest }))?.contentType).toBe("audio/mp4");
    await hasty.close();
  });

  it.each([["webm"], ["flac"], ["wav"], ["mp3"]])("reads %s that was streamed without a duration in its header", async (format) => {
    const bytes = execFileSync("ffmpeg", [...TONE, "-f", format, "pipe:1"], { maxBuffer: 8 * 1024 * 1024 });

    expect(Math.abs(((await audio(bytes))?.durationMs ?? 0) - 1_500)).toBeLessThan(60);
  });
});
