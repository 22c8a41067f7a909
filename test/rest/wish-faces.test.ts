/** The caller's wishes on every operation that generates (docs/spec/routing.md#wishes): taken, or refused with the field named. */
import { readFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { CREDIT, closeBooks, createPayer, type Payer } from "../e2e/money.js";
import type { GenerationOutcome } from "../support/generation-outcome.js";
import { answerWell, COST_OF, createOperationsApp, deadModelOf, modelOf, type OperationsApp } from "../support/operation-upstreams.js";
import { type Fields, OPERATIONS, type Operation } from "../support/operations.js";

/**
 * The wishes of a contract. All: `provider`, `models` and suffixes of the model. Provider: no `models`, as prices are in other units. None: a
 * session, whose upstream is the one of its model.
 */
type Wishes = "all" | "provider" | "none";
const WISHES: ReadonlyMap<string, Wishes> = new Map<string, Wishes>([
  ["POST /v1/chat/completions", "all"],
  ["POST /v1/completions", "all"],
  ["POST /v1/responses", "all"],
  ["POST /v1/responses/compact", "all"],
  ["POST /v1/messages", "all"],
  ["POST /v1beta/models/{model}:generateContent", "all"],
  ["POST /v1beta/models/{model}:streamGenerateContent", "all"],
  ["POST /text", "all"],
  ["GET /text/{prompt}", "all"],
  ["POST /v1/embeddings", "all"],
  ["POST /v1beta/models/{model}:embedContent", "all"],
  ["POST /v1beta/models/{model}:batchEmbedContents", "all"],
  ["POST /v1/images/generations", "provider"],
  ["POST /v1/images/edits", "provider"],
  ["POST /v1/images/variations", "provider"],
  ["GET /image/{prompt}", "provider"],
  ["GET /video/{prompt}", "provider"],
  ["POST /v1/videos", "provider"],
  ["POST /v1/audio/speech", "provider"],
  ["GET /audio/{text}", "provider"],
  ["POST /v1/audio/transcriptions", "provider"],
  ["POST /v1/audio/translations", "provider"],
  ["POST /v1/rerank", "provider"],
  ["POST /v2/rerank", "provider"],
  ["POST /v1/moderations", "provider"],
  ["GET /v1/realtime", "none"],
  ["Mutation.createChatCompletion", "all"],
  ["Subscription.chatCompletion", "all"],
  ["Mutation.createResponse", "all"],
  ["Subscription.response", "all"],
  ["Mutation.createEmbeddings", "all"],
  ["Mutation.generateImage", "provider"],
  ["Mutation.editImage", "provider"],
  ["Mutation.varyImage", "provider"],
  ["Mutation.startImage", "provider"],
  ["Mutation.startVideo", "provider"],
  ["Mutation.createSpeech", "provider"],
  ["Subscription.speech", "provider"],
  ["Mutation.generateMusic", "provider"],
  ["Mutation.startMusic", "provider"],
  ["Mutation.createTranscription", "provider"],
  ["Mutation.rerank", "provider"],
  ["Mutation.createModeration", "provider"],
]);

let app: OperationsApp;
let payer: Payer;

beforeAll(async () => {
  app = await createOperationsApp();
});
beforeEach(async () => {
  payer = await createPayer(app, { pack: 1_000n * CREDIT });
});
afterEach(() => {
  app.upstream.replyAlways(null);
});
afterAll(() => app.close());

const ask = (operation: Operation, fields: Fields): Promise<GenerationOutcome> => {
  // A query has objects as JSON.
  const isQuery = operation.contract.startsWith("GET ");
  const stated = Object.entries(fields).map(([name, value]) => [
    name,
    isQuery && typeof value === "object" ? JSON.stringify(value) : value,
  ]);
  const asking = { baseUrl: app.baseUrl, wsUrl: app.wsUrl, key: payer.key };
  return operation.ask(asking, { model: modelOf(operation.kind), ...Object.fromEntries(stated) });
};
const calls = () => app.upstream.requests.length + app.realtime.requests.length;
const taking = (...which: readonly Wishes[]) =>
  OPERATIONS.filter(({ contract }) => which.includes(WISHES.get(contract) ?? "none")).map(
    (operation) => [operation.name, operation] as const,
  );

it("are stated for each operation, and for no other", () => {
  expect([...WISHES.keys()].sort()).toEqual([...new Set(OPERATIONS.map(({ contract }) => contract))].sort());
});

it("are stated in the contract of REST", () => {
  const { paths } = JSON.parse(readFileSync(new URL("../../schema/openapi.json", import.meta.url), "utf8")) as OpenApi;
  const stated = [...WISHES].flatMap(([contract]) => {
    const [method = "", path = ""] = contract.split(" ");
    const operation = paths[path]?.[method.toLowerCase()];
    if (operation === undefined || path === "/v1/realtime") return [];
    const inBody = Object.values(operation.requestBody?.content ?? {}).flatMap(({ schema }) => Object.keys(schema.properties));
    const names = [...inBody, ...(operation.parameters ?? []).map(({ name }) => name)];
    return [[contract, names.includes("models") ? "all" : names.includes("provider") ? "provider" : "none"]];
  });

  expect(stated).toEqual([...WISHES].filter(([contract]) => / \/(?!v1\/realtime)/.test(contract)));
});

interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, OpenApiOperation>>>>;
}
interface OpenApiOperation {
  readonly parameters?: readonly { readonly name: string }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: { readonly properties: object } }>> };
}

