import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { type Client, createClient, createKey, expectEnvelope } from "./client.js";

interface OpenAiList {
  readonly object: string;
  readonly data: readonly Record<string, unknown>[];
}
type Catalog = readonly Record<string, unknown>[];

let app: TestApp;
/** Without a key. */
let client: Client;

beforeAll(async () => {
  app = await createTestApp();
  client = createClient(app.baseUrl, null);
});
afterAll(() => app.close());

describe("GET /v1/models", () => {
  it("lists text models in OpenAI's format, for any caller", async () => {
    const answer = await client.get("/v1/models");

    expect(answer.status).toBe(200);
    const { object, data } = answer.json<OpenAiList>();
    expect(object).toBe("list");
    expect(data.find(({ id }) => id === "acme/chat")).toEqual({
      id: "acme/chat",
      object: "model",
      created: expect.any(Number),
      owned_by: "acme",
      aliases: ["chat"],
      context_length: 128000,
      capabilities: ["tools"],
      pricing: expect.objectContaining({ currency: "credits", input_text_tokens: "0.000001", output_text_tokens: "0.000002" }),
      input_modalities: ["text"],
      output_modalities: ["text"],
    });
  });

  it("refuses a wrong key", async () => {
    expectEnvelope(await client.get("/v1/models", { key: "sk_wrong" }), 401, "UNAUTHORIZED");
    expectEnvelope(await client.get("/v1/models?key=sk_wrong"), 401, "UNAUTHORIZED");
  });

  it("shows a restricted key its own models", async () => {
    const { key } = await createKey(app, { allowedModels: ["chat"] });

    expect((await client.get("/v1/models", { key })).json<OpenAiList>().data.map(({ id }) => id)).toEqual(["acme/chat"]);
    expect((await client.get("/models", { key })).json<Catalog>().map(({ name }) => name)).toEqual(["acme/chat"]);
    expect((await client.get("/v1/models/acme/chat", { key })).status).toBe(200);
    expectEnvelope(await client.get("/v1/models/acme/free", { key }), 404, "NOT_FOUND");
  });
});

describe("GET /v1/models/{id}", () => {
  for (const path of ["acme/chat", "acme%2Fchat", "chat"]) {
    it(`finds ${path}`, async () => {
      expect((await client.get(`/v1/models/${path}`)).json()).toMatchObject({ id: "acme/chat", object: "model" });
    });
  }

  for (const path of ["acme/nothing", "acme", "acme/chat/more", "__proto__", "constructor"]) {
    it(`answers 404 to ${path}`, async () => {
      expectEnvelope(await client.get(`/v1/models/${path}`), 404, "NOT_FOUND");
    });
  }
});

describe("the catalog", () => {
  it("lists every model as a plain array with the documented fields", async () => {
    const models = (await client.get("/models")).json<Catalog>();

    const chat = models.find(({ name }) => name === "acme/chat");
    expect(chat).toMatchObject({
      name: "acme/chat",
      aliases: ["chat"],
      publisher: "acme",
      category: "text",
      flags: { paid: true, alpha: false },
      community: false,
    });
    expect(Object.keys(chat ?? {}).sort()).toEqual(
      [
        "name",
        "aliases",
        "publisher",
        "brand_url",
        "title",
        "description",
        "category",
        "input_modalities",
        "output_modalities",
        "capabilities",
        "flags",
        "pricing",
        "context_length",
        "voices",
        "community",
        "agent",
        "owner",
        "per_user_rpm",
        "health",
        "added_at",
        "pending_change",
      ].sort(),
    );
  });

  it("filters by modality", async () => {
    const categories = async (path: string) => new Set((await client.get(path)).json<Catalog>().map(({ category }) => category));

    expect(await categories("/text/models")).toEqual(new Set(["text"]));
    for (const [path, allowed] of [
      ["/image/models", ["image", "video"]],
      ["/video/models", ["video"]],
      ["/audio/models", ["audio"]],
      ["/embeddings/models", ["embedding"]],
    ] as const) {
      for (const category of await categories(path)) expect(allowed).toContain(category);
    }
  });

  it("filters by capability, community and words", async () => {
    const names = async (query: string) => (await client.get(`/text/models?${query}`)).json<Catalog>().map(({ name }) => name);

    expect(await names("capability=tools&search=acme")).toEqual(["acme/chat"]);
    expect(await names("search=ACME%20free")).toEqual(["acme/free"]);
    expect(await names("community=true")).toEqual([]);
    expect(await names("community=0&search=acme/free")).toEqual(["acme/free"]);
    expect(await names("reliability=all&search=acme/free")).toEqual(["acme/free"]);
  });

  for (const query of ["capability=flying", "community=maybe", "reliability=none", "search=a&search=b", `search=${"x".repeat(254)}`]) {
    it(`answers 400 to ?${query.slice(0, 30)}`, async () => {
      expectEnvelope(await client.get(`/models?${query}`), 400, "BAD_REQUEST");
    });
  }

  it("answers HEAD", async () => {
    expect((await client.request("HEAD", "/models")).status).toBe(200);
  });
});
