/** Fields of the caller's wishes about models and upstreams, in OpenRouter's form (docs/spec/routing.md#wishes). */
import { z } from "zod";
import type { ProviderWishes } from "../../context.js";
import { wrongField } from "../../errors.js";
import { parseNanocredits, toPlainDecimal } from "../../lib/money.js";
import { CREDITS_MAX } from "../../limits.js";
import { QUANTIZATIONS } from "./route.js";

/** Unspecified: the caller's own fallbacks, upstreams in a list, and characters of an upstream's name. */
export const MODELS_MAX = 8;
const NAMES_MAX = 64;
const NAME_CHARS_MAX = 100;

const NANOCREDITS_MAX = BigInt(CREDITS_MAX) * 1_000_000_000n;
const price = z
  .union([z.number(), z.string().max(40)])
  .transform((stated) => (typeof stated === "number" ? (toPlainDecimal(stated) ?? "") : stated.trim()))
  .refine((decimal) => {
    const nanocredits = parseNanocredits(decimal);
    return nanocredits !== null && nanocredits >= 0n && nanocredits <= NANOCREDITS_MAX;
  }, `must be an amount of credits from 0 to ${CREDITS_MAX} with at most 9 decimals, such as 0.25`)
  .nullish();
const names = z.array(z.string().min(1).max(NAME_CHARS_MAX)).max(NAMES_MAX).nullish();

export const providerFields = z.strictObject({
  order: names,
  only: names,
  ignore: names,
  allow_fallbacks: z.boolean().nullish(),
  sort: z.enum(["price", "latency", "throughput"]).nullish(),
  max_price: z.strictObject({ prompt: price, completion: price, request: price, image: price }).nullish(),
  require_parameters: z.boolean().nullish(),
  data_collection: z.enum(["allow", "deny"]).nullish(),
  quantizations: z
    .array(z.enum([...QUANTIZATIONS, "unknown"]))
    .max(QUANTIZATIONS.length + 1)
    .nullish(),
});
export const providerInput = providerFields.nullish();

export const modelsInput = z.array(z.string().min(1).max(253)).max(MODELS_MAX).nullish();

/** Throws BAD_REQUEST for lists of upstreams that contradict each other. */
export function assertAgreeing({ order, only, ignore }: ProviderWishes): void {
  const ignored = namesOf(ignore);
  for (const [field, stated] of [
    ["order", order],
    ["only", only],
  ] as const) {
    const both = [...namesOf(stated)].find((name) => ignored.has(name));
    if (both !== undefined) throw wrongField(`provider.${field}`, `names ${both}, which provider.ignore names too. Leave one of them out`);
  }
  if (only == null || order == null) return;
  const allowed = namesOf(only);
  const outside = [...namesOf(order)].find((name) => !allowed.has(name));
  if (outside !== undefined) throw wrongField("provider.order", `names ${outside}, which provider.only leaves out`);
}

/** Names of upstreams, in any case. */
export function namesOf(stated: readonly string[] | null | undefined): ReadonlySet<string> {
  return new Set((stated ?? []).map((name) => name.toLowerCase()));
}
