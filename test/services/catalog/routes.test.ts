/** `routes` of MODELS_FILE, and the routes that keys and vendors make (docs/spec/routing.md). */
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseConfig } from "../../../src/config/config.js";
import { type CatalogSettings, loadCatalog } from "../../../src/services/catalog/catalog.js";
import { createEmptyDir } from "../../support/database.js";

const clock = { now: () => new Date("2026-11-27T00:00:00Z") };
let dir: string;

beforeAll(async () => {
  dir = await createEmptyDir();
});
afterAll(() => rm(dir, { recursive: true, force: true }));

const UPSTREAMS = [
  { id: "alpha", wireFormat: "openai", baseUrl: "http://127.0.0.1:9/v1", apiKeys: ["a1", "env:A2", "a3"] },
  { id: "beta", wireFormat: "anthropic", baseUrl: "http://127.0.0.1:9/v1", apiKey: "b1" },
];
const MODEL = { id: "acme/chat", title: "Chat", modality: "text", prices: { promptTextPrice: "0.000002" } };

async function load(models: readonly object[], settings: Partial<CatalogSettings> = {}, upstreams: readonly object[] = UPSTREAMS) {
  const modelsFile = join(dir, "models.json");
  await writeFile(modelsFile, JSON.stringify({ upstreams, models }));
  const readEnv = (name: string) => (name === "A2" ? "a2" : null);
  return loadCatalog({ modelsFile, hasSandboxModels: true, vendors: {}, readEnv, ...settings }, clock);
}

async function routesOf(more: object) {
  return (await load([{ ...MODEL, ...more }])).find("acme/chat")?.routes;
}

/** Without the first line, which names the file. */
async function problemsOf(more: object, upstreams: readonly object[] = UPSTREAMS): Promise<string[]> {
  const error = await load([{ ...MODEL, ...more }], {}, upstreams).then(
    () => null,
    (reason: Error) => reason,
  );
  return (error?.message ?? "")
    .split("\n")
    .slice(1)
    .map((line) => line.trim());
}

const A = { upstream: "alpha", upstreamModel: "a" };
const B = { upstream: "beta", upstreamModel: "b" };

