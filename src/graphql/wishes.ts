/** Wishes of a generation about its models and upstreams (docs/spec/routing.md#wishes), as typed inputs. */
import type * as z from "zod";
import { deriveContext, type RequestContext } from "../context.js";
import { formatNanocredits } from "../lib/money.js";
import { requireCaller } from "../services/access/permissions.js";
import { QUANTIZATIONS } from "../services/catalog/route.js";
import { boundedBy } from "../services/credits/max-cost.js";
import type { PresetFormat } from "../services/presets/fill.js";
import { parseInput } from "../services/requests/input.js";
import { builder, describedValues } from "./builder.js";
import type { GraphQLContext } from "./context.js";

const ProviderSort = builder.enumType("ProviderSort", {
  description: "An order of the upstreams of a model.",
  values: describedValues<"price" | "latency" | "throughput">({
    price: "The lowest price first.",
    latency: "The shortest time to the first token first.",
    throughput: "The most tokens a second first.",
  }),
});

const DataCollection = builder.enumType("DataCollection", {
  description: "Whether upstreams may keep requests.",
  values: describedValues<"allow" | "deny">({
    allow: "Any upstream.",
    deny: "Only upstreams that are known to keep nothing for training.",
  }),
});

const MaxPriceInput = builder.inputType("MaxPriceInput", {
  description: "The highest prices of the models that may serve.",
  fields: (t) => ({
    prompt: t.field({ type: "Credits", description: "For a million input tokens." }),
    completion: t.field({ type: "Credits", description: "For a million output tokens." }),
    request: t.field({ type: "Credits", description: "For a request." }),
    image: t.field({ type: "Credits", description: "For an image." }),
  }),
});

export const ProviderInput = builder.inputType("ProviderInput", {
  description: "Wishes about the upstreams that may serve.",
  fields: (t) => ({
    order: t.stringList({ description: "The upstreams to try first, in this order." }),
    only: t.stringList({ description: "The only upstreams that may serve." }),
    ignore: t.stringList({ description: "Upstreams that may not serve." }),
    allowsFallbacks: t.boolean({
      description: "Whether others may serve when the first cannot. Defaults to true.",
      extensions: { wireName: "allow_fallbacks" },
    }),
    sort: t.field({ type: ProviderSort, description: "The order of the upstreams." }),
    maxPrice: t.field({ type: MaxPriceInput, description: "The highest prices." }),
    requiresParameters: t.boolean({
      description: "Whether only models that know all parameters may serve. Defaults to false.",
      extensions: { wireName: "require_parameters" },
    }),
    dataCollection: t.field({ type: DataCollection, description: "Whether upstreams may keep requests. Defaults to ALLOW." }),
    quantizations: t.stringList({ description: `Number formats of the weights: ${QUANTIZATIONS.join(", ")} or unknown.` }),
  }),
});

export const MODELS_DESCRIPTION = "Models to try when the first fails, at most 8, instead of the model's own fallbacks.";
export const PRESET_DESCRIPTION =
  "A preset of the account, by name, or by name and version (`support@3`). Its fields stand where this input has none.";
export const PROVIDER_DESCRIPTION = "Wishes about the upstreams that may serve.";

export interface WishFields {
  readonly maxCost?: bigint | null | undefined;
  readonly provider?: typeof ProviderInput.$inferInput | null | undefined;
  readonly models?: readonly string[] | null | undefined;
  readonly preset?: string | null | undefined;
}

export interface WishedBody {
  readonly ctx: RequestContext;
  /** In the format of REST, without wishes. */
  readonly body: unknown;
}

/** The body with its preset, and the request with its wishes and its limit of costs. Rejects with BAD_REQUEST, or UNAUTHORIZED. */
export async function wished(
  ctx: GraphQLContext,
  fields: WishFields,
  toBody: () => Record<string, unknown>,
  format?: PresetFormat,
): Promise<WishedBody> {
  requireCaller(ctx);
  const { provider, models, preset, maxCost } = fields;
  const stated = {
    ...toBody(),
    ...(provider && { provider: toProviderWire(provider) }),
    ...(models && { models }),
    ...(preset && { preset }),
  };
  const taken = await ctx.services.wishes.take(ctx, stated, format);
  const bounded = boundedBy(ctx, maxCost);
  if (taken === null) return { ctx: bounded, body: stated };
  return { ctx: deriveContext(bounded, { reservedId: bounded.reservedId, wishes: taken.wishes }), body: taken.rest };
}

export interface WishedInput<Input> {
  readonly ctx: RequestContext;
  readonly input: Input;
}

/** As `wished`, with the body parsed by the schema of its service. */
export async function wishedInput<Input>(
  ctx: GraphQLContext,
  fields: WishFields,
  schema: z.ZodType<Input>,
  toBody: () => Record<string, unknown>,
): Promise<WishedInput<Input>> {
  const { ctx: wishing, body } = await wished(ctx, fields, toBody);
  return { ctx: wishing, input: parseInput(schema, body) };
}

export function toProviderWire({
  allowsFallbacks,
  requiresParameters,
  maxPrice,
  dataCollection,
  ...same
}: typeof ProviderInput.$inferInput) {
  return {
    ...same,
    allow_fallbacks: allowsFallbacks,
    require_parameters: requiresParameters,
    data_collection: dataCollection,
    max_price: maxPrice && {
      prompt: toDecimal(maxPrice.prompt),
      completion: toDecimal(maxPrice.completion),
      request: toDecimal(maxPrice.request),
      image: toDecimal(maxPrice.image),
    },
  };
}

function toDecimal(nanocredits: bigint | null | undefined): string | undefined {
  return nanocredits == null ? undefined : formatNanocredits(nanocredits);
}
