/** Keys that keys have made (docs/spec/keys.md#key-tree): one tree, one budget, one end. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createApiKeyInput, updateApiKeyInput } from "../../src/services/api-keys/api-keys-input.js";
import { databaseOf } from "../e2e/money.js";
import { execute, ok } from "../graphql/client.js";
import { CreateApiKeyDocument, GrantCreditsDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { chatCompletion, wireUsage } from "../support/openai-bodies.js";
import { signedIn, signUp } from "../support/sign-in.js";
import { json } from "../support/upstream-replies.js";
import { type Answer, type Client, type CreatedKey, createClient, expectEnvelope } from "./client.js";

type Fields = Readonly<Record<string, unknown>>;

let app: TestApp;
/** An account with 100 credits: asked by its person, who makes keys that descend from none. */
let accountId: string;
let person: Client["request"];

beforeAll(async () => {
  app = await createTestApp({
    models: [
      {
        ...{ id: "acme/quarter", modality: "text", upstream: "acme", upstreamModel: "quarter", title: "A quarter of a credit each time" },
        prices: { promptTextPrice: "0", completionTextPrice: "0.25" },
      },
    ],
  });
  app.upstream.replyAlways(json(chatCompletion({ usage: wireUsage(1, 1) })));
  const somebody = await signUp(app);
  accountId = somebody.accountId;
  const { request } = createClient(app.baseUrl, null);
  person = (method, path, options = {}) => request(method, path, { ...options, headers: signedIn(somebody) });
  ok(await execute(app, GrantCreditsDocument, { input: { accountId, bucket: "PACK", credits: "100" } }));
});
afterAll(() => app.close());

function as(key: string): Client {
  return createClient(app.baseUrl, key);
}

/** A key that may make others, made by the person. */
async function makeRoot(more: Fields = {}): Promise<CreatedKey> {
  const body = { name: "root", accountPermissions: ["keys", "balance"], ...more };
  return made(await person("POST", "/account/keys", { body }));
}

async function makeChild(parent: CreatedKey, more: Fields = {}): Promise<CreatedKey> {
  return made(await as(parent.key).post("/account/keys", { name: "child", ...more }));
}

function made(answer: Answer): CreatedKey {
  expect(answer.status, answer.text).toBe(200);
  return answer.json<CreatedKey>();
}

async function shown(key: CreatedKey): Promise<Fields> {
  return (await as(key.key).get("/account/key")).json();
}

/** Costs a quarter of a credit. */
function spend(key: CreatedKey): Promise<Answer> {
  return as(key.key).post("/v1/chat/completions", { model: "acme/quarter", max_tokens: 1, messages: [{ role: "user", content: "Hi" }] });
}

function expectRefused(answer: Answer, status: number, code: string, param: string): void {
  expectEnvelope(answer, status, code);
  expect(answer.json<{ error: Fields }>().error.param).toBe(param);
}

