/** Parts of a chat's message as parts of a content, for an upstream that speaks Gemini's format. */
import { isRecord } from "../../lib/json.js";
import { base64Of, fileUrlOf, readAudio, readMedia, SHOWN_TYPES, urlOf, VIDEO_TYPES } from "../openai-chat/parts.js";
import { refuse } from "../upstream-error.js";

type Loose = Readonly<Record<string, unknown>>;
export type Part = Readonly<Record<string, unknown>>;

/** Addresses that Google reads itself: its own files, and videos of YouTube. */
const READ_THERE = /^https:\/\/(?:generativelanguage\.googleapis\.com\/v1beta\/files\/|(?:www\.)?youtube\.com\/watch\?v=|youtu\.be\/)/i;
const TYPES = { ...SHOWN_TYPES, ...VIDEO_TYPES };

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
  const { data, mediaType } = readAudio(audio, `${path}.input_audio.data`);
  return { inlineData: { mimeType: mediaType, data } };
}

function toDocument(file: unknown, path: string): Part {
  const field = `${path}.file.file_data`;
  return toMedia(fileUrlOf(file, field), "application/pdf", field);
}

function toMedia(url: string, assumedType: string, path: string): Part {
  const media = readMedia(url, { assumedType, types: TYPES, path });
  if ("content" in media) return { inlineData: { mimeType: media.mediaType, data: base64Of(media.content) } };
  return { fileData: { mimeType: media.mediaType, fileUri: media.address.href } };
}

/** The file that the part names and the gateway fetches; null for other parts. */
export function fetchedFileOf({ fileData }: Part): { readonly uri: string; readonly mimeType: string } | null {
  if (!isRecord(fileData)) return null;
  const uri = String(fileData.fileUri);
  return READ_THERE.test(uri) ? null : { uri, mimeType: String(fileData.mimeType) };
}
