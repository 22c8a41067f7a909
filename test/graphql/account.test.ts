import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { codes, execute, field, type Loose } from "./client.js";

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

async function createKey(input: object): Promise<NewKey> {
  const query = "mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { key apiKey { id } } }";
  const { key, apiKey } = field<{ key: string; apiKey: { id: string } }>(await execute(app, query, { input }), "createApiKey");
  return { key, id: apiKey.id };
}

const CHAT = /* GraphQL */ `
  mutation {
    createChatCompletion(input: { model: "acme/chat", messages: [{ role: USER, content: "Hi" }] }) { receipt { generationId } }
  }
`;

async function chat(key = app.key): Promise<string> {
  const answer = await execute({ ...app, key }, CHAT);
  return field<{ receipt: { generationId: string } }>(answer, "createChatCompletion").receipt.generationId;
}

describe("me", () => {
  it("is the account behind the key, with its balance", async () => {
    const answer = await execute(
      app,
      "{ me { id handle email name tier isOperator createdAt nextResetAt balance { available tier crypto pack held isKeyBudget } } }",
    );

    expect(codes(answer)).toEqual([]);
    expect(field(answer, "me")).toMatchObject({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      handle: expect.any(String),
      isOperator: true,
      tier: null,
      nextResetAt: null,
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      balance: { tier: "0", crypto: "0", held: "0", isKeyBudget: false },
    });
  });

  it("shows the budget of a budgeted key as what is available", async () => {
    const { key } = await createKey({ name: "budget", creditBudget: "0.123456789", accountPermissions: ["BALANCE"] });

    const answer = await execute({ ...app, key }, "{ me { balance { available isKeyBudget } } }");

    expect(field(answer, "me").balance).toEqual({ available: "0.123456789", isKeyBudget: true });
  });

  it("shows a key without permissions whose it is and refuses the rest part by part", async () => {
    const { key } = await createKey({ name: "bare" });

    const answer = await execute(
      { ...app, key },
      "{ me { id handle image name email balance { available } usage { edges { cursor } } usageDaily { asOf } apiKeys { edges { cursor } } } }",
    );

    expect(field(answer, "me")).toMatchObject({
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

  it("is nobody without a key", async () => {
    const answer = await execute({ ...app, key: null }, "{ me { id } models { id } }");

    expect(codes(answer)).toEqual(["UNAUTHORIZED"]);
    expect(answer.data).toMatchObject({ me: null, models: expect.arrayContaining([{ id: "acme/chat" }]) });
  });
});

describe("usage", () => {
  it("pages through the rows, newest first, each once", async () => {
    const made = [await chat(), await chat(), await chat(), await chat(), await chat()].reverse();
    const query =
      "query ($first: Int, $after: String) { me { usage(first: $first, after: $after) { pageInfo { hasNextPage hasPreviousPage endCursor } edges { node { id model status cost } } } } }";

    const seen: unknown[] = [];
    let after: unknown = null;
    while (seen.length < made.length) {
      const page = field(await execute(app, query, { first: 2, after }), "me").usage as Loose;
      expect(page.pageInfo?.hasPreviousPage).toBe(after !== null);
      seen.push(...(page.edges as unknown as { node: Loose }[]).map(({ node }) => node.id));
      after = page.pageInfo?.endCursor;
    }

    expect(seen.slice(0, made.length)).toEqual(made);
  });

  it("sums up the days", async () => {
    await chat();

    const daily = field(
      await execute(app, "{ me { usageDaily { asOf days { date model meterSource requests cost } } } }"),
      "me",
    ).usageDaily;

    expect(daily?.days?.[0]).toMatchObject({ date: new Date().toISOString().slice(0, 10), model: "acme/chat", meterSource: "PACK" });
  });
});

describe("apiKey", () => {
  it("is the key that asks, of any type", async () => {
    const { key, id } = await createKey({
      name: "browser",
      type: "PUBLISHABLE",
      allowedModels: ["chat"],
      expiresIn: 3600,
      creditBudget: "2",
    });

    const answer = await execute(
      { ...app, key },
      "{ apiKey { id name type prefix start permissions allowedModels creditBudget expiresAt valid expiresIn rateLimitEnabled } }",
    );

    expect(field(answer, "apiKey")).toEqual({
      id,
      name: "browser",
      type: "PUBLISHABLE",
      prefix: "pk",
      start: key.slice(0, 10),
      permissions: [],
      allowedModels: ["chat"],
      creditBudget: "2",
      expiresAt: expect.any(String),
      valid: true,
      expiresIn: expect.any(Number),
      rateLimitEnabled: true,
    });
  });

  it("agrees with GET /account/key", async () => {
    const { key } = await createKey({ name: "same", creditBudget: "1.5", accountPermissions: ["USAGE", "BALANCE"] });
    const rest = (await (await fetch(`${app.baseUrl}/account/key`, { headers: { authorization: `Bearer ${key}` } })).json()) as Record<
      string,
      unknown
    >;

    const own = field(
      await execute({ ...app, key }, "{ apiKey { name type permissions creditBudget expiresAt rateLimitEnabled } }"),
      "apiKey",
    );

    expect(own).toMatchObject({ name: rest.name, expiresAt: rest.expiresAt, rateLimitEnabled: rest.rateLimitEnabled });
    expect(Number(own.creditBudget)).toBe(rest.creditBudget);
    expect((own.permissions as unknown as string[]).map((name) => name.toLowerCase())).toEqual(rest.permissions);
  });
});

describe("key management", () => {
  it("creates, changes, lists and revokes a key, which then no longer works", async () => {
    const { key, id } = await createKey({ name: "short-lived" });
    const changed = await execute(
      app,
      'mutation ($id: ID!) { updateApiKey(input: { id: $id, name: "renamed", creditBudget: "3.25", allowedModels: [] }) { name creditBudget allowedModels } }',
      { id },
    );
    const listed = field(await execute(app, "{ me { apiKeys(first: 100) { edges { node { id name } } } } }"), "me").apiKeys?.edges;
    const before = await execute({ ...app, key }, "{ apiKey { name } }");

    const revoked = await execute(app, "mutation ($id: ID!) { revokeApiKey(input: { id: $id }) { id revokedAt } }", { id });
    const after = await execute({ ...app, key }, "{ apiKey { name } }");

    expect(field(changed, "updateApiKey")).toEqual({ name: "renamed", creditBudget: "3.25", allowedModels: [] });
    expect(listed).toContainEqual({ node: { id, name: "renamed" } });
    expect(codes(before)).toEqual([]);
    expect(field(revoked, "revokeApiKey")).toEqual({ id, revokedAt: expect.any(String) });
    expect(codes(after)).toEqual(["UNAUTHORIZED"]);
  });

  it.each([
    ["a name that is empty", { name: "" }, "name"],
    ["a life of 0 seconds", { name: "a", expiresIn: 0 }, "expiresIn"],
    ["a life of more than 365 days", { name: "a", expiresIn: 31_536_001 }, "expiresIn"],
    ["a negative budget", { name: "a", creditBudget: "-1" }, "creditBudget"],
  ])("refuses %s", async (_what, input, param) => {
    const answer = await execute(app, "mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { key } }", { input });

    expect(answer.errors?.map(({ extensions }) => extensions)).toEqual([expect.objectContaining({ code: "BAD_REQUEST", param })]);
  });

  it("drops the permission to manage keys from what a key asks for", async () => {
    const { key } = await createKey({ name: "greedy", accountPermissions: ["KEYS", "USAGE"] });

    expect(field(await execute({ ...app, key }, "{ apiKey { permissions } }"), "apiKey").permissions).toEqual(["USAGE"]);
  });

  it("answers NOT_FOUND for a key that is not the account's", async () => {
    const answers = await Promise.all(
      ["00000000-0000-4000-8000-000000000000", "nonsense"].map((id) =>
        execute(app, "mutation ($id: ID!) { revokeApiKey(input: { id: $id }) { id } }", { id }),
      ),
    );

    expect(answers.flatMap(codes)).toEqual(["NOT_FOUND", "NOT_FOUND"]);
  });

  it("refuses the key that asks to be revoked itself", async () => {
    const { id } = field<{ id: string }>(await execute(app, "{ apiKey { id } }"), "apiKey");

    expect(codes(await execute(app, "mutation ($id: ID!) { revokeApiKey(input: { id: $id }) { id } }", { id }))).toEqual(["BAD_REQUEST"]);
  });

  it.each([
    ["nobody", null, "UNAUTHORIZED"],
    ["a key without the permission", { name: "plain" }, "FORBIDDEN"],
    ["a publishable key", { name: "public", type: "PUBLISHABLE" }, "FORBIDDEN"],
  ])("is refused to %s", async (_who, input, code) => {
    const key = input === null ? null : (await createKey(input)).key;

    const answers = [
      await execute({ ...app, key }, 'mutation { createApiKey(input: { name: "a" }) { key } }'),
      await execute({ ...app, key }, 'mutation { updateApiKey(input: { id: "x", name: "a" }) { id } }'),
      await execute({ ...app, key }, 'mutation { revokeApiKey(input: { id: "x" }) { id } }'),
      await execute({ ...app, key }, "{ me { apiKeys { edges { cursor } } } }"),
    ];

    expect(new Set(answers.flatMap(codes))).toEqual(new Set([code]));
  });
});

describe("grantCredits", () => {
  const GRANT = "mutation ($input: GrantCreditsInput!) { grantCredits(input: $input) { account { id } balance } }";

  it("adds credits once, however often the same grant is sent", async () => {
    const { id } = field<{ id: string }>(await execute(app, "{ me { id } }"), "me");
    const input = {
      accountId: id,
      bucket: "CRYPTO",
      credits: "1.000000001",
      note: "a gift",
      grantId: "7a1d1e6e-6f2c-4d5e-9d2b-0c6f6f6f6f6f",
    };

    const first = field(await execute(app, GRANT, { input }), "grantCredits");
    const second = field(await execute(app, GRANT, { input }), "grantCredits");
    const { balance } = field(await execute(app, "{ me { balance { crypto } } }"), "me");

    expect(first.account).toEqual({ id });
    expect(second.balance).toBe(first.balance);
    expect(balance).toEqual({ crypto: "1.000000001" });
  });

  it.each([
    ["0", "BAD_REQUEST"],
    ["-1", "BAD_REQUEST"],
  ])("refuses %s credits", async (credits, code) => {
    const { id } = field<{ id: string }>(await execute(app, "{ me { id } }"), "me");

    expect(codes(await execute(app, GRANT, { input: { accountId: id, bucket: "PACK", credits } }))).toEqual([code]);
  });

  it("is for operators with the permission to manage keys", async () => {
    const { key } = await createKey({ name: "no operator" });
    const input = { accountId: "00000000-0000-4000-8000-000000000000", bucket: "PACK", credits: "1" };

    expect(codes(await execute({ ...app, key }, GRANT, { input }))).toEqual(["FORBIDDEN"]);
    expect(codes(await execute({ ...app, key: null }, GRANT, { input }))).toEqual(["UNAUTHORIZED"]);
    expect(codes(await execute(app, GRANT, { input }))).toEqual(["NOT_FOUND"]);
  });
});

describe("the catalog", () => {
  it("shows a model with all that there is to know of it, by its alias too", async () => {
    const answer = await execute(
      { ...app, key: null },
      `{ model(id: "chat") { id aliases publisher title modality category inputModalities outputModalities capabilities flags { paid alpha } contextLength isDefault
          pricing { inputTextTokens inputCachedTokens inputCacheWriteTokens outputTextTokens outputReasoningTokens imageRequests } fallbacks isCommunity owner addedAt } }`,
    );

    expect(field(answer, "model")).toMatchObject({
      id: "acme/chat",
      aliases: expect.arrayContaining(["chat"]),
      publisher: "acme",
      modality: "TEXT",
      category: "TEXT",
      inputModalities: ["TEXT"],
      capabilities: ["TOOLS"],
      flags: { paid: true, alpha: false },
      contextLength: 128_000,
      pricing: {
        inputTextTokens: "0.000001",
        inputCachedTokens: "0.0000005",
        inputCacheWriteTokens: "0.00000125",
        outputTextTokens: "0.000002",
        outputReasoningTokens: "0.000004",
        imageRequests: null,
      },
      isCommunity: false,
      owner: null,
    });
  });

  it("lists the models that REST lists", async () => {
    const rest = (await (await fetch(`${app.baseUrl}/text/models`)).json()) as { name: string }[];

    const models = field<{ id: string }[]>(await execute({ ...app, key: null }, "{ models(modality: TEXT) { id } }"), "models");

    expect(models.map(({ id }) => id)).toEqual(rest.map(({ name }) => name));
  });

  it("filters by capability and search", async () => {
    const answer = await execute(
      app,
      '{ tools: models(capability: TOOLS, search: "acme") { id } none: models(search: "nothing like it") { id } }',
    );

    expect(answer.data).toEqual({ tools: [{ id: "acme/chat" }], none: [] });
  });

  it("answers NOT_FOUND for a model that does not exist and for one that the key may not call", async () => {
    const { key } = await createKey({ name: "narrow", allowedModels: ["acme/free"] });

    const answers = [
      await execute(app, '{ model(id: "acme/nothing") { id } }'),
      await execute({ ...app, key }, '{ model(id: "acme/chat") { id } }'),
    ];

    expect(answers.flatMap(codes)).toEqual(["NOT_FOUND", "NOT_FOUND"]);
  });

  it("cuts the list to what a key may call", async () => {
    const { key } = await createKey({ name: "narrow", allowedModels: ["acme/free", "chat"] });

    const models = field<{ id: string }[]>(await execute({ ...app, key }, "{ models { id } }"), "models");

    expect(models.map(({ id }) => id).sort()).toEqual(["acme/chat", "acme/free"]);
  });
});