describe("routes of a model in MODELS_FILE", () => {
  it("are one for each key, which share the weight", async () => {
    const routes = await routesOf({
      routes: [
        { ...A, weight: 3 },
        { ...B, priority: 2 },
      ],
    });

    expect(routes?.map(({ id, keyId, weight, priority }) => ({ id, keyId, weight, priority }))).toEqual([
      { id: "alpha#1", keyId: "alpha", weight: 1, priority: 0 },
      { id: "alpha#2", keyId: "alpha#2", weight: 1, priority: 0 },
      { id: "alpha#3", keyId: "alpha#3", weight: 1, priority: 0 },
      { id: "beta", keyId: "beta", weight: 1, priority: 2 },
    ]);
  });

  it("keep what the operator states", async () => {
    const stated = {
      ...{ prices: { promptTextPrice: "0.000001" }, limits: { rpm: 60, concurrent: 4 }, regions: ["eu", "us-east-1"] },
      ...{ dataPolicy: "zero-retention", quantization: "fp8", firstTokenMs: 2_000 },
    };

    expect((await routesOf({ routes: [{ ...B, ...stated }] }))?.[0]).toMatchObject({
      ...{ prices: { promptTextPrice: 1_000_000n }, rates: { inputTextTokens: 1_000_000n }, isAtModelPrice: false },
      ...{ limits: { rpm: 60, tpm: null, concurrent: 4 }, regions: ["eu", "us-east-1"], dataPolicy: "zero-retention" },
      ...{ quantization: "fp8", firstTokenMs: 2_000 },
    });
  });

  it("may lead to two models of one upstream", async () => {
    const routes = await routesOf({ routes: [B, { ...B, upstreamModel: "b2" }] });

    expect(routes?.map(({ id }) => id)).toEqual(["beta/b", "beta/b2"]);
  });

  it("have one as the single form, without known cost", async () => {
    expect(await routesOf(B)).toEqual([expect.objectContaining({ id: "beta", upstreamModel: "b", prices: null, rates: null })]);
  });

  it.each<[string, object, string]>([
    ["no route", { routes: [] }, "models.0.routes: must hold at least one route"],
    ["no upstream", {}, "models.0.upstream: is required, unless there are routes"],
    ["no name at the upstream", { upstream: "beta" }, "models.0.upstreamModel: is required, unless there are routes"],
    ["both forms", { ...B, routes: [A] }, "models.0.upstream: is there beside routes: state it in a route"],
    ["weights of 0 alone", { routes: [{ ...A, weight: 0 }] }, "models.0.routes: a route needs a weight above 0"],
    ["a route twice", { routes: [B, B] }, "models.0.routes.1: beta and b are there twice"],
    [
      "an unknown upstream",
      { routes: [{ ...A, upstream: "gamma" }] },
      "models.0.routes.0.upstream: there is no upstream gamma (there is sandbox, alpha, beta)",
    ],
    ["an unknown order", { ...B, routing: "speed" }, "models.0.routing.order: must be one of weight, price, latency or throughput"],
    ["a hedge at once", { ...B, routing: { hedgeAfterMs: 0 } }, "models.0.routing.hedgeAfterMs: must be from 1 to 300000"],
    [
      "a hedge of other models",
      { ...B, modality: "embedding", routing: { hedgeAfterMs: 9 } },
      "models.0.routing.hedgeAfterMs: is of text models",
    ],
    ["tiers without prices", { routes: [{ ...B, longContext: [] }] }, "models.0.routes.0.longContext: is of routes with prices"],
    [
      "a dialect of another format",
      { routes: [{ ...B, dialect: { thoughts: "none" } }] },
      "models.0.routes.0.dialect: is of upstreams with the wire format openai",
    ],
  ])("refuse %s, naming the place", async (_what, more, problem) => {
    expect(await problemsOf(more)).toContain(problem);
  });

  it.each<[string, object]>([
    ["weight", { weight: -1 }],
    ["priority", { priority: 0.5 }],
    ["limits.rpm", { limits: { rpm: 0 } }],
    ["regions.0", { regions: ["EU"] }],
    ["dataPolicy", { dataPolicy: "none" }],
    ["firstTokenMs", { firstTokenMs: 0 }],
    ["prices.promptTextPrice", { prices: { promptTextPrice: "-1" } }],
    ["nonsense", { nonsense: 1 }],
  ])("refuse a wrong %s", async (field, more) => {
    const [problem = ""] = await problemsOf({ routes: [{ ...B, ...more }] });

    expect(problem.startsWith(`models.0.routes.0.${field}: `), problem).toBe(true);
  });

  it("refuse a price that their modality does not have", async () => {
    const [problem = ""] = await problemsOf({ routes: [{ ...B, prices: { completionVideoPrice: "1" } }] });

    expect(problem).toMatch(/^models\.0\.routes\.0\.prices\.completionVideoPrice: is not a price of text/);
  });

  it("refuse keys in two fields, and a variable that is not set", async () => {
    const upstreams = [{ ...UPSTREAMS[1], apiKeys: ["b2", "env:NONE"] }];

    expect(await problemsOf(B, upstreams)).toEqual([
      "upstreams.0.apiKeys: is there beside apiKey: state one of them",
      "upstreams.0.apiKeys.1: the environment variable NONE is not set",
    ]);
  });
});

describe("keys of a vendor", () => {
  it("are separated by commas, and in numbered variables", async () => {
    const env = { OPENAI_API_KEY: "k1, k2,,k1", OPENAI_API_KEY_2: "k3", OPENAI_API_KEY_7: "k4,k2", FAL_API_KEY: "f1" };
    const { vendors } = parseConfig(env);

    expect(vendors.openai).toMatchObject({ apiKey: "k1", furtherApiKeys: ["k2", "k3", "k4"] });
    expect(vendors.fal).toEqual({ apiKey: "f1", baseUrl: null, variable: "FAL_KEY" });
    expect(vendors.groq.apiKey).toBeNull();
  });

  it("make a route each, before those of the next vendor", async () => {
    const { vendors } = parseConfig({ OPENAI_API_KEY: "k1,k2", OPENROUTER_API_KEY: "r1" });
    const catalog = await load([], { vendors });

    expect(catalog.find("openai/gpt-4o")?.routes.map(({ id, priority, weight }) => [id, priority, weight])).toEqual([
      ["openai#1", 0, 0.5],
      ["openai#2", 0, 0.5],
      ["openrouter", 1, 1],
    ]);
  });

  it("may be in a numbered variable alone", () => {
    expect(parseConfig({ GROQ_API_KEY_2: "g2" }).vendors.groq.apiKey).toBe("g2");
  });
});
