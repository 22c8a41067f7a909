/** Pictures as bytes: what they are, how large, and the same picture in another format. The decoder is loaded when it is first needed. */

import type { GeneratedType } from "./content-types.js";

export type PictureType = Extract<GeneratedType, `image/${string}`>;
export type PictureFormat = "png" | "jpeg" | "webp";

const HEAD_BYTES = 12;
const JPEG_QUALITY = 92;
const WEBP_QUALITY = 90;

/** By its first bytes, whatever its name or its declared type say; null for what is no picture, or one that can hold a program (SVG). */
export function pictureTypeOf(bytes: Uint8Array): PictureType | null {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, HEAD_BYTES)).toString("latin1");
  if (head.startsWith("\x89PNG\r\n\x1a\n")) return "image/png";
  if (head.startsWith("\xff\xd8\xff")) return "image/jpeg";
  if (/^RIFF.{4}WEBP/s.test(head)) return "image/webp";
  if (/^GIF8[79]a/.test(head)) return "image/gif";
  if (/^.{4}ftypavi[fs]/s.test(head)) return "image/avif";
  return null;
}

export interface PictureSize {
  readonly width: number;
  readonly height: number;
}

/** From its header alone: nothing is unpacked. Null when it cannot be read. */
export async function measurePicture(bytes: Uint8Array): Promise<PictureSize | null> {
  const sharp = await loadSharp();
  try {
    const { width, height } = await sharp(bytes, { limitInputPixels: false }).metadata();
    return { width, height };
  } catch {
    return null;
  }
}

/**
 * The same picture, pixel for pixel as large, in another format; what JPEG cannot show through stands on white. Rejects when it
 * cannot be read or has more than `pixelsMax` pixels.
 */
export async function convertPicture(bytes: Uint8Array, format: PictureFormat, pixelsMax: number): Promise<Uint8Array> {
  const sharp = await loadSharp();
  const picture = sharp(bytes, { limitInputPixels: pixelsMax }).keepIccProfile();
  if (format === "png") return picture.png().toBuffer();
  if (format === "webp") return picture.webp({ quality: WEBP_QUALITY }).toBuffer();
  return picture.flatten({ background: "#ffffff" }).jpeg({ quality: JPEG_QUALITY }).toBuffer();
}

async function loadSharp() {
  const { default: sharp } = await import("sharp");
  // Pictures are never the same twice here, so a cache of them only holds memory.
  sharp.cache(false);
  return sharp;
}
