/** Content parts of a chat as blocks of Anthropic's Messages format. */
import { isRecord, recordsOf } from "../../lib/json.js";
import { ownValue } from "../../lib/own-values.js";
import { base64Of, endingOf, fileUrlOf, type MediaContent, readMedia, SHOWN_TYPES, urlOf } from "../openai-chat/parts.js";
import { refuse } from "../upstream-error.js";
import { extraOf } from "./extra.js";

type Loose = Readonly<Record<string, unknown>>;
export type Block = Record<string, unknown>;

/** Media types by the ending of an address. */
const TYPES: Readonly<Record<string, string>> = {
  ...SHOWN_TYPES,
  ...{ txt: "text/plain", md: "text/markdown", csv: "text/csv", html: "text/html" },
};
const PDF = "application/pdf";

/** Blocks of a message's or a tool result's parts. Throws a ProviderError of status 400 for a part that the format cannot hold. */
export function toBlocks(content: unknown, path: string): Block[] {
  if (typeof content === "string") return textBlocks(content);
  const parts = recordsOf(content);
  const blocks: Block[] = [];
  for (let index = 0; index < parts.length; ) {
    const part = parts[index] as Loose;
    const group = groupOf(part);
    const taken = group === null ? 1 : Math.min(group.parts, parts.length - index);
    if (group !== null)
      blocks.push(marked(toGroup(group, parts.slice(index, index + taken), `${path}.content.${index}`), parts[index + taken - 1]));
    else for (const block of toPartBlocks(part, `${path}.content.${index}`)) blocks.push(marked(block, part));
    index += taken;
  }
  return blocks;
}

function textBlocks(text: string): Block[] {
  // The format has no blank texts.
  return text.trim() === "" ? [] : [{ type: "text", text }];
}

function toPartBlocks(part: Loose, path: string): Block[] {
  switch (part.type) {
    case "text":
    case "refusal":
      return toText(part);
    case "image_url":
      return [toMedia(urlOf(part.image_url), "image/jpeg", `${path}.image_url`)];
    case "file":
      return [toDocument(part, path)];
    default:
      throw refuse(`This upstream takes no content of type ${JSON.stringify(part.type)}.`, `${path}.type`);
  }
}

function toText(part: Loose): Block[] {
  const { citations } = extraOf(part);
  const [text] = textBlocks(String(part.text ?? part.refusal ?? ""));
  if (text && Array.isArray(citations) && citations.length > 0) text.citations = citations;
  return text ? [text] : [];
}

/** Several parts that are one block: a document of texts and images, or a search result. */
interface Group {
  readonly kind: "document" | "search_result";
  readonly fields: Loose;
  readonly parts: number;
}

function groupOf(part: Loose): Group | null {
  const { group } = extraOf(part);
  if (!isRecord(group) || !isRecord(group.fields)) return null;
  const { kind, fields, parts } = group;
  if ((kind !== "document" && kind !== "search_result") || typeof parts !== "number" || parts < 1) return null;
  return { kind, fields, parts };
}

function toGroup({ kind, fields }: Group, parts: readonly Loose[], path: string): Block {
  const blocks = parts.flatMap((part) => toPartBlocks(part, path));
  const { title, context, citations, source } = fields;
  const common = { ...(title != null && { title }), ...(citations != null && { citations }) };
  if (kind === "search_result") return { type: kind, source, ...common, content: blocks };
  const [first] = blocks;
  const isText = fields.isText === true && blocks.length === 1 && first?.type === "text";
  return {
    type: kind,
    source: isText ? { type: "text", media_type: "text/plain", data: first.text } : { type: "content", content: blocks },
    ...common,
    ...(context != null && { context }),
  };
}

function toDocument(part: Loose, path: string): Block {
  const field = `${path}.file.file_data`;
  const { filename } = isRecord(part.file) ? part.file : {};
  const block = toMedia(fileUrlOf(part.file, field), PDF, field);
  if (block.type !== "document") return block;
  const { title = filename, context, citations } = extraOf(part);
  if (typeof title === "string" && title !== "") block.title = title;
  if (context != null) block.context = context;
  if (citations != null) block.citations = citations;
  return block;
}

function toMedia(url: string, assumedType: string, path: string): Block {
  const media = readMedia(url, { assumedType, types: TYPES, path });
  if ("content" in media) return toInline(media.mediaType.toLowerCase(), media.content, path);
  return { type: media.mediaType.startsWith("image/") ? "image" : "document", source: { type: "url", url } };
}

/** Throws a ProviderError of status 400 for a media type that the format cannot hold. */
export function toInline(mediaType: string, content: MediaContent, path: string): Block {
  const data = base64Of(content);
  if (mediaType.startsWith("image/")) return { type: "image", source: { type: "base64", media_type: mediaType, data } };
  if (mediaType === PDF) return { type: "document", source: { type: "base64", media_type: mediaType, data } };
  if (!mediaType.startsWith("text/") && mediaType !== "application/json")
    throw refuse(`This upstream takes no files of type ${JSON.stringify(mediaType)}: send an image, a PDF or a text.`, path);
  const text = "text" in content ? content.text : Buffer.from(content.base64, "base64").toString();
  return { type: "document", source: { type: "text", media_type: "text/plain", data: text } };
}

/** Whether the gateway fetches what a block names: the format takes https addresses, and documents at them are PDFs. */
export function isFetched({ type, source }: Block): boolean {
  if ((type !== "image" && type !== "document") || !isRecord(source) || source.type !== "url") return false;
  const address = new URL(String(source.url));
  return address.protocol !== "https:" || (type === "document" && (ownValue(TYPES, endingOf(address)) ?? PDF) !== PDF);
}

/** With the cache mark of the part. One hour is sent only where it has a price (services/catalog/request-rates.ts). */
export function marked(block: Block, holder: Loose | undefined): Block {
  const mark = holder?.cache_control;
  if (!isRecord(mark)) return block;
  const { ttl } = mark;
  block.cache_control = { type: "ephemeral", ...(typeof ttl === "string" && { ttl }) };
  return block;
}
