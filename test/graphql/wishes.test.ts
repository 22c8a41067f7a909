/** The caller's wishes in the graph (docs/spec/routing.md#wishes). */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  ChatCompletionEventsDocument,
  type ChatCompletionInput,
  CreatePresetDocument,
  WishedChatDocument,
  WishedEmbeddingDocument,
  WishedResponseDocument,
} from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { type KeyedUpstream, startKeyedUpstream } from "../support/keyed-upstream.js";
import { codes, execute, ok, subscribeSse } from "./client.js";

let app: TestApp;
let alpha: KeyedUpstream;
let beta: KeyedUpstream;

beforeAll(async () => {
  [alpha, beta] = await Promise.all([startKeyedUpstream(), startKeyedUpstream()]);
  const prices = { promptTextPrice: "0.000001", completionTextPrice: "0.000002" };
  const onAlpha = { upstream: "alpha", upstreamModel: "a" };
  const onBeta = { upstream: "beta", upstreamModel: "b", priority: 1 };
  app = await createTestApp({
    upstreams: [
      { id: "alpha", wireFormat: "openai", baseUrl: alpha.baseUrl, apiKey: "alpha-1" },
      { id: "beta", wireFormat: "openai", baseUrl: beta.baseUrl, apiKey: "beta-1" },
    ],
    models: [
      { id: "wished/both", title: "both", modality: "text", routes: [onAlpha, onBeta], prices },
      { id: "wished/beta", title: "beta", modality: "text", routes: [onBeta], prices },
    ],
  });
});
afterAll(async () => {
  await app.close();
  await Promise.all([alpha.close(), beta.close()]);
});

let conversations = 0;

/** Each is a conversation of its own, so that none stays with the upstream of another. */
function inputOf(more: Partial<ChatCompletionInput>): ChatCompletionInput {
  conversations += 1;
  return { model: "wished/both", messages: [{ role: "USER", content: `Hi ${conversations}` }], maxTokens: 8, ...more };
}

const chat = (more: Partial<ChatCompletionInput>) => execute(app, WishedChatDocument, { input: inputOf(more) });

describe("a chat over GraphQL", () => {
  it.each<[Partial<ChatCompletionInput>, string]>([
    [{}, "alpha"],
    [{ provider: { order: ["beta"] } }, "beta"],
    [{ provider: { only: ["beta"], sort: "PRICE", allowsFallbacks: true } }, "beta"],
    [{ provider: { ignore: ["alpha"], maxPrice: { prompt: "1", completion: "2" } } }, "beta"],
    [{ model: "wished/beta", models: ["wished/both"] }, "beta"],
    [{ model: "wished/both:floor" }, "alpha"],
  ])("with %j is served by %s", async (more, upstream) => {
    expect(ok(await chat(more)).createChatCompletion.receipt.upstream).toBe(upstream);
  });

  it("is streamed with its wishes", async () => {
    const input = inputOf({ provider: { order: ["beta"] } });

    const events = await subscribeSse(app, ChatCompletionEventsDocument, { input }).rest();

    expect(JSON.stringify(events.at(-1))).toContain('"upstream":"beta"');
  });

  it.each<[Partial<ChatCompletionInput>, string]>([
    [{ provider: { only: ["gamma"] } }, "provider.only.0"],
    [{ provider: { only: ["alpha"], ignore: ["alpha"] } }, "provider.only"],
    [{ models: ["wished/none"] }, "models.0"],
    [{ preset: "none" }, "preset"],
    [{ provider: { maxPrice: { prompt: "0.000001" } } }, "provider"],
    [{ provider: { order: ["beta"], only: ["alpha"] } }, "provider.order"],
    [{ provider: { quantizations: ["int3"] } }, "provider.quantizations.0"],
    [{ provider: { quantizations: ["fp8"] } }, "provider"],
    [{ model: "wished/both:nitro", provider: { sort: "LATENCY" } }, "provider.sort"],
    [{ models: Array(9).fill("wished/beta") }, "models"],
    [{ preset: "none@2" }, "preset"],
  ])("refuses %j and names %s", async (more, param) => {
    const answer = await chat(more);

    expect(codes(answer)).toEqual(["BAD_REQUEST"]);
    expect(answer.errors?.[0]?.extensions.param).toBe(param);
  });

  it.each(["-1", "1e-12", "0.0000000001", "Infinity", "NaN", "1e30"])("refuses a price of %s", async (prompt) => {
    expect(codes(await chat({ provider: { maxPrice: { prompt } } }))).toEqual(["BAD_REQUEST"]);
  });

  it("is filled by a preset", async () => {
    ok(await execute(app, CreatePresetDocument, { input: { name: "short", model: "wished/beta", systemPrompt: "Be brief." } }));

    const { model: _, ...input } = inputOf({ preset: "short" });
    const { receipt } = ok(await execute(app, WishedChatDocument, { input })).createChatCompletion;

    expect(receipt).toMatchObject({ upstream: "beta" });
  });
});

it("responses take wishes, too", async () => {
  const input = { model: "wished/both", input: { text: "Hello" }, provider: { order: ["beta"] } };

  expect(ok(await execute(app, WishedResponseDocument, { input })).createResponse.receipt.upstream).toBe("beta");
});

it("embeddings refuse wishes that leave no upstream", async () => {
  const input = { model: "sandbox/embedding", input: [{ text: "Hello" }], provider: { ignore: ["sandbox"] } };
  const answer = await execute(app, WishedEmbeddingDocument, { input });

  expect(codes(answer)).toEqual(["BAD_REQUEST"]);
  expect(answer.errors?.[0]?.extensions.param).toBe("provider");
});
