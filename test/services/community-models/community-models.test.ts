/** The rules of registered models: when a change counts, which prices and fallbacks they may have, where their upstreams may be. */
import { describe, expect, it } from "vitest";
import { OutboundGuard } from "../../../src/lib/outbound-guard.js";
import { chargedPrices, PRICE_FIELDS, type StatedPrices } from "../../../src/services/catalog/pricing.js";
import { type FallbackHolder, type FallbackRow, fallbackRefusal } from "../../../src/services/community-models/fallbacks.js";
import { PENDING_CHANGE_MS } from "../../../src/services/community-models/limits.js";
import {
  createCommunityModelInput,
  createEndpointAgentInput,
  updateCommunityModelInput,
} from "../../../src/services/community-models/models-input.js";
import { planTerms, type RequestedTerms, type ScheduledChange } from "../../../src/services/community-models/pending-change.js";
import type { CommunityModelTerms, PendingChange } from "../../../src/services/community-models/record.js";
import { assertHasFields, assertUsedPrices } from "../../../src/services/community-models/terms-input.js";
import { UpstreamUrls } from "../../../src/services/community-models/upstream-url.js";
import { toView } from "../../../src/services/community-models/view.js";
import { parseInput } from "../../../src/services/requests/input.js";

const NOW = new Date("2026-11-22T12:00:00.000Z");
const LATER = new Date("2026-11-22T13:00:00.000Z");
const inThreeHours = (from: Date) => new Date(from.getTime() + PENDING_CHANGE_MS);

const PRIVATE: CommunityModelTerms = { visibility: "private", paidOnly: false, imagePricing: "request", prices: { promptTextPrice: 5n } };
const PUBLIC: CommunityModelTerms = { ...PRIVATE, visibility: "public" };

const scheduled = (change: PendingChange, from = NOW): ScheduledChange => ({ change, effectiveAt: inThreeHours(from) });

function thrown(work: () => unknown): { message: string; param: string | undefined } | null {
  try {
    work();
    return null;
  } catch (error) {
    const { message, param } = error as { message: string; param?: string };
    return { message, param };
  }
}

