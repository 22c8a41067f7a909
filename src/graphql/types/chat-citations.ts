/** Citations of an answer: the sources that support a part of its text. */
import { isRecord } from "../../lib/json.js";
import { builder } from "../builder.js";
import { toInt, toText } from "./chat-values.js";

type Loose = Readonly<Record<string, unknown>>;

/** An entry of `annotations`, which has its fields in an object of its type's name. */
interface CitationObject {
  readonly annotation: Loose;
  readonly fields: Loose;
}

export const ChatCitation = builder.objectRef<CitationObject>("ChatCitation").implement({
  description: "A source that supports a part of an answer.",
  fields: (t) => ({
    url: t.string({
      nullable: true,
      description: "The address of a web page. Null for a document.",
      resolve: ({ fields }) => toText(fields.url),
    }),
    title: t.string({ nullable: true, description: "The title of the source.", resolve: ({ fields }) => toText(fields.title) }),
    citedText: t.string({ nullable: true, description: "The text in the source.", resolve: ({ fields }) => toText(fields.content) }),
    startIndex: t.int({
      nullable: true,
      description: "Where the supported text begins in the content of the message.",
      resolve: ({ fields }) => toInt(fields.start_index),
    }),
    endIndex: t.int({ nullable: true, description: "Where it ends.", resolve: ({ fields }) => toInt(fields.end_index) }),
    raw: t.field({
      type: "JSON",
      description: "The entry of `annotations` as the upstream reports it.",
      resolve: ({ annotation }) => annotation,
    }),
  }),
});

/** Null without annotations. */
export function toCitations(annotations: unknown): CitationObject[] | null {
  if (!Array.isArray(annotations)) return null;
  return annotations.filter(isRecord).map((annotation) => {
    const { url_citation: page, document_citation: document } = annotation;
    return { annotation, fields: isRecord(page) ? page : isRecord(document) ? document : annotation };
  });
}
