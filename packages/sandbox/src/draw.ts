/** Draws images: a scene with the prompt under it, or the client's images with the scene's colours, shapes and words over them. */
import type { OverlayOptions } from "sharp";
import { append } from "../../../src/lib/collections.js";
import { SANDBOX_IMAGE_SIDE, SANDBOX_IMAGE_SIDE_MAX, SANDBOX_IMAGE_SIDE_MIN } from "../../../src/providers/sandbox/limits.js";
import type { ImageJob, ImageResult, JobRun } from "../../../src/providers/sandbox/media/jobs.js";
import { drawCaption } from "./caption.js";
import { choosePalette } from "./palette.js";
import { Random } from "./random.js";
import { makeScene } from "./scenes.js";
import { coverWith, loadSharp, maskedBy, printOf, type Size, sizeOf } from "./sources.js";

/** Prints of further sources that find room on the picture. */
const PRINTS_MAX = 4;

export async function* draw(job: ImageJob): JobRun<ImageResult> {
  const size = job.size ?? (await usualSize(job));
  const images: { bytes: Uint8Array; width: number; height: number }[] = [];
  for (let index = 0; index < job.count; index += 1) {
    images.push({ bytes: await oneAtATime(() => drawOne(job, size, job.seed + index)), ...size });
    yield { percent: Math.round(((index + 1) / job.count) * 100) };
  }
  return { images };
}

/** The first source's own size, or a square. */
async function usualSize({ sources }: ImageJob): Promise<Size> {
  const [first] = sources;
  if (first === undefined) return { width: SANDBOX_IMAGE_SIDE, height: SANDBOX_IMAGE_SIDE };
  const { width, height } = await sizeOf(first);
  const scale = Math.min(1, SANDBOX_IMAGE_SIDE_MAX / Math.max(width, height));
  const side = (length: number) => Math.max(SANDBOX_IMAGE_SIDE_MIN, Math.round(length * scale));
  return { width: side(width), height: side(height) };
}

async function drawOne(job: ImageJob, size: Size, seed: number): Promise<Uint8Array> {
  const sharp = await loadSharp();
  const random = new Random("image", job.prompt, seed);
  const palette = choosePalette(job.prompt, random);
  const scene = makeScene(job.prompt, size, palette, random)(0);
  const isEdit = job.sources.length > 0;
  const caption = drawCaption(
    job.prompt || (isEdit ? "(a variation)" : "(no prompt)"),
    `Sluice sandbox · ${isEdit ? "edit" : "drawn by rules"} · seed ${seed}`,
    size,
  );
  const layers: OverlayOptions[] = [];

  const [source, ...others] = job.sources;
  if (source !== undefined) {
    const cover = await coverWith(source, size, job.isTransparent);
    layers.push({ input: job.mask ? await maskedBy(cover, job.mask, size) : cover });
    if (!job.mask) layers.push({ input: svg(size, frame(size, palette.accents)) });
    append(layers, await prints(others, size));
  }
  layers.push({ input: svg(size, caption) });

  // An edit with a mask shows the scene where the source was taken away; without one nothing shows it.
  const ground = job.isTransparent ? medallion(size, scene) : scene;
  const isOnlyGround = source === undefined || job.mask !== null;
  const background = isOnlyGround ? svg(size, ground) : svg(size, "");
  const picture = sharp(background).composite(layers);
  return encode(job.isTransparent ? picture : picture.removeAlpha(), job);
}

async function encode(picture: import("sharp").Sharp, { format, quality }: ImageJob): Promise<Uint8Array> {
  const encoded =
    format === "jpeg"
      ? picture.jpeg({ quality, chromaSubsampling: "4:4:4" })
      : format === "webp"
        ? picture.webp({ quality })
        : picture.png({ compressionLevel: 6 });
  return new Uint8Array(await encoded.toBuffer());
}

/** The scene in a disc, with nothing around it. */
function medallion({ width, height }: Size, scene: string): string {
  const radius = Math.min(width, height) * 0.46;
  const disc = `cx="${width / 2}" cy="${height / 2}" r="${radius.toFixed(1)}"`;
  return (
    `<defs><clipPath id="disc"><circle ${disc}/></clipPath></defs><g clip-path="url(#disc)">${scene}</g>` +
    `<circle ${disc} fill="none" stroke="#fff" stroke-width="${(radius * 0.03).toFixed(1)}"/>`
  );
}

/** What shows at a glance that a picture was edited: a tint, a frame and two rings, in colours of prompt and seed. */
function frame({ width, height }: Size, [first, second, third]: readonly [string, string, string]): string {
  const edge = Math.max(2, Math.min(width, height) * 0.025);
  const ring = (x: number, y: number, radius: number, stroke: string) =>
    `<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="${radius.toFixed(1)}" fill="${stroke}" fill-opacity=".22" stroke="${stroke}" stroke-width="${edge.toFixed(1)}"/>`;
  const side = Math.min(width, height);
  return (
    `<rect width="${width}" height="${height}" fill="${first}" fill-opacity=".12"/>` +
    ring(width * 0.2, height * 0.22, side * 0.12, second) +
    ring(width * 0.8, height * 0.3, side * 0.08, third) +
    `<rect x="${edge / 2}" y="${edge / 2}" width="${width - edge}" height="${height - edge}" fill="none" stroke="${first}" stroke-width="${edge.toFixed(1)}"/>`
  );
}

/** Further sources, as small prints along the upper edge. */
async function prints(sources: readonly Uint8Array[], { width, height }: Size): Promise<OverlayOptions[]> {
  const side = Math.max(8, Math.round(Math.min(width, height) * 0.17));
  const gap = Math.round(side * 0.25);
  return Promise.all(
    sources.slice(0, PRINTS_MAX).map(async (bytes, index) => ({
      input: await printOf(bytes, side),
      top: gap,
      left: Math.max(0, width - (index + 1) * (Math.round(side * 1.08) + gap)),
    })),
  );
}

function svg({ width, height }: Size, content: string): Buffer {
  return Buffer.from(
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">${content}</svg>`,
  );
}

let last: Promise<unknown> = Promise.resolve();

/** A large picture fills a few hundred megabytes while it is drawn: two never do at once in a thread. */
function oneAtATime<Drawn>(drawing: () => Promise<Drawn>): Promise<Drawn> {
  const turn = last.then(drawing, drawing);
  last = turn.catch(() => undefined);
  return turn;
}
