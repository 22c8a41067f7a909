/** Prepares a client's images for drawing. */
import type { Sharp, SharpOptions } from "sharp";
import { SANDBOX_SOURCE_PIXELS_MAX } from "../../../src/providers/sandbox/limits.js";
import { refuse } from "../../../src/providers/sandbox/refusal.js";

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** sharp, limited to leave processor time to other threads. */
export async function loadSharp(): Promise<typeof import("sharp")["default"]> {
  const { default: sharp } = await import("sharp");
  sharp.concurrency(1);
  sharp.cache(false);
  return sharp;
}

const READING: SharpOptions = { limitInputPixels: SANDBOX_SOURCE_PIXELS_MAX, failOn: "error", autoOrient: true, pages: 1 };

async function openSource(bytes: Uint8Array): Promise<Sharp> {
  const sharp = await loadSharp();
  const { format } = await sharp(bytes, READING).metadata();
  if (!FORMATS.has(format)) throw new TypeError(`its format is ${format}`);
  return sharp(bytes, READING);
}

/** Throws a refusal for other files, broken images and too many pixels. */
export async function sizeOf(bytes: Uint8Array): Promise<Size> {
  return readingAs("image", async () => {
    const { autoOrient } = await (await openSource(bytes)).metadata();
    return { width: autoOrient.width, height: autoOrient.height };
  });
}

/** The image cropped to a size, as PNG, on white unless transparency is kept. */
export async function coverWith(bytes: Uint8Array, { width, height }: Size, keepsTransparency = false): Promise<Buffer> {
  return readingAs("image", async () => {
    const source = await openSource(bytes);
    const grounded = keepsTransparency ? source : source.flatten({ background: "#ffffff" });
    return grounded.resize(width, height, { fit: "cover" }).toColourspace("srgb").png().toBuffer();
  });
}

/** A small print of the picture with a white edge, as PNG. */
export async function printOf(bytes: Uint8Array, side: number): Promise<Buffer> {
  const edge = Math.max(1, Math.round(side * 0.04));
  return readingAs("image", async () =>
    (await openSource(bytes))
      .resize(side, side, { fit: "cover" })
      .extend({ top: edge, bottom: edge, left: edge, right: edge, background: "#ffffff" })
      .png()
      .toBuffer(),
  );
}

/**
 * The source with the masked part removed, as PNG: transparent areas of the mask are removed. A mask without transparency is read by
 * brightness: white areas are to be redrawn.
 */
export async function maskedBy(source: Buffer, mask: Uint8Array, { width, height }: Size): Promise<Buffer> {
  const sharp = await loadSharp();
  const kept = await readingAs("mask", async () => {
    const opened = await openSource(mask);
    const { hasAlpha } = await opened.metadata();
    const fitted = opened.resize(width, height, { fit: "fill" });
    const channel = hasAlpha ? fitted.ensureAlpha().extractChannel("alpha") : fitted.removeAlpha().greyscale().negate().extractChannel(0);
    return channel.raw().toBuffer();
  });
  const opaque = await sharp(source).removeAlpha().raw().toBuffer();
  return sharp(opaque, { raw: { width, height, channels: 3 } })
    .joinChannel(kept, { raw: { width, height, channels: 1 } })
    .png()
    .toBuffer();
}

/** Decoded formats: none that can name files or hold programs. */
const FORMATS: ReadonlySet<string> = new Set(["jpeg", "png", "webp", "gif", "heif", "avif", "tiff"]);

async function readingAs<Read>(param: string, read: () => Promise<Read>): Promise<Read> {
  try {
    return await read();
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw refuse(`The picture cannot be read: ${why}.`, param);
  }
}
