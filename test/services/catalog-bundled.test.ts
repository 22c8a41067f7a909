import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { toPriceListText } from "../../scripts/price-list.js";
import { findVendor } from "../../src/providers/ai-sdk/vendors.js";
import { BUNDLED_MEDIA_MODELS } from "../../src/services/catalog/bundled-media.js";
import { BUNDLED_VENDORS, type BundledVendor } from "../../src/services/catalog/bundled-models.js";
import { BUNDLED_VENDOR_ENTRIES } from "../../src/services/catalog/bundled-vendors.js";
import type { Modality } from "../../src/services/catalog/modality.js";
import { type Catalog, loadCatalog } from "../../src/services/catalog.js";
import { usedPriceFields } from "../../src/services/pricing.js";

const clock = { now: () => new Date("2026-11-21T00:00:00Z") };

function load(...vendors: BundledVendor[]): Promise<Catalog> {
  const configured = Object.fromEntries(vendors.map((vendor) => [vendor, { apiKey: "key", baseUrl: null }]));
  return loadCatalog({ modelsFile: null, hasSandboxModels: true, vendors: configured, readEnv: () => null }, clock);
}

it("has a price list that is what the price library says", () => {
  const file = readFileSync(new URL("../../src/services/catalog/bundled-prices.json", import.meta.url), "utf8");

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

    expect(catalog.find(id)).toMatchObject({ upstreamId: vendor, prices });
    expect(Object.keys(catalog.find(id)?.prices ?? {})).toEqual(Object.keys(prices));
  });

  it("give OpenAI's key a default of every modality but music", async () => {
    const catalog = await load("openai");
    const modalities: Modality[] = ["text", "image", "video", "speech", "transcription", "embedding", "realtime", "moderation"];

    for (const modality of modalities) {
      expect(catalog.resolve({ kind: "anonymous" }, undefined, modality), modality).toMatchObject({
        publisher: "openai",
        upstreamId: "openai",
      });
    }
  });
});

describe("the vendors of the bundled catalog", () => {
  it("speak a wire format that there is, at their packages' own addresses", async () => {
    const catalog = await load(...BUNDLED_VENDORS);

    for (const vendor of BUNDLED_VENDORS) {
      const { wireFormat, baseUrl } = catalog.upstream(vendor);
      if (wireFormat === "openai") continue;
      expect(findVendor(wireFormat.replace("ai-sdk:", ""))?.baseUrls[0], vendor).toBe(baseUrl);
    }
    expect(BUNDLED_VENDOR_ENTRIES.anthropic.wireFormat).toBe("ai-sdk:anthropic");
    expect(BUNDLED_VENDOR_ENTRIES.gemini.wireFormat).toBe("ai-sdk:google");
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
