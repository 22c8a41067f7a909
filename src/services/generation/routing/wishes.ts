/**
 * The wishes of a request about its models and upstreams, in OpenRouter's form (docs/spec/routing.md#wishes). They are the gateway's, so
 * they are taken out of an input before it is read as the format of its path.
 */
import { z } from "zod";
import type { ProviderWishes, RequestContext, RequestWishes } from "../../../context.js";
import { wrongField } from "../../../errors.js";
import { isRecord } from "../../../lib/json.js";
import { ownValue } from "../../../lib/own-values.js";
import type { Catalog } from "../../catalog/catalog.js";
import { assertAgreeing, modelsInput, providerInput } from "../../catalog/wish-fields.js";
import { parseInput } from "../../requests/input.js";

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
  /** A preset was filled in. */
  readonly isFilled?: true;
}

/** Splits the wishes from an input; null: it has none. Throws BAD_REQUEST naming the field. */
export function takeWishes<Input>({ caller }: RequestContext, catalog: Pick<Catalog, "findFor">, input: Input): Taken<Input> | null {
  if (!isRecord(input)) return null;
  const isStated = FIELDS.some((field) => Object.hasOwn(input, field));
  const model = ownValue(input, "model");
  const mark = typeof model === "string" ? model.lastIndexOf(":") : -1;
  const suffix = mark > 0 ? SORTS.get((model as string).slice(mark + 1)) : undefined;
  // A model of that very name is meant itself.
  const sort = suffix !== undefined && catalog.findFor(caller, model as string) === null ? suffix : null;
  if (!isStated && sort === null) return null;
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

/** A form or a query has objects and lists as JSON. */
function fromForm(value: unknown): unknown {
  if (typeof value !== "string") return value;
  try {
    return JSON.parse(value) as unknown;
  } catch {
    return value;
  }
}