describe("a change of terms", () => {
  interface Case {
    readonly what: string;
    readonly terms: CommunityModelTerms;
    readonly before?: ScheduledChange;
    readonly wanted: RequestedTerms;
    readonly isRenamed?: boolean;
    readonly expected: { readonly terms?: Partial<CommunityModelTerms>; readonly scheduled: ScheduledChange | null };
  }
  const waitsToBePublic = scheduled({ visibility: "public" });
  const waitsForPrice = scheduled({ prices: { promptTextPrice: "9" } });

  const CASES: readonly Case[] = [
    {
      what: "going public waits",
      terms: PRIVATE,
      wanted: { visibility: "public" },
      expected: { scheduled: scheduled({ visibility: "public" }, LATER) },
    },
    {
      what: "a price of a private model counts at once",
      terms: PRIVATE,
      wanted: { prices: { promptTextPrice: 9n, promptCachedPrice: 1n }, paidOnly: true, imagePricing: "tokens" },
      expected: {
        terms: { prices: { promptTextPrice: 9n, promptCachedPrice: 1n }, paidOnly: true, imagePricing: "tokens" },
        scheduled: null,
      },
    },
    {
      what: "asked again, going public waits no longer than before",
      terms: PRIVATE,
      before: waitsToBePublic,
      wanted: { visibility: "public" },
      expected: { scheduled: waitsToBePublic },
    },
    {
      what: "what has nothing to do with it leaves it alone",
      terms: PRIVATE,
      before: waitsToBePublic,
      wanted: {},
      expected: { scheduled: waitsToBePublic },
    },
    {
      what: "the price that a model has already leaves it alone",
      terms: PRIVATE,
      before: waitsToBePublic,
      wanted: { prices: { promptTextPrice: 5n, promptCachedPrice: null }, paidOnly: false },
      expected: { scheduled: waitsToBePublic },
    },
    {
      what: "another price while it waits to be public counts at once, and the wait begins anew",
      terms: PRIVATE,
      before: waitsToBePublic,
      wanted: { prices: { promptTextPrice: 9n } },
      expected: { terms: { prices: { promptTextPrice: 9n } }, scheduled: scheduled({ visibility: "public" }, LATER) },
    },
    {
      what: "another name while it waits to be public begins the wait anew",
      terms: PRIVATE,
      before: waitsToBePublic,
      wanted: {},
      isRenamed: true,
      expected: { scheduled: scheduled({ visibility: "public" }, LATER) },
    },
    {
      what: "another name of a private model schedules nothing",
      terms: PRIVATE,
      wanted: {},
      isRenamed: true,
      expected: { scheduled: null },
    },
    {
      what: "going private drops going public",
      terms: PRIVATE,
      before: waitsToBePublic,
      wanted: { visibility: "private" },
      expected: { scheduled: null },
    },
    {
      what: "going private is immediate and drops a price that waits",
      terms: PUBLIC,
      before: waitsForPrice,
      wanted: { visibility: "private" },
      expected: { terms: { visibility: "private" }, scheduled: null },
    },
    {
      what: "a price that comes with going private counts at once",
      terms: PUBLIC,
      before: waitsForPrice,
      wanted: { visibility: "private", prices: { promptTextPrice: 7n } },
      expected: { terms: { visibility: "private", prices: { promptTextPrice: 7n } }, scheduled: null },
    },
    { what: "public once more changes nothing", terms: PUBLIC, wanted: { visibility: "public" }, expected: { scheduled: null } },
    ...(
      [
        [{ prices: { promptTextPrice: 9n } }, { prices: { promptTextPrice: "9" } }],
        [{ prices: { promptTextPrice: 1n } }, { prices: { promptTextPrice: "1" } }],
        [{ prices: { promptTextPrice: null } }, { prices: { promptTextPrice: null } }],
        [{ prices: { promptCachedPrice: 5n } }, { prices: { promptCachedPrice: "5" } }],
        [{ paidOnly: true }, { paidOnly: true }],
        [{ imagePricing: "tokens" }, { imagePricing: "tokens" }],
      ] as const
    ).map(([wanted, change]) => ({
      what: `on a public model ${Object.keys(wanted).join()} waits: ${JSON.stringify(change)}`,
      terms: PUBLIC,
      wanted,
      expected: { scheduled: scheduled(change, LATER) },
    })),
    {
      what: "the price that it has schedules nothing",
      terms: PUBLIC,
      wanted: { prices: { promptTextPrice: 5n } },
      expected: { scheduled: null },
    },
    {
      what: "what has nothing to do with a price that waits leaves it alone",
      terms: PUBLIC,
      before: waitsForPrice,
      wanted: {},
      expected: { scheduled: waitsForPrice },
    },
    {
      what: "the price that waits, sent again, leaves it alone",
      terms: PUBLIC,
      before: waitsForPrice,
      wanted: { prices: { promptTextPrice: 9n } },
      expected: { scheduled: waitsForPrice },
    },
    {
      what: "another price beside the one that waits begins the wait anew for both",
      terms: PUBLIC,
      before: waitsForPrice,
      wanted: { prices: { completionTextPrice: 3n } },
      expected: { scheduled: scheduled({ prices: { promptTextPrice: "9", completionTextPrice: "3" } }, LATER) },
    },
    {
      what: "a dearer one in its place begins the wait anew",
      terms: PUBLIC,
      before: waitsForPrice,
      wanted: { prices: { promptTextPrice: 99n } },
      expected: { scheduled: scheduled({ prices: { promptTextPrice: "99" } }, LATER) },
    },
    {
      what: "taken back, nothing waits",
      terms: PUBLIC,
      before: waitsForPrice,
      wanted: { prices: { promptTextPrice: 5n } },
      expected: { scheduled: null },
    },
    {
      what: "taken back in part, the rest waits anew: what a price falls back to may be dearer than was announced",
      terms: PUBLIC,
      before: scheduled({ prices: { promptTextPrice: "9", promptCachedPrice: "5" } }),
      wanted: { prices: { promptCachedPrice: null } },
      expected: { scheduled: scheduled({ prices: { promptTextPrice: "9" } }, LATER) },
    },
  ];

  it.each(CASES.map((each) => [each.what, each] as const))("%s", (_what, { terms, before = null, wanted, isRenamed, expected }) => {
    const plan = planTerms(terms, before, wanted, LATER, isRenamed);

    expect(plan).toEqual({ terms: { ...terms, ...expected.terms }, scheduled: expected.scheduled });
  });
});

