/** The caller's wishes (docs/spec/routing.md#wishes): which upstreams and models may serve, in which order, and at which price. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { execute, executeText, ok } from "../graphql/client.js";
import { CreatePresetDocument, UpdatePresetDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { type KeyedUpstream, startKeyedUpstream } from "../support/keyed-upstream.js";
import { chatCompletion, wireUsage } from "../support/openai-bodies.js";
import { type Client, createClient, createKey } from "./client.js";

let app: TestApp;
let alpha: KeyedUpstream;
let beta: KeyedUpstream;
let client: Client;

const CHEAP = { promptTextPrice: "0.000001", completionTextPrice: "0.000002" };
const DEAR = { promptTextPrice: "0.00001", completionTextPrice: "0.00003" };

beforeAll(async () => {
  [alpha, beta] = await Promise.all([startKeyedUpstream(), startKeyedUpstream()]);
  const model = (id: string, routes: readonly object[], prices: object, more: object = {}) => ({
    ...{ id, title: id, modality: "text", routes, prices },
    ...more,
  });
  const onAlpha = { upstream: "alpha", upstreamModel: "a", dataPolicy: "zero-retention", quantization: "fp8" };
  const onBeta = { upstream: "beta", upstreamModel: "b", priority: 1 };
  app = await createTestApp({
    upstreams: [
      { id: "alpha", wireFormat: "openai", baseUrl: alpha.baseUrl, apiKey: "alpha-1" },
      { id: "beta", wireFormat: "openai", baseUrl: beta.baseUrl, apiKey: "beta-1" },
    ],
    models: [
      model("wished/both", [onAlpha, onBeta], CHEAP),
      model("wished/alpha", [onAlpha], CHEAP),
      model("wished/beta", [onBeta], DEAR),
      model("wished/named:nitro", [onBeta], CHEAP),
      model("wished/rare", [onBeta], CHEAP, { perUserRpm: 0.001 }),
      { id: "wished/picture", title: "p", modality: "image", routes: [onAlpha], prices: { completionImagePrice: "0.01" } },
    ],
  });
  client = createClient(app.baseUrl, app.key);
});
beforeEach(() => {
  for (const upstream of [alpha, beta]) {
    upstream.answers.clear();
    upstream.requests.clear();
  }
});
afterAll(async () => {
  await app.close();
  await Promise.all([alpha.close(), beta.close()]);
});

const messages = [{ role: "user", content: "Hi" }];

let conversations = 0;

/** Each is a conversation of its own, so that none stays with the upstream of another. */
function chat(model: string | undefined, more: object = {}) {
  conversations += 1;
  return client.post("/v1/chat/completions", { model, messages, max_tokens: 8, prompt_cache_key: `${conversations}`, ...more });
}

type Answer = Awaited<ReturnType<typeof chat>>;

function served({ status, headers }: Answer): unknown {
  return [status, headers.get("x-upstream")];
}

function refused(answer: Answer): { param: string; message: string; details: { reasons?: unknown } } {
  expect(answer.status).toBe(400);
  return answer.json<{ error: { param: string; message: string; details: { reasons?: unknown } } }>().error;
}

