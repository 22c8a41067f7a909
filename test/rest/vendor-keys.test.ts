/** Vendor keys of an account (docs/spec/vendor-keys.md): added, used, refused, charged. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { eventually } from "../support/eventually.js";
import { giveCredits } from "../support/sign-in.js";
import { startVendor, type Vendor } from "../support/vendor.js";
import { type Answer, type Client, createClient } from "./client.js";
import { createStranger } from "./seed.js";

const OURS = "operators-own-key-0001";
const PRICES = { promptTextPrice: "0.000004", completionTextPrice: "0.00001" };
/** 10 and 4 tokens at these prices, in credits. */
const PRICE = 0.00008;
/** 2.5% of it. */
const FEE = 0.000002;

let app: TestApp;
let alpha: Vendor;
let beta: Vendor;
let listed: Vendor;
let open: Vendor;
let aheadMs = 0;

beforeAll(async () => {
  [alpha, beta, listed, open] = await Promise.all([
    startVendor([OURS]),
    startVendor([OURS]),
    startVendor([OURS], { isListOpen: true }),
    startVendor([], { isOpen: true }),
  ]);
  const model = (id: string, upstream: string, more: object = {}) => {
    const routes = [{ upstream, upstreamModel: "m", prices: { promptTextPrice: "0.000001" } }];
    return { id, title: id, modality: "text", routes, prices: PRICES, ...more };
  };
  app = await createTestApp({
    clock: { now: () => new Date(Date.now() + aheadMs) },
    config: { vendorKeyFee: 25_000n },
    upstreams: [
      { id: "alpha", wireFormat: "openai", baseUrl: alpha.baseUrl, apiKey: OURS },
      { id: "beta", wireFormat: "openai", baseUrl: beta.baseUrl, apiKey: OURS },
      { id: "listed", wireFormat: "openai", baseUrl: listed.baseUrl, apiKey: OURS },
      { id: "open", wireFormat: "openai", baseUrl: open.baseUrl, apiKey: OURS },
      { id: "keyless", wireFormat: "openai", baseUrl: open.baseUrl },
    ],
    models: [
      model("v/alpha", "alpha"),
      model("v/other", "alpha"),
      model("v/beta", "beta"),
      model("v/paid", "alpha", { paidOnly: true }),
      model("v/falls", "alpha", { fallbacks: ["v/beta"] }),
      model("v/listed", "listed"),
      model("v/open", "open"),
      model("v/keyless", "keyless"),
    ],
  });
});
beforeEach(() => {
  aheadMs += 900_000;
  for (const vendor of [alpha, beta, listed, open]) {
    vendor.answers.clear();
    vendor.chats.clear();
  }
});
afterAll(async () => {
  await app.close();
  await Promise.all([alpha, beta, listed, open].map((vendor) => vendor.close()));
});

interface Account {
  readonly client: Client;
  readonly keyId: string;
  readonly accountId: string;
  /** Its key at the vendors. */
  readonly secret: string;
}

interface VendorKey {
  readonly id: string;
  readonly [field: string]: unknown;
}

/** An account with a key at every vendor, and so many credits. */
async function createAccount(credits = 0): Promise<Account> {
  const { key, keyId } = await createStranger(app);
  const { accountId } = await app.database.prisma.apiKey.findUniqueOrThrow({ where: { id: keyId } });
  // The tier's credits would pay too.
  await app.database.prisma.account.update({ where: { id: accountId }, data: { tier: null, tierNanocredits: 0n } });
  if (credits > 0) await giveCredits(app, accountId, credits);
  const secret = `sk-own-${randomUUID()}`;
  for (const vendor of [alpha, beta, listed]) vendor.keys.add(secret);
  return { client: createClient(app.baseUrl, key), keyId, accountId, secret };
}

async function addKey({ client, secret }: Account, input: object = {}): Promise<VendorKey> {
  const answer = await client.post("/account/vendor-keys", { vendor: "alpha", secret, ...input });
  expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
  return answer.json<VendorKey & Record<string, unknown>>();
}

