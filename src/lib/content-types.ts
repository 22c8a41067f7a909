/**
 * Content types of files. Browsers act on the type, and upstreams can claim any, so the type of generated and uploaded files comes from
 * this list only.
 */

/** Types that a browser shows, plays or saves without running anything. */
export const GENERATED_TYPES = [
  "application/octet-stream",
  "text/plain",
  "text/event-stream",
  "image/png",
  "image/jpeg",
  "image/webp",
  "image/gif",
  "image/avif",
  "video/mp4",
  "video/webm",
  "video/quicktime",
  "audio/mpeg",
  "audio/wav",
  "audio/flac",
  "audio/ogg",
  "audio/opus",
  "audio/aac",
  "audio/mp4",
  "audio/webm",
  "audio/x-matroska",
  "audio/pcm",
] as const;
export type GeneratedType = (typeof GENERATED_TYPES)[number];

/** The type of unknown bytes: browsers save them. */
export const UNKNOWN_TYPE = "application/octet-stream" satisfies GeneratedType;

/** Further types of the gateway's own routes. */
const OWN_TYPES = [
  "application/json; charset=utf-8",
  "application/x-subrip; charset=utf-8",
  "text/css; charset=utf-8",
  "text/csv; charset=utf-8; header=present",
  "text/event-stream; charset=utf-8",
  "text/html; charset=utf-8",
  "text/javascript; charset=utf-8",
  "text/markdown; charset=utf-8",
  "text/plain; charset=utf-8",
  "text/plain; version=0.0.4; charset=utf-8",
  "text/vtt; charset=utf-8",
] as const;
export type AnswerType = GeneratedType | (typeof OWN_TYPES)[number];

const ANSWER_TYPES: ReadonlySet<string> = new Set([...GENERATED_TYPES, ...OWN_TYPES]);

const BY_NAME: ReadonlyMap<string, GeneratedType> = new Map<string, GeneratedType>([
  ...GENERATED_TYPES.map((type) => [type, type] as const),
  ["image/jpg", "image/jpeg"],
  ["image/pjpeg", "image/jpeg"],
  ["image/apng", "image/png"],
  ["video/x-m4v", "video/mp4"],
  ["audio/mp3", "audio/mpeg"],
  ["audio/x-mp3", "audio/mpeg"],
  ["audio/x-mpeg", "audio/mpeg"],
  ["audio/x-wav", "audio/wav"],
  ["audio/wave", "audio/wav"],
  ["audio/vnd.wave", "audio/wav"],
  ["audio/x-flac", "audio/flac"],
  ["audio/x-aac", "audio/aac"],
  ["audio/aacp", "audio/aac"],
  ["audio/m4a", "audio/mp4"],
  ["audio/x-m4a", "audio/mp4"],
  ["audio/matroska", "audio/x-matroska"],
  ["application/ogg", "audio/ogg"],
]);

/** The listed type that a text names; null when it is not listed. */
export function generatedTypeOf(said: string): GeneratedType | null {
  return BY_NAME.get(bareMediaType(said)) ?? null;
}

/** As above, with UNKNOWN_TYPE for types that are not listed. */
export function closedTypeOf(said: string): GeneratedType {
  return generatedTypeOf(said) ?? UNKNOWN_TYPE;
}

/** The full header of a stored answer, limited to types that we would send today. */
export function storedAnswerTypeOf(stored: string): string {
  return ANSWER_TYPES.has(stored) ? stored : UNKNOWN_TYPE;
}

/** `Image/PNG; foo=bar` to `image/png`. */
export function bareMediaType(contentType: string): string {
  return (contentType.split(";", 1)[0] ?? "").trim().toLowerCase();
}

// Images as bytes: type, size, conversion. The decoder is loaded on first use.

type PictureType = Extract<GeneratedType, `image/${string}`>;
type PictureFormat = "png" | "jpeg" | "webp";

const HEAD_BYTES = 12;
const JPEG_QUALITY = 92;
const WEBP_QUALITY = 90;

/**
 * Detects the type by the first bytes, ignoring name and declared type; null for other bytes, and for formats that can hold scripts (SVG).
 */
export function pictureTypeOf(bytes: Uint8Array): PictureType | null {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, HEAD_BYTES)).toString("latin1");
  if (head.startsWith("\x89PNG\r\n\x1a\n")) return "image/png";
  if (head.startsWith("\xff\xd8\xff")) return "image/jpeg";
  if (/^RIFF.{4}WEBP/s.test(head)) return "image/webp";
  if (/^GIF8[79]a/.test(head)) return "image/gif";
  if (/^.{4}ftypavi[fs]/s.test(head)) return "image/avif";
  return null;
}

interface PictureSize {
  readonly width: number;
  readonly height: number;
}

/** Reads the size from the header, without decoding. Null when it cannot be read. */
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
 * Converts an image at its full size; JPEG gets a white background for transparency. Rejects when it cannot be read or has more than
 * `pixelsMax` pixels.
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
  // No image repeats here, so a cache would only hold memory.
  sharp.cache(false);
  return sharp;
}
