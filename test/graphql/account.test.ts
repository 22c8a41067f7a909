import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseGlobalId } from "../../src/graphql/global-ids.js";
import {
  type ApiKeyFilter,
  ChatReceiptDocument,
  CreateApiKeyDocument,
  type CreateApiKeyInput,
  CurrentApiKeyDocument,
  EveryPartOfMeDocument,
  FilteredApiKeysDocument,
  GrantCreditsDocument,
  MeAndModelsDocument,
  MeDocument,
  ModelByIdDocument,
  ModelPricesDocument,
  type ModelPricesQueryVariables,
  ModelsDocument,
  type ModelsQueryVariables,
  MyApiKeysDocument,
  MyBalanceDocument,
  MyIdDocument,
  MyUsageDailyDocument,
  MyUsageDocument,
  type MyUsageQuery,
  RevokeApiKeyDocument,
  UpdateApiKeyDocument,
} from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { type Answer, codes, execute, ok } from "./client.js";

let app: TestApp;

beforeAll(async () => {
  app = await createTestApp();
});

afterAll(async () => {
  await app.close();
});

interface NewKey {
  readonly id: string;
  readonly key: string;
}

async function createKey(input: CreateApiKeyInput): Promise<NewKey> {
  const { key, apiKey } = ok(await execute(app, CreateApiKeyDocument, { input })).createApiKey;
  return { key: String(key), id: apiKey.id };
}

async function chat(): Promise<string> {
  return ok(await execute(app, ChatReceiptDocument)).createChatCompletion.receipt.generationId;
}

async function ownId(): Promise<string> {
  return ok(await execute(app, MyIdDocument)).me.id;
}

async function currentKey(key: string | null) {
  const { currentApiKey } = ok(await execute({ ...app, key }, CurrentApiKeyDocument)).me;
  if (!currentApiKey) throw new Error("No key asks.");
  return currentApiKey;
}

describe("me", () => {
  it("is the account behind the key, with its balance", async () => {
    expect(ok(await execute(app, MeDocument)).me).toMatchObject({
      restId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      handle: expect.any(String),
      isOperator: true,
      tier: null,
      nextResetAt: null,
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      balance: { tier: "0", crypto: "0", held: "0", isKeyBudget: false },
    });
  });

  it("shows the budget of a budgeted key as available", async () => {
    const { key } = await createKey({ name: "budget", creditBudget: "0.123456789", accountPermissions: ["BALANCE"] });

    const { me } = ok(await execute({ ...app, key }, MyBalanceDocument));

    expect(me.balance).toMatchObject({ available: "0.123456789", isKeyBudget: true });
  });

  it("shows the account to a key without permissions, and refuses the rest part by part", async () => {
    const { key } = await createKey({ name: "bare" });

    const answer = await execute({ ...app, key }, EveryPartOfMeDocument);

    expect(answer.data?.me).toMatchObject({
      id: expect.any(String),
      name: null,
      email: null,
      balance: null,
      usage: null,
      usageDaily: null,
      apiKeys: null,
    });
    expect(answer.errors?.map(({ path, extensions }) => [path?.join("."), extensions.code]).sort()).toEqual([
      ["me.apiKeys", "FORBIDDEN"],
      ["me.balance", "FORBIDDEN"],
      ["me.email", "FORBIDDEN"],
      ["me.name", "FORBIDDEN"],
      ["me.usage", "FORBIDDEN"],
      ["me.usageDaily", "FORBIDDEN"],
    ]);
  });

  it("is null without a key", async () => {
    const answer = await execute({ ...app, key: null }, MeAndModelsDocument);

    expect(codes(answer)).toEqual(["UNAUTHORIZED"]);
    expect(answer.data).toMatchObject({ me: null, models: { nodes: expect.arrayContaining([{ restId: "acme/chat" }]) } });
  });
});

