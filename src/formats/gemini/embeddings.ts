/** Gemini's embedContent and batchEmbedContents as one request for embeddings. */
import { invalidInput } from "../../errors.js";
import { ownValue, setOwnValue } from "../../lib/own-values.js";
import { quoteStart } from "../../lib/quote-start.js";
import { explainUnread, NAME_CHARS_MAX } from "../left-out.js";
import { toModelId } from "./models.js";
import type { EmbedContentRequest } from "./request.js";

type Loose = Readonly<Record<string, unknown>>;

export interface EmbeddingsOfContents {
  readonly input: string | readonly string[];
  readonly dimensions?: number;
}

/** Fields that are converted. */
const READ: ReadonlySet<string> = new Set(["model", "content", "outputDimensionality"]);
const READ_OF_BATCH: ReadonlySet<string> = new Set(["model", "requests"]);

/**
 * Each content is one vector. `batch` holds the requests, null for one alone. Fields that concern money are passed on, so that they are
 * refused by name or priced. Throws BAD_REQUEST for content other than text, and for requests of a batch that differ.
 */
export function toEmbeddings(
  model: string,
  requests: readonly EmbedContentRequest[],
  batch: Loose | null,
  concernsMoney: (name: string) => boolean,
): { readonly body: EmbeddingsOfContents; readonly warnings: readonly string[] } {
  const pathOf = (index: number) => (batch === null ? "" : `requests.${index}.`);
  const [first] = requests;
  const dimensions = first?.outputDimensionality ?? undefined;
  const passed: Record<string, unknown> = {};
  const unread = new Set<string>();
  const sort = (request: Loose, read = READ) => {
    for (const name of Object.keys(request)) {
      const value = ownValue(request, name);
      if (value == null || read.has(name)) continue;
      if (concernsMoney(name)) setOwnValue(passed, name, value);
      else unread.add(name);
    }
  };
  if (batch !== null) sort(batch, READ_OF_BATCH);
  const input = requests.map((request, index) => {
    const path = pathOf(index);
    sort(request);
    if (typeof request.model === "string" && toModelId(request.model) !== model)
      throw invalidInput("must be the model of the path, for every request of a batch", `${path}model`);
    if ((request.outputDimensionality ?? undefined) !== dimensions)
      throw invalidInput("must be the same for every request of a batch", `${path}outputDimensionality`);
    return textOf(request, path);
  });
  const [only] = input;
  const body = { ...passed, input: batch !== null || only === undefined ? input : only, ...(dimensions !== undefined && { dimensions }) };
  return { body, warnings: explainUnread([...unread], "embedding") };
}

function textOf({ content }: EmbedContentRequest, path: string): string {
  const texts = content.parts.map((part, index) => {
    if (part.text != null && part.text !== "") return part.text;
    const [kind = "nothing"] = Object.keys(part);
    throw invalidInput(
      `must be a text that is not empty: this model embeds texts, and not ${quoteStart(kind, NAME_CHARS_MAX)}`,
      `${path}content.parts.${index}`,
    );
  });
  return texts.join("\n");
}
