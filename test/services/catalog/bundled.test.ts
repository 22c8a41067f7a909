import { readFileSync } from "node:fs";
import { calcPrice } from "@pydantic/genai-prices";
import { describe, expect, it } from "vitest";
import { toPriceListText } from "../../../scripts/price-list.js";
import { findVendor } from "../../../src/providers/ai-sdk/vendors.js";
import { BUNDLED_VENDOR_ENTRIES, type ListedModel, pricesInForce } from "../../../src/services/catalog/bundled.js";
import { BUNDLED_MEDIA_MODELS } from "../../../src/services/catalog/bundled-media.js";
import { BUNDLED_MODELS } from "../../../src/services/catalog/bundled-other-models.js";
import { BUNDLED_VENDORS, type BundledVendor } from "../../../src/services/catalog/bundled-vendors.js";
import { type Catalog, loadCatalog } from "../../../src/services/catalog/catalog.js";
import type { Modality } from "../../../src/services/catalog/modality.js";
import { publisherOf } from "../../../src/services/catalog/model.js";
import { BILLED_KINDS, type RateCard, toRateCard, usedPriceFields } from "../../../src/services/catalog/pricing.js";

/**
 * The default models of the official clients, LangChain, LlamaIndex, LiteLLM, the AI SDK, Instructor and their guides.
 */
const DEFAULTS_OF_LIBRARIES = [
  [
    "gpt-3.5-turbo",
    "gpt-4",
    "gpt-4-turbo",
    "gpt-4o",
    "gpt-4o-mini",
    "gpt-4.1",
    "gpt-4.1-mini",
    "gpt-5",
    "gpt-5-mini",
    "gpt-5-nano",
    "o3",
    "o4-mini",
  ],
  ["gpt-4o-2024-08-06", "gpt-4o-2024-11-20", "gpt-4o-mini-2024-07-18", "openai/gpt-4o", "openai/gpt-4o-mini"],
  ["text-embedding-ada-002", "text-embedding-3-small", "text-embedding-3-large", "tts-1", "tts-1-hd", "whisper-1"],
  ["dall-e-2", "dall-e-3", "gpt-image-1", "gpt-realtime", "gpt-4o-realtime-preview", "text-moderation-latest", "omni-moderation-latest"],
  ["claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022", "claude-3-7-sonnet-latest", "claude-sonnet-4-20250514", "claude-sonnet-4-0"],
  ["claude-sonnet-4-5", "claude-haiku-4-5", "claude-haiku-4-5-20251001", "claude-opus-4-5", "claude-opus-4-1"],
  ["gemini-2.0-flash", "gemini-2.5-flash", "gemini-2.5-flash-lite", "gemini-2.5-pro", "gemini-embedding-001"],
  ["mistral-small-latest", "mistral-large-latest", "mistral-medium-latest", "codestral-latest", "mistral-embed"],
  ["deepseek-chat", "grok-3", "grok-4", "llama-3.3-70b-versatile", "llama-3.1-8b-instant", "command-r", "command-r-plus", "command-a"],
].flat();

const clock = { now: () => new Date("2026-11-21T00:00:00Z") };

function load(...vendors: BundledVendor[]): Promise<Catalog> {
  const configured = Object.fromEntries(vendors.map((vendor) => [vendor, { apiKey: "key", baseUrl: null }]));
  return loadCatalog({ modelsFile: null, hasSandboxModels: true, vendors: configured, readEnv: () => null }, clock);
}

it("has the prices of the price library", () => {
  const file = readFileSync(new URL("../../../src/services/catalog/bundled-prices.json", import.meta.url), "utf8");

  expect(file, "run npm run prices").toBe(toPriceListText());
});