describe("usage", () => {
  it("pages through the rows, newest first, each once", async () => {
    const made = [await chat(), await chat(), await chat(), await chat(), await chat()].reverse();

    const seen: string[] = [];
    let after: string | null = null;
    while (seen.length < made.length) {
      const answer: Answer<MyUsageQuery> = await execute(app, MyUsageDocument, { first: 2, after });
      const page = answer.data?.me?.usage;
      expect(page?.pageInfo.hasPreviousPage).toBe(after !== null);
      seen.push(...(page?.edges.map(({ node }) => node.restId) ?? []));
      after = page?.pageInfo.endCursor ?? null;
    }

    expect(seen.slice(0, made.length)).toEqual(made);
  });

  it("sums up the days", async () => {
    await chat();

    const { me } = ok(await execute(app, MyUsageDailyDocument));

    expect(me.usageDaily?.days[0]).toMatchObject({
      date: new Date().toISOString().slice(0, 10),
      modelId: "acme/chat",
      meterSource: "PACK",
    });
  });
});

describe("apiKey", () => {
  it("is the calling key, of any type", async () => {
    const { key, id } = await createKey({
      name: "browser",
      type: "PUBLISHABLE",
      allowedModels: ["chat"],
      expiresIn: 3600,
      creditBudget: "2",
    });

    expect(ok(await execute({ ...app, key }, CurrentApiKeyDocument)).me.currentApiKey).toEqual({
      id,
      restId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      name: "browser",
      type: "PUBLISHABLE",
      prefix: "pk",
      start: key.slice(0, 10),
      permissions: [],
      allowedModels: ["chat"],
      creditBudget: "2",
      expiresAt: expect.any(String),
      isValid: true,
      expiresIn: expect.any(Number),
      isRateLimited: true,
    });
  });

  it("agrees with GET /account/key", async () => {
    const { key } = await createKey({ name: "same", creditBudget: "1.5", accountPermissions: ["USAGE", "BALANCE"] });
    const rest = (await (await fetch(`${app.baseUrl}/account/key`, { headers: { authorization: `Bearer ${key}` } })).json()) as Record<
      string,
      unknown
    >;

    const own = await currentKey(key);

    expect(own).toMatchObject({ name: rest.name, expiresAt: rest.expiresAt, isRateLimited: rest.rateLimitEnabled });
    expect(Number(own.creditBudget)).toBe(rest.creditBudget);
    expect(own.permissions.map((name) => name.toLowerCase())).toEqual(rest.permissions);
  });
});

