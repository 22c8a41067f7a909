/** Vendor keys without a fee, over GraphQL: their management, usage records, receipts and quotes. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  CreateVendorKeyDocument,
  type CreateVendorKeyInput,
  DeleteVendorKeyDocument,
  MyVendorKeysDocument,
  UpdateVendorKeyDocument,
  VendorKeyUsageDocument,
} from "../operations/generated/graphql.js";
import { createClient } from "../rest/client.js";
import { createStranger } from "../rest/seed.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { giveCredits, signedIn, signUp } from "../support/sign-in.js";
import { startVendor, type Vendor } from "../support/vendor.js";
import { codes, execute, executeText, ok, type Target } from "./client.js";

const OURS = "operators-own-key-0001";

let app: TestApp;
let vendor: Vendor;
beforeAll(async () => {
  vendor = await startVendor([OURS]);
  app = await createTestApp({
    upstreams: [{ id: "alpha", wireFormat: "openai", baseUrl: vendor.baseUrl, apiKey: OURS }],
    models: [
      {
        ...{ id: "v/alpha", title: "Alpha", modality: "text", prices: { promptTextPrice: "0.000004", completionTextPrice: "0.00001" } },
        routes: [{ upstream: "alpha", upstreamModel: "m", prices: { promptTextPrice: "0.000001" } }],
      },
    ],
  });
});
afterAll(async () => {
  await app.close();
  await vendor.close();
});

/** An account without credits, and its secret at the vendor. */
async function createAccount(): Promise<Target & { readonly secret: string; readonly keyId: string; readonly accountId: string }> {
  const { key, keyId } = await createStranger(app);
  const { accountId } = await app.database.prisma.apiKey.findUniqueOrThrow({ where: { id: keyId } });
  await app.database.prisma.account.update({ where: { id: accountId }, data: { tier: null, tierNanocredits: 0n } });
  const secret = `sk-own-${randomUUID()}`;
  vendor.keys.add(secret);
  return { baseUrl: app.baseUrl, wsUrl: app.wsUrl, key, keyId, accountId, secret };
}

const create = async (target: Target & { readonly secret: string }, input: Partial<CreateVendorKeyInput> = {}) =>
  ok(await execute(target, CreateVendorKeyDocument, { input: { vendor: "alpha", secret: target.secret, ...input } })).createVendorKey
    .vendorKey;

const CHAT = `mutation {
  createChatCompletion(input: { model: "v/alpha", messages: [{ role: USER, content: "Hi" }], maxTokens: 4 }) {
    receipt { cost upstream vendorKeyId attempts { code vendorKeyId } }
  }
}`;

