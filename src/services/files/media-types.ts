/**
 * What a stored file is called, and what it is served as (docs/spec/media.md#reading).
 *
 * 1. `claimOf` says what of a declared type can be looked at, and `storedType` what the bytes make of that: one rule for both variants of
 *    the media host. A page or a script keeps the name that it was declared by.
 * 2. `servedAs` says what a browser is told: a type out of a closed list. A page or a script reaches it as neither, and to be saved.
 */
import { bareMediaType, closedTypeOf, generatedTypeOf, UNKNOWN_TYPE } from "../../lib/content-types.js";
import { ownValue } from "../../lib/own-values.js";

/** Texts that no browser runs. They have no beginning of their own, so the declared type decides when the bytes are text. */
const TEXT_TYPES: ReadonlySet<string> = new Set(["text/plain", "text/markdown", "text/csv", "application/json"]);
/** Files of one container: only the declared type tells sound from pictures with sound. */
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
/** Other names of types, to the one by which they are found. */
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
/** Markup that browsers run, and that is found by its beginning. */
const ACTIVE_TYPE = /\b(?:html|xml|svg|javascript|ecmascript|x-shockwave-flash)\b/i;
/** What is known by its bytes, and by nothing else. */
const CHECKED_TYPE = /^(?:image|video|audio)\/|^application\/pdf$/;
/** RFC 6838, 4.2. */
const WELL_FORMED_TYPE = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,126}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}$/;
const INLINE_TYPE = /^(?:image|video|audio)\/|^text\/plain$/;
/** Looked at for control characters; a text has none. */
const TEXT_SAMPLE_BYTES = 64 * 1024;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const CONTROL_CHARACTER = /[\x00-\x08\x0e-\x1a\x1c-\x1f]/;

/** A file on this process's disk. */
export interface FileOnDisk {
  readonly path: string;
  open(): AsyncIterable<Uint8Array>;
}

/** What the bytes of a file say. */
interface Seen {
  /** The type that they begin like; null when they begin like none. */
  readonly found: string | null;
  readonly isText: boolean;
}

/** The type of a file that a stranger brought (variant A): as it was declared, and what the bytes say where they disagree. */
export async function inspectUpload(file: FileOnDisk, declared: string | null): Promise<string> {
  const found = await detectFile(file.path);
  const isText = (found === null || isWritten(found)) && (await isTextFile(file));
  const seen = { found, isText };
  return storedType(seen, await claimOf(declared)) ?? typeByBytes(seen);
}

/** What a file is announced as that goes straight to the blob store (variant B). */
export async function announcedType(declared: string): Promise<string> {
  return (await claimOf(declared)) ?? UNKNOWN_TYPE;
}

/** The type of a file that was announced as `announced` and begins with these bytes; null when it is something else. */
export async function arrivedType(head: Uint8Array, announced: string): Promise<string | null> {
  if (announced === UNKNOWN_TYPE) return UNKNOWN_TYPE;
  return storedType({ found: await detect(head), isText: isText(head, true) }, announced);
}

/** What a file is served as that is stored as `stored`: whoever stored it may have believed more than is believed today. */
export async function servedAs(stored: string): Promise<{ readonly contentType: string; readonly isInline: boolean }> {
  const contentType = await servedType(stored);
  return { contentType, isInline: INLINE_TYPE.test(contentType) };
}

async function servedType(stored: string): Promise<string> {
  if (ACTIVE_TYPE.test(stored)) return UNKNOWN_TYPE;
  if (TEXT_TYPES.has(stored) || generatedTypeOf(stored) === stored || CONTAINERS.some((types) => types.includes(stored))) return stored;
  return (await isDetected(stored)) ? stored : UNKNOWN_TYPE;
}

/** What of a declared type can be looked at: one that bytes can be told by, or the name of a text. Null: nothing. */
async function claimOf(declared: string | null): Promise<string | null> {
  const claim = declared === null ? "" : canonical(bareMediaType(declared));
  if (!WELL_FORMED_TYPE.test(claim)) return null;
  if (TEXT_TYPES.has(claim) || ACTIVE_TYPE.test(claim) || claim.startsWith("text/")) return claim;
  const isKnown = CONTAINERS.some((types) => types.includes(claim)) || (await isDetected(claim));
  if (CHECKED_TYPE.test(claim)) return isKnown ? claim : null;
  return claim.startsWith("application/") && !isKnown && claim !== UNKNOWN_TYPE ? claim : null;
}

/** The claim, as far as the bytes agree; null when they are something else. */
function storedType({ found, isText }: Seen, claim: string | null): string | null {
  if (claim === null || (found !== null && areAlike(found, claim))) return claim;
  const isTextual = isText && (found === null || isWritten(found));
  if (TEXT_TYPES.has(claim)) return isTextual ? claim : null;
  if (CHECKED_TYPE.test(claim) && !ACTIVE_TYPE.test(claim)) return null;
  if (isTextual) return claim;
  // A page in another encoding, say: nothing speaks against it, and nothing for it.
  return found === null ? UNKNOWN_TYPE : null;
}

function typeByBytes({ found, isText }: Seen): string {
  if (found !== null) return passive(found);
  return isText ? "text/plain" : UNKNOWN_TYPE;
}

/** Texts that have a beginning of their own. Whether they are what it says, nobody but a browser minds. */
function isWritten(found: string): boolean {
  return ACTIVE_TYPE.test(found) || found.startsWith("text/");
}

/** The type of a file that a model made: as above, but sound and pictures that have no beginning of their own are believed. */
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

/** `isCut`: more may follow, so that the last character may be a part of one. */
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
