/** Prices as people type them: tokens and characters by the million, while GraphQL and REST have them each. */
import type { ImagePricing, Modality } from "../../client/generated/graphql.js";
import { fromPerMillion, toPerMillion } from "../../ui/prices.js";

export type PriceUnit = "token" | "character" | "second" | "image";

interface Priced {
  readonly modality: Modality;
  readonly imagePricing: ImagePricing;
}

/** `prices` are as typed, by price field. */
interface Typed<Field extends string> extends Priced {
  readonly prices: Readonly<Partial<Record<Field, string>>>;
}

export function priceUnitOf({ modality, imagePricing }: Priced, field: string): PriceUnit {
  if (modality === "VIDEO" || modality === "TRANSCRIPTION") return "second";
  if (modality === "SPEECH") return "character";
  return modality === "IMAGE" && field === "completionImagePrice" && imagePricing === "REQUEST" ? "image" : "token";
}

export const isPerMillion = (unit: PriceUnit): boolean => unit === "token" || unit === "character";

/** The price for one token, as GraphQL takes it. Null when empty. Text that is no amount stays, for the gateway to refuse. */
export function toExactPrice<Field extends string>(draft: Typed<Field>, field: Field): string | null {
  const typed = draft.prices[field]?.trim() ?? "";
  if (typed === "") return null;
  return isPerMillion(priceUnitOf(draft, field)) ? (fromPerMillion(typed) ?? typed) : typed;
}

export function toTypedPrice(model: Priced, field: string, exact: string): string {
  return isPerMillion(priceUnitOf(model, field)) ? (toPerMillion(exact) ?? exact) : exact;
}

/** Credits per million above which a price is asked about: more is usually a price that was meant for a million, typed for one. */
export const HIGH_PER_MILLION = 1_000;

/** Fields with such a price. */
export function highPrices<Field extends string>(draft: Typed<Field>, fields: readonly Field[]): readonly Field[] {
  return fields.filter((field) => isPerMillion(priceUnitOf(draft, field)) && Number(draft.prices[field]) > HIGH_PER_MILLION);
}
