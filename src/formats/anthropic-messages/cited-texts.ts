/** The text of a whole answer in the blocks of Anthropic's format, each with its citations. */
import { isRecord } from "../../lib/json.js";
import { splitTexts } from "./extra.js";

type Loose = Readonly<Record<string, unknown>>;

export interface CitedText {
  readonly text: string;
  readonly cited: readonly unknown[];
}

/** One block where the lengths are not known. Citations that support none of the blocks stand at the last. */
export function citedTexts(text: string, annotations: readonly Loose[], lengths: unknown): readonly CitedText[] {
  const texts = splitTexts(text, lengths) ?? [text];
  const ends = new Map<number, number>();
  let end = 0;
  for (const [index, each] of texts.entries()) {
    end += each.length;
    if (each !== "") ends.set(end, index);
  }
  const cited: Loose[][] = texts.map(() => []);
  for (const annotation of annotations) cited[ends.get(endOf(annotation)) ?? texts.length - 1]?.push(annotation);
  return texts.map((each, index) => ({ text: each, cited: cited[index] ?? [] }));
}

function endOf(annotation: Loose): number {
  const cited = annotation.url_citation ?? annotation.document_citation;
  return isRecord(cited) && typeof cited.end_index === "number" ? cited.end_index : -1;
}
