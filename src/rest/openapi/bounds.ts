/** The parameters of every operation that generates: the most that it may cost, and a quote instead of it. */
import { CREDITS_MAX } from "../../limits.js";
import { MAX_COST_DESCRIPTION, MAX_COST_FIELD, MAX_COST_HEADER } from "../../services/credits/max-cost.js";

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
