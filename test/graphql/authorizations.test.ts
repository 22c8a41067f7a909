/** The redirect flow for a consent page of somebody else's making. */
import { createHash, randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databaseOf } from "../e2e/money.js";
import { createClient, createKey } from "../rest/client.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { type Person, signedIn, signIn, signUp } from "../support/sign-in.js";
import { type Answer, codes, execute, field, type Loose, post, type Target } from "./client.js";

const REDIRECT = "https://app.example/cb";

let app: TestApp;
let nobody: Target;
let person: Person;

beforeAll(async () => {
  app = await createTestApp();
  nobody = { baseUrl: app.baseUrl, wsUrl: app.wsUrl, key: null };
  person = await signUp(app, { credits: 100 });
});
afterAll(() => app.close());

const REQUEST = `id redirectHost isRedirectRegistered expiresAt app { appKeyId name owner { handle githubUsername } }
  asked { models creditBudget expiresInDays permissions } creditBudgetMax`;
const CREATE = `mutation ($input: CreateAuthorizationRequestInput!) { createAuthorizationRequest(input: $input) { ${REQUEST} } }`;
const GET = `query ($id: ID!) { authorizationRequest(id: $id) { ${REQUEST} } }`;
const APPROVE = "mutation ($input: ApproveAuthorizationInput!) { approveAuthorization(input: $input) { redirectTo } }";
const DENY = "mutation ($input: DenyAuthorizationInput!) { denyAuthorization(input: $input) { redirectTo } }";
const EXCHANGE = `mutation ($input: ExchangeAuthorizationCodeInput!) {
  exchangeAuthorizationCode(input: $input) { accessToken scope expiresIn }
}`;

async function as(who: Person, query: string, variables: Record<string, unknown>): Promise<Answer> {
  return (await (await post(nobody, { query, variables }, signedIn(who))).json()) as Answer;
}

async function ask(input: object = {}): Promise<Loose> {
  return field(await as(person, CREATE, { input: { redirectUrl: REDIRECT, ...input } }), "createAuthorizationRequest");
}

function redirectOf(answer: Answer, mutation: string): URL {
  return new URL(String(field(answer, mutation).redirectTo));
}

it("is written down, shown again, narrowed, and approved once", async () => {
  const { key: appKey, id: appKeyId } = await createKey(app, { type: "publishable", name: "Sketchpad", redirectUrls: [REDIRECT] });
  const request = await ask({
    appKey,
    models: ["chat"],
    creditBudget: "2.5",
    expiresInDays: 7,
    permissions: ["PROFILE", "USAGE"],
    state: "s",
  });

  expect(request).toEqual({
    id: expect.any(String),
    redirectHost: "app.example",
    isRedirectRegistered: true,
    expiresAt: expect.stringMatching(/Z$/),
    app: { appKeyId, name: "Sketchpad", owner: { handle: "owner", githubUsername: null } },
    asked: { models: ["acme/chat"], creditBudget: "2.5", expiresInDays: 7, permissions: ["PROFILE", "USAGE"] },
    creditBudgetMax: "2.5",
  });
  expect(field(await as(person, GET, { id: request.id }), "authorizationRequest")).toEqual(request);
  const input = { id: request.id, creditBudget: "0.5", permissions: ["USAGE"], models: null };
  const url = redirectOf(await as(person, APPROVE, { input }), "approveAuthorization");

  const told = new URLSearchParams(url.hash.slice(1));
  expect([...told.keys()]).toEqual(["api_key", "state"]);
  const current = (await createClient(app.baseUrl, told.get("api_key")).get("/account/key")).json();
  expect(current).toMatchObject({ name: "Sketchpad", creditBudget: 0.5, permissions: ["usage"] });
  expect(codes(await as(person, APPROVE, { input }))).toEqual(["CONFLICT"]);
  expect(codes(await as(person, DENY, { input: { id: request.id } }))).toEqual(["CONFLICT"]);
});

it("is granted no more than the account has, as on the page", async () => {
  const poor = await signUp(app);
  const create = async () =>
    field(await as(poor, CREATE, { input: { redirectUrl: REDIRECT, creditBudget: "2" } }), "createAuthorizationRequest");
  const request = await create();

  const refused = await as(poor, APPROVE, { input: { id: request.id, creditBudget: "1.5" } });
  const url = redirectOf(await as(poor, APPROVE, { input: { id: request.id } }), "approveAuthorization");
  const again = await create();
  await databaseOf(app).prisma.account.update({ where: { id: poor.accountId }, data: { tierNanocredits: 0n } });
  const broke = await as(poor, APPROVE, { input: { id: again.id } });

  expect(request).toMatchObject({ asked: { creditBudget: "2" }, creditBudgetMax: "1" });
  expect(refused.errors?.[0]?.message).toBe("The budget can be at most the 1 credits that your account has.");
  expect(codes(refused)).toEqual(["BAD_REQUEST"]);
  const key = new URLSearchParams(url.hash.slice(1)).get("api_key");
  expect((await createClient(app.baseUrl, key).get("/account/key")).json()).toMatchObject({ creditBudget: 1 });
  expect(codes(broke)).toEqual(["INSUFFICIENT_BALANCE"]);
});

it("is denied", async () => {
  const { id } = await ask({ state: "s" });

  const url = redirectOf(await as(person, DENY, { input: { id } }), "denyAuthorization");

  expect(url.href).toBe("https://app.example/cb#error=access_denied&state=s");
});

