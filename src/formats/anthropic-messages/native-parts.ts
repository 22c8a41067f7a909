/** Shown blocks of a Messages request as parts of a chat for an upstream of the same format, which get everything of the block back. */
import { toExtra } from "./extra.js";
import { type Addressed, addressOf, toTextPart } from "./parts.js";
import type { MessageShownBlock } from "./request.js";

type Message = Record<string, unknown>;
type Loose = Readonly<Record<string, unknown>>;

export function toNativeParts(block: MessageShownBlock): Message[] {
  switch (block.type) {
    case "text": {
      const { citations } = block;
      return [{ ...toTextPart(block), ...(Array.isArray(citations) && citations.length > 0 && toExtra({ citations })) }];
    }
    case "image":
      return marked([toImage(block.source)], block);
    case "search_result": {
      const { source, title, citations } = block;
      return marked(grouped("search_result", { source, title, citations }, block.content.map(toTextPart)), block);
    }
    case "document":
      return marked(toDocument(block), block);
  }
}

function toDocument({ source, title, context, citations }: Extract<MessageShownBlock, { type: "document" }>): Message[] {
  const fields = { title, context, citations };
  if (source.type === "text") return grouped("document", { ...fields, isText: true }, [{ type: "text", text: source.data }]);
  if (source.type === "content") {
    const parts =
      typeof source.content === "string"
        ? [{ type: "text", text: source.content }]
        : source.content.map((inner) => (inner.type === "text" ? toTextPart(inner) : toImage(inner.source)));
    return grouped("document", fields, parts);
  }
  return [{ type: "file", file: { file_data: addressOf(source), ...(title != null && { filename: title }) }, ...toExtra(stated(fields)) }];
}

function toImage(source: Addressed | { readonly type: "file" }): Message {
  return { type: "image_url", image_url: { url: addressOf(source) } };
}

/** Parts that are one block upstream. */
function grouped(kind: "document" | "search_result", fields: Loose, parts: readonly Message[]): Message[] {
  const [first, ...others] = parts;
  return first ? [{ ...first, ...toExtra({ group: { kind, fields: stated(fields), parts: parts.length } }) }, ...others] : [];
}

function stated(fields: Loose): Loose {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value != null));
}

/** The mark of a block stands at its last part. */
function marked(parts: Message[], { cache_control: cache }: { readonly cache_control?: unknown }): Message[] {
  const last = parts.at(-1);
  if (last && cache != null) last.cache_control = cache;
  return parts;
}
