/**
 * Stored and served types of files (docs/spec/media.md#reading).
 *
 * 1. `claimOf` reduces a declared type to one that can be checked, and `storedType` compares it with the bytes: one
 *    rule for both variants of the media host. Pages and scripts keep their declared type.
 * 2. `servedAs` returns the type for browsers, from a closed list. Pages and scripts are served as other types, as
 *    downloads.
 */
import { bareMediaType, closedTypeOf, generatedTypeOf, UNKNOWN_TYPE } from "../../lib/content-types.js";
import { ownValue } from "../../lib/own-values.js";

/** Text types that browsers do not run. They have no signature, so the declared type counts when the bytes are text. */
const TEXT_TYPES: ReadonlySet<string> = new Set(["text/plain", "text/markdown", "text/csv", "application/json"]);
/** Types with one container format: only the declared type distinguishes audio from video. */
const CONTAINERS: readonly (readonly string[])[] = [
  ["video/webm", "audio/webm"],
  ["video/mp4", "audio/mp4", "audio/x-m4a", "video/x-m4v", "video/quicktime"],
  ["audio/ogg", "video/ogg", "audio/opus"],
  ["audio/aac", "audio/x-aac", "audio/aacp"],
  ["video/mpeg", "video/mp1s", "video/mp2p"],
  ["video/3gpp", "video/3gpp2", "audio/3gpp"],
  ["image/png", "image/apng"],
  ["image/heic", "image/heif"],
];
/** Other names of detectable types. */
const ALIASES: Readonly<Record<string, string>> = {
  "image/jpg": "image/jpeg",
  "image/pjpeg": "image/jpeg",
  "image/vnd.microsoft.icon": "image/x-icon",
  "image/x-ms-bmp": "image/bmp",
  "audio/mp3": "audio/mpeg",
  "audio/x-wav": "audio/wav",
  "audio/wave": "audio/wav",
  "audio/vnd.wave": "audio/wav",
  "audio/x-flac": "audio/flac",
  "audio/x-aiff": "audio/aiff",
  "audio/m4a": "audio/x-m4a",
  "video/avi": "video/vnd.avi",
  "video/x-msvideo": "video/vnd.avi",
  "video/x-matroska": "video/matroska",
};
/** Markup that browsers run, recognized by its beginning. */
const ACTIVE_TYPE = /\b(?:html|xml|svg|javascript|ecmascript|x-shockwave-flash)\b/i;
/** Types that are decided by the bytes alone. */
const CHECKED_TYPE = /^(?:image|video|audio)\/|^application\/pdf$/;
/** RFC 6838, 4.2. */
const WELL_FORMED_TYPE = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,126}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}$/;
const INLINE_TYPE = /^(?:image|video|audio)\/|^text\/plain$/;
/** Checked for control characters, which text does not have. */
const TEXT_SAMPLE_BYTES = 64 * 1024;
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern looks for them.
const CONTROL_CHARACTER = /[\x00-\x08\x0e-\x1a\x1c-\x1f]/;

export interface FileOnDisk {
  readonly path: string;
  open(): AsyncIterable<Uint8Array>;
}

/** The type as seen in the bytes. */
interface Seen {
  /** The type of the signature; null without a known one. */
  readonly found: string | null;
  readonly isText: boolean;
}

/** The type of an uploaded file (variant A): the declared one, or the bytes' type where they disagree. */
export async function inspectUpload(file: FileOnDisk, declared: string | null): Promise<string> {
  const found = await detectFile(file.path);
  const isText = (found === null || isWritten(found)) && (await isTextFile(file));
  const seen = { found, isText };
  return storedType(seen, await claimOf(declared)) ?? typeByBytes(seen);
}

/** The announced type of a direct upload (variant B). */
export async function announcedType(declared: string): Promise<string> {
  return (await claimOf(declared)) ?? UNKNOWN_TYPE;
}

/** The type of a file that was announced as `announced` and starts with these bytes; null when they differ. */
export async function arrivedType(head: Uint8Array, announced: string): Promise<string | null> {
  if (announced === UNKNOWN_TYPE) return UNKNOWN_TYPE;
  return storedType({ found: await detect(head), isText: isText(head, true) }, announced);
}

/** The served type of a file stored as `stored`, whose type may have been accepted under older rules. */
export async function servedAs(stored: string): Promise<{ readonly contentType: string; readonly isInline: boolean }> {
  const contentType = await servedType(stored);
  return { contentType, isInline: INLINE_TYPE.test(contentType) };
}

