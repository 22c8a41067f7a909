/** The parameters of every operation that generates: the most that it may cost, a quote instead of it, and wishes. */
import { CREDITS_MAX } from "../../limits.js";
import { MODELS_MAX } from "../../services/catalog/wish-fields.js";
import { MAX_COST_DESCRIPTION, MAX_COST_FIELD, MAX_COST_HEADER } from "../../services/credits/max-cost.js";
import type { Contract } from "./contract.js";

export const COMPONENTS = "#/components/schemas/";
/** Of the most credits that there may be. */
const CREDITS_DIGITS_MAX = String(CREDITS_MAX).length - 1;
const MAX_COST_PATTERN = `^\\d{1,${CREDITS_DIGITS_MAX}}(?:\\.\\d{1,9})?$`;
export const MAX_COST = {
  name: MAX_COST_HEADER,
  in: "header",
  required: false,
  description: MAX_COST_DESCRIPTION,
  schema: { type: "string", pattern: MAX_COST_PATTERN },
};
export const MAX_COST_QUERY = {
  name: MAX_COST_FIELD,
  in: "query",
  required: false,
  description: "The highest charge in credits, like the header `X-Max-Cost`.",
  schema: { type: "string", pattern: MAX_COST_PATTERN },
};
export const MAX_COST_NAME = "MaxCost";
export const MAX_COST_SCHEMA = {
  anyOf: [
    { type: "number", minimum: 0, maximum: CREDITS_MAX },
    { type: "string", pattern: MAX_COST_PATTERN },
  ],
};
export const MAX_COST_PROPERTY = {
  description: MAX_COST_DESCRIPTION,
  anyOf: [{ $ref: `${COMPONENTS}${MAX_COST_NAME}` }, { type: "null" }],
};

export const QUOTE_QUERY = {
  name: "quote",
  in: "query",
  required: false,
  description: "True: answers the quote of the request (see `createQuote`), and generates nothing.",
  schema: { type: "boolean" },
};

export const PROVIDER_NAME = "ProviderWishes";
const PROVIDER_DESCRIPTION = "Wishes about the upstreams that may serve, in OpenRouter's form.";
const PROVIDER_PROPERTY = {
  description: PROVIDER_DESCRIPTION,
  anyOf: [{ $ref: `${COMPONENTS}${PROVIDER_NAME}` }, { type: "null" }],
};
const PROVIDER_TEXT = { description: `${PROVIDER_DESCRIPTION} As JSON.`, type: "string" };
const MODELS_DESCRIPTION = "Models to try when the first fails, instead of its own fallbacks.";
const SEVERAL_PROPERTIES = {
  models: { description: MODELS_DESCRIPTION, type: ["array", "null"], maxItems: MODELS_MAX, items: { type: "string", minLength: 1 } },
  route: { description: "The way to use `models`: there is one.", type: ["string", "null"], enum: ["fallback", null] },
};
const PRESET_PROPERTY = {
  description: "A preset of the account: its name, or its name and version (`support@3`). Its fields stand where the request has none.",
  type: ["string", "null"],
  minLength: 1,
};

type Wishing = Pick<Contract, "presetFormat" | "takesModels">;

/** The wishes that a body of the operation may have. */
export function wishProperties({ presetFormat, takesModels }: Wishing): Readonly<Record<string, object>> {
  return {
    provider: PROVIDER_PROPERTY,
    ...((takesModels || presetFormat) && SEVERAL_PROPERTIES),
    ...(presetFormat && { preset: PRESET_PROPERTY }),
  };
}

export const WISH_FORM_PROPERTIES = { provider: PROVIDER_TEXT };

/** In a query, objects and lists are JSON. */
export function wishQuery({ takesModels }: Wishing): readonly Readonly<Record<string, unknown>>[] {
  const parameter = (name: string, description: string) => ({ name, in: "query", required: false, description, schema: JSON_TEXT });
  const provider = parameter("provider", PROVIDER_TEXT.description);
  return takesModels ? [provider, parameter("models", `${MODELS_DESCRIPTION} As JSON.`)] : [provider];
}

const JSON_TEXT = { type: "string", pattern: "^[^\\u0000]*$" };