const PICO = 10n ** 12n;
const ROW: FallbackRow = {
  ...{
    id: "row",
    accountId: "somebody",
    type: "proxy",
    name: "one",
    title: "One",
    description: null,
    modality: "text",
    visibility: "public",
  },
  ...{
    requiredSafetyFeatures: [],
    inputModalities: ["text"],
    outputModalities: ["text"],
    api: "chat_completions",
    url: "https://x.example/v1",
  },
  ...{
    upstreamModel: "m",
    bearerToken: null,
    advertisedCapabilities: [],
    advertisedContextLength: null,
    perUserRpm: null,
    paidOnly: false,
  },
  ...{ imagePricing: "request", fallbacks: [], pending: null, pendingEffectiveAt: null, createdAt: NOW, updatedAt: NOW },
  ...(Object.fromEntries(PRICE_FIELDS.map((field) => [field, null])) as Record<(typeof PRICE_FIELDS)[number], bigint | null>),
  account: { handle: "somebody" },
};

describe("a fallback", () => {
  const prices = { promptTextPrice: 2n, completionTextPrice: 4n };
  const holder: FallbackHolder = {
    ...{ id: "own", accountId: "owner", modelId: "community/owner/own", modality: "text" },
    terms: [{ ...PUBLIC, prices }],
  };
  const image = { ...holder, modality: "image" } as const;

  it.each<[string, Partial<FallbackRow>, FallbackHolder?]>([
    ["of the same prices", prices],
    ["that is cheaper", { promptTextPrice: 1n }],
    ["whose kinds fall back to a price below", { promptTextPrice: 2n, completionTextPrice: 4n, completionReasoningPrice: 4n }],
    ["that is the owner's own and private", { accountId: "owner", visibility: "private" }],
    ["that has become public just now", { visibility: "private", pending: { visibility: "public" }, pendingEffectiveAt: NOW }],
    [
      "priced as this one",
      { modality: "image", completionImagePrice: 2n },
      { ...image, terms: [{ ...PUBLIC, prices: { completionImagePrice: 2n } }] },
    ],
  ])("may be a model %s", (_what, row, of = holder) => {
    expect(fallbackRefusal(of, { ...ROW, ...row }, NOW)).toBeNull();
  });

  it.each<[string, Partial<FallbackRow>, string, FallbackHolder?]>([
    ["another's private model", { visibility: "private" }, "private"],
    ["one that is public in a moment", { visibility: "private", pending: { visibility: "public" }, pendingEffectiveAt: LATER }, "private"],
    ["itself", { id: "own", accountId: "owner" }, "own fallback"],
    ["an endpoint agent", { type: "endpoint_agent" }, "agent"],
    ["a prompt agent", { type: "prompt_agent" }, "agent"],
    ["a model of another modality", { modality: "image" }, "modality image"],
    ["a dearer model", { promptTextPrice: 3n }, "promptTextPrice"],
    ["one whose cached input is dearer than this one's, which falls back", { promptCachedPrice: 3n }, "promptCachedPrice"],
    ["one that is dearer by its default", { ...prices, completionTextPrice: 5n }, "completionTextPrice"],
    ["one that will be dearer", { ...prices, pending: { prices: { promptTextPrice: "3" } }, pendingEffectiveAt: LATER }, "promptTextPrice"],
    [
      "one that is dearer than this one will be",
      { promptTextPrice: 2n },
      "promptTextPrice",
      { ...holder, terms: [...holder.terms, { ...PUBLIC, prices: {} }] },
    ],
    ["one whose pictures are priced otherwise", { modality: "image", imagePricing: "tokens" }, "imagePricing", image],
  ])("may not be %s", (_what, row, reason, of = holder) => {
    expect(fallbackRefusal(of, { ...ROW, ...row }, NOW)).toContain(reason);
  });

  it("may not be a missing model", () => {
    expect(fallbackRefusal(holder, undefined, NOW)).toContain("The model does not exist");
  });
});

