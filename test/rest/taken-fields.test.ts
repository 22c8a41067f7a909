/**
 * What a vendor of the bundled catalog is sent: the fields of this gateway, of OpenAI's format and those that are known to be free there.
 * Any other field is refused by name; an operator's entry lets more through (docs/spec/credits.md#billed-fields).
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { BILLED_FIELDS, canonicalName } from "../../src/services/catalog/billed-fields.js";
import { BUNDLED_VENDOR_ENTRIES } from "../../src/services/catalog/bundled.js";
import { BUNDLED_VENDORS } from "../../src/services/catalog/bundled-vendors.js";
import { FORMAT_FIELDS } from "../../src/services/catalog/field-names.js";
import type { Modality } from "../../src/services/catalog/modality.js";
import { execute } from "../graphql/client.js";
import { ChatDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { type FakeRealtime, startFakeRealtime } from "../support/fake-realtime.js";
import { type FakeUpstream, startFakeUpstream } from "../support/fake-upstream.js";
import { recording } from "../support/recordings.js";
import { errorReply } from "../support/upstream-replies.js";
import { type Answer, type Client, createClient } from "./client.js";
import { connectRealtime } from "./realtime-client.js";

type Fields = Readonly<Record<string, unknown>>;

let vendor: FakeUpstream;
let live: FakeRealtime;
let app: TestApp;
let spoken: TestApp;
let client: Client;

const MESSAGES = { messages: [{ role: "user", content: "Hello" }] };
const PRICES = { promptTextPrice: "0.000001", completionTextPrice: "0.000002" };
/** Vendors that speak OpenAI's format, each by one of its models. */
const MODELS: Readonly<Record<string, string>> = {
  openai: "openai/gpt-4o",
  mistral: "mistral/mistral-small-latest",
  groq: "openai/gpt-oss-20b",
  deepseek: "deepseek/deepseek-v4-flash",
  xai: "xai/grok-4.3",
  moonshot: "moonshotai/kimi-k3",
  zai: "zai/glm-5.3",
  cerebras: "google/gemma-4-31b-it",
  openrouter: "qwen/qwen3.7-max",
};

beforeAll(async () => {
  vendor = await startFakeUpstream();
  live = await startFakeRealtime();
  const settings = { apiKey: "key", baseUrl: vendor.baseUrl };
  const vendors = Object.fromEntries(BUNDLED_VENDORS.map((each) => [each, settings]));
  const entry = (id: string, more: object) => ({ id, modality: "text", upstreamModel: "m", title: id, prices: PRICES, ...more });
  app = await createTestApp({
    config: { vendors: vendors as never },
    models: [
      entry("own/strict", { upstream: "openai" }),
      entry("own/wider", { upstream: "openai", passFields: ["frobnicate", "service_tier", "provider_options.acme"] }),
      entry("own/open", { upstream: "acme", fallbacks: ["own/strict"] }),
      entry("own/passing", { upstream: "acme", passFields: ["chat_template_kwargs"] }),
    ],
  });
  spoken = await createTestApp({ config: { vendors: { openai: { apiKey: "key", baseUrl: live.baseUrl } } as never } });
  client = createClient(app.baseUrl, app.key);
});
afterAll(async () => {
  await Promise.all([app.close(), spoken.close()]);
  await Promise.all([vendor.close(), live.close()]);
});

const chat = (model: string, fields: Fields) => client.post("/v1/chat/completions", { model, ...MESSAGES, ...fields });

const post = (path: string, base: Fields) => async (model: string, fields: Fields) =>
  paramOf(await client.post(path, { model, ...base, ...fields }));

/** Resolves with the name of the field that is refused. No bundled vendor makes music or reranks. */
const ASK: Readonly<Record<Exclude<Modality, "realtime" | "music" | "rerank">, (model: string, fields: Fields) => Promise<unknown>>> = {
  text: post("/v1/chat/completions", MESSAGES),
  image: post("/v1/images/generations", { prompt: "A" }),
  video: post("/v1/videos", { prompt: "A" }),
  speech: post("/v1/audio/speech", { input: "A" }),
  transcription: async (model, fields) => {
    const { error } = await transcribe({ model, ...fields });
    return error?.param;
  },
  embedding: post("/v1/embeddings", { input: "A" }),
  moderation: post("/v1/moderations", { input: "A" }),
};

async function transcribe(fields: Fields): Promise<{ readonly status?: number; readonly error?: { readonly param: string } }> {
  const body = new FormData();
  for (const [name, value] of Object.entries(fields)) body.append(name, String(value));
  body.append("file", new Blob([new Uint8Array(recording(0.1))]), "a.wav");
  const answer = await fetch(`${app.baseUrl}/v1/audio/transcriptions`, {
    method: "POST",
    headers: { authorization: `Bearer ${app.key}` },
    body,
  });
  return (await answer.json()) as { status?: number; error?: { param: string } };
}

