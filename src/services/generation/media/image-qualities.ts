/**
 * What a quality of a picture means (docs/spec/images.md#quality): one of four words. OpenAI has two more on `/v1`: `standard` is
 * its older word for medium, as `hd` is for high, and `auto` is what saying nothing is, so that no upstream is ever left to
 * choose a dearer one than is held for.
 */
import type { Model } from "../../catalog/model.js";

/** GET /image. */
export const IMAGE_QUALITIES = ["low", "medium", "high", "hd"] as const;
/** Bodies of `/v1`, and GraphQL, which takes the same (docs/spec/images.md#quality). */
export const BODY_IMAGE_QUALITIES = [...IMAGE_QUALITIES, "standard", "auto"] as const;

const OTHER_WORDS: ReadonlyMap<string, string> = new Map([
  ["medium", "standard"],
  ["standard", "medium"],
  ["high", "hd"],
  ["hd", "high"],
]);

/**
 * The word that the model's entry prices the quality by, which is the one that its upstream is sent: as it was stated, or the other word
 * for the same. Where the entry prices neither, it stays as it was stated.
 */
export function qualityFor({ pricedFields }: Pick<Model, "pricedFields">, stated: string | null): string | null {
  const prices = pricedFields.get("quality");
  if (stated === null || !prices || prices.has(stated)) return stated;
  const other = OTHER_WORDS.get(stated);
  return other !== undefined && prices.has(other) ? other : stated;
}
