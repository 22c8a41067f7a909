/** Margins of apps: set, agreed to, charged, earned and shown (docs/spec/earnings.md#apps). */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { execute, ok } from "../graphql/client.js";
import { MyEarningsDocument, SetAppMarginDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { createMember, type Member, registerModel } from "../support/community-models.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { chatChunk, chatCompletion, usageChunk, wireUsage } from "../support/openai-bodies.js";
import { formTo, openPage, submitForm } from "../support/pages.js";
import { type Person, signUp } from "../support/sign-in.js";
import { buyCredits } from "../support/top-ups.js";
import { json, sse } from "../support/upstream-replies.js";
import { createClient } from "./client.js";

const REDIRECT = "https://app.example/cb";
/** In picocredits: 10 prompt and 4 completion tokens are 0.00004 credits. */
const PRICES = { promptTextPrice: 2_000_000n, completionTextPrice: 5_000_000n };
const TEXT = "One, two, three, four, five.";
const BODY = { messages: [{ role: "user", content: "Count from one to five, in English words, with commas." }] };

let app: TestApp;

beforeAll(async () => {
  app = await createTestApp({
    config: { upstreamAllowHosts: ["127.0.0.1"], earnings: { communityShare: 750_000n, marginPercentMax: 20 } },
  });
});
beforeEach(() => app.upstream.replyAlways(json(chatCompletion({ content: TEXT, usage: wireUsage(10, 4) }))));
afterAll(async () => {
  const broken = await findBrokenInvariants(app.database.pool, { isIdle: true });
  await app.close();
  expect(broken).toEqual({});
});

interface Publisher extends Member {
  readonly appKey: string;
  readonly appId: string;
}

async function createPublisher(marginPercent: number): Promise<Publisher> {
  const owner = await createMember(app, { credits: 0 });
  const client = createClient(app.baseUrl, owner.key);
  const { id: appId, key: appKey } = (await client.post("/account/keys", { name: "App", type: "publishable" })).json<{
    id: string;
    key: string;
  }>();
  const set = await client.request("PATCH", `/account/apps/${appId}/margin`, { body: { marginPercent } });
  expect(set.json()).toEqual({ app_id: appId, margin_percent: marginPercent });
  return { ...owner, appKey, appId };
}

async function createBuyer(cents: bigint): Promise<Person> {
  const person = await signUp(app);
  await app.database.pool.query("UPDATE account SET tier = NULL WHERE id = $1", [person.accountId]);
  await app.services.accounts.balanceOf(person.accountId);
  await buyCredits(app, person.accountId, cents);
  return person;
}

async function grantTo({ appKey }: Publisher, person: Person) {
  const path = `/authorize?${new URLSearchParams({ redirect_url: REDIRECT, app_key: appKey })}`;
  const page = await openPage(app.baseUrl, path, { cookie: person.cookie });
  const decided = await submitForm(app.baseUrl, formTo(page, "/authorize"), { cookie: person.cookie, button: ["decision", "approve"] });
  const key = new URLSearchParams(new URL(decided.location ?? "about:blank").hash.slice(1)).get("api_key") ?? "";
  return { page: page.text, key };
}

async function startDevice({ appKey }: Publisher) {
  const answer = await createClient(app.baseUrl, null).post("/api/device/code", { client_id: appKey });
  return answer.json<{ device_code: string; user_code: string }>();
}

async function createModel(owner: Member): Promise<string> {
  const url = `http://127.0.0.1:${app.upstream.port}/v1/chat/completions`;
  return (await registerModel(app, owner, { visibility: "public", upstreamModel: "theirs", url, ...PRICES })).modelId;
}

const earningsOf = async ({ key }: Member) => ok(await execute({ ...app, key }, MyEarningsDocument, { first: 5 })).me?.earnings;

describe("an app with a margin", () => {
  it("shows it on the consent page, charges it on top of the price, and earns it", async () => {
    const [publisher, modelOwner] = [await createPublisher(20), await createMember(app, { credits: 0 })];
    const person = await createBuyer(500n);
    const { page, key } = await grantTo(publisher, person);
    expect(page).toContain("The app adds 20% to the price of each request");
    const client = createClient(app.baseUrl, key);
    const model = await createModel(modelOwner);

    const answer = await client.post("/v1/chat/completions", { model, ...BODY });

    expect(answer.headers.get("x-cost")).toBe("0.000048");
    expect(answer.headers.get("x-app-margin")).toBe("0.000008");
    expect(await earningsOf(publisher)).toMatchObject({
      pending: "0.000008",
      daily: [{ kind: "APP", source: publisher.appId, requests: 1 }],
    });
    expect(await earningsOf(modelOwner)).toMatchObject({ pending: "0.00003", daily: [{ kind: "MODEL", source: model }] });
    const quoted = (await client.post("/v1/chat/completions?quote=true", { model, max_tokens: 10, ...BODY })).json<{ most: number }>();
    const plain = (
      await createClient(app.baseUrl, (await createMember(app)).key).post("/v1/chat/completions?quote=true", {
        model,
        max_tokens: 10,
        ...BODY,
      })
    ).json<{ most: number }>();
    expect(quoted.most / plain.most).toBeCloseTo(1.2, 6);
  });

  it("is stated by usage rows on both faces and in CSV, and by a repeated answer", async () => {
    const publisher = await createPublisher(7);
    const { key } = await grantTo(publisher, await createBuyer(500n));
    const model = await createModel(await createMember(app, { credits: 0 }));
    const client = createClient(app.baseUrl, key);
    const call = () => client.post("/v1/chat/completions", { model, ...BODY }, { headers: { "idempotency-key": publisher.appId } });
    const first = await call();
    // 7/107 of 42,800 nanocredits.
    expect([first.headers.get("x-cost"), first.headers.get("x-app-margin")]).toEqual(["0.0000428", "0.0000028"]);
    expect((await call()).headers.get("x-app-margin")).toBe("0.0000028");

    const rows = (await client.get("/account/key/usage")).json<{ usage: object[] }>().usage;
    expect(rows).toMatchObject([{ cost_usd: 0.0000428, app_margin_usd: 0.0000028 }]);
    const [head = "", row = ""] = (await client.get("/account/key/usage?format=csv")).text.split("\r\n");
    expect([head.split(",").at(-1), row.split(",").at(-1)]).toEqual(["app_margin_usd", "0.0000028"]);
    const other = createClient(app.baseUrl, (await createMember(app)).key);
    await other.post("/v1/chat/completions", { model, ...BODY });
    expect((await other.get("/account/key/usage")).json<{ usage: object[] }>().usage).toMatchObject([{ app_margin_usd: null }]);
  });

  it("earns of streams and of the catalog's models, and of keys below the granted one", async () => {
    const publisher = await createPublisher(10);
    const { key } = await grantTo(publisher, await createBuyer(500n));
    const owner = await createMember(app, { credits: 0 });
    const model = await createModel(owner);
    app.upstream.replyAlways(sse([chatChunk({ role: "assistant", content: TEXT }, "stop"), usageChunk(wireUsage(10, 4))]));
    const streamed = await createClient(app.baseUrl, key).post("/v1/chat/completions", { model, stream: true, ...BODY });
    expect(streamed.text).toContain('"app_margin_usd":0.000004');
    app.upstream.replyAlways(null);
    app.upstream.answer.usage = wireUsage(1, 2);
    const answer = await createClient(app.baseUrl, key).post("/v1/chat/completions", { model: "acme/dear", max_tokens: 2, ...BODY });
    expect(answer.headers.get("x-cost")).toBe("2.2");

    expect(await earningsOf(publisher)).toMatchObject({ pending: "0.200004" });
  });

  it("keeps the agreed margin of granted keys", async () => {
    const publisher = await createPublisher(5);
    const { key } = await grantTo(publisher, await createBuyer(500n));
    ok(await execute({ ...app, key: publisher.key }, SetAppMarginDocument, { input: { appId: publisher.appId, marginPercent: 20 } }));
    app.upstream.replyAlways(null);
    app.upstream.answer.usage = wireUsage(1, 1);
    const answer = await createClient(app.baseUrl, key).post("/v1/chat/completions", { model: "acme/dear", max_tokens: 1, ...BODY });
    expect(answer.headers.get("x-app-margin")).toBe("0.05");
  });

  it("takes none once its app key is revoked", async () => {
    const publisher = await createPublisher(20);
    const { key } = await grantTo(publisher, await createBuyer(500n));
    app.upstream.replyAlways(null);
    app.upstream.answer.usage = wireUsage(1, 1);
    const call = async () => {
      const answer = await createClient(app.baseUrl, key).post("/v1/chat/completions", { model: "acme/dear", max_tokens: 1, ...BODY });
      return [answer.status, answer.headers.get("x-cost"), answer.headers.get("x-app-margin")];
    };
    expect(await call()).toEqual([200, "1.2", "0.2"]);
    expect((await createClient(app.baseUrl, publisher.key).request("DELETE", `/account/keys/${publisher.appId}`)).status).toBe(200);
    expect(await call()).toEqual([200, "1", null]);
    expect(await earningsOf(publisher)).toMatchObject({ pending: "0.2" });
  });

  it("shows it on the device page, and charges the margin that was shown", async () => {
    const publisher = await createPublisher(15);
    const person = await createBuyer(500n);
    const device = await startDevice(publisher);
    // It counts for devices that begin afterwards.
    ok(await execute({ ...app, key: publisher.key }, SetAppMarginDocument, { input: { appId: publisher.appId, marginPercent: 20 } }));
    const { cookie } = person;
    const page = await openPage(app.baseUrl, `/device?user_code=${device.user_code}`, { cookie });
    const shown = await submitForm(app.baseUrl, formTo(page, "/device"), { cookie });
    expect(shown.text).toContain("The app adds 15% to the price of each request");
    const done = await submitForm(app.baseUrl, formTo(shown, "/device/decision"), { cookie, button: ["decision", "approve"] });
    expect(done.text).toMatch(/App margin\s*15% on top of prices/);
    const { access_token: key } = (
      await createClient(app.baseUrl, null).post("/api/device/token", {
        grant_type: "urn:ietf:params:oauth:grant-type:device_code",
        device_code: device.device_code,
      })
    ).json<{ access_token: string }>();
    app.upstream.replyAlways(null);
    app.upstream.answer.usage = wireUsage(1, 1);
    const answer = await createClient(app.baseUrl, key).post("/v1/chat/completions", { model: "acme/dear", max_tokens: 1, ...BODY });
    expect([answer.headers.get("x-cost"), answer.headers.get("x-app-margin")]).toEqual(["1.15", "0.15"]);
    expect(await earningsOf(publisher)).toMatchObject({ pending: "0.15", daily: [{ kind: "APP", source: publisher.appId, requests: 1 }] });
    const again = await openPage(app.baseUrl, `/device?user_code=${(await startDevice(publisher)).user_code}`, { cookie });
    expect((await submitForm(app.baseUrl, formTo(again, "/device"), { cookie })).text).toContain(
      "The app adds 20% to the price of each request",
    );
  });

  it("may not exceed the operator's bound, nor be of another account's app or of a secret key", async () => {
    const publisher = await createPublisher(20);
    const client = createClient(app.baseUrl, publisher.key);
    const set = (id: string, marginPercent: unknown) => client.request("PATCH", `/account/apps/${id}/margin`, { body: { marginPercent } });
    const refused = await set(publisher.appId, 21);
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining("marginPercent: must be from 0 to 20")]);
    for (const wrong of [-1, 51, 2.5, "5", null]) expect((await set(publisher.appId, wrong)).status, String(wrong)).toBe(400);
    expect((await set((await createPublisher(1)).appId, 1)).status).toBe(404);
    expect((await set(publisher.keyId, 1)).status).toBe(400);
  });
});