function paramOf(answer: Answer): unknown {
  return answer.status === 400 ? answer.json<{ error: { param: string } }>().error.param : answer.status;
}

describe("a vendor of the bundled catalog", () => {
  const openAi = BUNDLED_VENDORS.filter((each) => (BUNDLED_VENDOR_ENTRIES[each].wireFormat ?? "openai") === "openai");

  it("has a model here for each that speaks OpenAI's format", () => {
    expect(Object.keys(MODELS).sort()).toEqual([...openAi].sort());
    const served = Object.values(MODELS).map((model) => app.services.catalog.find(model)?.routes[0].vendor);
    expect(served).toEqual(Object.keys(MODELS));
  });

  it.each<[string, Fields]>([
    ["mistral", { safe_prompt: true, random_seed: 1 }],
    ["groq", { reasoning_format: "parsed", include_reasoning: true, documents: [] }],
    ["deepseek", { thinking: { type: "disabled" } }],
    ["moonshot", { thinking: { type: "disabled" } }],
    ["zai", { thinking: { type: "enabled" }, do_sample: true, request_id: "a", tool_stream: true }],
    ["openrouter", { top_k: 4, min_p: 0.1, reasoning: { effort: "low" }, usage: { include: true } }],
    ["openai", { verbosity: "low", logit_bias: { 1: 2 }, safety_identifier: "a", prompt_cache_key: "b", metadata: { a: "b" } }],
    ["xai", { reasoning_effort: "low", user: "u1" }],
  ])("is sent its free fields: %s", async (name, fields) => {
    const answer = await chat(MODELS[name] ?? "", fields);

    expect([answer.status, answer.text]).toEqual([200, expect.anything()]);
    expect(vendor.requests.at(-1)?.json).toMatchObject(fields);
  });

  it.each(Object.entries(MODELS))("is sent no other field: %s", async (_vendor, model) => {
    const before = vendor.requests.length;

    expect(paramOf(await chat(model, { frobnicate: 1 }))).toBe("frobnicate");
    expect(paramOf(await chat(model, { enable_deluxe: true, stream: true }))).toBe("enable_deluxe");
    expect(paramOf(await chat(model, { frobnicate: null }))).toBe(200);
    expect(vendor.requests.length).toBe(before + 1);
  });

  it("is sent no other field in any of its kinds of request, in every format", async () => {
    const before = vendor.requests.length;
    const pairs = new Map(
      app.services.catalog.models.flatMap(({ id, routes: [{ vendor: served }], modality }) =>
        served === null || id.startsWith("own/") || modality === "realtime" || modality === "rerank" || modality === "music"
          ? []
          : [[`${served} ${modality}`, { id, modality }] as const],
      ),
    );
    const refused = new Map<string, unknown>();
    for (const [pair, { id, modality }] of pairs) refused.set(pair, await ASK[modality](id, { frobnicate: "a" }));

    expect(new Set([...pairs.keys()].map((pair) => pair.split(" ")[0]))).toEqual(new Set(BUNDLED_VENDORS));
    expect(new Set([...pairs.values()].map(({ modality }) => modality))).toEqual(new Set(Object.keys(ASK)));
    expect([...refused].filter(([, param]) => param !== "frobnicate")).toEqual([]);
    expect(vendor.requests.length).toBe(before);
  });

  it("names the field that may have been meant, and the operator's options", async () => {
    const { message } = (await chat("gpt-4o", { temprature: 1 })).json<{ error: { message: string } }>().error;

    expect(message).toBe(
      'The field "temprature" is not passed to the vendor of openai/gpt-4o, because it might change the price. ' +
        "Did you mean temperature? An operator can allow the field in the catalog (passFields of the model).",
    );
  });

  it("is sent no name of any length, and errors do not repeat it", async () => {
    const answer = await chat("gpt-4o", { ["a".repeat(100_000)]: 1 });

    expect(answer.status).toBe(400);
    expect(answer.text.length).toBeLessThan(1_000);
  });

  it.each<[string, string, Fields, Fields]>([
    ["pictures", "/v1/images/generations", { model: "gpt-image-2", prompt: "A" }, { moderation: "low", user: "u" }],
    ["films", "/v1/videos", { model: "sora-2", prompt: "A" }, { seed: 1 }],
    ["speech", "/v1/audio/speech", { model: "tts-1", input: "A" }, { speed: 1 }],
    ["embeddings", "/v1/embeddings", { model: "text-embedding-3-small", input: "A" }, { user: "u", dimensions: 8 }],
    ["moderations", "/v1/moderations", { model: "omni-moderation-latest", input: "A" }, {}],
    ["Responses", "/v1/responses", { model: "gpt-4o", input: "A" }, { prompt_cache_key: "a", include: ["reasoning.encrypted_content"] }],
    ["a vendor of a format of its own", "/v1/chat/completions", { model: "claude-haiku-4-5", ...MESSAGES }, { top_k: 4 }],
  ])("refuses %s with another field, and no other", async (_what, path, base, known) => {
    vendor.replyAlways(errorReply(418));

    expect(paramOf(await client.post(path, { ...base, frobnicate: "a" }))).toBe("frobnicate");
    expect(paramOf(await client.post(path, { ...base, ...known }))).not.toBe("frobnicate");

    expect(vendor.requests.length).toBeGreaterThan(0);
    vendor.replyAlways(null);
  });

  it("refuses such a field of a form, and of the other face", async () => {
    const sent = await transcribe({ model: "whisper-1", frobnicate: "a" });
    const messages = [{ role: "USER" as const, content: "Hello" }];
    const { errors } = await execute(app, ChatDocument, { input: { model: "gpt-4o", messages, extra: { frobnicate: 1 } } });

    expect(sent).toMatchObject({ status: 400, error: { param: "frobnicate" } });
    expect(errors?.[0]?.extensions).toMatchObject({ code: "BAD_REQUEST", param: "extra.frobnicate" });
  });

  it("takes every field of the format that is not billed", async () => {
    const free = FORMAT_FIELDS.text.split(" ").filter((name) => !BILLED_FIELDS.text.has(canonicalName(name)));
    const values: Fields = { provider_options: {}, stream: false, safe: false, n: 1, messages: MESSAGES.messages, model: "gpt-4o" };
    for (const name of free) expect([name, paramOf(await chat("gpt-4o", { [name]: values[name] ?? null }))]).toEqual([name, 200]);
  });

  it("refuses an unknown field in a realtime session, which continues", async () => {
    const caller = await connectRealtime(spoken, "?model=gpt-realtime");
    const far = await live.nextSession();

    caller.send({ type: "session.update", session: { frobnicate: 1 } });
    expect(await caller.next("error")).toMatchObject({ error: { code: "BAD_REQUEST", param: "session.frobnicate" } });
    caller.send({ type: "session.update", session: { type: "realtime", instructions: "Hi", output_modalities: ["text"] } });
    await far.next("session.update");

    expect(far.received).toHaveLength(1);
    caller.socket.close();
    await far.closed;
  });
});