describe("provider", () => {
  it.each([
    ["nothing", {}, "alpha"],
    ["order", { order: ["beta"] }, "beta"],
    ["order in any case", { order: ["BETA", "alpha"] }, "beta"],
    ["only", { only: ["beta"] }, "beta"],
    ["ignore", { ignore: ["alpha"] }, "beta"],
    ["data_collection", { data_collection: "deny" }, "alpha"],
    ["quantizations", { quantizations: ["unknown"] }, "beta"],
    ["max_price", { max_price: { prompt: 1, completion: "2" } }, "alpha"],
  ])("chooses by %s", async (_, provider, upstream) => {
    expect(served(await chat("wished/both", { provider }))).toEqual([200, upstream]);
  });

  it("falls back to an upstream outside of the order", async () => {
    beta.answers.set("beta-1", { status: 500 });

    expect(served(await chat("wished/both", { provider: { order: ["beta"] } }))).toEqual([200, "alpha"]);
  });

  it.each([
    ["with an order", { order: ["beta"], allow_fallbacks: false }, "beta"],
    ["without one", { allow_fallbacks: false }, "alpha"],
  ])("calls no other upstream without fallbacks, %s", async (_, provider, failing) => {
    const [upstream, other] = failing === "beta" ? [beta, alpha] : [alpha, beta];
    upstream.answers.set(`${failing}-1`, { status: 500 });

    expect((await chat("wished/both", { provider })).status).toBe(502);
    expect(other.requests.size).toBe(0);
  });

  it("holds for responses, messages and completions", async () => {
    const provider = { only: ["beta"] };
    const model = "wished/both";
    const answers = await Promise.all([
      client.post("/v1/responses", { model, input: "Hi", provider }),
      client.post("/v1/messages", { model, messages, max_tokens: 8, provider }),
      client.post("/v1/completions", { model, prompt: "Hi", provider }),
      chat(model, { provider, stream: true }),
    ]);

    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect([alpha.requests.size, beta.requests.get("beta-1")]).toEqual([0, 4]);
  });

  it.each([
    [{ only: ["alpah"] }, "provider.only.0", "alpha"],
    [{ order: ["beta"], only: ["alpha"] }, "provider.order", "beta"],
    [{ only: ["beta"], ignore: ["BETA"] }, "provider.only", "beta"],
    [{ max_price: { prompt: -1 } }, "provider.max_price.prompt", "0"],
    [{ max_price: { prompt: "Infinity" } }, "provider.max_price.prompt", "0"],
    [{ max_price: { prompt: 1e-12 } }, "provider.max_price.prompt", "9 decimals"],
    [{ sort: "cheapest" }, "provider.sort", "price"],
    [{ onyl: ["alpha"] }, "provider.onyl", "only"],
    [{ order: Array(65).fill("alpha") }, "provider.order", "64"],
    [{ max_price: { completion: -0.000000001 } }, "provider.max_price.completion", "0"],
    [{ max_price: { image: "NaN" } }, "provider.max_price.image", "0"],
    [{ max_price: { request: 1e30 } }, "provider.max_price.request", "0"],
    [{ max_price: { prompt: "0.0000000001" } }, "provider.max_price.prompt", "9 decimals"],
    [{ max_price: 1 }, "provider.max_price", "object"],
    [{ allow_fallbacks: "yes" }, "provider.allow_fallbacks", "true"],
    [{ quantizations: ["int3"] }, "provider.quantizations.0", "fp8"],
    [["alpha"], "provider", "object"],
    ["alpha", "provider", "object"],
  ])("refuses %j, naming the field", async (provider, param, fragment) => {
    const error = refused(await chat("wished/both", { provider }));

    expect(error.param).toBe(param);
    expect(error.message).toContain(fragment);
    expect(alpha.requests.size + beta.requests.size).toBe(0);
  });

  it.each([
    ["wished/both", { max_price: { prompt: "0.999999999" } }, "too_expensive"],
    ["wished/alpha", { only: ["beta"] }, "not_in_only"],
    ["wished/beta", { data_collection: "deny" }, "data_collection"],
    ["wished/alpha", { quantizations: ["int4"] }, "quantization"],
    ["wished/alpha", { ignore: ["alpha"] }, "ignored"],
  ])("refuses wishes that leave no upstream of %s: %j", async (model, provider, code) => {
    const error = refused(await chat(model, { provider }));

    expect(error.param).toBe("provider");
    expect(error.details.reasons).toContainEqual({ route: expect.any(String), code, retryAfterSeconds: null });
  });

  it("takes OpenRouter's route, and refuses others naming it", async () => {
    expect((await chat("wished/both", { route: "fallback" })).status).toBe(200);
    const error = refused(await chat("wished/both", { route: "best" }));

    expect([error.param, error.message.includes("fallback")]).toEqual(["route", true]);
  });

  it("counts as another request for an Idempotency-Key", async () => {
    const send = (provider: object) =>
      client.post("/v1/chat/completions", { model: "wished/both", messages, provider }, { headers: { "Idempotency-Key": "wishes-1" } });
    expect((await send({ only: ["alpha"] })).status).toBe(200);

    expect((await send({ only: ["beta"] })).status).toBe(409);
  });
});

