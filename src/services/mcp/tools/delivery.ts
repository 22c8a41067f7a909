/** How files come to whoever called a tool: within the result, or as links of the media host when they are asked for or too large. */
import type { RequestContext } from "../../../context.js";
import type { MediaFile } from "../../../providers/media.js";
import type { MediaLinks } from "../../files/media-links.js";
import { MCP_INLINE_BYTES_MAX } from "../limits.js";
import { textBlock } from "./tool.js";

type Block = Readonly<Record<string, unknown>>;

export interface Delivered {
  readonly content: readonly Block[];
  /** In the order of the files; empty when they are in the result. */
  readonly urls: readonly string[];
}

/** What a file weighs is unknown before it is made: one that is too large for a result is never lost, and its link is told. */
export async function deliver(
  ctx: RequestContext,
  mediaLinks: Pick<MediaLinks, "publish">,
  type: "image" | "audio",
  files: readonly MediaFile[],
): Promise<Delivered> {
  const size = files.reduce((sum, { bytes }) => sum + bytes.byteLength, 0);
  if (size > MCP_INLINE_BYTES_MAX) return linked(await Promise.all(files.map(async (file) => (await mediaLinks.publish(ctx, file)).url)));
  const content = files.map(({ bytes, contentType }) => ({ type, data: Buffer.from(bytes).toString("base64"), mimeType: contentType }));
  return { content, urls: [] };
}

export function linked(urls: readonly string[]): Delivered {
  return { content: urls.map(textBlock), urls };
}
