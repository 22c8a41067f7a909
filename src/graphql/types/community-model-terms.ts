/** What is said of registered models, in answers and inputs alike (docs/spec/community-models.md#record). */
import { UPSTREAM_APIS } from "../../services/catalog/model.js";
import { PRICE_FIELDS, type PriceField } from "../../services/catalog/pricing.js";
import { ADVERTISED_CAPABILITIES } from "../../services/community-models/models-input.js";
import { builder, enumValues } from "../builder.js";

export const NEEDS_KEYS = "Needs a secret key with the permission KEYS.";
export const RPM = "Requests a minute of one account; 0.5 is one in two minutes. Null: no limit.";

export const UpstreamApiEnum = builder.enumType("UpstreamApi", {
  description: "The chat format of OpenAI's that an upstream speaks. The gateway serves both of its own from either.",
  values: enumValues(UPSTREAM_APIS),
});

export const AdvertisedCapabilityEnum = builder.enumType("AdvertisedCapability", {
  description: "What an owner may say that a text model can do.",
  values: enumValues(ADVERTISED_CAPABILITIES),
});

export const PriceFieldEnum = builder.enumType("PriceField", {
  description: "The price fields of a model, by their names.",
  values: Object.fromEntries(PRICE_FIELDS.map((field) => [toUpperSnake(field), { value: field }])) as Record<
    string,
    { readonly value: PriceField }
  >,
});

/** One field for each price, in the order of docs/spec/credits.md#prices. */
export function perPriceField<Field>(create: (field: PriceField) => Field): Record<PriceField, Field> {
  return Object.fromEntries(PRICE_FIELDS.map((field) => [field, create(field)])) as Record<PriceField, Field>;
}

function toUpperSnake(name: string): string {
  return name.replace(/[A-Z]/g, "_$&").toUpperCase();
}