describe("models", () => {
  async function cost(answer: Answer): Promise<string | null> {
    return answer.headers.get("x-cost");
  }

  it("serves and charges the next model at its own price", async () => {
    alpha.answers.set("alpha-1", { status: 500 });
    const answer = await chat("wished/alpha", { models: ["wished/beta"] });
    const own = await chat("wished/beta");

    expect([answer.status, answer.headers.get("x-model-used")]).toEqual([200, "wished/beta"]);
    expect(await cost(answer)).toBe(await cost(own));
  });

  it("charges a stream at the price of the model that serves", async () => {
    const streamed = async (model: string, more: object = {}) => {
      const { headers } = await chat(model, { stream: true, ...more });
      const { usage } = (await client.get("/account/usage?limit=10")).json<{ usage: Record<string, unknown>[] }>();
      return usage.find(({ request_id: id }) => id === headers.get("x-generation-id"))?.cost_usd;
    };
    alpha.answers.set("alpha-1", { status: 500 });

    const cost = await streamed("wished/alpha", { models: ["wished/beta"] });

    expect(cost).toBeGreaterThan(0);
    expect(cost).toBe(await streamed("wished/beta"));
  });

  it("charges the cheaper model at its price after a dearer one failed", async () => {
    const own = await chat("wished/alpha");
    beta.answers.set("beta-1", { status: 500 });
    const answer = await chat("wished/beta", { models: ["wished/alpha"] });

    expect([answer.status, await cost(answer)]).toEqual([200, await cost(own)]);
  });

  it("holds and quotes the dearest", async () => {
    const quote = async (model: string, more: object = {}) =>
      (await client.post("/v1/chat/completions?quote=true", { model, messages, max_tokens: 8, ...more })).json<{ most: string }>().most;

    expect(await quote("wished/alpha", { models: ["wished/beta"] })).toBe(await quote("wished/beta"));
  });

  it("quotes the least of the cheapest", async () => {
    const long = { messages: [{ role: "user", content: "word ".repeat(2_000) }], max_tokens: 8 };
    const body = { model: "wished/beta", models: ["wished/alpha"], ...long };
    const { least, most } = (await client.post("/v1/quote", { path: "/v1/chat/completions", body })).json<{
      least: string;
      most: string;
    }>();
    const [own, cheap] = await Promise.all(
      ["wished/beta", "wished/alpha"].map(async (model) =>
        (await client.post("/v1/chat/completions?quote=true", { model, ...long })).json<{ least: string; most: string }>(),
      ),
    );

    expect([least, most]).toEqual([cheap?.least, own?.most]);
    expect(Number(least)).toBeLessThan(Number(own?.least));
  });

  it("charges within the quote, whichever model serves", async () => {
    let seed = 7;
    const draw = (count: number) => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
      return Math.floor((seed / 2_147_483_648) * count);
    };
    for (let turn = 0; turn < 40; turn += 1) {
      const words = 1 + draw(600);
      const [first = "", second = ""] = draw(2) === 0 ? ["wished/alpha", "wished/beta"] : ["wished/beta", "wished/alpha"];
      for (const [upstream, key] of [
        [alpha, "alpha-1"],
        [beta, "beta-1"],
      ] as const)
        upstream.answers.set(key, (response) => {
          response.writeHead(200, { "content-type": "application/json" });
          response.end(JSON.stringify(chatCompletion({ usage: wireUsage(words + 7, draw(20)) })));
        });
      if (draw(2) === 0)
        (first === "wished/alpha" ? alpha : beta).answers.set(first === "wished/alpha" ? "alpha-1" : "beta-1", { status: 500 });
      const more = { models: [second], messages: [{ role: "user", content: "word ".repeat(words) }], max_tokens: 20 };
      const quote = (await client.post("/v1/quote", { path: "/v1/chat/completions", body: { model: first, ...more } })).json<{
        least: string;
        most: string;
      }>();

      const answer = await chat(first, more);

      const cost = Number(answer.headers.get("x-cost"));
      expect(answer.status).toBe(200);
      expect([cost >= Number(quote.least), cost <= Number(quote.most)], `${turn}: ${JSON.stringify(quote)}, ${cost}`).toEqual([true, true]);
      for (const upstream of [alpha, beta]) upstream.answers.clear();
    }
  });

  it("leaves out a model that the wishes exclude", async () => {
    const answer = await chat("wished/alpha", { models: ["wished/beta"], provider: { only: ["beta"] } });

    expect([answer.status, answer.headers.get("x-model-used")]).toEqual([200, "wished/beta"]);
    expect(await cost(answer)).toBe(await cost(await chat("wished/beta")));
  });

  it.each([
    [["wished/beat"], "models.0", "wished/beta"],
    [["wished/beta", "wished/picture"], "models.1", "image"],
    [Array(9).fill("wished/beta"), "models", "8"],
    ["wished/beta", "models", "an array"],
  ])("refuses %j", async (models, param, fragment) => {
    const error = refused(await chat("wished/alpha", { models }));

    expect(error.param).toBe(param);
    expect(error.message).toContain(fragment);
  });

  it("counts a request for the rate limit of each", async () => {
    expect((await chat("wished/alpha", { models: ["wished/rare"] })).status).toBe(200);

    expect((await chat("wished/alpha", { models: ["wished/rare"] })).status).toBe(429);
  });

  it("holds a key's allowed models for each", async () => {
    const { key } = await createKey(app, { allowedModels: ["wished/alpha"] });
    const answer = await createClient(app.baseUrl, key).post("/v1/chat/completions", {
      ...{ model: "wished/alpha", models: ["wished/beta"], messages },
    });

    expect([answer.status, answer.json<{ error: { param: string } }>().error.param]).toEqual([403, "models.0"]);
  });
});

