/** Which claims of a video file are trusted, and the bounded cost of a hostile one. */
import { performance } from "node:perf_hooks";
import { afterAll, expect, it } from "vitest";
import { MediaInspector } from "../../../../src/services/generation/media/media-inspector.js";
import { readClip } from "../../../support/fake-videos.js";

/** Of the number of samples in a table of clip-1s.mp4. */
const FIRST_BYTE_OF_A_COUNT = 693;

const inspector = new MediaInspector();
afterAll(() => inspector.close());

const video = (bytes: Uint8Array) => inspector.video({ accountId: "account", bytes });

it.each([
  [1, 1_000],
  [3, 3_000],
  [10, 10_000],
  ["without-length", null],
] as const)("finds the length of a clip of %s", async (length, durationMs) => {
  expect(await video(await readClip(length))).toEqual({ contentType: "video/mp4", durationMs });
});

it.each([
  ["nothing", Buffer.alloc(0)],
  ["text", Buffer.from("<html>".repeat(1_000))],
  ["zeros", Buffer.alloc(100_000)],
])("knows that %s is no video", async (_name, bytes) => {
  expect(await video(bytes)).toBeNull();
});

it("takes a file whose tables claim four billion entries for none", async () => {
  const clip = await readClip(1);
  clip.fill(0xff, FIRST_BYTE_OF_A_COUNT, FIRST_BYTE_OF_A_COUNT + 1);

  expect(await video(clip)).toBeNull();
});

it("reads a file of many fragments beside the process, not in it", async () => {
  const bytes = Buffer.concat([await readClip("without-length"), ...Array<Buffer>(50_000).fill(emptyFragment())]);
  const before = performance.eventLoopUtilization();

  await video(bytes);

  expect(performance.eventLoopUtilization(before).utilization).toBeLessThan(0.5);
});

/** A `moof` with one sample of the track 1 and no data after it. */
function emptyFragment(): Buffer {
  const box = (type: string, ...contents: Buffer[]) => {
    const content = Buffer.concat(contents);
    const size = Buffer.alloc(4);
    size.writeUInt32BE(content.length + 8);
    return Buffer.concat([size, Buffer.from(type, "latin1"), content]);
  };
  const numbers = (...values: number[]) => {
    const bytes = Buffer.alloc(values.length * 4);
    for (const [index, value] of values.entries()) bytes.writeUInt32BE(value, index * 4);
    return bytes;
  };
  const header = box("tfhd", numbers(0x020038, 1, 4096, 10, 0));
  const run = box("trun", numbers(0x000001, 1, 100));
  return box("moof", box("mfhd", numbers(0, 1)), box("traf", header, box("tfdt", numbers(0, 0)), run));
}