describe("provider", () => {
  it.each(taking("all", "provider"))("chooses the upstream of %s", async (_, operation) => {
    answerWell(app, operation);

    const outcome = await ask(operation, { provider: { only: ["ACME"], sort: operation.face === "REST" ? "price" : "PRICE" } });

    expect([outcome.code, outcome.message]).toEqual([null, null]);
    const { rows } = await closeBooks(app, payer);
    expect(rows.map(({ costNanocredits }) => costNanocredits)).toEqual([COST_OF[operation.kind]]);
  });

  it.each(taking("all", "provider"))("is refused when it leaves no upstream, or names none, and is free: %s", async (_, operation) => {
    answerWell(app, operation);
    const before = calls();

    const left = await ask(operation, { provider: { ignore: ["acme"] } });
    const unknown = await ask(operation, { provider: { order: ["acmee"] } });
    const contradicting = await ask(operation, { provider: { only: ["acme"], ignore: ["Acme"] } });

    expect([left, unknown, contradicting].map(({ code }) => code)).toEqual(["BAD_REQUEST", "BAD_REQUEST", "BAD_REQUEST"]);
    expect(left.text).toContain('"param":"provider"');
    expect(left.text).toContain('"code":"ignored"');
    expect(unknown.text).toContain('"param":"provider.order.0"');
    expect(unknown.text).toContain("acme");
    expect(contradicting.text).toContain('"param":"provider.only"');
    expect(calls()).toBe(before);
    expect((await closeBooks(app, payer)).account.buckets.pack).toBe(1_000n * CREDIT);
  });

  it.each(taking("none"))("is refused by name: %s", async (_, operation) => {
    const outcome = await ask(operation, { provider: { only: ["live"] } });

    expect(outcome.code).toBe("BAD_REQUEST");
    expect(outcome.text).toContain('"param":"provider"');
  });
});

describe("models", () => {
  it.each(taking("all"))("serve when the first fails: %s", async (_, operation) => {
    answerWell(app, operation);

    const outcome = await ask(operation, { model: deadModelOf(operation.kind), models: [modelOf(operation.kind)] });

    expect([outcome.code, outcome.message]).toEqual([null, null]);
    const { rows } = await closeBooks(app, payer);
    expect(rows.map(({ costNanocredits }) => costNanocredits)).toEqual([COST_OF[operation.kind]]);
  });

  it.each(taking("provider", "none"))("are refused by name: %s", async (_, operation) => {
    const outcome = await ask(operation, { models: [modelOf(operation.kind)] });

    expect(outcome.code).toBe("BAD_REQUEST");
    expect(outcome.text).toContain("models");
    expect((await closeBooks(app, payer)).rows).toEqual([]);
  });
});

describe("a suffix of the model", () => {
  it.each(taking("all", "provider"))("is a wish of %s", async (_, operation) => {
    answerWell(app, operation);

    const outcome = await ask(operation, { model: `${modelOf(operation.kind)}:nitro` });

    expect([outcome.code, outcome.message]).toEqual([null, null]);
  });
});
