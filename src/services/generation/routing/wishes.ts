/**
 * The wishes of a request about its models and upstreams, in OpenRouter's form (docs/spec/routing.md#wishes). They are the gateway's, so
 * they are taken out of an input before it is read as the format of its path.
 */
import { z } from "zod";
import type { ProviderWishes, RequestContext, RequestWishes } from "../../../context.js";
import { wrongField } from "../../../errors.js";
import { isRecord } from "../../../lib/json.js";
import { parseNanocredits, toPlainDecimal } from "../../../lib/money.js";
import { ownValue } from "../../../lib/own-values.js";
import { CREDITS_MAX } from "../../../limits.js";
import type { Catalog } from "../../catalog/catalog.js";
import { QUANTIZATIONS } from "../../catalog/route.js";
import { parseInput } from "../../requests/input.js";

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

export const providerInput = z
  .strictObject({
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
  })
  .nullish();

const modelsInput = z.array(z.string().min(1).max(253)).max(MODELS_MAX).nullish();
const wishesInput = z.object({
  provider: providerInput,
  models: modelsInput,
  /** OpenRouter's only value for a list of models. */
  route: z.literal("fallback").nullish(),
});

export const FIELDS = ["provider", "models", "route"] as const;
const SORTS = new Map<string, "price" | "throughput">([
  ["nitro", "throughput"],
  ["floor", "price"],
]);

export interface Taken<Input> {
  readonly rest: Input;
  readonly wishes: RequestWishes | undefined;
}

/** Splits the wishes from an input; null: it has none. Throws BAD_REQUEST naming the field. */
export function takeWishes<Input>({ caller }: RequestContext, catalog: Pick<Catalog, "findFor">, input: Input): Taken<Input> | null {
  if (!isRecord(input)) return null;
  const stated = FIELDS.filter((field) => Object.hasOwn(input, field));
  const model = ownValue(input, "model");
  const mark = typeof model === "string" ? model.lastIndexOf(":") : -1;
  const suffix = mark > 0 ? SORTS.get((model as string).slice(mark + 1)) : undefined;
  // A model of that very name is meant itself.
  const sort = suffix !== undefined && catalog.findFor(caller, model as string) === null ? suffix : null;
  if (stated.length === 0 && sort === null) return null;
  const { provider, models, route: _, ...rest } = input;
  const parsed = parseInput(wishesInput, { provider: fromForm(provider), models: fromForm(models), route: ownValue(input, "route") });
  const wishes = toWishes(parsed.provider ?? null, parsed.models ?? [], sort);
  return { rest: (sort === null ? rest : { ...rest, model: (model as string).slice(0, mark) }) as Input, wishes };
}

/** Undefined for wishes of nothing. Throws BAD_REQUEST for those that contradict each other. */
export function toWishes(
  provider: ProviderWishes | null,
  models: readonly string[],
  sort: "price" | "throughput" | null,
): RequestWishes | undefined {
  if (sort !== null && provider?.sort != null && provider.sort !== sort)
    throw wrongField("provider.sort", `is ${provider.sort}, and the suffix of the model asks for ${sort}. State one of the two`);
  if (provider !== null) assertAgreeing(provider);
  if (provider === null && models.length === 0 && sort === null) return undefined;
  return { provider: sort === null ? provider : { ...provider, sort }, models };
}

function assertAgreeing({ order, only, ignore }: ProviderWishes): void {
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

/** A form or a query has objects and lists as JSON. */
function fromForm(value: unknown): unknown {
  if (typeof value !== "string") return value;
  try {
    return JSON.parse(value) as unknown;
  } catch {
    return value;
  }
}
