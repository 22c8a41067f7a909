/** Files in a chat: OpenAI's content parts as the package's file parts. */
import type { LanguageModelV3FilePart } from "@ai-sdk/provider";
import { ownValue } from "../../lib/own-values.js";
import { isRecord } from "../openai/json.js";
import { refuse } from "../refusal.js";

type Loose = Readonly<Record<string, unknown>>;

/** Bounded, so that what is no data URL is not read to its end. */
const DATA_URL = /^data:([^;,]{1,100})?(?:;[^,;]{1,100}){0,8}?(;base64)?,/i;
/** The type that an address suggests, and what is assumed when it suggests none. */
const TYPES: Readonly<Record<string, string>> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  webp: "image/webp",
  gif: "image/gif",
  pdf: "application/pdf",
  mp4: "video/mp4",
  webm: "video/webm",
  mov: "video/quicktime",
};
const AUDIO_TYPES: Readonly<Record<string, string>> = {
  mp3: "audio/mpeg",
  wav: "audio/wav",
  ogg: "audio/ogg",
  flac: "audio/flac",
  m4a: "audio/mp4",
};

/** `image_url`, `input_audio`, `file` and `video_url`. Throws a ProviderError of status 400 for what the upstream cannot be given. */
export function toFilePart(part: Loose, path: string): LanguageModelV3FilePart {
  switch (part.type) {
    case "image_url":
      return toPart(urlOf(part.image_url), "image/jpeg", `${path}.image_url`);
    case "video_url":
      return toPart(urlOf(part.video_url), "video/mp4", `${path}.video_url`);
    case "input_audio":
      return toAudioPart(part.input_audio, path);
    case "file":
      return toDocumentPart(part.file, path);
    default:
      throw refuse(`This upstream takes no content of type ${JSON.stringify(part.type)}.`, `${path}.type`);
  }
}

function toAudioPart(audio: unknown, path: string): LanguageModelV3FilePart {
  const { data, format } = isRecord(audio) ? audio : {};
  if (typeof data !== "string") throw refuse("Audio needs its data in base64.", `${path}.input_audio.data`);
  const name = typeof format === "string" ? format.toLowerCase() : "wav";
  return { type: "file", data, mediaType: ownValue(AUDIO_TYPES, name) ?? `audio/${name}` };
}

function toDocumentPart(file: unknown, path: string): LanguageModelV3FilePart {
  const { file_data: data, filename } = isRecord(file) ? file : {};
  if (typeof data !== "string")
    throw refuse("A file needs its data as a data URL: this upstream knows no file ids.", `${path}.file.file_data`);
  const isUrl = DATA_URL.test(data) || /^https?:/i.test(data);
  const part = toPart(isUrl ? data : `data:application/pdf;base64,${data}`, "application/pdf", `${path}.file.file_data`);
  return typeof filename === "string" ? { ...part, filename } : part;
}

function toPart(url: string, assumedType: string, path: string): LanguageModelV3FilePart {
  const inline = DATA_URL.exec(url);
  if (inline !== null) {
    const [head, mediaType = assumedType, isBase64] = inline;
    const content = url.slice(head.length);
    const data = isBase64 === undefined ? Buffer.from(decodeURIComponent(content)).toString("base64") : content;
    return { type: "file", data, mediaType };
  }
  if (!URL.canParse(url) || !/^https?:/i.test(url)) throw refuse("must be an http or https address, or a data URL", path);
  const data = new URL(url);
  const ending = data.pathname.slice(data.pathname.lastIndexOf(".") + 1).toLowerCase();
  return { type: "file", data, mediaType: ownValue(TYPES, ending) ?? assumedType };
}

function urlOf(value: unknown): string {
  if (typeof value === "string") return value;
  return isRecord(value) && typeof value.url === "string" ? value.url : "";
}