describe("a suffix of the model's name", () => {
  it.each(["wished/both:nitro", "wished/both:floor"])("is a wish: %s", async (model) => {
    expect((await chat(model)).status).toBe(200);
  });

  it("is part of a name that has it", async () => {
    expect(served(await chat("wished/named:nitro"))).toEqual([200, "beta"]);
  });

  it("is refused beside another sort, and after an unknown name", async () => {
    expect(refused(await chat("wished/both:nitro", { provider: { sort: "price" } })).param).toBe("provider.sort");
    expect(refused(await chat("wished/nothing:nitro")).param).toBe("model");
  });
});

describe("a preset", () => {
  beforeAll(async () => {
    const input = `{ name: "terse", model: "wished/beta", systemPrompt: "Be terse.", parameters: { temperature: 0.25, max_tokens: 5 } }`;
    const created = await executeText(app, { query: `mutation { createPreset(input: ${input}) { preset { name } } }` });
    expect(created).not.toHaveProperty("errors");
  });

  it.each([
    ["its name", { preset: "terse" }],
    ["a model", { model: "@preset/terse" }],
  ])("fills the request by %s", async (_, named) => {
    const answer = await client.post("/v1/chat/completions", { messages, ...named });

    expect(served(answer)).toEqual([200, "beta"]);
  });

  it("leaves what the request states", async () => {
    expect(served(await chat("wished/alpha", { preset: "terse" }))).toEqual([200, "alpha"]);
  });

  it("fills Gemini's format, by the path and by the body", async () => {
    const contents = [{ role: "user", parts: [{ text: "Hi" }] }];
    const ask = (model: string, more: object = {}) => client.post(`/v1beta/models/${model}:generateContent`, { contents, ...more });

    const answers = [await ask("@preset/terse"), await ask("models/@preset/terse"), await ask("wished/alpha", { preset: "terse" })];

    expect(answers.map(served)).toEqual([
      [200, "beta"],
      [200, "beta"],
      [200, "alpha"],
    ]);
    expect(served(await ask("wished/both:floor", { provider: { only: ["beta"] } }))).toEqual([200, "beta"]);
    expect(served(await ask("wished/named:nitro"))).toEqual([200, "beta"]);
    const unknown = await ask("wished/nothing:nitro");
    expect([unknown.status, unknown.json<{ error: { param: string } }>().error.param]).toEqual([404, "model"]);
  });

  it("counts the tokens of Gemini's format by the same names", async () => {
    const contents = [{ role: "user", parts: [{ text: "Hi" }] }];

    for (const model of ["wished/both:nitro", "@preset/terse"]) {
      expect((await client.post(`/v1beta/models/${model}:countTokens`, { contents })).status).toBe(200);
    }
  });

  it("has wishes and versions, and holds a key's allowed models for each", async () => {
    const created = await execute(app, CreatePresetDocument, {
      input: { name: "wishing", model: "wished/both", models: ["wished/beta"], provider: { only: ["beta"] } },
    });
    const { id } = ok(created).createPreset.preset;
    ok(await execute(app, UpdatePresetDocument, { input: { id, provider: { only: ["alpha"] } } }));
    const ask = (more: object) => chat(undefined, more);

    expect(served(await ask({ preset: "wishing" }))).toEqual([200, "alpha"]);
    expect(served(await ask({ preset: "wishing@2" }))).toEqual([200, "alpha"]);
    expect(served(await ask({ model: "@preset/wishing@1" }))).toEqual([200, "beta"]);
    expect(served(await ask({ preset: "wishing", provider: { only: ["beta"] } }))).toEqual([200, "beta"]);
    const unkept = refused(await ask({ preset: "wishing@3" }));
    expect([unkept.param, unkept.message]).toEqual(["preset", expect.stringContaining("2, 1")]);
    for (const preset of ["wishing@0", "wishing@", "wishing@1e3", "@1"]) expect(refused(await ask({ preset })).param).toBe("preset");
    const { key } = await createKey(app, { allowedModels: ["wished/both"] });
    const limited = await createClient(app.baseUrl, key).post("/v1/chat/completions", { messages, preset: "wishing" });
    expect([limited.status, limited.json<{ error: { param: string } }>().error.param]).toEqual([403, "models.0"]);
  });

  it("answers a repeated request as the first, also when it has changed", async () => {
    const created = await execute(app, CreatePresetDocument, { input: { name: "changing", model: "wished/beta" } });
    const send = (headers = { "Idempotency-Key": "preset-1" }) =>
      client.post("/v1/chat/completions", { messages, preset: "changing", provider: { sort: "price" } }, { headers });
    const first = await send();
    ok(await execute(app, UpdatePresetDocument, { input: { id: ok(created).createPreset.preset.id, model: "wished/alpha" } }));

    const again = await send();

    expect([again.status, again.headers.get("x-idempotent-replay"), again.text]).toEqual([200, "true", first.text]);
    expect(served(await send({ "Idempotency-Key": "preset-2" }))).toEqual([200, "alpha"]);
    const other = { messages, preset: "changing", provider: { sort: "latency" } };
    const headers = { "Idempotency-Key": "preset-1" };
    expect((await client.post("/v1/chat/completions", other, { headers })).status).toBe(409);
  });

  it("is never dearer than its quote", async () => {
    const body = { messages, max_tokens: 8, preset: "wishing@1" };
    const { most } = (await client.post("/v1/chat/completions?quote=true", body)).json<{ most: string }>();
    beta.answers.set("beta-1", { status: 500 });
    alpha.answers.set("alpha-1", { status: 500 });
    expect((await client.post("/v1/chat/completions", body)).status).toBe(502);
    beta.answers.clear();

    const answer = await client.post("/v1/chat/completions", body);

    expect(answer.status).toBe(200);
    expect(Number(answer.headers.get("x-cost"))).toBeLessThanOrEqual(Number(most));
  });

  it("is quoted as it is served", async () => {
    const quoteOf = async (path: string, body: object) =>
      (await client.post("/v1/quote", { path, body })).json<{ model: string; most: string }>();
    const contents = [{ role: "user", parts: [{ text: "Hi" }] }];

    expect(await quoteOf("/v1beta/models/@preset/terse:generateContent", { contents })).toMatchObject({ model: "wished/beta" });
    expect(await quoteOf("/v1beta/models/wished/both:nitro:generateContent", { contents })).toMatchObject({ model: "wished/both" });
    const asked = `/text/Hi?model=wished/alpha&provider=${encodeURIComponent('{"only":["beta"]}')}`;
    expect(refused(await client.post("/v1/quote", { path: asked, body: {} })).param).toBe("provider");
  });

  it("fills plain texts, and refuses a system prompt in completions", async () => {
    expect(served(await client.post("/text", { messages, preset: "terse" }))).toEqual([200, "beta"]);
    const error = refused(await client.post("/v1/completions", { prompt: "Hi", preset: "terse" }));

    expect([error.param, error.message.includes("system prompt")]).toEqual(["preset", true]);
  });

  it("fills responses and messages", async () => {
    const answers = await Promise.all([
      client.post("/v1/responses", { input: "Hi", preset: "terse" }),
      client.post("/v1/messages", { model: "@preset/terse", messages }),
    ]);

    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  });

  it("is refused when the account has none of that name", async () => {
    const error = refused(await chat(undefined, { preset: "tersse" }));

    expect([error.param, error.message.includes("terse")]).toEqual(["preset", true]);
    expect(refused(await chat("@preset/\u0000")).param).toBe("model");
  });

  it("is refused where it has no place", async () => {
    const answer = await client.post("/v1/embeddings", { input: "Hi", preset: "terse" });

    expect(refused(answer).param).toBe("preset");
  });
});
