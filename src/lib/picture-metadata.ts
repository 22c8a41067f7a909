/**
 * Strips metadata from JPEG, PNG, WebP and GIF images: EXIF with its location, XMP, IPTC, comments, previews, and data after the image's
 * end, such as the video of a "live" photograph. Colour profiles, animation and orientation stay; no pixel is decoded.
 */
import { crc32 } from "node:zlib";
import { ownValue } from "./own-values.js";

/** The file's structure is truncated or invalid. */
export class PictureDamaged extends Error {
  override readonly name = "PictureDamaged";
}

type Strip = (bytes: Buffer) => Buffer[];

const STRIPS: Readonly<Record<string, Strip>> = {
  "image/jpeg": stripJpeg,
  "image/png": stripPng,
  "image/apng": stripPng,
  "image/webp": stripWebp,
  "image/gif": stripGif,
};

export function isStrippable(contentType: string): boolean {
  return Object.hasOwn(STRIPS, contentType);
}

/** Returns the remaining parts, which share the given bytes; all of it when there is no metadata. Throws PictureDamaged. */
export function stripMetadata(bytes: Buffer, contentType: string): readonly Buffer[] {
  const strip = ownValue(STRIPS, contentType);
  if (!strip) throw new Error(`Not a picture that can be stripped: ${contentType}`);
  try {
    return strip(bytes);
  } catch (error) {
    // A read beyond the end.
    throw error instanceof RangeError ? new PictureDamaged() : error;
  }
}

const JPEG_HEAD_BYTES = 2;
const [SOI, EOI, SOS, COM, APP0, APP2, APP14, APP15] = [0xd8, 0xd9, 0xda, 0xfe, 0xe0, 0xe2, 0xee, 0xef];
const EXIF_MARK = "Exif\0\0";
/** Application segments that decoders need: density, colour profile, and colour transform. */
const JPEG_NEEDED: readonly (readonly [marker: number, begins: string])[] = [
  [APP0, "JFIF\0"],
  [APP2, "ICC_PROFILE\0"],
  [APP14, "Adobe"],
];

/** ISO/IEC 10918-1, annex B. */
function stripJpeg(bytes: Buffer): Buffer[] {
  const kept: Buffer[] = [bytes.subarray(0, JPEG_HEAD_BYTES)];
  if (bytes.readUInt16BE(0) !== 0xff00 + SOI) throw new PictureDamaged();
  let orientation = 1;
  for (let at = JPEG_HEAD_BYTES; ; ) {
    if (bytes.readUInt8(at) !== 0xff) throw new PictureDamaged();
    // Any number of fill bytes may precede a marker.
    while (bytes.readUInt8(at + 1) === 0xff) at += 1;
    const marker = bytes.readUInt8(at + 1);
    if (marker === EOI) {
      kept.push(bytes.subarray(at, at + 2));
      break;
    }
    const end = at + 2 + bytes.readUInt16BE(at + 2);
    const body = part(bytes, at + 4, end);
    if (marker === APP0 + 1 && startsWith(body, EXIF_MARK)) orientation = orientationOf(body.subarray(EXIF_MARK.length)) ?? orientation;
    const isApplications = marker >= APP0 && marker <= APP15;
    const isNeeded = JPEG_NEEDED.some(([needed, begins]) => marker === needed && startsWith(body, begins));
    if ((!isApplications && marker !== COM) || isNeeded) kept.push(bytes.subarray(at, end));
    at = end;
    if (marker === SOS) {
      const scanEnd = endOfScan(bytes, at);
      kept.push(bytes.subarray(at, scanEnd));
      at = scanEnd;
    }
  }
  if (orientation !== 1) kept.splice(1, 0, jpegOrientation(orientation));
  return kept;
}

/** The first marker after the coded image data: neither a stuffed byte nor a restart. */
function endOfScan(bytes: Buffer, start: number): number {
  for (let at = bytes.indexOf(0xff, start); at !== -1; at = bytes.indexOf(0xff, at + 1)) {
    const next = bytes.readUInt8(at + 1);
    if (next !== 0 && next !== 0xff && (next < 0xd0 || next > 0xd7)) return at;
  }
  throw new PictureDamaged();
}