describe("prices that depend on the request", () => {
  it("are those of the price library for long prompts and for caches of an hour", async () => {
    const catalog = await load(...BUNDLED_VENDORS);

    expect(catalog.find("google/gemini-3.1-pro-preview")?.longContext).toEqual([
      {
        abovePromptTokens: 200_000,
        prices: { promptTextPrice: 4_000_000n, promptCachedPrice: 400_000n, completionTextPrice: 18_000_000n },
      },
    ]);
    expect(catalog.find("openai/gpt-5.6-luna")?.longContext).toMatchObject([
      { abovePromptTokens: 271_999, prices: { promptTextPrice: 400_000n, completionTextPrice: 1_800_000n } },
    ]);
    // Its long prompts had a price of their own until March 2026.
    expect(catalog.find("anthropic/claude-sonnet-4-6")).toMatchObject({
      longContext: [],
      prices: { promptCacheWritePrice: 3_750_000n, promptCacheWriteHourPrice: 6_000_000n },
    });
  });

  it("are those of each size of a video that has one", async () => {
    const sizes = (await load("openai")).find("openai/sora-2-pro")?.pricedFields.get("size");

    expect([...(sizes ?? [])].map(([size, { prices }]) => [size, prices.completionVideoPrice])).toEqual([
      ["1280x720", 300_000_000_000n],
      ["720x1280", 300_000_000_000n],
      ["1792x1024", 500_000_000_000n],
      ["1024x1792", 500_000_000_000n],
    ]);
  });
});

describe("the media models of the bundled catalog", () => {
  it("have a vendor's price in the units of their modality, from the price library or with its source and day", async () => {
    const catalog = await load(...BUNDLED_VENDORS);

    for (const { id, offers } of BUNDLED_MEDIA_MODELS) {
      const model = catalog.find(id);
      if (model === null) throw new Error(`${id} is not listed`);
      const stated = Object.keys(model.prices);
      expect(stated, id).not.toEqual([]);
      expect(usedPriceFields(model), id).toEqual(expect.arrayContaining(stated));
      expect(model.flags.paid, id).toBe(model.modality !== "moderation");
      for (const { price } of Object.values(offers)) if (price) expect(price.source, id).toMatch(/^https:\/\/\S+ ?.*\b20\d\d/);
    }
  });

  it.each<[BundledVendor, string, object]>([
    // Tokens at 5, 8 and 30 a million.
    ["openai", "openai/gpt-image-2", { promptTextPrice: 5_000_000n, promptImagePrice: 8_000_000n, completionImagePrice: 30_000_000n }],
    // Pictures have a price of their own beside the text's.
    ["gemini", "google/gemini-3-pro-image", { promptTextPrice: 2_000_000n, completionImagePrice: 120_000_000n }],
    // 0.36 an hour is 0.0001 a second; 0.27 is 0.000075.
    ["openai", "openai/whisper-1", { promptAudioPrice: 100_000_000n }],
    ["openai", "openai/gpt-transcribe", { promptAudioPrice: 75_000_000n }],
    ["openai", "openai/tts-1", { completionAudioPrice: 15_000_000n }],
    ["openai", "openai/text-embedding-3-small", { promptTextPrice: 20_000n }],
    ["openai", "openai/sora-2", { completionVideoPrice: 100_000_000_000n }],
    ["elevenlabs", "elevenlabs/eleven_flash_v2_5", { completionAudioPrice: 50_000_000n }],
    ["deepgram", "deepgram/nova-3", { promptAudioPrice: 153_333_333n }],
    ["replicate", "black-forest-labs/flux-schnell", { completionImagePrice: 3_000_000_000n }],
    ["fal", "black-forest-labs/flux-kontext-pro", { completionImagePrice: 40_000_000_000n }],
  ])("of %s: %s has its price", async (vendor, id, prices) => {
    const catalog = await load(vendor);

    expect(catalog.find(id)).toMatchObject({ routes: [{ upstreamId: vendor }], prices });
    expect(Object.keys(catalog.find(id)?.prices ?? {})).toEqual(Object.keys(prices));
  });

  it("give OpenAI's key a default of every modality but music", async () => {
    const catalog = await load("openai");
    const modalities: Modality[] = ["text", "image", "video", "speech", "transcription", "embedding", "realtime", "moderation"];

    for (const modality of modalities) {
      expect(catalog.resolve({ kind: "anonymous" }, undefined, modality), modality).toMatchObject({
        publisher: "openai",
        routes: [{ upstreamId: "openai" }],
      });
    }
  });
});

/** Retired names that the vendor itself redirected to this model: the library's price is that of the retired model. */
const MOVED_BY_THEIR_VENDOR = new Set(["mistral-small-latest", "deepseek-chat", "deepseek-reasoner"]);

function ratesAt(card: RateCard, promptTokens: number) {
  return card.longContext?.find(({ abovePromptTokens }) => promptTokens > abovePromptTokens)?.rates ?? card;
}