describe("the child keys of a key", () => {
  it("share the parent's budget, however many they are and however much they request at once", async () => {
    const root = await makeRoot({ creditBudget: 1 });
    const children = await Promise.all([1, 2, 3, 4].map(() => makeChild(root, { creditBudget: 1, accountPermissions: ["balance"] })));

    const answers = await Promise.all(children.flatMap((child) => [spend(child), spend(child), spend(child)]));

    expect(answers.filter(({ status }) => status === 200)).toHaveLength(4);
    for (const refused of answers.filter(({ status }) => status !== 200)) expectEnvelope(refused, 402, "KEY_BUDGET_EXHAUSTED");
    for (const key of [root, ...children]) {
      expect(await shown(key)).toMatchObject({ creditBudget: 0 });
      expect((await as(key.key).get("/account/balance")).json()).toEqual({ balance: 0 });
    }
    expectEnvelope(await spend(root), 402, "KEY_BUDGET_EXHAUSTED");
    expect(await findBrokenInvariants(databaseOf(app).pool)).toEqual({});
  });

  it("have a budget of their own, too, and lose with the parent's spending", async () => {
    const root = await makeRoot({ creditBudget: 1 });
    const [small, open] = [await makeChild(root, { creditBudget: 0.25 }), await makeChild(root)];

    expect((await spend(small)).status).toBe(200);
    expectEnvelope(await spend(small), 402, "KEY_BUDGET_EXHAUSTED");
    expect((await spend(root)).status).toBe(200);

    expect(await shown(open)).toMatchObject({ creditBudget: 0.5 });
    expect([await shown(small), await shown(root)]).toMatchObject([{ creditBudget: 0 }, { creditBudget: 0.5 }]);
  });

  it("follow the parent's budget, models and end, and take the parent's by default", async () => {
    const root = await makeRoot();
    const [child, own] = [await makeChild(root), await makeChild(root, { allowedModels: ["acme/quarter", "chat"], expiresIn: 3600 })];
    expect((await spend(child)).status).toBe(200);

    const body = { creditBudget: 0.5, allowedModels: ["acme/chat"], expiresIn: 60 };
    expect((await person("PATCH", `/account/keys/${root.id}`, { body })).status).toBe(200);

    expect(await shown(child)).toMatchObject({ creditBudget: 0.5, expiresIn: expect.toSatisfy((seconds: number) => seconds <= 60) });
    expect(await shown(own)).toMatchObject({ creditBudget: 0.5, expiresIn: expect.toSatisfy((seconds: number) => seconds <= 60) });
    for (const key of [child, own]) expectEnvelope(await spend(key), 403, "FORBIDDEN");
    const models = (await as(own.key).get("/v1/models")).json<{ data: { id: string }[] }>().data;
    expect(models.map(({ id }) => id)).toEqual(["acme/chat"]);
    const listed = (await as(root.key).get("/account/keys")).json<{ data: Fields[] }>().data;
    expect(listed.find(({ id }) => id === child.id)).toMatchObject({ parentId: root.id, allowedModels: ["acme/chat"] });
    expect(listed.find(({ id }) => id === own.id)).toMatchObject({ parentId: root.id, allowedModels: ["chat"] });
    expect(listed.find(({ id }) => id === root.id)).toMatchObject({ parentId: null });
  });
});

describe("a key's terms for another", () => {
  const limited = { creditBudget: 1, allowedModels: ["chat"], expiresIn: 3600 };
  /** For each field that can be stated of a key: what a limited key may not state, or null where it may state anything. */
  const wider: Readonly<Record<string, readonly unknown[] | null>> = {
    name: null,
    type: null,
    redirectUrls: null,
    expiresIn: [7200],
    allowedModels: [["acme/quarter"], ["acme/chat", "acme/quarter"]],
    creditBudget: [1.5],
    accountPermissions: [["usage"], ["balance", "profile"]],
    externalId: null,
    isManagement: [true],
  };

  it("is looked at field by field", () => {
    const fields = new Set([...Object.keys(createApiKeyInput.shape), ...Object.keys(updateApiKeyInput.shape)]);

    expect([...fields].sort()).toEqual(Object.keys(wider).sort());
  });

  it("are at most its own terms at the creation, on both faces", async () => {
    const root = await makeRoot(limited);
    for (const [field, values] of Object.entries(wider)) {
      for (const value of values ?? []) {
        expectRefused(await as(root.key).post("/account/keys", { name: "child", [field]: value }), 403, "FORBIDDEN", field);
        const input = { name: "child", [field]: toGraphql(field, value) };
        const { errors } = await execute({ ...app, key: root.key }, CreateApiKeyDocument, { input });
        expect(errors, field).toMatchObject([{ extensions: { code: "FORBIDDEN", param: field } }]);
      }
    }
    const child = await makeChild(root, {
      ...{ creditBudget: 1, allowedModels: ["acme/chat"], expiresIn: 1800 },
      accountPermissions: ["keys", "balance"],
    });
    expect(await shown(child)).toMatchObject({ permissions: ["balance"], creditBudget: 1 });
  });

  it("are at most its own terms at a change; a session is bounded by them too", async () => {
    const root = await makeRoot(limited);
    const child = await makeChild(root, { creditBudget: 0.5, allowedModels: [], expiresIn: 60 });
    for (const field of Object.keys(updateApiKeyInput.shape)) {
      for (const value of wider[field] ?? []) {
        const [path, body] = [`/account/keys/${child.id}`, { [field]: value }];
        expectRefused(await as(root.key).request("PATCH", path, { body }), 403, "FORBIDDEN", field);
        expectRefused(await person("PATCH", path, { body }), 400, "BAD_REQUEST", field);
      }
    }

    const body = { creditBudget: null, allowedModels: null, expiresIn: null };
    const changed = await as(root.key).request("PATCH", `/account/keys/${child.id}`, { body });

    expect(changed.json()).toMatchObject({ creditBudget: 1, allowedModels: ["chat"], expiresAt: expect.any(String) });
  });

  it("never widen a key that it has not made, itself, or one of its ancestors", async () => {
    const [root, other] = [await makeRoot(limited), await makeRoot({ ...limited, creditBudget: 0.5 })];
    const change = (id: string, body: Fields) => as(root.key).request("PATCH", `/account/keys/${id}`, { body });
    for (const [field, values] of Object.entries({ ...wider, creditBudget: [0.75] })) {
      if (!Object.hasOwn(updateApiKeyInput.shape, field)) continue;
      for (const value of values === null ? [] : [...values, null]) {
        expectRefused(await change(other.id, { [field]: value }), 403, "FORBIDDEN", field);
      }
    }
    expect((await change(other.id, { creditBudget: 0.25, allowedModels: [], name: "narrowed" })).json()).toMatchObject({
      creditBudget: 0.25,
    });
    expectEnvelope(await change(root.id, { name: "itself" }), 403, "FORBIDDEN");

    // No key makes one that holds `keys`; should there be one, it has no power over those above it.
    const child = await makeChild(root);
    await databaseOf(app).prisma.apiKey.update({ where: { id: child.id }, data: { permissions: ["keys"] } });
    app.services.apiKeys.announceGranted(accountId, child.id);
    const below = as(child.key);
    expectEnvelope(await below.request("PATCH", `/account/keys/${root.id}`, { body: { name: "mine" } }), 403, "FORBIDDEN");
    expectRefused(await below.request("DELETE", `/account/keys/${root.id}`), 400, "BAD_REQUEST", "id");
    expect((await as(root.key).get("/account/key")).status).toBe(200);
  });

  it("has an end: keys descend from each other in at most eight levels", async () => {
    let last = await makeRoot();
    for (let level = 2; level <= 8; level += 1) {
      last = await makeChild(last);
      await databaseOf(app).prisma.apiKey.update({ where: { id: last.id }, data: { permissions: ["keys"] } });
      app.services.apiKeys.announceGranted(accountId, last.id);
    }

    expectEnvelope(await as(last.key).post("/account/keys", { name: "ninth" }), 409, "CONFLICT");
  });
});