function jpegOrientation(orientation: number): Buffer {
  const exif = Buffer.concat([Buffer.from(EXIF_MARK, "latin1"), exifOf(orientation)]);
  const head = Buffer.from([0xff, APP0 + 1, 0, 0]);
  head.writeUInt16BE(exif.length + 2, 2);
  return Buffer.concat([head, exif]);
}

const PNG_HEAD_BYTES = 8;
/** Length, type and checksum. */
const PNG_FRAME_BYTES = 12;
/**
 * Ancillary chunks that are kept beside the critical ones, whose names begin with a capital: colours, physical size, transparency,
 * animation.
 */
const PNG_NEEDED = new Set([
  "tRNS",
  "gAMA",
  "cHRM",
  "sRGB",
  "iCCP",
  "cICP",
  "mDCV",
  "cLLI",
  "sBIT",
  "pHYs",
  "bKGD",
  "acTL",
  "fcTL",
  "fdAT",
]);

/** PNG (W3C, third edition), 5. */
function stripPng(bytes: Buffer): Buffer[] {
  const kept: Buffer[] = [part(bytes, 0, PNG_HEAD_BYTES)];
  let orientation = 1;
  for (let at = PNG_HEAD_BYTES; ; ) {
    const end = at + PNG_FRAME_BYTES + bytes.readUInt32BE(at);
    const chunk = part(bytes, at, end);
    const type = chunk.toString("latin1", 4, 8);
    if (type === "eXIf") orientation = orientationOf(chunk.subarray(8, -4)) ?? orientation;
    else if (/^[A-Z]/.test(type) || PNG_NEEDED.has(type)) kept.push(chunk);
    if (type === "IEND") break;
    at = end;
  }
  // After the header, before the image data.
  if (orientation !== 1) kept.splice(2, 0, pngChunk("eXIf", exifOf(orientation)));
  return kept;
}

function pngChunk(type: string, data: Buffer): Buffer {
  const typed = Buffer.concat([Buffer.from(type, "latin1"), data]);
  return Buffer.concat([uint32BE(data.length), typed, uint32BE(crc32(typed))]);
}

