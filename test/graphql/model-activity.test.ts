/** Figures of models in the last day, and the history of their prices. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PRICES_SHOWN_MAX } from "../../src/services/catalog/limits.js";
import { PriceHistory } from "../../src/services/catalog/price-history.js";
import { PENDING_CHANGE_MS } from "../../src/services/community-models/limits.js";
import { ChatDocument, ModelActivityAndPricesDocument } from "../operations/generated/graphql.js";
import { createUsage } from "../rest/seed.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { changeModel, createMember, deleteModel, directoryOf, type Member, registerModel } from "../support/community-models.js";
import { silentLog } from "../support/database.js";
import { eventually } from "../support/eventually.js";
import { errorReply } from "../support/upstream-replies.js";
import { execute, ok } from "./client.js";

let app: TestApp;
let owner: Member;
let other: Member;
let now = Date.now();
const clock = { now: () => new Date(now) };

beforeAll(async () => {
  app = await createTestApp({ clock });
  [owner, other] = await Promise.all([createMember(app), createMember(app)]);
});
afterAll(() => app.close());

const read = async (id: string, key = other.key) => ok(await execute({ ...app, key }, ModelActivityAndPricesDocument, { id })).model;
const pricesOf = async (id: string) => (await read(id))?.priceHistory.map(({ pricing }) => pricing.inputTextTokens);

describe("activity of a model", () => {
  /** Resolves when the roll-ups have this many requests. */
  const rolledUp = (model: string, requests: number) =>
    eventually(async () => {
      const rows = await app.database.prisma.usageHourRollup.findMany({ where: { model, level: 2 } });
      expect(rows.reduce((sum, row) => sum + Number(row.requests), 0)).toBe(requests);
    });

  it("adds up the requests of all accounts in the last 24 hours, with latency and the share that succeeded", async () => {
    const model = "acme/chat-b";
    await createUsage(app, owner.keyId, 60, new Date(now), { model, responseTimeMs: 100, timeToFirstTokenMs: 20 });
    await createUsage(app, other.keyId, 36, new Date(now), { model, responseTimeMs: 4_000 });
    await createUsage(app, other.keyId, 5, new Date(now - 26 * 3_600_000), { model, responseTimeMs: 60_000 });
    await createUsage(app, other.keyId, 5, new Date(now), { model: "acme/free", responseTimeMs: 60_000 });
    for (let n = 0; n < 4; n += 1) {
      app.upstream.replyNext(errorReply(500));
      await execute({ ...app, key: other.key }, ChatDocument, { input: { model, messages: [{ role: "USER", content: "Hi" }] } });
    }
    await rolledUp(model, 105);

    const { activity } = (await read(model)) ?? {};
    expect(activity).toMatchObject({ requests: 96, failedRequests: 4, successRate: 0.96 });
    // Percentiles are accurate to 5%.
    expect(Math.abs((activity?.responseTimeMs?.p50 ?? 0) / 100 - 1)).toBeLessThan(0.06);
    expect(Math.abs((activity?.responseTimeMs?.p95 ?? 0) / 4_000 - 1)).toBeLessThan(0.06);
    expect(Math.abs((activity?.timeToFirstTokenMs?.p50 ?? 0) / 20 - 1)).toBeLessThan(0.06);
    expect(now - Date.parse(activity?.from as string)).toBeLessThanOrEqual(24 * 3_600_000);
  });

  it("has no shares and times for a model without requests", async () => {
    expect((await read("acme/dear"))?.activity).toMatchObject({
      ...{ requests: 0, failedRequests: 0, successRate: null, responseTimeMs: null, timeToFirstTokenMs: null },
    });
  });

  it("keeps another account's private model as if it did not exist", async () => {
    const hidden = await registerModel(app, owner);
    const answer = await execute({ ...app, key: other.key }, ModelActivityAndPricesDocument, { id: hidden.modelId });
    expect(answer.errors?.map(({ extensions }) => extensions?.code)).toEqual(["NOT_FOUND"]);
    expect((await read(hidden.modelId, owner.key))?.priceHistory).toEqual([]);
  });
});

describe("price history of a model", () => {
  const history = (models: PriceHistoryModels = app.services.catalog.models) =>
    new PriceHistory({
      ...{ database: app.database, community: directoryOf(app), events: app.infrastructure.events, clock, log: silentLog },
      catalog: { models },
    });
  type PriceHistoryModels = typeof app.services.catalog.models;
  const repriced = (id: string, price: bigint): PriceHistoryModels =>
    app.services.catalog.models.map((model) => (model.id === id ? { ...model, rates: { ...model.rates, inputTextTokens: price } } : model));

  it("begins with the prices at the first start, and has each change from when a start knew it", async () => {
    await app.services.priceHistory.look();
    expect(await pricesOf("acme/chat")).toEqual(["0.000001"]);
    now += 60_000;
    const changed = history(repriced("acme/chat", 3_000_000n));
    await changed.look();
    await changed.look();
    expect((await read("acme/chat"))?.priceHistory).toMatchObject([
      { since: new Date(now).toISOString(), pricing: { inputTextTokens: "0.000003", outputTextTokens: "0.000002", imageRequests: null } },
      { pricing: { inputTextTokens: "0.000001" } },
    ]);
    expect(await pricesOf("acme/dear")).toHaveLength(1);
  });

  it("is written once when many processes start at once, and not by an old process beside a new one", async () => {
    now += 60_000;
    const old = history(repriced("acme/chat-b", 1n));
    await old.look();
    now += 60_000;
    await Promise.all(Array.from({ length: 5 }, () => history(repriced("acme/chat-b", 5_000_000n)).look()));
    now += 60_000;
    await old.look();
    expect(await pricesOf("acme/chat-b")).toEqual(["0.000005", "0.000000000001", "0.000001"]);
  });

  it("shows the newest prices up to the limit", async () => {
    for (let price = 1; price <= PRICES_SHOWN_MAX + 1; price += 1) {
      now += 1_000;
      await history(repriced("acme/dear", BigInt(price))).look();
    }
    const prices = await pricesOf("acme/dear");
    expect(prices).toHaveLength(PRICES_SHOWN_MAX);
    expect(prices?.[0]).toBe("0.000000000051");
  });

  it("has a registered model's prices from its publication, dates a scheduled change when it took effect, and ends with the model", async () => {
    const model = await registerModel(app, owner, { visibility: "public", promptTextPrice: 1_000_000n });
    await app.services.priceHistory.look();
    expect(await pricesOf(model.modelId)).toEqual(["0.000001"]);
    const effectiveAt = new Date(now + PENDING_CHANGE_MS);
    await changeModel(app, owner, model.id, {
      pending: { prices: { promptTextPrice: "2000000" } },
      pendingEffectiveAt: effectiveAt,
    });
    await app.services.priceHistory.look();
    expect(await pricesOf(model.modelId)).toEqual(["0.000001"]);
    now += PENDING_CHANGE_MS + 300_000;
    await app.services.priceHistory.look();
    expect((await read(model.modelId))?.priceHistory).toMatchObject([
      { since: effectiveAt.toISOString(), pricing: { inputTextTokens: "0.000002" } },
      { pricing: { inputTextTokens: "0.000001" } },
    ]);
    await deleteModel(app, owner, model.id);
    expect(await app.database.prisma.modelPrice.count({ where: { communityModelId: model.id } })).toBe(0);
  });
});
