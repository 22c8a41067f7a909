/** Pictures, audio, videos and documents: Gemini's `inlineData` and `fileData` as parts of a chat, and back. */
import { invalidInput } from "../../errors.js";

type Loose = Record<string, unknown>;

interface Blob {
  readonly mimeType: string;
  readonly data: string;
}

interface File {
  readonly mimeType?: string | null | undefined;
  readonly fileUri: string;
}

/** Google's stores, which hold files of their own account. */
const STORED = /^(?:gs:|https:\/\/generativelanguage\.googleapis\.com\/)/i;
const WEB = /^https?:\/\//i;
const TYPE_CHARS_MAX = 100;

export function toInlinePart({ mimeType, data }: Blob): Loose {
  const [type = ""] = mimeType.slice(0, TYPE_CHARS_MAX).toLowerCase().split(";", 1);
  // Clients in Python write base64 for URLs.
  const base64 = /[-_]/.test(data) ? data.replaceAll("-", "+").replaceAll("_", "/") : data;
  if (type.startsWith("text/")) return { type: "text", text: Buffer.from(base64, "base64").toString() };
  const url = `data:${type};base64,${base64}`;
  if (type.startsWith("image/")) return { type: "image_url", image_url: { url } };
  if (type.startsWith("video/")) return { type: "video_url", video_url: { url } };
  if (type.startsWith("audio/")) return { type: "input_audio", input_audio: { data: base64, format: toAudioFormat(type) } };
  return { type: "file", file: { file_data: url, filename: type === "application/pdf" ? "document.pdf" : "document" } };
}

/** Throws BAD_REQUEST for files of Google's stores, and for audio by its address. */
export function toFilePart({ mimeType, fileUri }: File, path: string): Loose {
  const type = (mimeType ?? "").toLowerCase();
  if (STORED.test(fileUri) || !WEB.test(fileUri))
    throw invalidInput("Files are not kept here: send the content as inlineData, or an http or https address.", `${path}.fileUri`);
  if (type.startsWith("audio/")) throw invalidInput("Audio is read as inlineData only.", `${path}.fileUri`);
  if (type.startsWith("image/")) return { type: "image_url", image_url: { url: fileUri } };
  if (type.startsWith("video/")) return { type: "video_url", video_url: { url: fileUri } };
  return { type: "file", file: { file_data: fileUri, filename: "document.pdf" } };
}

/** OpenAI's names of formats. */
function toAudioFormat(type: string): string {
  const name = type.slice("audio/".length);
  if (name === "mpeg") return "mp3";
  return name === "x-wav" || name === "wave" ? "wav" : name;
}

/** Bounded, so that other text is not searched to its end. */
const DATA_URL = /^data:([^;,]{1,100})(?:;[^,;]{1,100}){0,8}?;base64,/i;

/** A data URL as `inlineData`; null for other addresses. */
export function toInlineData(url: string): Blob | null {
  const [head, mimeType] = DATA_URL.exec(url) ?? [];
  return head === undefined || mimeType === undefined ? null : { mimeType, data: url.slice(head.length) };
}