describe("a vendor key over GraphQL", () => {
  it("is added, listed, changed and deleted", async () => {
    const account = await createAccount();

    const key = await create(account, { use: "AFTER", models: ["v/alpha"], apiKeyIds: [account.keyId] });

    expect(key).toMatchObject({ vendor: "alpha", name: "alpha", ending: account.secret.slice(-4), use: "AFTER", isEnabled: true });
    expect(key).toMatchObject({ modelIds: ["v/alpha"], apiKeyIds: [account.keyId], refusal: null, refusedAt: null });
    const { vendorKeyTerms, vendorKeys } = ok(await execute(account, MyVendorKeysDocument)).me;
    expect(vendorKeyTerms).toMatchObject({ vendors: expect.arrayContaining(["alpha"]), feePercent: "0" });
    expect(vendorKeys).toMatchObject({ totalCount: 1, nodes: [key] });
    const changes = { id: key.id, name: "Mine", use: "ONLY", models: null, enabled: false } as const;
    const changed = ok(await execute(account, UpdateVendorKeyDocument, { input: changes })).updateVendorKey.vendorKey;
    expect(changed).toMatchObject({ name: "Mine", use: "ONLY", modelIds: null, apiKeyIds: [account.keyId], isEnabled: false });
    const deleted = ok(await execute(account, DeleteVendorKeyDocument, { input: { id: key.id } }));
    expect(deleted.deleteVendorKey.deletedId).toBe(key.restId);
    expect(codes(await execute(account, UpdateVendorKeyDocument, { input: { id: key.id } }))).toEqual(["NOT_FOUND"]);
  });

  it("names the field of a refused secret", async () => {
    const account = await createAccount();

    const { errors } = await execute(account, CreateVendorKeyDocument, { input: { vendor: "alpha", secret: "sk-wrong-0123456789" } });

    expect(errors?.[0]?.extensions).toMatchObject({ code: "BAD_REQUEST", param: "secret" });
  });

  it("serves an account without credits where it is the only one, free of charge and recorded", async () => {
    const account = await createAccount();
    const { restId } = await create(account, { use: "ONLY" });

    const { receipt } = (ok(await executeText(account, { query: CHAT })) as { createChatCompletion: { receipt: object } })
      .createChatCompletion;

    expect(receipt).toEqual({ cost: "0", upstream: "alpha", vendorKeyId: restId, attempts: [] });
    const row = ok(await execute(account, VendorKeyUsageDocument)).me.usage?.nodes[0];
    expect(row).toMatchObject({ cost: "0", upstream: "alpha", vendorKeyId: restId });
  });

  it("streams to such an account too", async () => {
    const account = await createAccount();
    await create(account, { use: "ONLY" });

    const body = { model: "v/alpha", messages: [{ role: "user", content: "Hi" }], stream: true };
    const answer = await createClient(app.baseUrl, account.key).post("/v1/chat/completions", body);

    expect([answer.status, answer.text]).toEqual([200, expect.stringContaining('"cost":0')]);
    expect(answer.text.trimEnd()).toMatch(/\[DONE\]$/);
  });

  it("is named by the attempt that failed before the operator's key served", async () => {
    const account = await createAccount();
    await giveCredits(app, account.accountId, 1);
    const { restId } = await create(account);
    vendor.answers.set(account.secret, 401);

    const { receipt } = (ok(await executeText(account, { query: CHAT })) as { createChatCompletion: { receipt: object } })
      .createChatCompletion;

    const attempts = [{ code: "CREDENTIAL_REFUSED", vendorKeyId: restId }];
    expect(receipt).toEqual({ cost: "0.00008", upstream: "alpha", vendorKeyId: null, attempts });
    const row = ok(await execute(account, VendorKeyUsageDocument)).me.usage?.nodes[0];
    expect(row).toMatchObject({ vendorKeyId: null, attempts: [{ upstream: "alpha", code: "CREDENTIAL_REFUSED", vendorKeyId: restId }] });
  });

  it("has a quote of 0", async () => {
    const account = await createAccount();
    const { restId } = await create(account, { use: "ONLY" });

    const quote = `{ quote(input: { path: "/v1/chat/completions", body: { model: "v/alpha", messages: [{ role: "user", content: "Hi" }] } }) {
      most routes { upstream vendorKeyId most }
    } }`;

    expect(ok(await executeText(account, { query: quote }))).toEqual({
      quote: { most: "0", routes: [{ upstream: "alpha", vendorKeyId: restId, most: "0" }] },
    });
  });

  it("serves a session of the account, unless API keys are named", async () => {
    const person = await signUp(app);
    const session: Target = { baseUrl: app.baseUrl, wsUrl: app.wsUrl, key: null, headers: signedIn(person) };
    const secret = `sk-own-${randomUUID()}`;
    vendor.keys.add(secret);
    const { id, restId } = await create({ ...session, secret }, { use: "ONLY" });
    const servedBy = async () =>
      (ok(await executeText(session, { query: CHAT })) as { createChatCompletion: { receipt: { vendorKeyId: string | null } } })
        .createChatCompletion.receipt.vendorKeyId;
    expect(await servedBy()).toBe(restId);

    const made = ok(await executeText(session, { query: 'mutation { createApiKey(input: { name: "named" }) { apiKey { id } } }' })) as {
      createApiKey: { apiKey: { id: string } };
    };
    ok(await execute(session, UpdateVendorKeyDocument, { input: { id, apiKeyIds: [made.createApiKey.apiKey.id] } }));

    expect(await servedBy()).toBeNull();
  });
});