describe("key management", () => {
  it("creates, changes, lists and revokes a key, which then no longer works", async () => {
    const { key, id } = await createKey({ name: "short-lived" });
    const changes = { name: "renamed", creditBudget: "3.25", allowedModels: [] };
    const changed = ok(await execute(app, UpdateApiKeyDocument, { input: { id, ...changes } }));
    const listed = ok(await execute(app, MyApiKeysDocument)).me.apiKeys?.edges;
    const before = await execute({ ...app, key }, CurrentApiKeyDocument);

    const revoked = ok(await execute(app, RevokeApiKeyDocument, { id }));
    const after = await execute({ ...app, key }, CurrentApiKeyDocument);

    expect(changed.updateApiKey.apiKey).toEqual(changes);
    expect(listed).toContainEqual({ node: { id, name: "renamed" } });
    expect(codes(before)).toEqual([]);
    expect(revoked.revokeApiKey.apiKey).toEqual({ id, revokedAt: expect.any(String) });
    expect(codes(after)).toEqual(["UNAUTHORIZED"]);
  });

  it.each([
    ["a name that is empty", { name: "" }, "name"],
    ["a life of 0 seconds", { name: "a", expiresIn: 0 }, "expiresIn"],
    ["a life of more than 365 days", { name: "a", expiresIn: 31_536_001 }, "expiresIn"],
    ["a negative budget", { name: "a", creditBudget: "-1" }, "creditBudget"],
  ])("refuses %s", async (_what, input, param) => {
    const answer = await execute(app, CreateApiKeyDocument, { input });

    expect(answer.errors?.map(({ extensions }) => extensions)).toEqual([expect.objectContaining({ code: "BAD_REQUEST", param })]);
  });

  it("drops the permission to manage keys from a new key", async () => {
    const { key } = await createKey({ name: "greedy", accountPermissions: ["KEYS", "USAGE"] });

    expect((await currentKey(key)).permissions).toEqual(["USAGE"]);
  });

  it("answers NOT_FOUND for a key that is not the account's", async () => {
    const answers = await Promise.all(
      ["00000000-0000-4000-8000-000000000000", "nonsense"].map((id) => execute(app, RevokeApiKeyDocument, { id })),
    );

    expect(answers.flatMap(codes)).toEqual(["NOT_FOUND", "NOT_FOUND"]);
  });

  it("lists the keys that apps act with, and those that apps show", async () => {
    const shown = await createKey({ name: "shown by an app", type: "PUBLISHABLE" });
    const granted = await Promise.all([createKey({ name: "a" }), createKey({ name: "b" })]);
    const origins = ["redirect_flow", "device_flow"] as const;
    for (const [index, { id }] of granted.entries()) {
      const key = { id: parseGlobalId(id)?.id ?? "" };
      await app.database.prisma.apiKey.update({ where: key, data: { origin: origins[index] ?? "created" } });
    }
    const list = async (filter: ApiKeyFilter) => ok(await execute(app, FilteredApiKeysDocument, { filter })).me.apiKeys;

    const ofApps = await list({ origins: ["REDIRECT_FLOW", "DEVICE_FLOW"] });
    expect(ofApps).toMatchObject({ totalCount: 2, nodes: [{ origin: expect.any(String) }, { type: "SECRET" }] });
    expect((await list({ origins: ["DEVICE_FLOW"] }))?.nodes.map(({ origin }) => origin)).toEqual(["DEVICE_FLOW"]);
    expect((await list({ types: ["PUBLISHABLE"], origins: ["CREATED"] }))?.nodes.map(({ restId }) => restId)).toContain(
      parseGlobalId(shown.id)?.id,
    );
    expect((await list({ types: ["PUBLISHABLE"], origins: ["DEVICE_FLOW"] }))?.totalCount).toBe(0);
  });

  it.each([
    [{ origins: [] }, "origins"],
    [{ types: [] }, "types"],
  ] as const)("refuses the filter %j", async (filter, param) => {
    const answer = await execute(app, FilteredApiKeysDocument, { filter });

    expect(answer.errors?.map(({ extensions }) => extensions)).toEqual([expect.objectContaining({ code: "BAD_REQUEST", param })]);
  });

  it("refuses the key that asks to be revoked itself", async () => {
    const { id } = await currentKey(app.key);

    expect(codes(await execute(app, RevokeApiKeyDocument, { id }))).toEqual(["BAD_REQUEST"]);
  });

  it.each<[who: string, input: CreateApiKeyInput | null, code: string]>([
    ["nobody", null, "UNAUTHORIZED"],
    ["a key without the permission", { name: "plain" }, "FORBIDDEN"],
    ["a publishable key", { name: "public", type: "PUBLISHABLE" }, "FORBIDDEN"],
  ])("is refused to %s", async (_who, input, code) => {
    const key = input === null ? null : (await createKey(input)).key;

    const answers = [
      await execute({ ...app, key }, CreateApiKeyDocument, { input: { name: "a" } }),
      await execute({ ...app, key }, UpdateApiKeyDocument, { input: { id: "x", name: "a" } }),
      await execute({ ...app, key }, RevokeApiKeyDocument, { id: "x" }),
      await execute({ ...app, key }, MyApiKeysDocument),
    ];

    expect(new Set(answers.flatMap(codes))).toEqual(new Set([code]));
  });
});

