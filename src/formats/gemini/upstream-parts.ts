/** Parts of a chat's message as parts of a content, for an upstream that speaks Gemini's format. */
import { isRecord } from "../../lib/json.js";
import { ownValue } from "../../lib/own-values.js";
import { refuse } from "../upstream-error.js";
import { decodedText } from "../upstream-text.js";

type Loose = Readonly<Record<string, unknown>>;
export type Part = Readonly<Record<string, unknown>>;

/** Bounded, so that other text is not scanned to its end. */
const DATA_URL = /^data:([^;,]{1,100})?(?:;[^,;]{1,100}){0,8}?(;base64)?,/i;
/** Addresses that Google reads itself: its own files, and videos of YouTube. */
const READ_THERE = /^https:\/\/(?:generativelanguage\.googleapis\.com\/v1beta\/files\/|(?:www\.)?youtube\.com\/watch\?v=|youtu\.be\/)/i;
/** Media types by file extension. */
const TYPES: Readonly<Record<string, string>> = {
  ...{ png: "image/png", jpg: "image/jpeg", jpeg: "image/jpeg", webp: "image/webp", gif: "image/gif", pdf: "application/pdf" },
  ...{ mp4: "video/mp4", webm: "video/webm", mov: "video/quicktime" },
};
const AUDIO_TYPES: Readonly<Record<string, string>> = {
  ...{ mp3: "audio/mpeg", wav: "audio/wav", ogg: "audio/ogg", flac: "audio/flac", m4a: "audio/mp4" },
};

/** Throws a ProviderError of status 400 for a part that the format does not have. */
export function toUpstreamPart(part: Loose, path: string): Part | null {
  switch (part.type) {
    case "text":
    case "refusal": {
      const text = String(part.text ?? part.refusal ?? "");
      return text === "" ? null : { text };
    }
    case "image_url":
      return toMedia(urlOf(part.image_url), "image/jpeg", `${path}.image_url`);
    case "video_url":
      return toMedia(urlOf(part.video_url), "video/mp4", `${path}.video_url`);
    case "input_audio":
      return toAudio(part.input_audio, path);
    case "file":
      return toDocument(part.file, path);
    default:
      throw refuse(`This upstream takes no content of type ${JSON.stringify(part.type)}.`, `${path}.type`);
  }
}

function toAudio(audio: unknown, path: string): Part {
  const { data, format } = isRecord(audio) ? audio : {};
  if (typeof data !== "string") throw refuse("Audio needs its data in base64.", `${path}.input_audio.data`);
  const name = typeof format === "string" ? format.toLowerCase() : "wav";
  return { inlineData: { mimeType: ownValue(AUDIO_TYPES, name) ?? `audio/${name}`, data } };
}

function toDocument(file: unknown, path: string): Part {
  const { file_data: data } = isRecord(file) ? file : {};
  if (typeof data !== "string")
    throw refuse("A file needs its data as a data URL: this upstream knows no file ids.", `${path}.file.file_data`);
  const isUrl = DATA_URL.test(data) || /^https?:/i.test(data);
  return toMedia(isUrl ? data : `data:application/pdf;base64,${data}`, "application/pdf", `${path}.file.file_data`);
}

function toMedia(url: string, assumedType: string, path: string): Part {
  const inline = DATA_URL.exec(url);
  if (inline !== null) {
    const [head, mimeType = assumedType, isBase64] = inline;
    const content = url.slice(head.length);
    const data = isBase64 === undefined ? Buffer.from(decodedText(content, path)).toString("base64") : content;
    return { inlineData: { mimeType, data } };
  }
  if (!URL.canParse(url) || !/^https?:/i.test(url)) throw refuse("must be an http or https address, or a data URL", path);
  const { pathname, href } = new URL(url);
  const ending = pathname.slice(pathname.lastIndexOf(".") + 1).toLowerCase();
  return { fileData: { mimeType: ownValue(TYPES, ending) ?? assumedType, fileUri: href } };
}

/** The file that the part names and the gateway fetches; null for other parts. */
export function fetchedFileOf({ fileData }: Part): { readonly uri: string; readonly mimeType: string } | null {
  if (!isRecord(fileData)) return null;
  const uri = String(fileData.fileUri);
  return READ_THERE.test(uri) ? null : { uri, mimeType: String(fileData.mimeType) };
}

function urlOf(value: unknown): string {
  if (typeof value === "string") return value;
  return isRecord(value) && typeof value.url === "string" ? value.url : "";
}
