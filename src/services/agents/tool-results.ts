/** What a model is shown of a tool's answer: text, and the pictures in it where the model sees pictures. Everything is bounded. */

import type { McpToolResult } from "../mcp/mcp-tools.js";
import { TOOL_RESULT_CHARS_MAX, TOOL_RESULT_IMAGE_CHARS_MAX, TOOL_RESULT_IMAGES_MAX } from "./limits.js";

type Block = McpToolResult["content"][number];

export interface ShownResult {
  readonly text: string;
  /** As data URLs. */
  readonly images: readonly string[];
}

/** MCP's content blocks; without any that say something, the structured content as JSON. */
export function showResult({ isError, content, structuredContent }: McpToolResult, seesImages: boolean): ShownResult {
  const images = seesImages ? content.flatMap((block) => imageOf(block) ?? []).slice(0, TOOL_RESULT_IMAGES_MAX) : [];
  const shown = new Set(images);
  const texts = content.map((block) => textOf(block, shown)).filter((text) => text !== "");
  const said = texts.length > 0 ? texts.join("\n\n") : structuredContent === undefined ? "" : JSON.stringify(structuredContent);
  const text = cut(said === "" ? "The tool answered nothing." : said);
  return { text: isError ? `The tool failed: ${text}` : text, images };
}

/** What is said in the place of a result. */
export function failedResult(reason: string): ShownResult {
  return { text: `The tool failed: ${cut(reason)}`, images: [] };
}

function textOf(block: Block, shown: ReadonlySet<string>): string {
  const { type, text, mimeType, uri, name, resource } = block;
  if (type === "text" && typeof text === "string") return text;
  if (type === "image" || type === "audio") {
    const image = imageOf(block);
    if (image !== null && shown.has(image)) return `(a picture, ${String(mimeType)}: it follows)`;
    return `(${type === "image" ? "a picture" : "sound"}, ${String(mimeType)}, which cannot be shown)`;
  }
  if (type === "resource_link") return [name, uri].filter((part) => typeof part === "string").join(": ");
  if (type === "resource" && typeof resource === "object" && resource !== null) return resourceText(resource as Block);
  return JSON.stringify(block);
}

function resourceText({ uri, text, mimeType }: Block): string {
  if (typeof text === "string") return `${String(uri)}:\n${text}`;
  return `${String(uri)} (${String(mimeType)}, which cannot be shown)`;
}

function imageOf({ type, data, mimeType }: Block): string | null {
  if (type !== "image" || typeof data !== "string" || data.length > TOOL_RESULT_IMAGE_CHARS_MAX) return null;
  return `data:${String(mimeType)};base64,${data}`;
}

function cut(text: string): string {
  if (text.length <= TOOL_RESULT_CHARS_MAX) return text;
  return `${text.slice(0, TOOL_RESULT_CHARS_MAX)}\n(cut here: it has ${text.length} characters)`;
}