describe("the end of a key", () => {
  it("revokes all of its descendants, in one step", async () => {
    const root = await makeRoot();
    const children = [await makeChild(root), await makeChild(root, { type: "publishable" })];
    const bystander = await makeRoot();
    for (const key of [root, ...children, bystander]) expect((await as(key.key).get("/account/key")).status).toBe(200);

    expect((await person("DELETE", `/account/keys/${root.id}`)).json()).toEqual({ id: root.id, revoked: true });

    for (const key of [root, ...children]) expectEnvelope(await as(key.key).get("/account/key"), 401, "UNAUTHORIZED");
    expect((await as(bystander.key).get("/account/key")).status).toBe(200);
    const listed = (await as(bystander.key).get("/account/keys")).json<{ data: Fields[] }>().data.map(({ id }) => id);
    for (const { id } of children) expect(listed).not.toContain(id);
    expectEnvelope(await person("DELETE", `/account/keys/${children[0]?.id}`), 404, "NOT_FOUND");
  });

  it("expires all of its descendants", async () => {
    const root = await makeRoot({ expiresIn: 3600 });
    const child = await makeChild(root);
    expect((await as(child.key).get("/account/key")).status).toBe(200);

    await databaseOf(app).prisma.apiKey.update({ where: { id: root.id }, data: { expiresAt: new Date(Date.now() - 1) } });
    app.services.apiKeys.announceGranted(accountId, child.id);

    expectEnvelope(await as(child.key).get("/account/key"), 401, "UNAUTHORIZED");
  });

  it("leaves no descendant that was made at the same moment", async () => {
    const root = await makeRoot();
    const making = Array.from({ length: 6 }, () => as(root.key).post("/account/keys", { name: "late" }));
    const [, ...answers] = await Promise.all([person("DELETE", `/account/keys/${root.id}`), ...making]);

    for (const answer of answers) {
      if (answer.status === 200) expectEnvelope(await as(answer.json<CreatedKey>().key).get("/account/key"), 401, "UNAUTHORIZED");
      else expectEnvelope(answer, 401, "UNAUTHORIZED");
    }
  });
});

function toGraphql(field: string, value: unknown): unknown {
  if (field === "accountPermissions") return (value as string[]).map((name) => name.toUpperCase());
  return field === "creditBudget" ? String(value) : value;
}
