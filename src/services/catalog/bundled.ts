/**
 * The bundled catalog: well-known models of every modality, each shown only when a vendor of it is configured (architecture
 * "Configuration"), at the vendor's public prices.
 *
 * The prices are those in force when the process starts, those of long prompts among them. Where a vendor's price depends on the
 * hour, the dearest applies. An operator who sells otherwise states the model in `MODELS_FILE`.
 */
import { parsePicocredits } from "../../lib/money.js";
import { ownValue } from "../../lib/own-values.js";
import { BUNDLED_MEDIA_MODELS, type BundledMediaModel, type PublishedPrice } from "./bundled-media.js";
import { BUNDLED_VENDORS, type BundledModel, type BundledVendor } from "./bundled-models.js";
import { BUNDLED_MODELS } from "./bundled-other-models.js";
import { type ListedModel, type PriceList, pricesInForce, readPriceList } from "./bundled-prices.js";
import { BUNDLED_VENDOR_ENTRIES } from "./bundled-vendors.js";
import type { Modality } from "./modality.js";
import { bareNameOf, type CatalogSource, type DormantModel, type ModelDefinition, publisherOf, type Upstream } from "./model.js";
import { type FieldPrice, MULTIPLIER_ONE, type PricedFields, type StatedPrices } from "./pricing.js";

/** What the environment says of one vendor; `baseUrl` overrides the vendor's public address. */
export interface VendorSettings {
  readonly apiKey: string | null;
  readonly baseUrl: string | null;
  /** The environment variable that switches it on. */
  readonly variable?: string;
}
export type VendorsSettings = Readonly<Partial<Record<BundledVendor | "ollama", VendorSettings>>>;

/** The models of the vendors that have a key. The price list is only read when there is one. */
export async function loadBundledSource(vendors: VendorsSettings, now: Date): Promise<CatalogSource> {
  const upstreams = BUNDLED_VENDORS.flatMap((vendor) => toUpstream(vendor, vendors[vendor]));
  const isConfigured = new Set(upstreams.map((upstream) => upstream.id));
  const dormant = toDormantModels(vendors, isConfigured);
  if (upstreams.length === 0) return { origin: "bundled", upstreams, models: [], dormant };
  const prices = await readPriceList();
  const offerOf = <Offer>(offers: Readonly<Partial<Record<BundledVendor, Offer>>>) =>
    (Object.entries(offers) as [BundledVendor, Offer][]).find(([vendor]) => isConfigured.has(vendor));
  const texts = BUNDLED_MODELS.flatMap((entry): ModelDefinition[] => {
    const [vendor, name] = offerOf(entry.offers) ?? [];
    return vendor && name ? [toTextModel(entry, vendor, name, listed(prices, vendor, name), now)] : [];
  });
  const media = BUNDLED_MEDIA_MODELS.flatMap((entry): ModelDefinition[] => {
    const [vendor, offer] = offerOf(entry.offers) ?? [];
    return vendor && offer ? [toMediaModel(entry, vendor, offer, prices, now)] : [];
  });
  return { origin: "bundled", upstreams, models: [...texts, ...media], dormant };
}

function toDormantModels(vendors: VendorsSettings, isConfigured: ReadonlySet<string>): DormantModel[] {
  const texts = BUNDLED_MODELS.map((entry) => ({ ...entry, modality: "text" as const, more: entry.aliases }));
  const media = BUNDLED_MEDIA_MODELS.map((entry) => ({ ...entry, more: [] }));
  return [...texts, ...media].flatMap((entry) => {
    const offering = Object.keys(entry.offers) as BundledVendor[];
    if (offering.some((vendor) => isConfigured.has(vendor))) return [];
    const variables = offering.flatMap((vendor) => vendors[vendor]?.variable ?? []);
    return [{ id: entry.id, aliases: [...aliasesOf(entry), ...(entry.more ?? [])], modality: entry.modality, variables }];
  });
}

function toUpstream(vendor: BundledVendor, settings: VendorSettings | undefined): Upstream[] {
  if (!settings?.apiKey) return [];
  const { baseUrl, wireFormat = "openai" } = BUNDLED_VENDOR_ENTRIES[vendor];
  return [{ id: vendor, wireFormat, baseUrl: settings.baseUrl ?? baseUrl, apiKey: settings.apiKey, isTrusted: true }];
}

function toTextModel(entry: BundledModel, vendor: BundledVendor, upstreamModel: string, model: ListedModel, now: Date): ModelDefinition {
  return {
    id: entry.id,
    aliases: [...aliasesOf(entry), ...(entry.aliases ?? [])],
    title: entry.title,
    description: entry.description,
    modality: "text",
    inputModalities: entry.inputs,
    capabilities: entry.capabilities,
    isAlpha: entry.isAlpha,
    contextLength: model.contextLength ?? entry.contextLength,
    upstreamId: vendor,
    upstreamModel,
    ...pricesInForce(model.prices, now),
  };
}

/** The name without its publisher, and the maker's other names with it and without. */
function aliasesOf({ id, otherNames: { snapshots = [], formerly = [] } = {} }: Pick<BundledModel, "id" | "otherNames">): string[] {
  return [bareNameOf(id), ...[...snapshots, ...formerly].flatMap((name) => [name, `${publisherOf(id)}/${name}`])];
}

type Offer = NonNullable<BundledMediaModel["offers"][BundledVendor]>;

function toMediaModel(entry: BundledMediaModel, vendor: BundledVendor, offer: Offer, list: PriceList, now: Date): ModelDefinition {
  const { id, title, description, modality, inputs, imagePricing, contextLength, voices, isAlpha } = entry;
  const prices = offer.price
    ? publishedPrices(modality, offer.price)
    : pricesInForce(listed(list, vendor, offer.name).prices, now, modality);
  return {
    id,
    aliases: aliasesOf(entry),
    title,
    description,
    modality,
    inputModalities: inputs,
    imagePricing,
    contextLength,
    voices,
    isAlpha,
    upstreamId: vendor,
    upstreamModel: offer.name,
    ...prices,
  };
}

function listed(prices: PriceList, vendor: BundledVendor, name: string): ListedModel {
  const model = ownValue(prices[vendor] ?? {}, name);
  if (!model) throw new Error(`The price list knows no price of ${name} at ${vendor}: run npm run prices.`);
  return model;
}

/** The one field that a modality which is not priced by tokens is priced by. */
const UNIT_FIELDS = {
  image: "completionImagePrice",
  video: "completionVideoPrice",
  speech: "completionAudioPrice",
  music: "completionAudioPrice",
  transcription: "promptAudioPrice",
  embedding: "promptTextPrice",
  moderation: "promptTextPrice",
  realtime: "promptTextPrice",
  text: "promptTextPrice",
} as const satisfies Readonly<Record<Modality, keyof StatedPrices>>;

function publishedPrices(modality: Modality, { credits, sizes }: PublishedPrice): Pick<ModelDefinition, "prices" | "pricedFields"> {
  const unitPrice = (each: string): StatedPrices => {
    const price = parsePicocredits(each);
    if (price === null) throw new Error(`A published price is not a decimal: ${each}.`);
    return { [UNIT_FIELDS[modality]]: price };
  };
  if (!sizes) return { prices: unitPrice(credits) };
  const bySize = Object.entries(sizes).map(([size, each]): [string, FieldPrice] => [
    size,
    { prices: unitPrice(each), multiplier: MULTIPLIER_ONE, perRequest: 0n },
  ]);
  const pricedFields: PricedFields = new Map([["size", new Map(bySize)]]);
  return { prices: unitPrice(credits), pricedFields };
}
