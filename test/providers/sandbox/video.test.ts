import { performance } from "node:perf_hooks";
import { fileTypeFromBuffer } from "file-type";
import sharp, { type Sharp } from "sharp";
import { describe, expect, it } from "vitest";
import type { VideoCall } from "../../../src/providers/media.js";
import { frameOf, hasFfmpeg, hasFfprobe, probe, withFfprobe } from "../../support/media-files.js";
import { openSandbox, videoCall } from "../../support/sandbox-media.js";

const { video } = openSandbox();

describe("a sandbox video", () => {
  it("is MP4 of the requested length, and reports its progress", async () => {
    const told: number[] = [];

    const made = await video.generate(videoCall({ prompt: "A boat on the sea", onProgress: (percent) => told.push(percent) }));

    expect(made).toMatchObject({ contentType: "video/mp4", durationMs: 1_000, warnings: [] });
    expect(made.usage).toMatchObject({ outputVideoMilliseconds: 1_000 });
    expect(await fileTypeFromBuffer(made.bytes)).toMatchObject({ mime: "video/mp4" });
    expect(told).toEqual([...told].sort((one, other) => one - other));
    expect(told.length).toBeGreaterThan(3);
    expect(told.every((percent) => percent >= 0 && percent <= 100)).toBe(true);
  });

  it.skipIf(!hasFfprobe)(`is H.264 that plays to its end${withFfprobe}`, async () => {
    const { bytes } = await video.generate(videoCall({ prompt: "a city", seconds: 2 }));

    const { streams, format, complaints } = await probe(bytes, "mp4");

    expect(complaints).toBe("");
    expect(streams).toMatchObject([{ codec_name: "h264", width: 160, height: 90, pix_fmt: "yuv420p", nb_read_frames: "48" }]);
    expect(Number(format.duration)).toBeCloseTo(2, 2);
  });

  it.skipIf(!hasFfprobe)(`has the requested shape${withFfprobe}`, async () => {
    const shapeOf = async (call: Partial<VideoCall>) => {
      const { bytes } = await video.generate(videoCall({ prompt: "hills", size: null, ...call }));
      const [stream] = (await probe(bytes, "mp4")).streams;
      return [stream?.width, stream?.height];
    };

    expect(await shapeOf({ aspectRatio: "9:16" })).toEqual([360, 640]);
    expect(await shapeOf({})).toEqual([640, 360]);
  });

  it.skipIf(!hasFfprobe)(`has sound on request${withFfprobe}`, async () => {
    const { bytes } = await video.generate(videoCall({ prompt: "a forest", hasAudio: true }));

    const { streams, complaints } = await probe(bytes, "mp4");

    expect(complaints).toBe("");
    expect(streams).toMatchObject([{ codec_name: "h264" }, { codec_name: "aac", sample_rate: "48000" }]);
  });

  it.skipIf(!hasFfmpeg)("moves, differs with the seed, and shows the source (left out where ffmpeg is not installed)", async () => {
    const red = await sharp({ create: { width: 40, height: 40, channels: 3, background: "#e01010" } })
      .png()
      .toBuffer();
    const images = [{ bytes: new Uint8Array(red), contentType: "image/png", name: "red.png" }];
    const [one, other, shown] = await Promise.all([
      video.generate(videoCall({ prompt: "the sea", seed: 1, seconds: 2 })),
      video.generate(videoCall({ prompt: "the sea", seed: 2 })),
      video.generate(videoCall({ prompt: "the sea", images })),
    ]);
    const [start, end, otherStart, source] = await Promise.all(
      [frameOf(one.bytes, 0), frameOf(one.bytes, 1.5), frameOf(other.bytes, 0), frameOf(shown.bytes, 0)].map(async (frame) =>
        sharp(await frame),
      ),
    );
    const pixels = async (frame: Sharp | undefined) => frame?.removeAlpha().raw().toBuffer();

    expect(await pixels(end)).not.toEqual(await pixels(start));
    expect(await pixels(otherStart)).not.toEqual(await pixels(start));
    const dominant = (await source?.stats())?.dominant;
    expect(dominant?.r).toBeGreaterThan((dominant?.g ?? 255) + 80);
  });

  it("warns of options without an effect", async () => {
    const { warnings } = await video.generate(videoCall({ prompt: "x", size: { width: 65, height: 64 }, negativePrompt: "y" }));

    expect(warnings).toEqual(["H.264 wants even sides: the video is 64x64.", "The sandbox does not read negative_prompt."]);
  });

  it.each<[string, Partial<VideoCall>, string]>([
    ["too short", { seconds: 0.5 }, "duration"],
    ["too long", { seconds: 10.5 }, "duration"],
    ["too large", { size: { width: 1_922, height: 64 } }, "size"],
    ["too small", { size: { width: 62, height: 64 } }, "size"],
  ])("is refused when it would be %s", async (_what, call, param) => {
    await expect(video.generate(videoCall({ prompt: "x", ...call }))).rejects.toMatchObject({ status: 400, upstreamParam: param });
  });

  it("fails as its prompt directs", async () => {
    await expect(video.generate(videoCall({ prompt: "[fail 503] x" }))).rejects.toMatchObject({ kind: "status", status: 503 });
    expect((await video.generate(videoCall({ prompt: "[no usage] x" }))).usage).toBeNull();
  });

  it("stops when its caller leaves", async () => {
    const leaving = new AbortController();
    const call = videoCall({ prompt: "x", seconds: 10, signal: leaving.signal, onProgress: () => leaving.abort(new Error("gone")) });

    await expect(video.generate(call)).rejects.toThrow("gone");
  });

  it("leaves the event loop to others", async () => {
    const before = performance.eventLoopUtilization();

    await Promise.all([1, 2].map((seed) => video.generate(videoCall({ prompt: "the sea", seed, size: { width: 320, height: 180 } }))));

    // Encoding in this thread would keep it for the whole time.
    expect(performance.eventLoopUtilization(before).utilization).toBeLessThan(0.5);
  });
});
