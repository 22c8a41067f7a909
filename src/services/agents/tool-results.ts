/**
 * A tool's answer as shown to a model: content and structured content as text, and images and sounds if the model accepts them. Everything
 * is bounded.
 */
import { isDeepStrictEqual } from "node:util";
import { isRecord } from "../../lib/json.js";
import type { McpToolResult } from "../mcp/mcp-tools.js";
import {
  TOOL_RESULT_CHARS_MAX,
  TOOL_RESULT_IMAGE_CHARS_MAX,
  TOOL_RESULT_IMAGES_MAX,
  TOOL_RESULT_REPEATED_CHARS_MIN,
  TOOL_RESULT_SOUNDS_MAX,
} from "./limits.js";

type Block = McpToolResult["content"][number];

/** Media types that the model accepts beside text. */
export interface Senses {
  readonly images: boolean;
  readonly sounds: boolean;
}

export interface ShownSound {
  /** In base64. */
  readonly data: string;
  readonly format: "wav" | "mp3";
}

export interface ShownResult {
  readonly text: string;
  /** As data URLs. */
  readonly images: readonly string[];
  readonly sounds: readonly ShownSound[];
}

/** Types for which OpenAI's `input_audio` has a format. */
const SOUND_FORMATS: ReadonlyMap<string, ShownSound["format"]> = new Map([
  ["audio/wav", "wav"],
  ["audio/x-wav", "wav"],
  ["audio/wave", "wav"],
  ["audio/vnd.wave", "wav"],
  ["audio/mpeg", "mp3"],
  ["audio/mp3", "mp3"],
]);
/** Types whose bytes are text. */
const TEXT_TYPE = /^(?:text\/|application\/(?:json|xml|yaml|x-yaml|toml|javascript|sql)$|[^/]+\/[^/]+\+(?:json|xml|yaml)$)/;
/** Base64 for the longest text shown, at four bytes a character. */
const TEXT_BLOB_CHARS_MAX = 6 * TOOL_RESULT_CHARS_MAX;
/** Name under which Python's FastMCP wraps a value that is no object. */
const WRAPPED = "result";

/** MCP's content blocks, then the structured content as JSON unless the blocks have it. */
export function showResult({ isError, content, structuredContent }: McpToolResult, senses: Senses): ShownResult {
  const blocks = content.map(embeddedMedia);
  const images = senses.images ? blocks.flatMap((block) => imageOf(block) ?? []).slice(0, TOOL_RESULT_IMAGES_MAX) : [];
  const heard = senses.sounds ? blocks.filter((block) => soundOf(block) !== null).slice(0, TOOL_RESULT_SOUNDS_MAX) : [];
  const shown = new Set(images);
  const texts = blocks.map((block) => textOf(block, shown, heard.includes(block))).filter((text) => text !== "");
  const text = joinChannels(texts.join("\n\n"), structuredText(structuredContent, texts));
  return { text: isError ? `The tool failed: ${text}` : text, images, sounds: heard.flatMap((block) => soundOf(block) ?? []) };
}

export function failedResult(reason: string): ShownResult {
  return { text: `The tool failed: ${cut(reason, TOOL_RESULT_CHARS_MAX)}`, images: [], sounds: [] };
}

/** Converts an embedded resource that is an image or sound to a block of that type. */
function embeddedMedia(block: Block): Block {
  const { type, resource } = block;
  if (type !== "resource" || !isRecord(resource) || typeof resource.blob !== "string") return block;
  const [kind] = typeNameOf(resource.mimeType).split("/");
  return kind === "image" || kind === "audio" ? { type: kind, data: resource.blob, mimeType: resource.mimeType, uri: resource.uri } : block;
}

function textOf(block: Block, shown: ReadonlySet<string>, isHeard: boolean): string {
  const { type, text, mimeType, uri, name, description, resource } = block;
  if (type === "text" && typeof text === "string") return text;
  if (type === "image" || type === "audio") {
    const image = imageOf(block);
    const isShown = isHeard || (image !== null && shown.has(image));
    const place = typeof uri === "string" ? `${uri}: ` : "";
    const what = type === "image" ? "a picture" : "sound";
    return `(${place}${what}, ${String(mimeType)}${isShown ? ": it follows" : ", which cannot be shown"})`;
  }
  if (type === "resource_link") {
    const link = [name, uri].filter((part) => typeof part === "string").join(": ");
    return typeof description === "string" && description !== "" ? `${link} (${description})` : link;
  }
  if (type === "resource" && isRecord(resource)) return resourceText(resource);
  return JSON.stringify(block);
}

function resourceText({ uri, text, mimeType, blob }: Block): string {
  if (typeof text === "string") return `${String(uri)}:\n${text}`;
  if (typeof blob !== "string" || !TEXT_TYPE.test(typeNameOf(mimeType)))
    return `${String(uri)} (${String(mimeType)}, which cannot be shown)`;
  return `${String(uri)}:\n${Buffer.from(blob.slice(0, TEXT_BLOB_CHARS_MAX), "base64").toString()}`;
}

function imageOf({ type, data, mimeType }: Block): string | null {
  if (type !== "image" || typeof data !== "string" || data.length > TOOL_RESULT_IMAGE_CHARS_MAX) return null;
  return `data:${String(mimeType)};base64,${data}`;
}

function soundOf({ type, data, mimeType }: Block): ShownSound | null {
  if (type !== "audio" || typeof data !== "string" || data.length > TOOL_RESULT_IMAGE_CHARS_MAX) return null;
  const format = SOUND_FORMATS.get(typeNameOf(mimeType));
  return format ? { data, format } : null;
}

/** Without parameters. */
function typeNameOf(mimeType: unknown): string {
  return typeof mimeType === "string" ? (mimeType.split(";", 1)[0] ?? "").trim().toLowerCase() : "";
}

/** The structured content as JSON; empty when one of the texts is that JSON or the value that it wraps. */
function structuredText(structured: McpToolResult["structuredContent"], texts: readonly string[]): string {
  if (structured === undefined) return "";
  const entries = Object.entries(structured);
  const [[name, value] = []] = entries;
  const values = entries.length === 1 && name === WRAPPED ? [structured, value] : [structured];
  if (texts.some((text) => values.some((said) => isText(text, said)))) return "";
  if (entries.length === 0 && texts.length > 0) return "";
  const long = new Set<unknown>(texts.filter((text) => text.length >= TOOL_RESULT_REPEATED_CHARS_MIN));
  return JSON.stringify(Object.fromEntries(entries.map(([field, said]) => [field, long.has(said) ? "(the text above)" : said])));
}

/** Whether a text equals a value, as text or as any form of its JSON. */
function isText(text: string, value: unknown): boolean {
  if (text === value) return true;
  if (text.length > TOOL_RESULT_CHARS_MAX) return false;
  try {
    return isDeepStrictEqual(JSON.parse(text), value);
  } catch {
    return false;
  }
}

/** Each part gets at least half of the room, and what the other leaves. */
function joinChannels(text: string, json: string): string {
  if (text === "" && json === "") return "The tool answered nothing.";
  if (text === "" || json === "") return cut(text + json, TOOL_RESULT_CHARS_MAX);
  const half = TOOL_RESULT_CHARS_MAX / 2;
  return [
    cut(text, Math.max(half, TOOL_RESULT_CHARS_MAX - json.length)),
    cut(json, Math.max(half, TOOL_RESULT_CHARS_MAX - text.length)),
  ].join("\n\n");
}

function cut(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text;
  return `${text.slice(0, charsMax)}\n(cut here: it has ${text.length} characters)`;
}