function chat({ client }: Pick<Account, "client">, model = "v/alpha", more: object = {}): Promise<Answer> {
  return client.post("/v1/chat/completions", { model, messages: [{ role: "user", content: "Hi" }], ...more });
}

async function usageRow({ client }: Account): Promise<Record<string, unknown> | undefined> {
  return (await client.get("/account/usage?limit=1")).json<{ usage: Record<string, unknown>[] }>().usage[0];
}

const keyOf = async ({ client }: Account, id: string) => (await client.get(`/account/vendor-keys/${id}`)).json();

describe("a call by a vendor key", () => {
  it("reaches the vendor with the account's secret and is charged the fee", async () => {
    const account = await createAccount(1);
    const { id } = await addKey(account);

    const answer = await chat(account);

    expect([answer.status, answer.headers.get("x-upstream"), answer.headers.get("x-vendor-key")]).toEqual([200, "alpha", id]);
    expect(Number(answer.headers.get("x-cost"))).toBe(FEE);
    expect([...alpha.chats]).toEqual([[account.secret, 1]]);
    expect(await usageRow(account)).toMatchObject({ cost_usd: FEE, upstream: "alpha", vendor_key_id: id });
    const row = await app.database.prisma.usageRecord.findFirstOrThrow({ where: { accountId: account.accountId } });
    expect(row.upstreamCostNanocredits).toBe(0n);
  });

  it("is charged the fee for a stream too, whose receipt names the key", async () => {
    const account = await createAccount(1);
    const { id } = await addKey(account);

    const answer = await chat(account, "v/alpha", { stream: true, stream_options: { include_usage: true } });

    const receipt = answer.text.split("\n").find((line) => line.includes('"receipt"')) ?? "";
    expect(JSON.parse(receipt.slice("data: ".length))).toMatchObject({ receipt: { upstream: "alpha", vendor_key_id: id } });
    // 10 and 2 tokens.
    expect(await usageRow(account)).toMatchObject({ cost_usd: 0.0000015, vendor_key_id: id });
    expect(alpha.chats.get(OURS)).toBeUndefined();
  });

  it("is never made for another account", async () => {
    const [account, other] = await Promise.all([createAccount(1), createAccount(1)]);
    await addKey(account, { use: "only" });

    const answer = await chat(other);

    expect([answer.status, answer.headers.get("x-vendor-key"), Number(answer.headers.get("x-cost"))]).toEqual([200, null, PRICE]);
    expect([...alpha.chats.keys()]).toEqual([OURS]);
  });

  it("is made for the named models alone", async () => {
    const account = await createAccount(1);
    const { id } = await addKey(account, { models: ["v/other"] });

    const answers = [await chat(account, "v/other"), await chat(account, "v/alpha")];

    expect(answers.map(({ headers }) => headers.get("x-vendor-key"))).toEqual([id, null]);
  });

  it("is made for the named API keys and the keys below them alone", async () => {
    const account = await createAccount(1);
    const named = (await account.client.post("/account/keys", { name: "named" })).json<{ id: string; key: string }>();
    const below = (await account.client.post("/v1/runs", { max_cost: 0.5, ttl: 900 }, { key: named.key })).json<{ key: string }>();
    const { id } = await addKey(account, { apiKeyIds: [named.id] });

    const by = async (key: string) => (await chat({ client: createClient(app.baseUrl, key) })).headers.get("x-vendor-key");

    expect([await by(named.key), await by(below.key), (await chat(account)).headers.get("x-vendor-key")]).toEqual([id, id, null]);
  });

  it("is made for a publishable key only where that is named", async () => {
    const account = await createAccount(1);
    const { id: keyId, key } = (await account.client.post("/account/keys", { name: "page", type: "publishable" })).json<{
      id: string;
      key: string;
    }>();
    const { id } = await addKey(account);
    const by = async () => (await chat({ client: createClient(app.baseUrl, key) })).headers.get("x-vendor-key");
    expect(await by()).toBeNull();

    await account.client.request("PATCH", `/account/vendor-keys/${id}`, { body: { apiKeyIds: [keyId] } });

    expect(await by()).toBe(id);
  });

  it("is no longer made once the key is disabled, and none after it is deleted", async () => {
    const account = await createAccount(1);
    const { id } = await addKey(account);
    const used = async () => (await chat(account)).headers.get("x-vendor-key");
    expect(await used()).toBe(id);

    await account.client.request("PATCH", `/account/vendor-keys/${id}`, { body: { enabled: false } });
    expect(await used()).toBeNull();
    await account.client.request("PATCH", `/account/vendor-keys/${id}`, { body: { enabled: true } });
    expect(await used()).toBe(id);
    await account.client.request("DELETE", `/account/vendor-keys/${id}`);
    expect(await used()).toBeNull();
  });

  it("needs no credits beyond the fee where no key of the operator may serve", async () => {
    const account = await createAccount();
    expect((await chat(account)).status).toBe(402);
    await addKey(account, { use: "only" });

    expect((await chat(account)).status).toBe(402);
    await giveCredits(app, account.accountId, 0.00005);
    // The price is more than the account has.
    expect((await chat(account, "v/alpha", { max_tokens: 4 })).status).toBe(200);
    expect((await chat(account, "v/beta", { max_tokens: 4 })).status).toBe(402);
  });

  it("needs the full price while a key of the operator may serve", async () => {
    const account = await createAccount(0.00002);
    await addKey(account, { use: "before" });

    expect((await chat(account, "v/alpha", { max_tokens: 4 })).status).toBe(402);
  });
});