function uint32BE(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

const RIFF_HEAD_BYTES = 12;
const RIFF_FRAME_BYTES = 8;
const WEBP_NEEDED = new Set(["VP8 ", "VP8L", "VP8X", "ALPH", "ANIM", "ANMF", "ICCP"]);
/** Flags of VP8X for XMP and EXIF. */
const [WEBP_XMP, WEBP_EXIF] = [0x04, 0x08];

/** RFC 9649, 2. Only a file with VP8X has metadata. */
function stripWebp(bytes: Buffer): Buffer[] {
  const riffEnd = RIFF_FRAME_BYTES + bytes.readUInt32LE(4);
  if (riffEnd > bytes.length) throw new PictureDamaged();
  const chunks: Buffer[] = [];
  let orientation = 1;
  for (let at = RIFF_HEAD_BYTES; at + RIFF_FRAME_BYTES <= riffEnd; ) {
    const length = bytes.readUInt32LE(at + 4);
    const end = at + RIFF_FRAME_BYTES + length + (length % 2);
    const chunk = part(bytes, at, end);
    const type = chunk.toString("latin1", 0, 4);
    if (type === "EXIF") orientation = orientationOf(tiffOf(chunk.subarray(RIFF_FRAME_BYTES))) ?? orientation;
    else if (WEBP_NEEDED.has(type)) chunks.push(chunk);
    at = end;
  }
  const isTurned = orientation !== 1 && chunks[0]?.toString("latin1", 0, 4) === "VP8X";
  if (isTurned) chunks.push(webpExif(orientation));
  const head = Buffer.from(part(bytes, 0, RIFF_HEAD_BYTES));
  head.writeUInt32LE(
    chunks.reduce((sum, { length }) => sum + length, RIFF_HEAD_BYTES - RIFF_FRAME_BYTES),
    4,
  );
  return [head, ...chunks.map((chunk, index) => (index === 0 ? withFlags(chunk, isTurned) : chunk))];
}

function withFlags(chunk: Buffer, hasExif: boolean): Buffer {
  if (chunk.toString("latin1", 0, 4) !== "VP8X") return chunk;
  const copy = Buffer.from(chunk);
  const others = copy.readUInt8(RIFF_FRAME_BYTES) & ~(WEBP_XMP | WEBP_EXIF);
  copy.writeUInt8(others | (hasExif ? WEBP_EXIF : 0), RIFF_FRAME_BYTES);
  return copy;
}

function webpExif(orientation: number): Buffer {
  const exif = exifOf(orientation);
  const head = Buffer.from("EXIF\0\0\0\0", "latin1");
  head.writeUInt32LE(exif.length, 4);
  return Buffer.concat([head, exif]);
}

/** Some writers put JPEG's identifier before it. */
function tiffOf(exif: Buffer): Buffer {
  return startsWith(exif, EXIF_MARK) ? exif.subarray(EXIF_MARK.length) : exif;
}

const [GIF_PICTURE, GIF_EXTENSION, GIF_END] = [0x2c, 0x21, 0x3b];
const [GIF_CONTROL, GIF_APPLICATION] = [0xf9, 0xff];
/** Loop count of an animation, and colour profile. */
const GIF_NEEDED = ["NETSCAPE2.0", "ANIMEXTS1.0", "ICCRGBG1012"];

/** GIF89a. */
function stripGif(bytes: Buffer): Buffer[] {
  let at = 13 + colorTableBytes(bytes.readUInt8(10));
  const kept: Buffer[] = [part(bytes, 0, at)];
  for (;;) {
    const kind = bytes.readUInt8(at);
    if (kind === GIF_END) return [...kept, bytes.subarray(at, at + 1)];
    if (kind === GIF_PICTURE) {
      // The descriptor, its colour table, and a byte before the data.
      const end = endOfBlocks(bytes, at + 10 + colorTableBytes(bytes.readUInt8(at + 9)) + 1);
      kept.push(part(bytes, at, end));
      at = end;
    } else if (kind === GIF_EXTENSION) {
      const end = endOfBlocks(bytes, at + 2);
      const label = bytes.readUInt8(at + 1);
      const isNeeded = label === GIF_APPLICATION && GIF_NEEDED.includes(bytes.toString("latin1", at + 3, at + 14));
      if (label === GIF_CONTROL || isNeeded) kept.push(part(bytes, at, end));
      at = end;
    } else throw new PictureDamaged();
  }
}

function colorTableBytes(flags: number): number {
  return flags & 0x80 ? 3 * 2 ** ((flags & 7) + 1) : 0;
}

function endOfBlocks(bytes: Buffer, start: number): number {
  let at = start;
  for (let size = bytes.readUInt8(at); size > 0; size = bytes.readUInt8(at)) at += size + 1;
  return at + 1;
}

const ORIENTATION_TAG = 0x0112;
const SHORT = 3;

/** TIFF 6.0: the orientation in the first directory; null without one, or for invalid metadata. */
function orientationOf(tiff: Buffer): number | null {
  try {
    const isLittle = tiff.toString("latin1", 0, 2) === "II";
    const short = (at: number) => (isLittle ? tiff.readUInt16LE(at) : tiff.readUInt16BE(at));
    const directory = isLittle ? tiff.readUInt32LE(4) : tiff.readUInt32BE(4);
    for (let index = 0; index < short(directory); index += 1) {
      const entry = directory + 2 + index * 12;
      if (short(entry) !== ORIENTATION_TAG) continue;
      const orientation = short(entry + 8);
      return orientation >= 1 && orientation <= 8 ? orientation : null;
    }
    return null;
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

/** One directory with one entry. */
function exifOf(orientation: number): Buffer {
  const tiff = Buffer.alloc(26);
  tiff.write("MM\0*", "latin1");
  tiff.writeUInt32BE(8, 4);
  tiff.writeUInt16BE(1, 8);
  tiff.writeUInt16BE(ORIENTATION_TAG, 10);
  tiff.writeUInt16BE(SHORT, 12);
  tiff.writeUInt32BE(1, 14);
  tiff.writeUInt16BE(orientation, 18);
  return tiff;
}

function part(bytes: Buffer, start: number, end: number): Buffer {
  if (end > bytes.length || end < start) throw new PictureDamaged();
  return bytes.subarray(start, end);
}

function startsWith(bytes: Buffer, begins: string): boolean {
  return bytes.toString("latin1", 0, begins.length) === begins;
}