describe("grantCredits", () => {
  it("adds credits once, however often the same grant is sent", async () => {
    const id = await ownId();
    const input = {
      accountId: id,
      bucket: "CRYPTO" as const,
      credits: "1.000000001",
      note: "a gift",
      grantId: "7a1d1e6e-6f2c-4d5e-9d2b-0c6f6f6f6f6f",
    };

    const first = ok(await execute(app, GrantCreditsDocument, { input })).grantCredits;
    const second = ok(await execute(app, GrantCreditsDocument, { input })).grantCredits;
    const { balance } = ok(await execute(app, MyBalanceDocument)).me;

    expect(first.account.id).toBe(id);
    expect(second).toEqual(first);
    expect(balance?.crypto).toBe("1.000000001");
  });

  it.each([
    ["0", "BAD_REQUEST"],
    ["-1", "BAD_REQUEST"],
  ])("refuses %s credits", async (credits, code) => {
    const id = await ownId();

    expect(codes(await execute(app, GrantCreditsDocument, { input: { accountId: id, bucket: "PACK", credits } }))).toEqual([code]);
  });

  it("is for operators with the permission to manage keys", async () => {
    const { key } = await createKey({ name: "no operator" });
    const input = { accountId: "00000000-0000-4000-8000-000000000000", bucket: "PACK" as const, credits: "1" };

    expect(codes(await execute({ ...app, key }, GrantCreditsDocument, { input }))).toEqual(["FORBIDDEN"]);
    expect(codes(await execute({ ...app, key: null }, GrantCreditsDocument, { input }))).toEqual(["UNAUTHORIZED"]);
    expect(codes(await execute(app, GrantCreditsDocument, { input }))).toEqual(["NOT_FOUND"]);
  });
});

