/** Delivers files to a tool's caller: in the result, or as links of the media host. */
import type { MediaFile } from "../../../providers/media.js";
import type { McpToolResult } from "../mcp-tools.js";
import { textBlock } from "./tool.js";

/** For files that fit into one event: see MCP_INLINE_BYTES_MAX. */
export function inlined(
  type: "image" | "audio",
  files: readonly MediaFile[],
  structuredContent: Readonly<Record<string, unknown>>,
): McpToolResult {
  const content = files.map(({ bytes, contentType }) => ({ type, data: Buffer.from(bytes).toString("base64"), mimeType: contentType }));
  return { isError: false, content, structuredContent };
}

/** In the order of the files. */
export function linked(urls: readonly string[], structuredContent: Readonly<Record<string, unknown>>): McpToolResult {
  return { isError: false, content: urls.map(textBlock), structuredContent: { ...structuredContent, urls } };
}