describe("an operator's entry", () => {
  it("of a bundled vendor takes no more, unless it lets it through", async () => {
    expect(paramOf(await chat("own/strict", { frobnicate: 1 }))).toBe("frobnicate");
    const fields = { frobnicate: 1, service_tier: "priority", provider_options: { acme: { a: 1 } } };

    const answer = await chat("own/wider", fields);

    expect(answer.status).toBe(200);
    expect(vendor.requests.at(-1)?.json).toMatchObject(fields);
    // 10 x 0.000001 + 4 x 0.000002
    expect(answer.headers.get("x-cost")).toBe("0.000018");
    expect(paramOf(await chat("own/wider", { frobnicated: 1 }))).toBe("frobnicated");
  });

  it("of another upstream takes fields that are not known to be billed, and the listed ones", async () => {
    expect((await chat("own/open", { frobnicate: 1 })).status).toBe(200);
    expect(app.upstream.requests.at(-1)?.json).toMatchObject({ frobnicate: 1 });
    expect(paramOf(await chat("own/open", { chat_template_kwargs: { enable_thinking: true } }))).toBe("chat_template_kwargs");
    expect((await chat("own/passing", { chat_template_kwargs: { enable_thinking: true } })).status).toBe(200);
  });

  it("is not answered by a fallback that must not be sent the field", async () => {
    app.upstream.replyNext(errorReply(500), errorReply(500));
    const before = vendor.requests.length;

    const refused = await chat("own/open", { frobnicate: 1 });
    const served = await chat("own/open", {});

    expect([refused.status, vendor.requests.length]).toEqual([502, before + 1]);
    expect(served.headers.get("x-fallback")).toBe("own/strict");
  });

  it("of a free model may think, even where thinking is billed elsewhere", async () => {
    const fields = { enable_thinking: true, chat_template_kwargs: { thinking: true } };

    expect((await chat("acme/free", fields)).status).toBe(200);
    expect(app.upstream.requests.at(-1)?.json).toMatchObject(fields);
  });
});