describe("the catalog", () => {
  it("shows a model with all its fields, by its alias too", async () => {
    const { model } = ok(await execute({ ...app, key: null }, ModelByIdDocument, { id: "chat" }));

    expect(model).toMatchObject({
      restId: "acme/chat",
      aliases: expect.arrayContaining(["chat"]),
      publisher: "acme",
      modality: "TEXT",
      category: "TEXT",
      inputModalities: ["TEXT"],
      capabilities: ["TOOLS"],
      flags: { isPaid: true, isAlpha: false },
      contextLength: 128_000,
      pricing: {
        inputTextTokens: "0.000001",
        inputCachedTokens: "0.0000005",
        inputCacheWriteTokens: "0.00000125",
        outputTextTokens: "0.000002",
        outputReasoningTokens: "0.000004",
        imageRequests: null,
      },
      fallbacks: model.fallbackIds.map((restId) => ({ restId })),
      isCommunity: false,
      ownerHandle: null,
    });
  });

  const idsOf = (connection: { readonly nodes: readonly { readonly restId: string }[] }) => connection.nodes.map(({ restId }) => restId);
  const list = async (variables: ModelsQueryVariables) => ok(await execute({ ...app, key: null }, ModelsDocument, variables)).models;
  const prices = async (variables: ModelPricesQueryVariables) =>
    ok(await execute({ ...app, key: null }, ModelPricesDocument, variables)).models.nodes;

  it("lists the models that REST lists, a page at a time from either end, and counts them", async () => {
    const rest = (await (await fetch(`${app.baseUrl}/models`)).json()) as { name: string }[];
    const names = rest.map(({ name }) => name);

    const first = await list({ first: 2 });
    const second = await list({ first: 2, after: first.pageInfo.endCursor });
    const back = await list({ last: 1, before: second.pageInfo.startCursor });
    const end = await list({ last: 3 });

    expect([first, second, back, end].map(idsOf)).toEqual([names.slice(0, 2), names.slice(2, 4), names.slice(1, 2), names.slice(-3)]);
    expect(first).toMatchObject({ totalCount: names.length, pageInfo: { hasPreviousPage: false, hasNextPage: true } });
    expect(end.pageInfo).toMatchObject({ hasPreviousPage: true, hasNextPage: false });
  });

  it("continues after a model that is gone, and refuses the cursor of another order", async () => {
    const orderBy = { field: "TITLE", direction: "DESC" } as const;
    const all = await list({ first: 100, orderBy });
    const gone = Buffer.from(JSON.stringify(["models.title.desc", "zzzz", "acme/gone"])).toString("base64url");

    const after = await list({ first: 1, after: gone, orderBy });
    const refused = [
      await execute(app, ModelsDocument, { after: gone }),
      await execute(app, ModelsDocument, { after: all.pageInfo.endCursor, orderBy: { field: "TITLE" } }),
      await execute(app, ModelsDocument, { before: "x".repeat(20_000), orderBy }),
      await execute(app, ModelsDocument, { first: 101 }),
    ];

    expect(idsOf(after)).toEqual(idsOf(all).slice(0, 1));
    expect(refused.map(({ errors }) => errors?.[0]?.extensions)).toMatchObject(
      ["after", "after", "before", "first"].map((param) => ({ code: "BAD_REQUEST", param })),
    );
  });

  it("filters by capability and search", async () => {
    const tools = await list({ filter: { capabilities: ["TOOLS"], search: "acme" } });
    const both = await list({ filter: { capabilities: ["TOOLS", "CODE_EXEC"], search: "acme" } });
    const none = await list({ filter: { search: "nothing like it" } });

    expect([tools, both, none].map(idsOf)).toEqual([["acme/chat"], [], []]);
  });

  it("filters by modality, publisher, price and whether it is free", async () => {
    const chat = { publishers: ["acme"], modalities: ["TEXT"] } as const;
    const all = await prices({ filter: chat });
    const cheap = await prices({ filter: { ...chat, maxInputPrice: "0.000001", maxOutputPrice: "0.000002" } });
    const cheaper = await prices({ filter: { ...chat, maxOutputPrice: "0.0000019" } });
    const free = await prices({ filter: { ...chat, isFree: true } });

    expect(new Set(all.map(({ modality, publisher }) => `${publisher} ${modality}`))).toEqual(new Set(["acme TEXT"]));
    expect(cheap).toContainEqual(expect.objectContaining({ restId: "acme/chat" }));
    expect(cheaper).not.toContainEqual(expect.objectContaining({ restId: "acme/chat" }));
    expect(free.map(({ restId }) => restId)).toEqual(all.filter(({ flags }) => !flags.isPaid).map(({ restId }) => restId));
    expect(await prices({ filter: { ...chat, isCommunity: true } })).toEqual([]);
  });

  it("sorts by title, price and when a model was added", async () => {
    const filter = { modalities: ["TEXT"] } as const;
    const byTitle = (await prices({ filter, orderBy: { field: "TITLE" } })).map(({ title }) => title.toLowerCase());
    const byPrice = (await prices({ filter, orderBy: { field: "PRICE", direction: "DESC" } })).map(({ pricing }) =>
      Number(pricing.outputTextTokens),
    );
    const byAge = (await prices({ filter, orderBy: { field: "ADDED_AT" } })).map(({ addedAt }) => addedAt);

    expect(byTitle).toEqual([...byTitle].sort());
    expect(byPrice).toEqual([...byPrice].sort((one, other) => other - one));
    expect(byAge).toEqual([...byAge].sort());
  });

  it.each([
    ["a search that is too long", { search: "s".repeat(254) }, "search"],
    ["no modality", { modalities: [] }, "modalities"],
    ["no capability", { capabilities: [] }, "capabilities"],
    ["a publisher without a name", { publishers: [""] }, "publishers.0"],
    ["too many publishers", { publishers: Array.from({ length: 101 }, () => "acme") }, "publishers"],
  ])("refuses %s", async (_what, filter, param) => {
    const { errors } = await execute(app, ModelsDocument, { filter });

    expect(errors?.[0]?.extensions).toMatchObject({ code: "BAD_REQUEST", param });
  });

  it("answers NOT_FOUND for a model that does not exist and for one that the key may not call", async () => {
    const { key } = await createKey({ name: "narrow", allowedModels: ["acme/free"] });

    const answers = [
      await execute(app, ModelByIdDocument, { id: "acme/nothing" }),
      await execute({ ...app, key }, ModelByIdDocument, { id: "acme/chat" }),
    ];

    expect(answers.flatMap(codes)).toEqual(["NOT_FOUND", "NOT_FOUND"]);
  });

  it("cuts the list to the key's models", async () => {
    const { key } = await createKey({ name: "narrow", allowedModels: ["acme/free", "chat"] });

    const { models } = ok(await execute({ ...app, key }, ModelsDocument));

    expect(idsOf(models).sort()).toEqual(["acme/chat", "acme/free"]);
    expect(models.totalCount).toBe(2);
  });
});
