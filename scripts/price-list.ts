/** The bundled catalog's price list, as the price library has it today. */
import { calcPrice } from "@pydantic/genai-prices";
import { BUNDLED_VENDOR_ENTRIES } from "../src/services/catalog/bundled.js";
import { BUNDLED_MEDIA_MODELS } from "../src/services/catalog/bundled-media.js";
import { BUNDLED_MODELS } from "../src/services/catalog/bundled-other-models.js";
import type { BundledVendor } from "../src/services/catalog/bundled-vendors.js";

/** JSON, one model a line, sorted. Throws for a model that the library does not know. */
export function toPriceListText(): string {
  const offers = [...textOffers(), ...mediaOffers()].sort(([one, a], [other, b]) => (`${one} ${a}` < `${other} ${b}` ? -1 : 1));
  const vendors = [...new Set(offers.map(([vendor]) => vendor))];
  const sections = vendors.map((vendor) => {
    const lines = offers.filter(([owner]) => owner === vendor).map(([, name]) => `    ${JSON.stringify(name)}: ${toLine(vendor, name)}`);
    return `  ${JSON.stringify(vendor)}: {\n${lines.join(",\n")}\n  }`;
  });
  return `{\n${sections.join(",\n")}\n}\n`;
}

function textOffers(): [BundledVendor, string][] {
  return BUNDLED_MODELS.flatMap(({ offers }) => Object.entries(offers) as [BundledVendor, string][]);
}

function mediaOffers(): [BundledVendor, string][] {
  return BUNDLED_MEDIA_MODELS.flatMap(({ offers }) =>
    Object.entries(offers).flatMap(([vendor, { name, price }]): [BundledVendor, string][] =>
      price ? [] : [[vendor as BundledVendor, name]],
    ),
  );
}

function toLine(vendor: BundledVendor, name: string): string {
  const { priceListId } = BUNDLED_VENDOR_ENTRIES[vendor];
  const found = priceListId === undefined ? null : calcPrice({}, name, { providerId: priceListId });
  if (!found) throw new Error(`The price library knows no price of ${name} at ${vendor}.`);
  const { prices, context_window: contextLength } = found.model;
  return JSON.stringify({ prices, ...(contextLength !== undefined && { contextLength }) });
}