describe("a vendor key used after the operator's keys", () => {
  it("serves when those fail", async () => {
    const account = await createAccount(1);
    const { id } = await addKey(account, { use: "after" });
    expect((await chat(account)).headers.get("x-vendor-key")).toBeNull();

    alpha.answers.set(OURS, 503);
    const answer = await chat(account);

    expect([answer.status, answer.headers.get("x-vendor-key"), Number(answer.headers.get("x-cost"))]).toEqual([200, id, FEE]);
  });

  it.each(["price", "latency", "throughput"])("stays after them for a request sorted by %s", async (sort) => {
    const account = await createAccount(1);
    await addKey(account, { use: "after" });

    expect((await chat(account, "v/alpha", { provider: { sort } })).headers.get("x-vendor-key")).toBeNull();
  });
});

describe("a vendor key that the vendor refuses", () => {
  it.each([
    [401, "credential_refused"],
    [402, "payment_required"],
  ])("is marked after a %d, and the operator's key serves at the full price", async (status, refusal) => {
    const account = await createAccount(1);
    const { id } = await addKey(account);
    alpha.answers.set(account.secret, status);

    const answer = await chat(account);

    expect([answer.status, answer.headers.get("x-vendor-key"), Number(answer.headers.get("x-cost"))]).toEqual([200, null, PRICE]);
    await eventually(async () => expect(await keyOf(account, id)).toMatchObject({ refusal, refusedAt: expect.any(String) }));
    // It cools down.
    await chat(account);
    expect(alpha.chats.get(account.secret)).toBe(1);
  });

  it("loses the mark when it is accepted again", async () => {
    const account = await createAccount(1);
    const { id } = await addKey(account);
    alpha.answers.set(account.secret, 401);
    await chat(account);
    await eventually(async () => expect(await keyOf(account, id)).toMatchObject({ refusal: "credential_refused" }));
    alpha.answers.clear();
    aheadMs += 900_000;

    expect((await chat(account)).headers.get("x-vendor-key")).toBe(id);

    await eventually(async () => expect(await keyOf(account, id)).toMatchObject({ refusal: null, refusedAt: null }));
  });

  it("fails the call where only it may serve, with the reasons", async () => {
    const account = await createAccount(1);
    const { id } = await addKey(account, { use: "only" });
    alpha.answers.set(account.secret, 401);

    for (const model of ["v/alpha", "v/falls"]) {
      const answer = await chat(account, model);

      expect(answer.status).toBe(502);
      const { error } = answer.json<{ error: Record<string, unknown> }>();
      expect(error.message).toContain(`The vendor alpha refused the vendor key of your account (status 401).`);
      expect(error.details).toMatchObject({ reasons: [{ route: "alpha", code: "credential_refused", vendorKeyId: id }] });
    }
    expect([alpha.chats.get(OURS), beta.chats.size]).toEqual([undefined, 0]);
  });

  it("is not told to the operator's log and metrics", async () => {
    const account = await createAccount(1);
    await addKey(account, { use: "only" });
    alpha.answers.set(account.secret, 401);
    const before = app.logs.length;

    await chat(account);

    const events = app.logs.slice(before).map(({ event }) => event);
    expect(events).not.toContain("upstream-credential-refused");
  });
});

