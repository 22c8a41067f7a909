import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseConfig } from "../../../src/config/config.js";
import type { Caller, KeyCaller, RequestContext } from "../../../src/context.js";
import { AppError } from "../../../src/errors.js";
import { Catalog, type CatalogSettings, loadCatalog } from "../../../src/services/catalog/catalog.js";
import type { Modality } from "../../../src/services/catalog/modality.js";
import { ModelsFileError } from "../../../src/services/catalog/models-file.js";
import { toCatalogEntry, toOpenAiModel } from "../../../src/services/catalog/view.js";

const ANONYMOUS: Caller = { kind: "anonymous" };
const clock = { now: () => new Date("2026-11-21T12:00:00Z") };
const log = pino({ level: "silent" });

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-catalog-"));
});
afterAll(() => rm(folder, { recursive: true }));

function contextOf(caller: Caller): RequestContext {
  return { caller, requestId: "test", clientAddress: "127.0.0.1", signal: new AbortController().signal, log };
}

function keyFor(allowedModels: readonly string[] | null): KeyCaller {
  return {
    kind: "key",
    accountId: "account",
    isOperator: false,
    apiKeyId: "key",
    apiKeyName: "key",
    apiKeyType: "secret",
    permissions: new Set(),
    modelLists: allowedModels === null ? [] : [allowedModels],
    hasBudget: false,
    expiresAt: null,
  };
}

const ENVIRONMENT: Readonly<Record<string, string>> = { ACME_KEY: "acme-secret" };
const WITHOUT_FILE: CatalogSettings = {
  modelsFile: null,
  hasSandboxModels: true,
  vendors: {},
  readEnv: (name) => ENVIRONMENT[name] ?? null,
};

let files = 0;
async function loadText(text: string, settings: Partial<CatalogSettings> = {}): Promise<Catalog> {
  files += 1;
  const modelsFile = join(folder, `models-${files}.json`);
  await writeFile(modelsFile, text);
  return loadCatalog({ ...WITHOUT_FILE, modelsFile, ...settings }, clock);
}

const ACME = { id: "acme", wireFormat: "openai", baseUrl: "http://127.0.0.1:9900/v1/", apiKey: "env:ACME_KEY" };
const CHAT = { id: "acme/chat", modality: "text", upstream: "acme", upstreamModel: "gpt-mock", title: "Acme Chat" };

function load(models: readonly object[], settings: Partial<CatalogSettings> = {}, upstreams: readonly object[] = [ACME]): Promise<Catalog> {
  return loadText(JSON.stringify({ upstreams, models }), settings);
}

async function problemsOf(loading: Promise<Catalog>): Promise<string[]> {
  const error: unknown = await loading.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof ModelsFileError)) throw new Error(`No ModelsFileError, but ${String(error)}`);
  const problems = error.message
    .split("\n")
    .slice(1)
    .map((line) => line.trim());
  // zod's own words, which name its types instead of the operator's.
  for (const problem of problems) expect(problem).not.toMatch(/Invalid|Unrecognized|undefined|received|another type/);
  return problems;
}