describe("the prices that a model may state", () => {
  const USED = {
    text: PRICE_FIELDS.filter((field) => !["completionImagePrice", "completionVideoPrice"].includes(field)),
    image: ["completionImagePrice"],
    "image by tokens": ["promptTextPrice", "promptImagePrice", "completionImagePrice"],
    video: ["completionVideoPrice"],
    transcription: ["promptAudioPrice"],
    speech: ["completionAudioPrice"],
    embedding: ["promptTextPrice"],
  } as const;

  it.each(Object.entries(USED))("of %s", (kind, used) => {
    const modality = kind.split(" ")[0] as FallbackRow["modality"];
    const imagePricing = kind.endsWith("tokens") ? "tokens" : "request";
    const refused = (price: bigint) =>
      PRICE_FIELDS.filter((field) => {
        const terms = { ...PUBLIC, imagePricing, prices: { [field]: price } } as const;
        const error = thrown(() => assertUsedPrices(modality, { terms, scheduled: null }));
        if (error) expect(error.param).toBe(field);
        return error !== null;
      });

    expect(refused(1n)).toEqual(PRICE_FIELDS.filter((field) => !(used as readonly string[]).includes(field)));
    expect(refused(0n)).toEqual([]);
  });

  it("are looked at as they will be, too", () => {
    const plan = { terms: { ...PUBLIC, prices: {} }, scheduled: scheduled({ prices: { completionVideoPrice: "1" } }) };

    expect(thrown(() => assertUsedPrices("text", plan))?.param).toBe("completionVideoPrice");
  });

  it.each<[string, StatedPrices, FallbackRow["modality"], StatedPrices]>([
    [
      "fall back to the base of their side",
      { promptTextPrice: 1n, completionTextPrice: 2n },
      "text",
      {
        promptTextPrice: 1n,
        promptCachedPrice: 1n,
        promptCacheWritePrice: 1n,
        promptAudioPrice: 1n,
        promptImagePrice: 1n,
        completionTextPrice: 2n,
        completionReasoningPrice: 2n,
        completionAudioPrice: 2n,
      },
    ],
    [
      "stay 0 when they are stated as 0",
      { promptTextPrice: 1n, promptCachedPrice: 0n },
      "text",
      { promptTextPrice: 1n, promptCacheWritePrice: 1n, promptAudioPrice: 1n, promptImagePrice: 1n },
    ],
    [
      "are 0 where the modality does not use them",
      { completionAudioPrice: 3n, promptTextPrice: 9n },
      "speech",
      { completionAudioPrice: 3n },
    ],
  ])("%s", (_what, stated, modality, expected) => {
    const all = Object.fromEntries(PRICE_FIELDS.map((field) => [field, expected[field] ?? 0n]));

    expect(chargedPrices(stated, { modality, imagePricing: "request" })).toEqual(all);
  });
});

describe("the preview of a scheduled change", () => {
  it("includes the effects: a price that falls back to the changed one changes with it", () => {
    const row = { ...ROW, promptTextPrice: 1n, pending: { paidOnly: true, prices: { promptTextPrice: "2" } }, pendingEffectiveAt: LATER };

    const [before, after] = [toView(row, "somebody", NOW), toView(row, "somebody", LATER)];

    const changed = { promptTextPrice: 2n, promptCachedPrice: 2n, promptCacheWritePrice: 2n, promptAudioPrice: 2n, promptImagePrice: 2n };
    expect(before).toMatchObject({ paidOnly: false, prices: { promptTextPrice: 1n, promptCachedPrice: 1n } });
    expect(before.pending).toEqual({ effectiveAt: LATER, visibility: null, paidOnly: true, imagePricing: null, prices: changed });
    expect(after).toMatchObject({ paidOnly: true, prices: { promptTextPrice: 2n, promptCachedPrice: 2n }, pending: null });
  });
});

const TEXT = { name: "n", title: "t", bearerToken: "b", api: "chat_completions", url: "https://x.example/v1/chat" };
const IMAGE = { name: "n", title: "t", bearerToken: "b", modality: "image", baseUrl: "https://x.example/v1" };
const FALLBACK = "community/somebody/one";

