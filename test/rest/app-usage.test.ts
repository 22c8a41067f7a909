/** What an app has its users spend, for its owner, through both faces. */

import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CREDIT, chat, closeBooks, createPayer, databaseOf, type Payer } from "../e2e/money.js";
import { codes, execute, ok } from "../graphql/client.js";
import { AppUsageDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { wireUsage } from "../support/openai-bodies.js";
import { createTierAccount } from "../support/tiers.js";
import { createClient, expectEnvelope } from "./client.js";

let app: TestApp;

beforeAll(async () => {
  app = await createTestApp();
});
afterAll(() => app.close());

interface AppOwner {
  readonly key: string;
  readonly appKeyId: string;
}

/** An account with an app: a publishable key. */
async function createAppOwner(): Promise<AppOwner> {
  const { key } = await createTierAccount(app);
  return { key, appKeyId: await createAppKey(key) };
}

async function createAppKey(key: string, type = "publishable"): Promise<string> {
  return (await createClient(app.baseUrl, key).post("/account/keys", { name: "my app", type })).json<{ id: string }>().id;
}

const createUser = (appKeyId: string) => createTierAccount(app, { pack: 100n * CREDIT, appKeyId });

async function spend(payer: Payer, tokens: number, model = "acme/dear"): Promise<void> {
  app.upstream.answer.usage = wireUsage(1, tokens);
  expect((await chat(app, payer, { model, max_tokens: tokens })).status).toBe(200);
}

const pathOf = (id: string, query = "") => `/account/apps/${id}/usage/daily${query}`;
const today = () => new Date().toISOString().slice(0, 10);

describe("an app's usage", () => {
  it("sums up its users' spending, by day and model, the same on both faces", async () => {
    const { key, appKeyId } = await createAppOwner();
    const [ada, bob] = [await createUser(appKeyId), await createUser(appKeyId)];
    await spend(ada, 2);
    await spend(bob, 3);
    await spend(bob, 1, "acme/free");

    const rest = (await createClient(app.baseUrl, key).get(pathOf(appKeyId))).json();
    const graphql = ok(await execute({ ...app, key }, AppUsageDocument, { appKeyId })).me.appUsage;

    expect(rest).toEqual({
      usage: [
        { date: today(), model: "acme/dear", requests: 2, cost_usd: 5 },
        { date: today(), model: "acme/free", requests: 1, cost_usd: 0 },
      ],
      count: 2,
      total: { requests: 3, cost_usd: 5 },
      as_of: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    });
    expect(graphql).toEqual({
      days: [
        { date: today(), modelId: "acme/dear", requests: 2, cost: "5" },
        { date: today(), modelId: "acme/free", requests: 1, cost: "0" },
      ],
      totalRequests: 3,
      totalCost: "5",
      asOf: expect.any(String),
    });
    await closeBooks(app, ada);
  });

  it("hides its users: their names and their number", async () => {
    const { key, appKeyId } = await createAppOwner();
    const user = await createUser(appKeyId);
    await spend(user, 1);

    const { text } = await createClient(app.baseUrl, key).get(pathOf(appKeyId));

    for (const secret of [user.accountId, user.apiKeyId, user.key.slice(0, 10), "Hello", `payer-${user.accountId}`]) {
      expect(text).not.toContain(secret);
    }
    expect(Object.keys(JSON.parse(text).usage[0])).toEqual(["date", "model", "requests", "cost_usd"]);
  });

  it("leaves out its users' spending with their own keys, and the owner's spending", async () => {
    const { key, appKeyId } = await createAppOwner();
    await spend(await createPayer(app, { pack: 10n * CREDIT }), 1);

    expect((await createClient(app.baseUrl, key).get(pathOf(appKeyId))).json()).toMatchObject({
      usage: [],
      total: { requests: 0, cost_usd: 0 },
    });
  });

  it("is each app's own", async () => {
    const { key, appKeyId } = await createAppOwner();
    const other = await createAppKey(key);
    await spend(await createUser(appKeyId), 2);
    await spend(await createUser(other), 4);

    const totals = await Promise.all(
      [appKeyId, other].map(async (id) => (await createClient(app.baseUrl, key).get(pathOf(id))).json<{ total: object }>().total),
    );

    expect(totals).toEqual([
      { requests: 1, cost_usd: 2 },
      { requests: 1, cost_usd: 4 },
    ]);
  });

  it("is available as CSV, under the other prefix too", async () => {
    const { key, appKeyId } = await createAppOwner();
    await spend(await createUser(appKeyId), 2);

    const answer = await createClient(app.baseUrl, key).get(`/api${pathOf(appKeyId, "?format=csv")}`);

    expect(answer.headers.get("content-type")).toBe("text/csv; charset=utf-8; header=present");
    expect(answer.text).toBe(`date,model,requests,cost_usd\r\n${today()},acme/dear,1,2\r\n`);
  });

  it("covers the requested number of days, today among them", async () => {
    const { key, appKeyId } = await createAppOwner();
    const day = (ago: number) => new Date(Date.now() - ago * 86_400_000);
    await databaseOf(app).prisma.appUsageDaily.createMany({
      data: [0, 1, 89, 90].map((ago) => ({ appKeyId, day: day(ago), model: "m", requests: 1, costNanocredits: 1n })),
    });
    const owner = createClient(app.baseUrl, key);
    const countOf = async (query: string) => (await owner.get(pathOf(appKeyId, query))).json<{ count: number }>().count;

    const counts = [await countOf("?days=1"), await countOf("?days=2"), await countOf("?days=90"), await countOf("")];
    const graphql = ok(await execute({ ...app, key }, AppUsageDocument, { appKeyId, days: 2 })).me.appUsage;
    await databaseOf(app).prisma.appUsageDaily.deleteMany({ where: { appKeyId } });

    expect(counts).toEqual([1, 2, 3, 3]);
    expect(graphql?.totalRequests).toBe(2);
  });

  it.each(["days=0", "days=91", "days=1.5", "format=xml"])("refuses ?%s", async (query) => {
    const { key, appKeyId } = await createAppOwner();

    expectEnvelope(await createClient(app.baseUrl, key).get(pathOf(appKeyId, `?${query}`)), 400, "BAD_REQUEST");
  });

  it.each([0, 91])("refuses %i days on GraphQL", async (days) => {
    const { key, appKeyId } = await createAppOwner();

    expect(codes(await execute({ ...app, key }, AppUsageDocument, { appKeyId, days }))).toEqual(["BAD_REQUEST"]);
  });

  it("is there still when the app's key has been revoked", async () => {
    const { key, appKeyId } = await createAppOwner();
    await spend(await createUser(appKeyId), 2);
    const owner = createClient(app.baseUrl, key);
    await owner.request("DELETE", `/account/keys/${appKeyId}`);

    expect((await owner.get(pathOf(appKeyId))).json()).toMatchObject({ total: { requests: 1 } });
  });
});

describe("an app's usage is refused", () => {
  const refusalOf = async (key: string | null, id: string) => {
    const rest = await createClient(app.baseUrl, key).get(pathOf(id));
    const graphql = await execute({ ...app, key }, AppUsageDocument, { appKeyId: id });
    return [rest.status, rest.json<{ error: { code: string } }>().error.code, ...codes(graphql)];
  };

  it("to an anonymous caller", async () => {
    const { appKeyId } = await createAppOwner();

    expect(await refusalOf(null, appKeyId)).toEqual([401, "UNAUTHORIZED", "UNAUTHORIZED"]);
  });

  it("to a key without the permission, secret or publishable", async () => {
    const { appKeyId } = await createAppOwner();
    const bare = await createTierAccount(app, { permissions: ["profile", "balance", "keys"] });

    expect(await refusalOf(bare.key, appKeyId)).toEqual([403, "FORBIDDEN", "FORBIDDEN"]);
  });

  it("to another account, to the app's users, and to operators, as if the app did not exist", async () => {
    const { appKeyId } = await createAppOwner();
    const [stranger, user] = [await createAppOwner(), await createUser(appKeyId)];

    for (const key of [stranger.key, user.key, app.key]) {
      expect(await refusalOf(key, appKeyId)).toEqual([404, "NOT_FOUND", "NOT_FOUND"]);
    }
  });

  it("for ids that are no app: a secret key, an unknown id, no id at all", async () => {
    const { key } = await createAppOwner();
    const secret = await createAppKey(key, "secret");

    for (const id of [secret, randomUUID(), "nonsense"]) {
      expect(await refusalOf(key, id)).toEqual([404, "NOT_FOUND", "NOT_FOUND"]);
    }
  });
});