describe("adding a vendor key", () => {
  it("shows all of it but the secret", async () => {
    const account = await createAccount();
    const key = await addKey(account, { use: "after", models: ["v/alpha"], apiKeyIds: [account.keyId], name: "My key" });

    expect(key).toMatchObject({ vendor: "alpha", name: "My key", ending: account.secret.slice(-4), use: "after", enabled: true });
    expect(key).toMatchObject({ models: ["v/alpha"], apiKeyIds: [account.keyId], refusal: null, refusedAt: null });
    const list = await account.client.get("/account/vendor-keys");
    expect(list.json()).toEqual({ data: [key], vendors: expect.arrayContaining(["alpha", "beta"]), feePercent: "2.5" });
    expect(list.text).not.toContain(account.secret.slice(0, -4));
  });

  it("keeps the secret out of the database, logs, errors and the audit log", async () => {
    const account = await createAccount(1);
    const { id } = await addKey(account, { use: "only" });
    alpha.answers.set(account.secret, (response) => {
      response.writeHead(400, { "content-type": "application/json" });
      response.end(JSON.stringify({ error: { message: `The key ${account.secret} may not.` } }));
    });

    const answer = await chat(account);

    const row = await app.database.prisma.vendorKey.findUniqueOrThrow({ where: { id } });
    const acts = await app.database.prisma.auditEntry.findMany({ where: { objectId: id } });
    expect(acts.map(({ act }) => act)).toEqual(["create_vendor_key"]);
    expect(answer.status).toBe(400);
    for (const text of [answer.text, JSON.stringify(app.logs), JSON.stringify(acts), Buffer.from(row.secret).toString("latin1")]) {
      expect(text).not.toContain(account.secret);
    }
  });

  it.each([
    ["a wrong secret", { vendor: "alpha", secret: "sk-wrong-0123456789" }, "secret", "alpha refuses this key"],
    ["an unknown vendor", { vendor: "alhpa", secret: "sk-x" }, "vendor", "These do: "],
    ["an upstream without a key", { vendor: "keyless", secret: "sk-x" }, "vendor", "is no vendor that takes vendor keys"],
    ["an upstream that looks at no key", { vendor: "open", secret: "sk-x" }, "vendor", "it answers a wrong key too"],
    ["a secret with a space", { vendor: "alpha", secret: "Bearer sk-x" }, "secret", "visible ASCII"],
    ["an unknown model", { vendor: "alpha", secret: "sk-x", models: ["v/alhpa"] }, "models.0", "v/alpha"],
    ["a model of another vendor", { vendor: "alpha", secret: "sk-x", models: ["v/beta"] }, "models.0", "not served by alpha"],
    ["no model", { vendor: "alpha", secret: "sk-x", models: [] }, "models", ""],
    ["another account's API key", { vendor: "alpha", secret: "sk-x", apiKeyIds: [randomUUID()] }, "apiKeyIds.0", "no API key"],
    ["an unknown use", { vendor: "alpha", secret: "sk-x", use: "first" }, "use", "before"],
    ["a fee", { vendor: "alpha", secret: "sk-x", fee: 0 }, "fee", ""],
  ])("refuses %s", async (_, body, param, words) => {
    const account = await createAccount();

    const answer = await account.client.post("/account/vendor-keys", body);

    expect(answer.status).toBe(400);
    expect(answer.json<{ error: object }>().error).toMatchObject({ code: "BAD_REQUEST" });
    expect(answer.text).toContain(words);
    expect(answer.text).toContain(param);
    expect(answer.text).not.toContain("sk-wrong");
    expect(await app.database.prisma.vendorKey.count({ where: { accountId: account.accountId } })).toBe(0);
  });

  it("checks with a chat where the list of models is open", async () => {
    const account = await createAccount();
    await addKey(account, { vendor: "listed" });

    expect([...listed.chats]).toEqual([[account.secret, 1]]);
    const wrong = await account.client.post("/account/vendor-keys", { vendor: "listed", name: "wrong", secret: "sk-wrong-9876543210" });
    expect([wrong.status, wrong.text]).toEqual([400, expect.stringContaining("listed refuses this key")]);
  });

  it("refuses a name that is taken, and more keys than an account may have", async () => {
    const account = await createAccount();
    await addKey(account);

    expect((await account.client.post("/account/vendor-keys", { vendor: "alpha", secret: account.secret })).text).toContain("is taken");
    const now = new Date();
    await app.database.prisma.vendorKey.createMany({
      data: Array.from({ length: 19 }, (_, index) => ({
        ...{ id: randomUUID(), accountId: account.accountId, vendor: "alpha", name: `n${index}`, secret: new Uint8Array(1), ending: "" },
        ...{ createdAt: now, updatedAt: now },
      })),
    });
    const answer = await account.client.post("/account/vendor-keys", { vendor: "alpha", name: "more", secret: account.secret });
    expect([answer.status, answer.text]).toEqual([409, expect.stringContaining("at most 20 vendor keys")]);
  });

  it("checks a new secret, and takes away the mark of the old one", async () => {
    const account = await createAccount(1);
    const { id } = await addKey(account);
    alpha.answers.set(account.secret, 401);
    await chat(account);
    await eventually(async () => expect(await keyOf(account, id)).toMatchObject({ refusal: "credential_refused" }));
    const path = `/account/vendor-keys/${id}`;
    const refused = await account.client.request("PATCH", path, { body: { secret: "sk-wrong-0123456789" } });
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining("secret")]);
    const secret = `sk-new-${randomUUID()}`;
    alpha.keys.add(secret);

    const answer = await account.client.request("PATCH", path, { body: { secret } });

    expect(answer.json()).toMatchObject({ refusal: null, ending: secret.slice(-4) });
    expect((await chat(account)).headers.get("x-vendor-key")).toBe(id);
    expect(alpha.chats.get(secret)).toBe(1);
  });

  it("answers 404 for a key of another account", async () => {
    const [account, other] = await Promise.all([createAccount(), createAccount()]);
    const { id } = await addKey(account);
    const path = `/account/vendor-keys/${id}`;

    const statuses = await Promise.all([
      other.client.get(path),
      other.client.request("PATCH", path, { body: { use: "only" } }),
      other.client.request("DELETE", path),
    ]);

    expect(statuses.map(({ status }) => status)).toEqual([404, 404, 404]);
    expect((await other.client.get("/account/vendor-keys")).json()).toMatchObject({ data: [] });
  });
});

describe("the quote of a call by a vendor key", () => {
  it("has the fee for the key and the price for the operator's", async () => {
    const account = await createAccount();
    const { id } = await addKey(account);

    const body = { model: "v/alpha", messages: [{ role: "user", content: "Hi" }], max_tokens: 4 };
    const answer = await account.client.post("/v1/quote", { path: "/v1/chat/completions", body });
    const { least, most, routes } = answer.json<{ least: string; most: string; routes: Record<string, string>[] }>();

    const [own, ours] = routes;
    expect(routes.map(({ vendorKeyId }) => vendorKeyId)).toEqual([id, undefined]);
    expect([least, most]).toEqual([own?.least, ours?.most]);
    expect(Number(own?.most)).toBeCloseTo(Number(ours?.most) * 0.025, 9);
  });
});