describe("the input", () => {
  it("of a text model has the defaults of the specification", () => {
    expect(parseInput(createCommunityModelInput, TEXT)).toEqual({
      ...{ ...TEXT, modality: "text", description: null, visibility: "private", requiredSafetyFeatures: [] },
      ...{ imagePricing: "request", advertised: null, perUserRpm: null, paidOnly: false, fallbacks: [] },
    });
  });

  it.each<[string, object]>([
    ["the longest name", { name: "a".repeat(120) }],
    ["every character of a name", { name: "aZ09._:-" }],
    ["the longest title", { title: "t".repeat(42) }],
    ["the longest description", { description: "d".repeat(1_000) }],
    ["no description", { description: null }],
    ["the longest credential", { bearerToken: "b".repeat(4_096) }],
    ["the longest upstreamModel", { upstreamModel: "m".repeat(253) }],
    ["every safety feature", { requiredSafetyFeatures: ["privacy", "secrets", "sexual", "violence", "shield"] }],
    ["every kind of input", { inputModalities: ["text", "image", "audio", "video"] }],
    ["the largest context", { advertised: { capabilities: ["tool_calling", "reasoning"], contextLength: 10_000_000 } }],
    ["the smallest context", { advertised: { contextLength: 1 } }],
    ["three fallbacks", { fallbacks: [FALLBACK, `${FALLBACK}2`, `${FALLBACK}3`] }],
    ["half a request a minute", { perUserRpm: 0.5 }],
    ["the smallest price", { promptTextPrice: 1e-12 }],
    ["the largest price", { promptTextPrice: 1_000 }],
    ["a price of nothing", { promptTextPrice: 0 }],
    ["no price", { promptTextPrice: null }],
  ])("takes %s", (_what, more) => {
    expect(parseInput(createCommunityModelInput, { ...TEXT, ...more })).toMatchObject({ name: expect.any(String) });
    expect(parseInput(updateCommunityModelInput, more)).toEqual(expect.any(Object));
  });

  it.each<[string, object, string]>([
    ["a name of 121 characters", { name: "a".repeat(121) }, "name"],
    ["an empty name", { name: "" }, "name"],
    ["a name with a space", { name: "a b" }, "name"],
    ["a name with a slash", { name: "a/b" }, "name"],
    ["a name with an emoji", { name: "a😀" }, "name"],
    ["a title of 43 characters", { title: "t".repeat(43) }, "title"],
    ["a blank title", { title: " " }, "title"],
    ["a description of 1,001 characters", { description: "d".repeat(1_001) }, "description"],
    ["a NUL in a description", { description: "\0" }, "description"],
    ["another visibility", { visibility: "hidden" }, "visibility"],
    ["an empty credential", { bearerToken: "" }, "bearerToken"],
    ["a credential of 4,097 characters", { bearerToken: "b".repeat(4_097) }, "bearerToken"],
    ["a credential with its scheme", { bearerToken: "Bearer abc" }, "bearerToken"],
    ["a credential that would end the header", { bearerToken: "a\r\nX-Other: b" }, "bearerToken"],
    ["an upstreamModel of 254 characters", { upstreamModel: "m".repeat(254) }, "upstreamModel"],
    ["an empty upstreamModel", { upstreamModel: "" }, "upstreamModel"],
    [
      "six safety features",
      { requiredSafetyFeatures: ["privacy", "secrets", "sexual", "violence", "shield", "privacy"] },
      "requiredSafetyFeatures",
    ],
    ["a safety feature twice", { requiredSafetyFeatures: ["privacy", "privacy"] }, "requiredSafetyFeatures.1"],
    ["an unknown safety feature", { requiredSafetyFeatures: ["hate"] }, "requiredSafetyFeatures.0"],
    ["no kind of input", { inputModalities: [] }, "inputModalities"],
    ["a kind of input that there is not", { inputModalities: ["embedding"] }, "inputModalities.0"],
    ["a context of 0", { advertised: { contextLength: 0 } }, "advertised.contextLength"],
    ["a context of 10,000,001", { advertised: { contextLength: 10_000_001 } }, "advertised.contextLength"],
    ["half a token of context", { advertised: { contextLength: 0.5 } }, "advertised.contextLength"],
    ["an unknown capability", { advertised: { capabilities: ["tools"] } }, "advertised.capabilities.0"],
    ["more than is advertised", { advertised: { speed: 1 } }, "advertised.speed"],
    ["four fallbacks", { fallbacks: [1, 2, 3, 4].map((digit) => FALLBACK + digit) }, "fallbacks"],
    ["a fallback twice", { fallbacks: [FALLBACK, FALLBACK] }, "fallbacks.1"],
    ["a fallback that is not registered", { fallbacks: ["acme/chat"] }, "fallbacks.0"],
    ["perUserRpm 0", { perUserRpm: 0 }, "perUserRpm"],
    ["perUserRpm -1", { perUserRpm: -1 }, "perUserRpm"],
    ["perUserRpm Infinity", { perUserRpm: Number.POSITIVE_INFINITY }, "perUserRpm"],
    ["a price of -1", { promptTextPrice: -1 }, "promptTextPrice"],
    ["a price that is no number", { promptTextPrice: Number.NaN }, "promptTextPrice"],
    ["a price as text", { promptTextPrice: "1" }, "promptTextPrice"],
    ["a price of 13 decimals", { promptTextPrice: 1e-13 }, "promptTextPrice"],
    ["a sum of floats", { promptTextPrice: 0.1 + 0.2 }, "promptTextPrice"],
    ["a price above 1,000", { promptTextPrice: 1_000.000000000001 }, "promptTextPrice"],
    ["picocredits below 0", { promptTextPrice: -1n }, "promptTextPrice"],
    ["paidOnly as text", { paidOnly: "true" }, "paidOnly"],
    ["another imagePricing", { imagePricing: "pixels" }, "imagePricing"],
    ["another api", { api: "completions" }, "api"],
    ["a field that there is not", { owner: "x" }, "owner"],
  ])("refuses %s", (_what, more, param) => {
    expect(thrown(() => parseInput(createCommunityModelInput, { ...TEXT, ...more }))?.param).toBe(param);
    expect(thrown(() => parseInput(updateCommunityModelInput, more))?.param).toBe(param);
  });

  it.each<[string, object, string]>([
    ...["name", "title", "bearerToken", "api", "url"].map((field): [string, object, string] => [
      `${field} of a text model`,
      { ...TEXT, [field]: undefined },
      field,
    ]),
    ...["name", "title", "bearerToken", "baseUrl"].map((field): [string, object, string] => [
      `${field} of an image model`,
      { ...IMAGE, [field]: undefined },
      field,
    ]),
    ["a modality that there is: music", { ...IMAGE, modality: "music" }, "modality"],
    ["no url of an image model", { ...IMAGE, url: "https://x.example" }, "url"],
    ["no api of an image model", { ...IMAGE, api: "responses" }, "api"],
    ["no baseUrl of a text model", { ...TEXT, baseUrl: "https://x.example" }, "baseUrl"],
  ])("asks for %s", (_what, body, param) => {
    expect(thrown(() => parseInput(createCommunityModelInput, body))?.param).toBe(param);
  });

  it("names the first that is there twice, and not the ten thousand others", () => {
    const found = updateCommunityModelInput.safeParse({ inputModalities: Array.from({ length: 10_000 }, () => "text") });

    expect(found.error?.issues.map(({ path }) => path.join("."))).toEqual(["inputModalities.1"]);
  });

  it("never repeats a credential", () => {
    const error = thrown(() => parseInput(createCommunityModelInput, { ...TEXT, bearerToken: "very secret" }));

    expect(JSON.stringify(error)).not.toContain("very secret");
  });

  it("of an endpoint agent has the decided defaults", () => {
    const body = { name: "n", title: "t", api: "responses", url: "https://x.example/agent" };

    expect(parseInput(createEndpointAgentInput, body)).toEqual({
      ...{ ...body, description: null, visibility: "private", requiredSafetyFeatures: [] },
      ...{ inputModalities: ["text"], outputModalities: ["text"], perUserRpm: null },
    });
    expect(
      parseInput(createEndpointAgentInput, { ...body, outputModalities: ["text", "image", "audio", "video", "embedding", "3d"] }),
    ).toBeDefined();
    for (const field of ["bearerToken", "promptTextPrice", "paidOnly", "fallbacks", "advertised", "imagePricing", "modality", "baseUrl"]) {
      expect(thrown(() => parseInput(createEndpointAgentInput, { ...body, [field]: "x" }))?.param).toBe(field);
    }
    for (const field of ["inputModalities", "outputModalities"]) {
      expect(thrown(() => parseInput(createEndpointAgentInput, { ...body, [field]: [] }))?.param).toBe(field);
      expect(thrown(() => parseInput(createEndpointAgentInput, { ...body, [field]: ["text", "text"] }))?.param).toBe(`${field}.1`);
    }
    expect(thrown(() => parseInput(createEndpointAgentInput, { ...body, inputModalities: ["3d"] }))?.param).toBe("inputModalities.0");
  });

  it.each<[string, Partial<FallbackRow>, object, string | undefined]>([
    ["a text model has no baseUrl", {}, { baseUrl: "x" }, "baseUrl"],
    ["a text model has no outputModalities", {}, { outputModalities: ["text"] }, "outputModalities"],
    ["an image model has no url", { modality: "image" }, { url: "x" }, "url"],
    ["an image model has no api", { modality: "image" }, { api: "responses" }, "api"],
    ["an endpoint agent has no credential", { type: "endpoint_agent" }, { bearerToken: "x" }, "bearerToken"],
    ["an endpoint agent has no price", { type: "endpoint_agent" }, { completionTextPrice: 0n }, "completionTextPrice"],
    ["an endpoint agent has no fallbacks", { type: "endpoint_agent" }, { fallbacks: [] }, "fallbacks"],
    ["an agent of the gateway's is changed elsewhere", { type: "prompt_agent" }, { title: "x" }, undefined],
  ])("%s", (_what, row, input, param) => {
    const error = thrown(() => assertHasFields({ ...ROW, ...row }, input));

    expect(error).not.toBeNull();
    expect(error?.param).toBe(param);
  });
});

