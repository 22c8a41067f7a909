/** POST /v1/rerank and /v2/rerank, and their twin in GraphQL. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { execute, ok } from "../graphql/client.js";
import { RerankDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { json } from "../support/upstream-replies.js";
import { type Client, createClient, expectEnvelope, waitForUsage } from "./client.js";

let app: TestApp;
let client: Client;

beforeAll(async () => {
  const rerank = { modality: "rerank", upstream: "acme", upstreamModel: "rerank", title: "Rerank" };
  app = await createTestApp({
    models: [{ ...rerank, id: "acme/rerank-tokens", prices: { promptTextPrice: "0.000001" } }],
  });
  client = createClient(app.baseUrl, app.key);
});
afterAll(() => app.close());

const DOCUMENTS = ["The sea is calm.", "A fox ran by.", "Foxes hunt at night."];
const RANKED = {
  id: "r1",
  results: [
    { index: 2, relevance_score: 0.4 },
    { index: 1, relevance_score: 0.9 },
  ],
};

interface Reranking {
  readonly results: readonly { readonly index: number; readonly relevance_score: number; readonly document?: object }[];
  readonly meta: { readonly billed_units: { readonly search_units: number } };
  readonly usage: { readonly total_tokens: number };
}

function lastRequest() {
  return app.upstream.requests.at(-1);
}

describe("POST /v1/rerank", () => {
  it("asks the upstream in the format of Cohere and Jina, and answers in both forms", async () => {
    app.upstream.replyNext(json({ ...RANKED, meta: { billed_units: { search_units: 1 } } }));

    const answer = await client.post("/v1/rerank", {
      ...{ model: "acme/rerank", query: "A fox", documents: [DOCUMENTS[0], { text: DOCUMENTS[1] }, DOCUMENTS[2]] },
      ...{ top_n: 2, return_documents: true },
    });

    expect(lastRequest()?.path).toMatch(/\/rerank$/);
    expect(lastRequest()?.json).toEqual({ model: "upstream-rerank", query: "A fox", documents: DOCUMENTS, top_n: 2 });
    expect(answer.json()).toMatchObject({
      object: "list",
      model: "acme/rerank",
      results: [
        { index: 1, relevance_score: 0.9, document: { text: "A fox ran by." } },
        { index: 2, relevance_score: 0.4, document: { text: "Foxes hunt at night." } },
      ],
      meta: { billed_units: { search_units: 1 } },
    });
    expect(answer.headers.get("x-cost")).toBe("0.002");
    const row = await waitForUsage(client, ({ model }) => model === "acme/rerank");
    expect(row).toMatchObject({ cost_usd: 0.002, type: expect.stringContaining("embedding") });
  });

  it("charges searches as reported, up to the plausible bound", async () => {
    app.upstream.replyNext(json({ ...RANKED, meta: { billed_units: { search_units: 50 } } }), json(RANKED));
    const body = { model: "acme/rerank", query: "A fox", documents: DOCUMENTS };

    const bounded = await client.post("/v1/rerank", body);
    const unreported = await client.post("/v1/rerank", body);

    expect(bounded.headers.get("x-cost")).toBe("0.004");
    expect(bounded.headers.get("x-warnings")).toContain("plausible");
    expect(unreported.headers.get("x-cost")).toBe("0.002");
  });

  it("counts a search for each 100 documents", async () => {
    app.upstream.replyNext(json({ results: [{ index: 0, relevance_score: 1 }] }));

    const answer = await client.post("/v1/rerank", { model: "acme/rerank", query: "A", documents: Array.from({ length: 101 }, () => "a") });

    expect(answer.json<Reranking>().meta.billed_units.search_units).toBe(2);
    expect(answer.headers.get("x-cost")).toBe("0.004");
  });

  it("charges tokens where the model has such a price, as Jina reports them", async () => {
    app.upstream.replyNext(json({ ...RANKED, usage: { total_tokens: 40, prompt_tokens: 40 } }));

    const answer = await client.post("/v1/rerank", { model: "acme/rerank-tokens", query: "A fox", documents: DOCUMENTS });

    expect(answer.headers.get("x-cost")).toBe("0.00004");
    expect(answer.json<Reranking>().usage.total_tokens).toBe(40);
  });

  it.each([
    ["no results", {}],
    ["a document twice", { results: [RANKED.results[0], RANKED.results[0]] }],
    ["a document that was not sent", { results: [{ index: 3, relevance_score: 1 }] }],
    ["no score", { results: [{ index: 0 }] }],
  ])("is 502 and free when the upstream answers %s", async (_, reply) => {
    app.upstream.replyNext(json(reply));

    const answer = await client.post("/v1/rerank", { model: "acme/rerank", query: "A fox", documents: DOCUMENTS });

    expectEnvelope(answer, 502, "UPSTREAM_ERROR");
    expect(answer.headers.get("x-cost")).toBeNull();
  });

  it.each([
    ["query", { documents: DOCUMENTS }],
    ["documents", { query: "A fox" }],
    ["documents", { query: "A fox", documents: [] }],
    ["top_n", { query: "A fox", documents: DOCUMENTS, top_n: 0 }],
  ])("refuses a wrong %s", async (param, fields) => {
    const answer = await client.post("/v1/rerank", { model: "acme/rerank", ...fields });

    expectEnvelope(answer, 400, "BAD_REQUEST");
    expect(answer.json<{ error: { param: string } }>().error.param).toBe(param);
  });

  it("refuses a model of another kind", async () => {
    const answer = await client.post("/v1/rerank", { model: "acme/chat", query: "A fox", documents: DOCUMENTS });

    expectEnvelope(answer, 400, "BAD_REQUEST");
  });
});

describe("the sandbox", () => {
  it("ranks by words in common, also at the address of the second version", async () => {
    const body = { model: "sandbox/rerank", query: "fox at night", documents: DOCUMENTS };

    const [one, two] = await Promise.all([client.post("/v1/rerank", body), client.post("/v2/rerank", body)]);

    expect(one.json<Reranking>().results.map(({ index }) => index)).toEqual([2, 1, 0]);
    expect(two.json<Reranking>().results).toEqual(one.json<Reranking>().results);
  });
});

describe("Mutation.rerank", () => {
  it("answers the documents in their order, and the receipt", async () => {
    app.upstream.replyNext(json({ ...RANKED, meta: { billed_units: { search_units: 1 } } }));

    const input = { model: "acme/rerank", query: "A fox", documents: DOCUMENTS, topN: 1 };
    const { rerank } = ok(await execute(app, RerankDocument, { input }));

    expect(rerank).toMatchObject({
      modelId: "acme/rerank",
      searchUnits: 1,
      results: [{ index: 1, relevanceScore: 0.9, document: "A fox ran by." }],
      receipt: { cost: "0.002" },
    });
  });
});
