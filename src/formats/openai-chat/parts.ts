/** Media in the parts of a chat's messages, and arguments of its tool calls, as an upstream of another format needs them. */
import { isRecord } from "../../lib/json.js";
import { type BoundedJson, JsonExcessError } from "../../lib/json-bounds.js";
import { ownValue } from "../../lib/own-values.js";
import { refuse } from "../upstream-error.js";

type MediaTypes = Readonly<Record<string, string>>;

/** Bounded, so that other text is not scanned to its end. */
const DATA_URL = /^data:([^;,]{1,100})?(?:;[^,;]{1,100}){0,8}?(;base64)?,/i;
/** Media types by the ending of an address, of files that every format takes. */
export const SHOWN_TYPES: MediaTypes = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  webp: "image/webp",
  gif: "image/gif",
  pdf: "application/pdf",
};
/** And of those that only some formats take. */
export const VIDEO_TYPES: MediaTypes = { mp4: "video/mp4", webm: "video/webm", mov: "video/quicktime" };
const AUDIO_TYPES: MediaTypes = {
  mp3: "audio/mpeg",
  wav: "audio/wav",
  ogg: "audio/ogg",
  flac: "audio/flac",
  m4a: "audio/mp4",
};

export type MediaContent = { readonly text: string } | { readonly base64: string };

/** Either holds its content or is at an address. */
export type Media = { readonly mediaType: string } & ({ readonly content: MediaContent } | { readonly address: URL });

export interface MediaOptions {
  /** Where neither the data URL nor the ending of the address has a type. */
  readonly assumedType: string;
  readonly types: MediaTypes;
  /** The field, for errors. */
  readonly path: string;
}

/** Throws a ProviderError of status 400 for anything but a data URL or an http or https address. */
export function readMedia(url: string, { assumedType, types, path }: MediaOptions): Media {
  const inline = DATA_URL.exec(url);
  if (inline !== null) {
    const [head, mediaType = assumedType, isBase64] = inline;
    const content = url.slice(head.length);
    return { mediaType, content: isBase64 === undefined ? { text: decodedText(content, path) } : { base64: content } };
  }
  if (!URL.canParse(url) || !/^https?:/i.test(url)) throw refuse("must be an http or https address, or a data URL", path);
  const address = new URL(url);
  return { address, mediaType: ownValue(types, endingOf(address)) ?? assumedType };
}

export function base64Of(content: MediaContent): string {
  return "base64" in content ? content.base64 : Buffer.from(content.text).toString("base64");
}

/** The ending of the file's name in lower case; without one, the name. */
export function endingOf({ pathname }: URL): string {
  return pathname.slice(pathname.lastIndexOf(".") + 1).toLowerCase();
}

/** The address in `image_url` or `video_url`. */
export function urlOf(value: unknown): string {
  if (typeof value === "string") return value;
  return isRecord(value) && typeof value.url === "string" ? value.url : "";
}

/** The address or data URL of a `file`: bare base64 is a PDF. Throws a ProviderError of status 400 for a file without its data. */
export function fileUrlOf(file: unknown, path: string): string {
  const { file_data: data } = isRecord(file) ? file : {};
  if (typeof data !== "string") throw refuse("A file needs its data as a data URL: this upstream knows no file ids.", path);
  return DATA_URL.test(data) || /^https?:/i.test(data) ? data : `data:application/pdf;base64,${data}`;
}

/** An `input_audio` in base64. Throws a ProviderError of status 400 for one without its data. */
export function readAudio(audio: unknown, path: string): { readonly data: string; readonly mediaType: string } {
  const { data, format } = isRecord(audio) ? audio : {};
  if (typeof data !== "string") throw refuse("Audio needs its data in base64.", path);
  const name = typeof format === "string" ? format.toLowerCase() : "wav";
  return { data, mediaType: ownValue(AUDIO_TYPES, name) ?? `audio/${name}` };
}

/** The arguments of a tool call; none are an empty object. Throws a ProviderError of status 400 for text that is no JSON. */
export function parseArguments(json: BoundedJson, text: unknown, path: string): unknown {
  if (typeof text !== "string" || text.trim() === "") return {};
  try {
    return json.parse(text);
  } catch (error) {
    throw refuse(`The arguments of a tool call ${error instanceof JsonExcessError ? error.message : "must be JSON"}.`, path);
  }
}

/** As above, for formats whose calls hold an object. */
export function parseObjectArguments(json: BoundedJson, text: unknown, path: string): Readonly<Record<string, unknown>> {
  const parsed = parseArguments(json, text, path);
  return isRecord(parsed) ? parsed : { arguments: parsed };
}

/** The text of a data URL without base64. Throws a ProviderError of status 400 for a malformed escape. */
function decodedText(text: string, path: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw refuse("must be a well-formed data URL: it holds a malformed percent escape", path);
  }
}
