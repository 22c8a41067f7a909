/**
 * What a stored file is served as (decisions "Media"): what its bytes say, not what somebody said of them. A page or a script that
 * was uploaded as a picture must never reach a browser as either.
 */
import { bareMediaType, closedTypeOf, generatedTypeOf, UNKNOWN_TYPE } from "../lib/content-types.js";
import { ownValue } from "../lib/own-values.js";

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

/** The type of a file that a stranger brought: declared, as far as the bytes agree. */
export async function inspectUpload(file: FileOnDisk, declared: string | null): Promise<string> {
  const claim = declared === null ? null : bareMediaType(declared);
  const found = await detectFile(file.path);
  if (found !== null) return claim !== null && areAlike(found, claim) ? claim : passive(found);
  if (!(await isTextFile(file))) return UNKNOWN_TYPE;
  return claim !== null && TEXT_TYPES.has(claim) ? claim : "text/plain";
}

/** The type of a file that a model made: as above, but sound and pictures that have no beginning of their own are believed. */
export async function inspectGenerated(bytes: Uint8Array, declared: string): Promise<string> {
  const claim = bareMediaType(declared);
  const found = await detect(bytes);
  if (found !== null) return areAlike(found, claim) ? claim : passive(found);
  return TEXT_TYPES.has(claim) ? claim : closedTypeOf(claim);
}

/**
 * What a file may be stored as that goes straight to the blob store: the declared type when it is a picture, video, sound, PDF or
 * text that can be known by its bytes, else UNKNOWN_TYPE (reliability 9).
 */
export async function storableType(declared: string): Promise<string> {
  const claim = canonical(bareMediaType(declared));
  if (TEXT_TYPES.has(claim)) return claim;
  if (ACTIVE_TYPE.test(claim) || !/^(?:image|video|audio)\/|^application\/pdf$/.test(claim)) return UNKNOWN_TYPE;
  const { supportedMimeTypes } = await import("file-type");
  return supportedMimeTypes.has(claim) || CONTAINERS.some((types) => types.includes(claim)) ? claim : UNKNOWN_TYPE;
}

/** True when a file that begins with these bytes may be served as `type`, which `storableType` answered. */
export async function beginsLike(head: Uint8Array, type: string): Promise<boolean> {
  if (type === UNKNOWN_TYPE) return true;
  const found = await detect(head);
  if (!TEXT_TYPES.has(type)) return found !== null && areAlike(found, type);
  // The text of a page is a text, as long as nobody calls it a page.
  return (found === null || ACTIVE_TYPE.test(found)) && isText(head, true);
}

/** What a file that was stored as `type` is served as: whoever stored it may have believed more than is believed today. */
export async function servedType(type: string): Promise<string> {
  if (TEXT_TYPES.has(type) || generatedTypeOf(type) === type || CONTAINERS.some((types) => types.includes(type))) return type;
  const { supportedMimeTypes } = await import("file-type");
  const isKnown = [...supportedMimeTypes].some((known) => bareMediaType(known) === type);
  return isKnown ? passive(type) : UNKNOWN_TYPE;
}

/** Shown by a browser, instead of saved. */
export function isInline(contentType: string): boolean {
  return INLINE_TYPE.test(contentType) && !ACTIVE_TYPE.test(contentType);
}

async function detect(bytes: Uint8Array): Promise<string | null> {
  const { fileTypeFromBuffer } = await import("file-type");
  const found = await fileTypeFromBuffer(bytes);
  return found ? bareMediaType(found.mime) : null;
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