async function servedType(stored: string): Promise<string> {
  if (ACTIVE_TYPE.test(stored)) return UNKNOWN_TYPE;
  if (TEXT_TYPES.has(stored) || generatedTypeOf(stored) === stored || CONTAINERS.some((types) => types.includes(stored))) return stored;
  return (await isDetected(stored)) ? stored : UNKNOWN_TYPE;
}

/** The checkable part of a declared type: a detectable type, or a text type. Null: none. */
async function claimOf(declared: string | null): Promise<string | null> {
  const claim = declared === null ? "" : canonical(bareMediaType(declared));
  if (!WELL_FORMED_TYPE.test(claim)) return null;
  if (TEXT_TYPES.has(claim) || ACTIVE_TYPE.test(claim) || claim.startsWith("text/")) return claim;
  const isKnown = CONTAINERS.some((types) => types.includes(claim)) || (await isDetected(claim));
  if (CHECKED_TYPE.test(claim)) return isKnown ? claim : null;
  return claim.startsWith("application/") && !isKnown && claim !== UNKNOWN_TYPE ? claim : null;
}

/** The claim if the bytes agree; null when they differ. */
function storedType({ found, isText }: Seen, claim: string | null): string | null {
  if (claim === null || (found !== null && areAlike(found, claim))) return claim;
  const isTextual = isText && (found === null || isWritten(found));
  if (TEXT_TYPES.has(claim)) return isTextual ? claim : null;
  if (CHECKED_TYPE.test(claim) && !ACTIVE_TYPE.test(claim)) return null;
  if (isTextual) return claim;
  // Unknown bytes, such as a page in another encoding, neither confirm nor refute the claim.
  return found === null ? UNKNOWN_TYPE : null;
}

function typeByBytes({ found, isText }: Seen): string {
  if (found !== null) return passive(found);
  return isText ? "text/plain" : UNKNOWN_TYPE;
}

/** Text types with a signature, whose exact type matters only to browsers. */
function isWritten(found: string): boolean {
  return ACTIVE_TYPE.test(found) || found.startsWith("text/");
}

/** The type of a generated file: as above, but audio and video without a signature are believed. */
export async function inspectGenerated(bytes: Uint8Array, declared: string): Promise<string> {
  const claim = bareMediaType(declared);
  const found = await detect(bytes);
  if (found !== null) return areAlike(found, claim) ? claim : passive(found);
  return TEXT_TYPES.has(claim) ? claim : closedTypeOf(claim);
}

async function detect(bytes: Uint8Array): Promise<string | null> {
  const { fileTypeFromBuffer } = await import("file-type");
  const found = await fileTypeFromBuffer(bytes);
  return found ? bareMediaType(found.mime) : null;
}

async function isDetected(type: string): Promise<boolean> {
  const { supportedMimeTypes } = await import("file-type");
  return [...supportedMimeTypes].some((known) => bareMediaType(known) === type);
}

async function detectFile(path: string): Promise<string | null> {
  const { fileTypeFromFile } = await import("file-type");
  const found = await fileTypeFromFile(path);
  return found ? bareMediaType(found.mime) : null;
}

function areAlike(found: string, claim: string): boolean {
  return found === claim || CONTAINERS.some((types) => types.includes(found) && types.includes(claim));
}

function passive(contentType: string): string {
  return ACTIVE_TYPE.test(contentType) ? UNKNOWN_TYPE : contentType;
}

function canonical(type: string): string {
  return ownValue(ALIASES, type) ?? type;
}

/** `isCut`: the last character may be incomplete. */
function isText(bytes: Uint8Array, isCut = false): boolean {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: isCut });
    return !CONTROL_CHARACTER.test(text.slice(0, TEXT_SAMPLE_BYTES));
  } catch {
    return false;
  }
}

async function isTextFile(file: FileOnDisk): Promise<boolean> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let sampled = 0;
  try {
    for await (const piece of file.open()) {
      const text = decoder.decode(piece, { stream: true });
      if (sampled < TEXT_SAMPLE_BYTES && CONTROL_CHARACTER.test(text.slice(0, TEXT_SAMPLE_BYTES - sampled))) return false;
      sampled += text.length;
    }
    decoder.decode();
    return true;
  } catch (error) {
    if (error instanceof TypeError) return false;
    throw error;
  }
}