it("gives an app with a challenge a code, which is exchanged once", async () => {
  const codeVerifier = randomBytes(32).toString("base64url");
  const codeChallenge = createHash("sha256").update(codeVerifier).digest("base64url");
  const { id } = await ask({ codeChallenge, permissions: ["BALANCE"] });
  const code = redirectOf(await as(person, APPROVE, { input: { id } }), "approveAuthorization").searchParams.get("code");

  const wrong = await execute(nobody, EXCHANGE, { input: { code, redirectUrl: REDIRECT, codeVerifier: "w".repeat(43) } });
  const right = await execute(nobody, EXCHANGE, { input: { code, redirectUrl: REDIRECT, codeVerifier } });
  const again = await execute(nobody, EXCHANGE, { input: { code, redirectUrl: REDIRECT, codeVerifier } });

  expect(codes(wrong)).toEqual(["BAD_REQUEST"]);
  expect(field(right, "exchangeAuthorizationCode")).toEqual({
    accessToken: expect.stringMatching(/^sk_\w{43}$/),
    scope: ["BALANCE"],
    expiresIn: 30 * 86_400,
  });
  expect(codes(again)).toEqual(["BAD_REQUEST"]);
});

describe("refuses", () => {
  it("keys, whatever they hold, and nobody at all", async () => {
    const { id } = await ask();
    const publishable = await createKey(app, { type: "publishable" });
    const documents: [string, Record<string, unknown>][] = [
      [CREATE, { input: { redirectUrl: REDIRECT } }],
      [GET, { id }],
      [APPROVE, { input: { id } }],
      [DENY, { input: { id } }],
    ];

    for (const [document, variables] of documents) {
      expect(codes(await execute({ ...nobody, key: app.key }, document, variables))).toEqual(["FORBIDDEN"]);
      expect(codes(await execute({ ...nobody, key: publishable.key }, document, variables))).toEqual(["FORBIDDEN"]);
      expect(codes(await execute(nobody, document, variables))).toEqual(["UNAUTHORIZED"]);
    }
  });

  it("another session, be it the same person's", async () => {
    const { id } = await ask();

    for (const who of [await signIn(app, person), await signUp(app)]) {
      expect(codes(await as(who, GET, { id }))).toEqual(["NOT_FOUND"]);
      expect(codes(await as(who, APPROVE, { input: { id } }))).toEqual(["NOT_FOUND"]);
      expect(codes(await as(who, DENY, { input: { id } }))).toEqual(["NOT_FOUND"]);
    }
    expect(codes(await as(person, GET, { id: "no-id" }))).toEqual(["NOT_FOUND"]);
  });

  it.each([
    ["javascript:", { redirectUrl: "javascript:alert(1)" }, "redirectUrl"],
    ["an unknown app", { appKey: "pk_0000000000000000000000" }, "appKey"],
    ["an unknown model", { models: ["acme/none"] }, "models"],
    ["a budget of 0", { creditBudget: "0" }, "creditBudget"],
    ["no days", { expiresInDays: 0 }, "expiresInDays"],
    ["too many days", { expiresInDays: 366 }, "expiresInDays"],
    ["the permission keys", { permissions: ["KEYS"] }, "permissions.0"],
    ["a short challenge", { codeChallenge: "a".repeat(42) }, "codeChallenge"],
    ["a long state", { state: "s".repeat(513) }, "state"],
  ])("a request that is not in order: %s", async (_what, input, param) => {
    const answer = await as(person, CREATE, { input: { redirectUrl: REDIRECT, ...input } });

    expect(answer.errors?.map(({ extensions }) => [extensions.code, extensions.param])).toEqual([["BAD_REQUEST", param]]);
  });

  it.each([
    ["a larger budget", { creditBudget: "2.500000001" }, "creditBudget"],
    ["more days", { expiresInDays: 8 }, "expiresInDays"],
    ["another permission", { permissions: ["BALANCE"] }, "permissions"],
    ["another model", { models: ["acme/video"] }, "models"],
    ["no model", { models: [] }, "models"],
  ])("a grant of more than was asked for: %s", async (_what, choice, param) => {
    const { id } = await ask({ models: ["chat"], creditBudget: "2.5", expiresInDays: 7, permissions: ["PROFILE"] });

    const answer = await as(person, APPROVE, { input: { id, ...choice } });

    expect(answer.errors?.map(({ extensions }) => [extensions.code, extensions.param])).toEqual([["BAD_REQUEST", param]]);
    expect(codes(await as(person, DENY, { input: { id } }))).toEqual([]);
  });
});

it("leaves a key that is listed with its origin and its app, which has registered where it returns to", async () => {
  const owner = { ...nobody, key: app.key };
  const create = "mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { key apiKey { id redirectUrls } } }";
  const update = "mutation ($input: UpdateApiKeyInput!) { updateApiKey(input: $input) { redirectUrls } }";
  const input = { name: "Sketchpad", type: "PUBLISHABLE", redirectUrls: [REDIRECT] };
  const created = field(await execute(owner, create, { input }), "createApiKey");
  const appKeyId = created.apiKey?.id;
  const { id } = await ask({ appKey: created.key });
  await as(person, APPROVE, { input: { id } });

  const keys = await as(person, "{ me { apiKeys(first: 1) { edges { node { name origin app { id name } redirectUrls } } } } }", {});

  expect(created.apiKey?.redirectUrls).toEqual([REDIRECT]);
  expect(field(keys, "me").apiKeys?.edges?.[0]?.node).toEqual({
    name: "Sketchpad",
    origin: "REDIRECT_FLOW",
    app: { id: appKeyId, name: "Sketchpad" },
    redirectUrls: [],
  });
  const changed = await execute(owner, update, { input: { id: appKeyId, redirectUrls: ["https://app.example/new"] } });
  expect(field(changed, "updateApiKey")).toEqual({ redirectUrls: ["https://app.example/new"] });
  expect(codes(await execute(owner, update, { input: { id: appKeyId, redirectUrls: ["data:x"] } }))).toEqual(["BAD_REQUEST"]);
});
