/** Shown blocks of a Messages request as content parts of a chat. */
import { invalidInput } from "../../errors.js";
import type { MessageShownBlock } from "./request.js";

type Message = Record<string, unknown>;

export function toParts(block: MessageShownBlock): Message[] {
  const marked = (parts: Message[]) => {
    const last = parts.at(-1);
    if (last && block.cache_control != null) last.cache_control = block.cache_control;
    return parts;
  };
  switch (block.type) {
    case "text":
      return [toTextPart(block)];
    case "image":
      return marked([{ type: "image_url", image_url: { url: addressOf(block.source) } }]);
    case "search_result":
      return marked([{ type: "text", text: [block.title, block.source, ...block.content.map(({ text }) => text)].join("\n") }]);
    case "document":
      return marked(toDocument(block));
  }
}

export function toTextPart({ text, cache_control: cache }: { readonly text: string; readonly cache_control?: unknown }): Message {
  return { type: "text", text, ...(cache != null && { cache_control: cache }) };
}

function toDocument({ source, title, context }: Extract<MessageShownBlock, { type: "document" }>): Message[] {
  const head = [title, context].filter((text) => text != null && text !== "").join("\n");
  const told: Message[] = head === "" ? [] : [{ type: "text", text: head }];
  switch (source.type) {
    case "text":
      return [{ type: "text", text: head === "" ? source.data : `${head}\n\n${source.data}` }];
    case "content":
      return [
        ...told,
        ...(typeof source.content === "string" ? [{ type: "text", text: source.content }] : source.content.flatMap(toParts)),
      ];
    default:
      return [
        ...(context != null && context !== "" ? [{ type: "text", text: context }] : []),
        { type: "file", file: { file_data: addressOf(source), filename: title ?? "document.pdf" } },
      ];
  }
}

export type Addressed =
  | { readonly type: "base64"; readonly media_type: string; readonly data: string }
  | { readonly type: "url"; readonly url: string };

export function addressOf(source: Addressed | { readonly type: "file" }): string {
  if (source.type === "file") throw invalidInput("Files are not kept here: send the content as base64 or by URL.");
  return source.type === "url" ? source.url : `data:${source.media_type};base64,${source.data}`;
}
