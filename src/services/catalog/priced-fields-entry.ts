/** `pricedFields` and `longContext` of a model in `MODELS_FILE` (docs/adding-a-model.md): syntax and validation. */
import * as z from "zod";
import { parsePicocredits, toPlainDecimal } from "../../lib/money.js";
import { PRICE_CREDITS_MAX } from "../../limits.js";
import { BILLED_FIELDS, NESTED_FIELDS, OWN_FIELDS, PRICEABLE_FIELDS } from "./billed-fields.js";
import type { ImagePricing, Modality } from "./modality.js";
import {
  CATALOG_PRICE_FIELDS,
  type CatalogPriceField,
  type FieldPrice,
  MULTIPLIER_ONE,
  type PricedFields,
  usedPriceFields,
} from "./pricing.js";

/** A multiplier has millionths. */
const PICO_OF_MILLIONTH = 1_000_000n;
const MULTIPLIER_MAX = 1_000n;
/** Any option may be priced, as vendors add new ones. */
const VENDOR_OPTION = /^provider_options\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)?$/;

/** Longer than any decimal of a price. A bound also keeps the two apart for generators of clients, which take one type. */
const DECIMAL_CHARS_MAX = 64;
const decimal = z.union([z.string().max(DECIMAL_CHARS_MAX), z.number()]).transform((value) => {
  const text = typeof value === "number" ? toPlainDecimal(value) : value;
  return text === null ? null : parsePicocredits(text);
});

/** Credits per unit, to picocredits. */
export const price = decimal.transform((picocredits, ctx) => {
  if (picocredits === null || picocredits < 0n) {
    ctx.addIssue("must be 0 or more credits per unit, a number or a decimal string of at most 12 decimals");
    return z.NEVER;
  }
  if (picocredits > BigInt(PRICE_CREDITS_MAX) * 10n ** 12n) {
    ctx.addIssue(`must be at most ${PRICE_CREDITS_MAX} credits per unit (prices are per token, not per million tokens)`);
    return z.NEVER;
  }
  return picocredits;
});

const multiplier = decimal.transform((pico, ctx) => {
  if (pico !== null && pico >= 0n && pico % PICO_OF_MILLIONTH === 0n && pico / PICO_OF_MILLIONTH <= MULTIPLIER_MAX * MULTIPLIER_ONE) {
    return pico / PICO_OF_MILLIONTH;
  }
  ctx.addIssue(`must be 0 to ${MULTIPLIER_MAX}, a number or a decimal string of at most 6 decimals`);
  return z.NEVER;
});

export const statedPrices = z.strictObject(Object.fromEntries(CATALOG_PRICE_FIELDS.map((field) => [field, price.optional()])));

const fieldPrice = z
  .strictObject({ prices: statedPrices.default({}), multiplier: multiplier.default(MULTIPLIER_ONE), perRequest: price.default(0n) })
  .transform((stated): FieldPrice => stated);

export const pricedFields = z
  .record(z.string(), z.record(z.string(), fieldPrice))
  .transform((fields): PricedFields => new Map(Object.entries(fields).map(([name, values]) => [name, new Map(Object.entries(values))])));

/** Billed fields by their names in the table, others as written. */
const PASS_FIELD = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;

export const passFields = z
  .array(z.string().regex(PASS_FIELD, "must be the name of a field, of at most 64 letters, digits and . _ -"))
  .max(100)
  .transform((names): ReadonlySet<string> => new Set(names));

export const longContext = z
  .array(z.strictObject({ abovePromptTokens: z.int().min(1), prices: statedPrices }))
  .refine((tiers) => new Set(tiers.map((tier) => tier.abovePromptTokens)).size === tiers.length, "must not state a bound twice");

interface PricedEntry {
  readonly modality: Modality;
  readonly prices: Readonly<Partial<Record<CatalogPriceField, bigint | undefined>>>;
  readonly pricedFields?: PricedFields | undefined;
  readonly passFields?: ReadonlySet<string> | undefined;
  readonly longContext?: z.output<typeof longContext> | undefined;
}

/** All price objects in the entry, by path. */
export function priceObjectsOf(entry: PricedEntry): readonly { readonly path: string; readonly prices: PricedEntry["prices"] }[] {
  const ofFields = [...(entry.pricedFields ?? [])].flatMap(([name, values]) =>
    [...values].map(([value, { prices }]) => ({ path: `pricedFields.${name}.${value}.prices`, prices })),
  );
  const ofTiers = (entry.longContext ?? []).map(({ prices }, index) => ({ path: `longContext.${index}.prices`, prices }));
  return [{ path: "prices", prices: entry.prices }, ...ofTiers, ...ofFields];
}

const HOUR_CACHE_PRICE: CatalogPriceField = "promptCacheWriteHourPrice";

/** Prices above 0 of fields that the modality does not use, with the fault (docs/spec/credits.md#prices). */
export function unusedPriceProblems(
  { modality, imagePricing = "request" }: { readonly modality: Modality; readonly imagePricing?: ImagePricing | undefined },
  prices: PricedEntry["prices"],
): readonly (readonly [CatalogPriceField, string])[] {
  const used: readonly CatalogPriceField[] = [
    ...usedPriceFields({ modality, imagePricing }),
    ...(modality === "text" ? [HOUR_CACHE_PRICE] : []),
  ];
  const kind = modality === "image" ? `image with imagePricing ${imagePricing}` : modality;
  return CATALOG_PRICE_FIELDS.filter((field) => (prices[field] ?? 0n) > 0n && !used.includes(field)).map(
    (field) => [field, `is not a price of ${kind}, which has ${used.join(", ")}`] as const,
  );
}

/** Faults of the names: `pricedFields.<name>: <fault>`. */
export function pricedFieldProblems({ modality, pricedFields: priced }: PricedEntry): string[] {
  const names = [...(priced?.keys() ?? [])];
  if (modality === "realtime") return names.map((name) => `pricedFields.${name}: nothing in a realtime session can be priced by itself`);
  const known = [
    ...(PRICEABLE_FIELDS[modality] ?? []),
    ...(NESTED_FIELDS[modality] ?? []),
    ...[...BILLED_FIELDS[modality].values()].map(({ name }) => name),
  ];
  return names
    .filter((name) => !known.includes(name) && !VENDOR_OPTION.test(name))
    .map(
      (name) =>
        `pricedFields.${name}: is not a field of ${modality} that is billed (those are ${known.join(", ")}, provider_options.<vendor>.<option>)`,
    );
}

/** Faults of passed fields: `passFields: <fault>`. */
export function passFieldProblems({ modality, pricedFields: priced, passFields: passed }: PricedEntry): string[] {
  const names = [...(passed ?? [])];
  if (modality === "realtime" && names.length > 0) return ["passFields: the fields of a realtime session are fixed"];
  const own = names.filter((name) => OWN_FIELDS.has(name)).map((name) => `passFields: ${name} is read by the gateway itself`);
  const twice = names.filter((name) => priced?.has(name)).map((name) => `passFields: ${name} has a price in pricedFields`);
  return [...own, ...twice];
}