describe("the address of an upstream", () => {
  const guard = new OutboundGuard({
    allowHosts: ["127.0.0.1", "own.example"],
    resolve: async (host) => [{ address: host.startsWith("inside") ? "10.0.0.1" : "93.184.216.34", family: 4 }],
  });
  const urls = new UpstreamUrls(guard, () => ({
    baseUrl: "https://gateway.example",
    authUrl: "http://own.example:4000",
    mediaUrl: "https://media.gateway.example/files",
  }));
  const problem = (url: string) =>
    urls.check(url, "url").then(
      () => null,
      (error: { code: string; param: string }) => `${error.code} ${error.param}`,
    );

  it.each([
    "https://upstream.example/v1/chat/completions?version=2",
    "https://upstream.example:8443/v1",
    "http://127.0.0.1:9900/v1",
    "http://own.example:9900/v1",
    "https://other.gateway.example/",
  ])("may be %s", async (url) => {
    expect(await urls.check(url, "url")).toBe(url);
  });

  it.each([
    ...[
      "http://localhost",
      "https://localhost/v1",
      "http://upstream.example/v1",
      "https://127.1.1.1",
      "https://2130706434",
      "https://0x7f.2",
    ],
    ...["https://[::1]/", "https://[::ffff:7f00:1]", "https://10.0.0.1/", "https://169.254.169.254/latest", "https://inside.example/v1"],
    ...["https://user:password@upstream.example/", "https://upstream.example:22/", "https://upstream.example/#fragment", "https://single/"],
    ...[
      "file:///etc/passwd",
      "data:text/plain,x",
      "gopher://upstream.example/",
      "ftp://upstream.example/",
      "javascript:alert(1)",
      "//x.example",
    ],
    ...["https://gateway.example/v1/chat/completions", "https://GATEWAY.example:8443/", "https://media.gateway.example/upload"],
    ...[
      "http://own.example:4000/v1/chat/completions",
      `https://upstream.example/${"a".repeat(2_048)}`,
      "https://upstream.example\\@x.example",
    ],
  ])("may not be %s", async (url) => {
    expect(await problem(url)).toBe("BAD_REQUEST url");
  });
});

it("counts prices in picocredits", () => {
  expect(parseInput(createCommunityModelInput, { ...TEXT, promptTextPrice: 0.00000015, completionTextPrice: 1 })).toMatchObject({
    promptTextPrice: 150_000n,
    completionTextPrice: PICO,
  });
});