function errorOf(act: () => unknown): AppError {
  try {
    act();
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
  throw new Error("Nothing was thrown.");
}

/** The sandbox's models of media are in every catalog: these tests are about the others. */
const isSandboxMedia = (id: string) => id.startsWith("sandbox/") && !id.startsWith("sandbox/text");

async function listIds(catalog: Catalog, caller: Caller = ANONYMOUS, filter: Parameters<Catalog["list"]>[1] = {}): Promise<string[]> {
  return (await catalog.list(contextOf(caller), filter)).map(({ id }) => id).filter((id) => !isSandboxMedia(id));
}

it("reports prices that are above 1,000 credits a million", async () => {
  const models = [
    { ...CHAT, prices: { promptTextPrice: "0.001", completionTextPrice: "1" } },
    { ...CHAT, id: "acme/film", modality: "video", prices: { completionVideoPrice: "2" } },
    { ...CHAT, id: "acme/picture", modality: "image", prices: { completionImagePrice: "2" } },
  ];
  const modelsFile = join(folder, "high.json");
  await writeFile(modelsFile, JSON.stringify({ upstreams: [ACME], models }));
  const reported: unknown[] = [];

  await loadCatalog({ ...WITHOUT_FILE, modelsFile }, clock, null, { highPrice: (price) => void reported.push(price) });

  expect(reported).toEqual([{ model: "acme/chat", price: "completionTextPrice", perMillion: "1000000" }]);
});

describe("the catalog with nothing configured", () => {
  it("holds the sandbox, and a free text model as default", async () => {
    const catalog = await loadCatalog(WITHOUT_FILE, clock);

    expect(await listIds(catalog)).toEqual(["sandbox/text", "sandbox/text-paid"]);
    expect(catalog.resolve(ANONYMOUS, undefined, "text")).toMatchObject({
      id: "sandbox/text",
      isDefault: true,
      flags: { paid: false, alpha: false },
    });
    expect(catalog.resolve(ANONYMOUS, "sandbox", "text").id).toBe("sandbox/text");
    expect(catalog.upstream("sandbox")).toMatchObject({ wireFormat: "sandbox", isTrusted: true });
  });

  it.each(["image", "video", "speech", "music", "transcription", "embedding", "realtime", "moderation"] as const)(
    "has a free model of the sandbox as the default for %s",
    async (modality) => {
      const catalog = await loadCatalog(WITHOUT_FILE, clock);

      expect(catalog.resolve(ANONYMOUS, undefined, modality)).toMatchObject({
        id: `sandbox/${modality}`,
        routes: [{ upstreamId: "sandbox" }],
        isDefault: true,
        flags: { paid: false, alpha: false },
      });
    },
  );

  it("prices the twins of the sandbox's media models by one unit each", async () => {
    const catalog = await loadCatalog(WITHOUT_FILE, clock);

    const twins = (await catalog.list(contextOf(ANONYMOUS), { search: "-paid" })).filter(({ id }) => isSandboxMedia(id));

    expect(Object.fromEntries(twins.map((twin) => [twin.id, toCatalogEntry(twin).pricing]))).toMatchObject({
      "sandbox/image-paid": { currency: "credits", image_requests: "0.01" },
      "sandbox/video-paid": { currency: "credits", output_video_seconds: "0.02" },
      "sandbox/speech-paid": { currency: "credits", characters: "0.00001" },
      "sandbox/music-paid": { currency: "credits", output_audio_seconds: "0.001" },
      "sandbox/transcription-paid": { currency: "credits", input_audio_seconds: "0.0001" },
      "sandbox/embedding-paid": expect.objectContaining({ currency: "credits", input_text_tokens: "0.0000001" }),
    });
  });

  it("prices the sandbox's twin", async () => {
    const catalog = await loadCatalog(WITHOUT_FILE, clock);

    const twin = catalog.resolve(ANONYMOUS, "sandbox/text-paid", "text");

    expect(twin.flags.paid).toBe(true);
    expect(toOpenAiModel(twin).pricing).toMatchObject({ input_text_tokens: "0.000001", output_text_tokens: "0.00001" });
  });

  it("answers 400 for a modality that has no model", () => {
    const catalog = new Catalog([]);

    expect(errorOf(() => catalog.resolve(ANONYMOUS, undefined, "realtime"))).toMatchObject({ code: "BAD_REQUEST", param: "model" });
  });

  it("names the missing setting to the operator for a modality without a model", async () => {
    const { vendors } = parseConfig({});
    const catalog = await loadCatalog({ ...WITHOUT_FILE, vendors, hasSandboxModels: false, isForThisMachineOnly: true }, clock);
    const messageOf = (name: string | undefined, modality: Modality) => errorOf(() => catalog.resolve(ANONYMOUS, name, modality)).message;

    expect(messageOf("embed", "embedding")).toBe(
      'There is no model "embed". This gateway has no model of modality embedding: set OPENAI_API_KEY or GEMINI_API_KEY or ' +
        "MISTRAL_API_KEY or COHERE_API_KEY for those of a vendor, or add one with MODELS_FILE.",
    );
    expect(messageOf(undefined, "music")).toBe(
      "Name a model: there is no default. This gateway has no model of modality music: add one with MODELS_FILE.",
    );
    expect(messageOf("gpt-4o", "text")).toMatch(
      /: set OPENAI_API_KEY or OPENROUTER_API_KEY\. This gateway has no model of modality text: /,
    );
  });
});

describe("resolve", () => {
  let catalog: Catalog;
  beforeAll(async () => {
    catalog = await load([
      { ...CHAT, aliases: ["chat", "acme-chat-2025"], fallbacks: ["acme/chat-b"] },
      { ...CHAT, id: "acme/chat-b", upstreamModel: "gpt-mock-b" },
      { ...CHAT, id: "acme/draw", modality: "image", prices: { completionImagePrice: "0.04" } },
      { ...CHAT, id: "acme/listen", modality: "transcription" },
    ]);
  });

  it("finds a model by its id and by every alias", () => {
    expect(["acme/chat", "chat", "acme-chat-2025"].map((name) => catalog.resolve(ANONYMOUS, name, "text").id)).toEqual(
      Array(3).fill("acme/chat"),
    );
  });

  it("gives each model its upstream and its fallbacks", () => {
    const model = catalog.resolve(ANONYMOUS, "chat", "text");

    expect(catalog.upstream(model.routes[0].upstreamId)).toEqual({
      id: "acme",
      wireFormat: "openai",
      baseUrl: "http://127.0.0.1:9900/v1",
      apiKey: "acme-secret",
      isTrusted: true,
    });
    expect(model.routes[0].upstreamModel).toBe("gpt-mock");
    expect(catalog.fallbacksOf(model).map(({ id }) => id)).toEqual(["acme/chat-b"]);
  });

  it.each([
    ["acme/chatt", "acme/chat"],
    ["ACME/CHAT-B", "acme/chat-b"],
    ["chta", "acme/chat"],
    ["sandbox/txt", "sandbox/text"],
  ])("answers 400 for %s and names %s", (name, closest) => {
    const error = errorOf(() => catalog.resolve(ANONYMOUS, name, "text"));

    expect(error).toMatchObject({ code: "BAD_REQUEST", param: "model" });
    expect(error.message).toContain(`The closest are: ${closest},`);
  });

  it("names only models of the requested modality, or of those that the operation serves", () => {
    expect(errorOf(() => catalog.resolve(ANONYMOUS, "acme/chatt", "image")).message).toMatch(
      /: acme\/draw, sandbox\/image\S*, sandbox\/image/,
    );
    expect(errorOf(() => catalog.resolve(ANONYMOUS, "acme/liste", "transcription")).message).toContain(
      ": acme/listen, sandbox/transcription",
    );
    expect(errorOf(() => catalog.resolve(ANONYMOUS, "music", "speech", ["speech", "music"])).message).toContain(": sandbox/music");
  });

  it("repeats only the beginning of an endless name", () => {
    const error = errorOf(() => catalog.resolve(ANONYMOUS, "x".repeat(1_000_000), "text"));

    expect(error.message.length).toBeLessThan(400);
  });

  it.each(["__proto__", "constructor", "", "acme", "acme/chat ", "ACME/chat"])("knows no model %j", (name) => {
    expect(errorOf(() => catalog.resolve(ANONYMOUS, name, "text"))).toMatchObject({ code: "BAD_REQUEST", param: "model" });
  });

  it.each([
    ["acme/draw", "POST /v1/images/generations"],
    ["acme/listen", "POST /v1/audio/transcriptions"],
  ])("answers 400 for %s as text and names the route that serves it", (name, route) => {
    const error = errorOf(() => catalog.resolve(ANONYMOUS, name, "text"));

    expect(error).toMatchObject({ code: "BAD_REQUEST", param: "model" });
    expect(error.message).toContain(route);
  });

  it("lets a key use the models of its list, whichever of their names the list holds", () => {
    const caller = keyFor(["acme-chat-2025"]);

    expect(catalog.resolve(caller, "acme/chat", "text").id).toBe("acme/chat");
    expect(catalog.resolve(caller, "chat", "text").id).toBe("acme/chat");
    expect(errorOf(() => catalog.resolve(caller, "acme/chat-b", "text"))).toMatchObject({ code: "FORBIDDEN" });
  });

  it("lets a key with an empty list use nothing, and one without a list everything", () => {
    const error = errorOf(() => catalog.resolve(keyFor([]), "acme/chat", "text"));

    expect(error.code).toBe("FORBIDDEN");
    expect(catalog.resolve(keyFor(null), "acme/chat", "text").id).toBe("acme/chat");
  });

  it("checks the key's list for the default model too", () => {
    expect(errorOf(() => catalog.resolve(keyFor(["acme/chat-b"]), undefined, "text"))).toMatchObject({ code: "FORBIDDEN" });
  });

  it("suggests only models that the key may use", () => {
    expect(errorOf(() => catalog.resolve(keyFor(["acme/chat-b"]), "acme/chatt", "text")).message).toContain(
      "The closest are: acme/chat-b.",
    );
    expect(errorOf(() => catalog.resolve(keyFor([]), "acme/chatt", "text")).message).not.toContain("acme/chat,");
  });
});

describe("list and get", () => {
  let catalog: Catalog;
  beforeAll(async () => {
    catalog = await load([
      { ...CHAT, id: "acme/zeta", title: "Last letter", description: "Speaks Greek", default: true },
      { ...CHAT, id: "acme/alpha", flags: { alpha: true } },
      { ...CHAT, id: "acme/beta", capabilities: ["tools", "vision"], aliases: ["second"] },
      { ...CHAT, id: "acme/draw-b", modality: "image", flags: { alpha: true } },
      { ...CHAT, id: "acme/draw-c", modality: "image" },
      { ...CHAT, id: "acme/film", modality: "video" },
    ]);
  });

  it("sorts by modality, the default first, stable before alpha, then by id", async () => {
    expect(await listIds(catalog)).toEqual([
      "acme/zeta",
      "acme/beta",
      "sandbox/text",
      "sandbox/text-paid",
      "acme/alpha",
      "acme/draw-c",
      "acme/draw-b",
      "acme/film",
    ]);
  });

  it("filters by modality", async () => {
    expect(await listIds(catalog, ANONYMOUS, { modalities: ["image", "video"] })).toEqual(["acme/draw-c", "acme/draw-b", "acme/film"]);
  });

  it.each([
    ["GREEK", ["acme/zeta"]],
    ["last letter", ["acme/zeta"]],
    ["second", ["acme/beta"]],
    ["acme draw", ["acme/draw-c", "acme/draw-b"]],
    ["acme nothing", []],
  ])("searches for %s", async (search, ids) => {
    expect(await listIds(catalog, ANONYMOUS, { search })).toEqual(ids);
  });

  it("filters by capability", async () => {
    expect(await listIds(catalog, ANONYMOUS, { capability: "vision" })).toEqual(["acme/beta"]);
    await expect(catalog.list(contextOf(ANONYMOUS), { capability: "flight" })).rejects.toMatchObject({
      code: "BAD_REQUEST",
      param: "capability",
    });
  });

  it("filters by community", async () => {
    expect(await listIds(catalog, ANONYMOUS, { community: true })).toEqual([]);
    expect(await listIds(catalog, ANONYMOUS, { community: false })).toHaveLength(8);
  });

  it("cuts the list to the key's models", async () => {
    expect(await listIds(catalog, keyFor(["second", "acme/film", "gone/model"]))).toEqual(["acme/beta", "acme/film"]);
    expect(await listIds(catalog, keyFor([]))).toEqual([]);
  });

  it("gets a model by alias", async () => {
    expect((await catalog.get(contextOf(ANONYMOUS), "second")).id).toBe("acme/beta");
  });

  it("answers 404 for a model that is unknown or not the key's", async () => {
    await expect(catalog.get(contextOf(ANONYMOUS), "acme/gone")).rejects.toMatchObject({ code: "NOT_FOUND" });
    await expect(catalog.get(contextOf(keyFor(["acme/film"])), "acme/beta")).rejects.toMatchObject({ code: "NOT_FOUND" });
  });
});

describe("the default of a modality", () => {
  it.each<[string, readonly object[], string]>([
    ["is the one that MODELS_FILE marks", [{ ...CHAT }, { ...CHAT, id: "acme/b", default: true }], "acme/b"],
    ["may be marked although it is alpha", [{ ...CHAT }, { ...CHAT, id: "acme/b", default: true, flags: { alpha: true } }], "acme/b"],
    [
      "is else the operator's first stable one",
      [
        { ...CHAT, flags: { alpha: true } },
        { ...CHAT, id: "acme/b" },
        { ...CHAT, id: "acme/c" },
      ],
      "acme/b",
    ],
    ["is a stable one of the sandbox before the operator's alpha", [{ ...CHAT, flags: { alpha: true } }], "sandbox/text"],
  ])("%s", async (_what, models, id) => {
    const catalog = await load(models);

    expect((await listIds(catalog))[0]).toBe(id);
    expect(catalog.resolve(ANONYMOUS, undefined, "text").id).toBe(id);
    expect((await catalog.list(contextOf(ANONYMOUS), { modalities: ["text"] })).filter((model) => model.isDefault)).toHaveLength(1);
  });
});

describe("MODELS_FILE", () => {
  it("is accepted as the documentation shows it", async () => {
    const catalog = await loadCatalog({ ...WITHOUT_FILE, modelsFile: "examples/models.json" }, clock);

    expect(await listIds(catalog, ANONYMOUS, { modalities: ["text", "image"] })).toEqual([
      "acme/chat",
      "sandbox/text",
      "sandbox/text-paid",
      "acme/chat-b",
      "acme/draw",
    ]);
  });

  it("takes prices as decimal strings and as numbers", async () => {
    const catalog = await load([
      { ...CHAT, prices: { promptTextPrice: 1e-7, promptCachedPrice: "0.000000000001", completionTextPrice: 0 } },
    ]);

    expect(catalog.find("acme/chat")?.prices).toEqual({ promptTextPrice: 100_000n, promptCachedPrice: 1n, completionTextPrice: 0n });
  });

  it("may name a key itself, or none", async () => {
    const catalog = await load([CHAT], {}, [
      { ...ACME, apiKey: "literal" },
      { id: "open", wireFormat: "ai-sdk:cohere", baseUrl: "https://open.example" },
    ]);

    expect(catalog.upstream("acme").apiKey).toBe("literal");
    expect(catalog.upstream("open")).toMatchObject({ apiKey: null, wireFormat: "ai-sdk:cohere" });
  });

  it("may add a model of the operator's on the sandbox", async () => {
    const catalog = await load([{ ...CHAT, upstream: "sandbox", upstreamModel: "text" }], {}, []);

    expect(catalog.find("acme/chat")).toMatchObject({ routes: [{ upstreamId: "sandbox" }] });
  });

  it("keeps a model's vision and its image input in step", async () => {
    const catalog = await load([
      { ...CHAT, inputModalities: ["text", "image"] },
      { ...CHAT, id: "acme/b", capabilities: ["vision"] },
    ]);

    expect(catalog.find("acme/chat")?.capabilities).toEqual(["vision"]);
    expect(catalog.find("acme/b")?.inputModalities).toEqual(["text", "image"]);
  });

  it("accepts a byte order mark", async () => {
    const catalog = await loadText(`\uFEFF${JSON.stringify({ upstreams: [ACME], models: [CHAT] })}`);

    expect(catalog.find("acme/chat")).not.toBeNull();
  });

  it("refuses a dialect of an upstream with another wire format", async () => {
    const foreign = { ...ACME, wireFormat: "anthropic" };
    const stated = { dialect: { thoughts: "none" } };

    expect(await problemsOf(load([CHAT], {}, [{ ...foreign, ...stated }]))).toEqual(["upstreams.0.dialect: is of the wire format openai"]);
    expect(await problemsOf(load([{ ...CHAT, ...stated }], {}, [foreign]))).toEqual([
      "models.0.dialect: is of upstreams with the wire format openai",
    ]);
  });

  it("keeps the variations of an image model, and refuses those of others", async () => {
    const image = { ...CHAT, modality: "image", variations: true, capabilities: [], prices: {} };

    expect((await load([image])).find("acme/chat")?.hasVariations).toBe(true);
    expect(await problemsOf(load([{ ...CHAT, variations: true }]))).toEqual(["models.0.variations: is of image models"]);
    expect(await problemsOf(load([image], {}, [{ ...ACME, wireFormat: "anthropic" }]))).toEqual([
      "models.0.variations: is of upstreams with the wire format openai",
    ]);
  });

  it("keeps the dialect of an upstream and of a model", async () => {
    const dialect = { thoughts: "none", refuses: Array.from({ length: 64 }, (_, index) => `f${index}`), names: { seed: "random_seed" } };
    const catalog = await load([{ ...CHAT, dialect }], {}, [{ ...ACME, dialect: { streamOptions: false } }]);

    expect(catalog.find("acme/chat")?.routes[0].dialect).toEqual(dialect);
    expect(catalog.upstream("acme").dialect).toEqual({ streamOptions: false });
  });

  it.each<[string, object, readonly object[]]>([
    ["models.0.prices.promptTextPrice", { prices: { promptTextPrice: -1 } }, []],
    ["models.0.prices.promptTextPrice", { prices: { promptTextPrice: "1e-6" } }, []],
    ["models.0.prices.promptTextPrice", { prices: { promptTextPrice: "0.0000000000001" } }, []],
    ["models.0.prices.promptTextPrice", { prices: { promptTextPrice: "1000.1" } }, []],
    ["models.0.prices.promptTextPrice", { prices: { promptTextPrice: true } }, []],
    ["models.0.prices.promptPrice", { prices: { promptPrice: "0.1" } }, []],
    ["models.0.prices.completionVideoPrice", { prices: { completionVideoPrice: "0.1" } }, []],
    ["models.0.prices.promptTextPrice", { modality: "image", prices: { promptTextPrice: "0.1" } }, []],
    ["models.0.pricedFields.servce_tier", { pricedFields: { servce_tier: { flex: {} } } }, []],
    ["models.0.pricedFields.service_tier.flex.multiplier", { pricedFields: { service_tier: { flex: { multiplier: "0.0000001" } } } }, []],
    ["models.0.pricedFields.service_tier.flex.price", { pricedFields: { service_tier: { flex: { price: 1 } } } }, []],
    [
      "models.0.pricedFields.service_tier.flex.prices.completionVideoPrice",
      { pricedFields: { service_tier: { flex: { prices: { completionVideoPrice: 1 } } } } },
      [],
    ],
    ["models.0.passFields.0", { passFields: ["a b"] }, []],
    ["models.0.passFields.0", { passFields: ["a".repeat(65)] }, []],
    ["models.0.passFields", { passFields: ["max_tokens"] }, []],
    ["models.0.passFields", { passFields: ["service_tier"], pricedFields: { service_tier: { flex: {} } } }, []],
    ["models.0.passFields", { passFields: ["voice_mode"], modality: "realtime" }, []],
    ["models.0.dialect.thougts", { dialect: { thougts: "none" } }, []],
    ["models.0.dialect.thoughts", { dialect: { thoughts: "thinking" } }, []],
    ["models.0.dialect.outputCap", { dialect: { outputCap: "max_output_tokens" } }, []],
    ["models.0.dialect.streamOptions", { dialect: { streamOptions: "no" } }, []],
    ["models.0.dialect.refuses.1", { dialect: { refuses: ["logprobs", "messages"] } }, []],
    ["models.0.dialect.refuses.0", { dialect: { refuses: ["a".repeat(65)] } }, []],
    ["models.0.dialect.refuses", { dialect: { refuses: Array.from({ length: 65 }, (_, index) => `f${index}`) } }, []],
    ["models.0.dialect.messageFields", { dialect: { messageFields: ["tool_calls"] } }, []],
    ["models.0.dialect.messageFields.1", { dialect: { messageFields: ["content", "robot.name"] } }, []],
    ["models.0.dialect", { dialect: { thoughts: "none" }, modality: "image" }, []],
    ["models.0.longContext.0.abovePromptTokens", { longContext: [{ abovePromptTokens: 0, prices: {} }] }, []],
    ["models.0.longContext", { modality: "embedding", longContext: [{ abovePromptTokens: 9, prices: {} }] }, []],
    ["models.0.prices.promptCacheWriteHourPrice", { modality: "realtime", prices: { promptCacheWriteHourPrice: 1 } }, []],
    ["models.0.id", { id: "chat" }, []],
    ["models.0.id", { id: "acme/team/chat" }, []],
    ["models.0.id", { id: "sandbox/text" }, []],
    ["models.0.id", { id: "community/me" }, []],
    ["models.0.aliases.1", { aliases: ["a", "b c"] }, []],
    ["models.0.aliases.0", { aliases: ["acme/chat"] }, []],
    ["models.0.aliases.1", { aliases: ["a", "a"] }, []],
    ["models.0.aliases.1", { aliases: ["a", "community/me/chat"] }, []],
    ["models.1.id", {}, [CHAT]],
    ["models.1.aliases.0", { aliases: ["chat"] }, [{ ...CHAT, id: "acme/b", aliases: ["chat"] }]],
    ["models.0.aliases.0", { aliases: ["acme/b"] }, [{ ...CHAT, id: "acme/b" }]],
    ["models.0.modality", { modality: "smell" }, []],
    ["models.0.upstream", { upstream: "nobody" }, []],
    ["models.0.upstream", { upstream: "openai" }, []],
    ["models.0.contextLength", { contextLength: 0 }, []],
    ["models.0.contextLength", { contextLength: 10_000_001 }, []],
    ["models.0.perUserRpm", { perUserRpm: 0 }, []],
    ["models.0.flags.beta", { flags: { beta: true } }, []],
    ["models.0.flags.paid", { flags: { paid: true } }, []],
    ["models.0.capabilities.0", { capabilities: ["flight"] }, []],
    ["models.0.requiredSafetyFeatures", { requiredSafetyFeatures: ["privacy", "privacy"] }, []],
    ["models.0.inputModalities", { inputModalities: [] }, []],
    ["models.0.addedAt", { addedAt: "yesterday" }, []],
    ["models.0.price", { price: 1 }, []],
    ["models.0.title", { title: "" }, []],
    ["models.0.fallbacks.0", { fallbacks: ["acme/gone"] }, []],
    ["models.0.fallbacks.0", { fallbacks: ["acme/chat"] }, []],
    ["models.0.fallbacks.0", { aliases: ["self"], fallbacks: ["self"] }, []],
    ["models.0.fallbacks.1", { fallbacks: ["sandbox/text", "acme/draw"] }, [{ ...CHAT, id: "acme/draw", modality: "image" }]],
    ["models.0.fallbacks", { fallbacks: ["a", "b", "c", "d"] }, []],
    ["models.1.default", { default: true }, [{ ...CHAT, id: "acme/b", default: true }]],
  ])("is refused with the path %s for %j", async (path, change, others) => {
    const problems = await problemsOf(load([{ ...CHAT, ...change }, ...others]));

    expect(problems.map((problem) => problem.split(": ")[0])).toEqual([path]);
  });

  it.each<[string, object]>([
    ["upstreams.0.wireFormat", { wireFormat: "sandbox" }],
    ["upstreams.0.wireFormat", { wireFormat: "ai-sdk:acme" }],
    ["upstreams.0.baseUrl", { baseUrl: "ftp://acme.example" }],
    ["upstreams.0.baseUrl", { baseUrl: "https://acme.example/v1?version=1" }],
    ["upstreams.0.apiKey", { apiKey: "env:UNSET_KEY" }],
    ["upstreams.0.secret", { secret: "x" }],
    ["upstreams.0.id", { id: "sandbox" }],
  ])("is refused with the path %s for the upstream %j", async (path, change) => {
    expect((await problemsOf(load([], {}, [{ ...ACME, ...change }]))).map((problem) => problem.split(": ")[0])).toEqual([path]);
  });

  it("is refused with every bad field named", async () => {
    const problems = await problemsOf(
      load(
        [
          { ...CHAT, title: 1 },
          { ...CHAT, id: "x", modality: "y" },
        ],
        {},
        [{ ...ACME, baseUrl: 1 }],
      ),
    );

    expect(problems.map((problem) => problem.split(": ")[0])).toEqual([
      "upstreams.0.baseUrl",
      "models.0.title",
      "models.1.id",
      "models.1.modality",
    ]);
  });

  it("is refused when it is not JSON, not an object, or not there", async () => {
    expect((await problemsOf(loadText("{")))[0]).toContain("is not JSON");
    expect((await problemsOf(loadText("[]")))[0]).toContain("the file");
    expect((await problemsOf(loadCatalog({ ...WITHOUT_FILE, modelsFile: join(folder, "gone.json") }, clock)))[0]).toContain(
      "cannot be read",
    );
  });
});

describe("the bundled catalog", () => {
  const OPENAI = { openai: { apiKey: "oa", baseUrl: null } };
  const OPENROUTER = { openrouter: { apiKey: "or", baseUrl: null } };

  it("shows a vendor's models only when its key is set", async () => {
    const catalog = await loadCatalog({ ...WITHOUT_FILE, vendors: { ...OPENAI, anthropic: { apiKey: null, baseUrl: null } } }, clock);

    const publishers = new Set((await catalog.list(contextOf(ANONYMOUS), {})).map(({ publisher }) => publisher));
    expect(publishers).toEqual(new Set(["openai", "sandbox"]));
    expect(catalog.resolve(ANONYMOUS, undefined, "text")).toMatchObject({ publisher: "openai", routes: [{ upstreamId: "openai" }] });
  });

  it("takes another address for OpenAI", async () => {
    const catalog = await loadCatalog({ ...WITHOUT_FILE, vendors: { openai: { apiKey: "oa", baseUrl: "http://127.0.0.1:9/v1" } } }, clock);

    expect(catalog.upstream("openai")).toEqual({
      id: "openai",
      wireFormat: "openai",
      baseUrl: "http://127.0.0.1:9/v1",
      apiKey: "oa",
      isTrusted: true,
      vendor: "openai",
    });
  });

  it("has the vendor's public prices and the model's bare name", async () => {
    const catalog = await loadCatalog({ ...WITHOUT_FILE, vendors: OPENAI }, clock);

    // Per million tokens: 2.5 in, 1.25 cached, 10 out.
    expect(catalog.find("gpt-4o")).toMatchObject({
      id: "openai/gpt-4o",
      routes: [{ upstreamModel: "gpt-4o" }],
      contextLength: 128_000,
      capabilities: ["tools", "vision"],
      prices: { promptTextPrice: 2_500_000n, promptCachedPrice: 1_250_000n, completionTextPrice: 10_000_000n },
    });
  });

  it("sends a model to its own vendor first, and to OpenRouter next or when only that has a key", async () => {
    const both = await loadCatalog({ ...WITHOUT_FILE, vendors: { ...OPENROUTER, ...OPENAI } }, clock);
    const resold = await loadCatalog({ ...WITHOUT_FILE, vendors: OPENROUTER }, clock);

    expect(both.find("openai/gpt-4o")).toMatchObject({
      routes: [
        { upstreamId: "openai", upstreamModel: "gpt-4o", priority: 0, isAtModelPrice: true },
        { upstreamId: "openrouter", upstreamModel: "openai/gpt-4o", priority: 1, prices: { promptTextPrice: 2_500_000n } },
      ],
    });
    expect(resold.find("openai/gpt-4o")).toMatchObject({ routes: [{ upstreamId: "openrouter", upstreamModel: "openai/gpt-4o" }] });
  });

  it.each(["openai", "anthropic", "gemini", "mistral", "groq", "deepseek", "xai", "moonshot", "zai", "cerebras", "cohere", "openrouter"])(
    "has complete, priced entries for %s",
    async (vendor) => {
      const catalog = await loadCatalog({ ...WITHOUT_FILE, vendors: { [vendor]: { apiKey: "key", baseUrl: null } } }, clock);

      const models = (await catalog.list(contextOf(ANONYMOUS), { modalities: ["text"] })).filter(
        (model) => model.routes[0].upstreamId === vendor,
      );
      expect(models.length).toBeGreaterThan(0);
      for (const model of models) {
        expect(model, model.id).toMatchObject({ modality: "text", flags: { paid: true }, contextLength: expect.any(Number) });
        expect(model.prices.promptTextPrice, model.id).toBeGreaterThan(0n);
        expect(model.prices.completionTextPrice, model.id).toBeGreaterThan(0n);
      }
    },
  );

  it("takes the price in force today, of a short prompt and of the dearest hour", async () => {
    const vendors = { openai: OPENAI.openai, deepseek: { apiKey: "ds", baseUrl: null } };
    const before = await loadCatalog({ ...WITHOUT_FILE, vendors }, { now: () => new Date("2026-07-01T00:00:00Z") });
    const after = await loadCatalog({ ...WITHOUT_FILE, vendors }, clock);

    // GPT-5.6 Luna cost 1 per million tokens until 30 July 2026 and 0.2 since, twice that beyond 272,000 tokens.
    expect(before.find("openai/gpt-5.6-luna")?.prices.promptTextPrice).toBe(1_000_000n);
    expect(after.find("openai/gpt-5.6-luna")?.prices.promptTextPrice).toBe(200_000n);
    // DeepSeek V4 Flash costs 0.22 per million tokens, 0.44 in the busy hours.
    expect(after.find("deepseek/deepseek-v4-flash")?.prices.promptTextPrice).toBe(440_000n);
  });

  it("has no name twice, whichever vendors are configured", async () => {
    const all = ["openai", "anthropic", "gemini", "mistral", "groq", "deepseek", "xai", "moonshot", "zai", "cerebras", "openrouter"];
    const vendors = Object.fromEntries(all.map((vendor) => [vendor, { apiKey: "key", baseUrl: null }]));
    const catalog = await loadCatalog({ ...WITHOUT_FILE, vendors }, clock);

    const names = (await catalog.list(contextOf(ANONYMOUS), {})).flatMap((model) => [model.id, ...model.aliases]);
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
    expect(names.every((name) => catalog.find(name) !== null)).toBe(true);
  });

  it("gives way to the operator's model of the same id, and to the operator's names", async () => {
    const catalog = await load(
      [
        { ...CHAT, id: "openai/gpt-4o" },
        { ...CHAT, aliases: ["gpt-4o-mini", "openai/gpt-4.1"] },
      ],
      { vendors: OPENAI },
    );

    expect(catalog.find("openai/gpt-4o")).toMatchObject({ routes: [{ upstreamId: "acme" }], title: "Acme Chat" });
    expect(catalog.find("gpt-4o-mini")?.id).toBe("acme/chat");
    expect(catalog.find("openai/gpt-4o-mini")).toMatchObject({
      routes: [{ upstreamId: "openai" }],
      aliases: expect.not.arrayContaining(["gpt-4o-mini"]),
    });
    expect(catalog.find("openai/gpt-4.1")?.id).toBe("acme/chat");
    expect(catalog.resolve(ANONYMOUS, undefined, "text").id).toBe("openai/gpt-4o");
  });

  it("lends its upstreams to the operator's models, and runs on the operator's upstream of the same id", async () => {
    const lent = await load([{ ...CHAT, upstream: "openai" }], { vendors: OPENAI }, []);
    const replaced = await load([], { vendors: OPENAI }, [{ ...ACME, id: "openai" }]);

    expect(lent.upstream(lent.resolve(ANONYMOUS, "acme/chat", "text").routes[0].upstreamId).apiKey).toBe("oa");
    expect(replaced.upstream(replaced.resolve(ANONYMOUS, "gpt-4o", "text").routes[0].upstreamId)).toMatchObject({ apiKey: "acme-secret" });
  });
});

describe("the views", () => {
  it("shows an entry with every field of the catalog", async () => {
    const catalog = await load([
      {
        ...CHAT,
        aliases: ["chat"],
        description: "Everyday",
        brandUrl: "https://acme.example/logo.svg",
        capabilities: ["tools"],
        contextLength: 128_000,
        perUserRpm: 0.5,
        addedAt: "2025-06-01",
        prices: { promptTextPrice: "0.000001", promptCachedPrice: "0.0000005", completionTextPrice: "0.000002" },
      },
    ]);

    const model = catalog.resolve(ANONYMOUS, "chat", "text");

    const pricing = {
      currency: "credits",
      input_text_tokens: "0.000001",
      input_cached_tokens: "0.0000005",
      input_cache_write_tokens: "0.000001",
      input_audio_tokens: "0.000001",
      input_image_tokens: "0.000001",
      output_text_tokens: "0.000002",
      output_reasoning_tokens: "0.000002",
      output_audio_tokens: "0.000002",
      output_image_tokens: "0.000002",
    };
    expect(toCatalogEntry(model)).toEqual({
      name: "acme/chat",
      aliases: ["chat"],
      publisher: "acme",
      brand_url: "https://acme.example/logo.svg",
      title: "Acme Chat",
      description: "Everyday",
      category: "text",
      input_modalities: ["text"],
      output_modalities: ["text"],
      capabilities: ["tools"],
      flags: { paid: true, alpha: false },
      pricing,
      context_length: 128_000,
      voices: [],
      community: false,
      agent: false,
      owner: null,
      per_user_rpm: 0.5,
      health: { status: "unknown", success_rate: null, requests: 0 },
      added_at: "2025-06-01T00:00:00.000Z",
      pending_change: null,
    });
    expect(toOpenAiModel(model)).toEqual({
      id: "acme/chat",
      object: "model",
      created: 1_748_736_000,
      owned_by: "acme",
      aliases: ["chat"],
      context_length: 128_000,
      capabilities: ["tools"],
      pricing,
      input_modalities: ["text"],
      output_modalities: ["text"],
    });
  });

  it("prices media in their own units", async () => {
    const catalog = await load([
      { ...CHAT, id: "acme/draw", modality: "image", prices: { completionImagePrice: "0.04" } },
      { ...CHAT, id: "acme/film", modality: "video", prices: { completionVideoPrice: 0.05 } },
      { ...CHAT, id: "acme/say", modality: "speech", voices: ["alloy"], prices: { completionAudioPrice: "0.000015" } },
    ]);

    const entries = (await catalog.list(contextOf(ANONYMOUS), { search: "acme" })).map((model) => toCatalogEntry(model));

    expect(entries.map(({ category, pricing, voices }) => ({ category, pricing, voices }))).toEqual([
      { category: "image", pricing: { currency: "credits", image_requests: "0.04" }, voices: [] },
      { category: "video", pricing: { currency: "credits", output_video_seconds: "0.05" }, voices: [] },
      { category: "audio", pricing: { currency: "credits", characters: "0.000015" }, voices: ["alloy"] },
    ]);
  });

  it("never shows an upstream or its key", async () => {
    const catalog = await load([CHAT]);
    const model = catalog.resolve(ANONYMOUS, "acme/chat", "text");

    expect(JSON.stringify([toCatalogEntry(model), toOpenAiModel(model)])).not.toMatch(/acme-secret|9900|gpt-mock/);
  });
});