describe("the other names of bundled models", () => {
  /** What the library asks for a name at a vendor, as the catalog would list it. */
  const pricesOf = (vendor: BundledVendor, name: string, modality: Modality) => {
    const { priceListId } = BUNDLED_VENDOR_ENTRIES[vendor];
    const found = priceListId === undefined ? null : calcPrice({}, name, { providerId: priceListId });
    return found && pricesInForce(found.model.prices as ListedModel["prices"], clock.now(), modality);
  };

  it("cost as much as the model when they are dated, and never less when it is their successor", async () => {
    const catalog = await load(...BUNDLED_VENDORS);
    const entries = [...BUNDLED_MODELS.map((entry) => ({ ...entry, modality: "text" as const })), ...BUNDLED_MEDIA_MODELS];
    let compared = 0;
    for (const { id, modality, otherNames: { snapshots = [], formerly = [] } = {} } of entries) {
      const model = catalog.find(id);
      if (!model) throw new Error(`${id} is not listed`);
      for (const name of [...snapshots, ...formerly]) {
        expect([catalog.find(name)?.id, catalog.find(`${publisherOf(id)}/${name}`)?.id], name).toEqual([id, id]);
        expect(/\d{4}-\d{2}-\d{2}$|\d{8}$/.test(name), `${name} is dated`).toBe(snapshots.includes(name));
        const old = pricesOf(model.routes[0].upstreamId as BundledVendor, name, modality);
        if (!old || Object.keys(old.prices).length === 0 || MOVED_BY_THEIR_VENDOR.has(name)) continue;
        compared += 1;
        if (snapshots.includes(name)) expect(model.prices, `${name} is priced as ${id}`).toEqual(old.prices);
        const rates = toRateCard(old.prices, model, old.longContext);
        for (const promptTokens of [0, 150_000, 250_000, 500_000]) {
          const [own, others] = [ratesAt(model.rates, promptTokens), ratesAt(rates, promptTokens)];
          for (const kind of BILLED_KINDS) {
            // One that has no price for pictures took none.
            if (kind === "inputImageTokens" && old.prices.promptImagePrice === undefined) continue;
            expect(own[kind] <= others[kind], `${id} costs no more than ${name}: ${kind} of ${promptTokens} tokens`).toBe(true);
          }
        }
      }
    }
    expect(compared).toBeGreaterThan(50);
  });

  it("are those of the library's defaults, and none of a snapshot with another price", async () => {
    const catalog = await load(...BUNDLED_VENDORS);

    for (const name of DEFAULTS_OF_LIBRARIES) expect(catalog.find(name), name).not.toBeNull();
    expect(catalog.find("gpt-4o-2024-05-13")).toBeNull();
    expect(catalog.find("gpt-3.5-turbo-1106")).toBeNull();
  });
});

describe("the vendors of the bundled catalog", () => {
  it("use a supported wire format, at their packages' own addresses", async () => {
    const catalog = await load(...BUNDLED_VENDORS);

    for (const vendor of BUNDLED_VENDORS) {
      const { wireFormat, baseUrl } = catalog.upstream(vendor);
      if (wireFormat === "openai" || wireFormat === "anthropic" || wireFormat === "gemini") continue;
      expect(findVendor(wireFormat.replace("ai-sdk:", ""))?.baseUrls[0], vendor).toBe(baseUrl);
    }
    expect(BUNDLED_VENDOR_ENTRIES.anthropic.wireFormat).toBe("anthropic");
    expect(BUNDLED_VENDOR_ENTRIES.gemini.wireFormat).toBe("gemini");
  });

  it("offer nothing that their package cannot do", async () => {
    const ability = { text: "chat", moderation: null, realtime: null, music: null } as const;
    for (const vendor of BUNDLED_VENDORS) {
      const row = findVendor((BUNDLED_VENDOR_ENTRIES[vendor].wireFormat ?? "").replace("ai-sdk:", ""));
      if (row === null) continue;
      for (const { id, modality, offers } of BUNDLED_MEDIA_MODELS) {
        if (!offers[vendor]) continue;
        const name = modality in ability ? ability[modality as keyof typeof ability] : modality;
        expect(row, id).toHaveProperty(String(name));
      }
    }
  });
});
