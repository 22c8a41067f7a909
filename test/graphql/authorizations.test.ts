/** The redirect flow for a consent page of another author. */

import { createHash, randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { toGlobalId } from "../../src/graphql/global-ids.js";
import { databaseOf } from "../e2e/money.js";
import {
  ApproveAuthorizationDocument,
  type ApproveAuthorizationInput,
  type AuthorizationRequestShownFragment,
  ChangeAppDocument,
  type CreateApiKeyInput,
  CreateAuthorizationRequestDocument,
  type CreateAuthorizationRequestInput,
  DenyAuthorizationDocument,
  ExchangeAuthorizationCodeDocument,
  MyAuthorizationRequestDocument,
  MyNewestApiKeyDocument,
  NodesOfAuthorizationDocument,
  RegisterAppDocument,
  RevokeApiKeyDocument,
} from "../operations/generated/graphql.js";
import { createClient, createKey } from "../rest/client.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { type Person, signedIn, signIn, signUp } from "../support/sign-in.js";
import { codes, execute, ok, type Target } from "./client.js";

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

/** A signed-in person's browser. */
function browser(who: Person): Target {
  return { ...nobody, headers: signedIn(who) };
}

async function ask(input: Partial<CreateAuthorizationRequestInput> = {}): Promise<AuthorizationRequestShownFragment> {
  const answer = await execute(browser(person), CreateAuthorizationRequestDocument, { input: { redirectUrl: REDIRECT, ...input } });
  return ok(answer).createAuthorizationRequest.authorizationRequest;
}

function approve(who: Person, input: ApproveAuthorizationInput) {
  return execute(browser(who), ApproveAuthorizationDocument, { input });
}

function deny(who: Person, id: string) {
  return execute(browser(who), DenyAuthorizationDocument, { input: { id } });
}

it("is stored, shown again, narrowed, and approved once", async () => {
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
    id: toGlobalId("AuthorizationRequest", request.restId),
    restId: expect.any(String),
    redirectHost: "app.example",
    isRedirectRegistered: true,
    resource: null,
    client: null,
    expiresAt: expect.stringMatching(/Z$/),
    decidedAt: null,
    app: { id: toGlobalId("App", appKeyId), restId: appKeyId, name: "Sketchpad", owner: { handle: "owner", githubUsername: null } },
    asked: { models: ["acme/chat"], creditBudget: "2.5", expiresInDays: 7, permissions: ["PROFILE", "USAGE"] },
    creditBudgetMax: "2.5",
  });
  const own = await execute(browser(person), MyAuthorizationRequestDocument, { id: request.restId });
  expect(ok(own).me.authorizationRequest).toEqual(request);
  const input: ApproveAuthorizationInput = { id: request.id, creditBudget: "0.5", permissions: ["USAGE"], models: null };
  const { authorizationRequest: decided, redirectTo } = ok(await approve(person, input)).approveAuthorization;
  const url = new URL(redirectTo);

  expect(decided).toEqual({ id: request.id, decidedAt: expect.stringMatching(/Z$/) });
  const told = new URLSearchParams(url.hash.slice(1));
  expect([...told.keys()]).toEqual(["api_key", "state"]);
  const current = (await createClient(app.baseUrl, told.get("api_key")).get("/account/key")).json();
  expect(current).toMatchObject({ name: "Sketchpad", creditBudget: 0.5, permissions: ["usage"] });
  expect(codes(await approve(person, input))).toEqual(["CONFLICT"]);
  expect(codes(await deny(person, request.id))).toEqual(["CONFLICT"]);
});

it("is granted no more than the account has, as on the page", async () => {
  const poor = await signUp(app);
  const asked = { input: { redirectUrl: REDIRECT, creditBudget: "2" } };
  const create = async () =>
    ok(await execute(browser(poor), CreateAuthorizationRequestDocument, asked)).createAuthorizationRequest.authorizationRequest;
  const request = await create();

  const refused = await approve(poor, { id: request.id, creditBudget: "1.5" });
  const url = new URL(ok(await approve(poor, { id: request.id })).approveAuthorization.redirectTo);
  const again = await create();
  await databaseOf(app).prisma.account.update({ where: { id: poor.accountId }, data: { tierNanocredits: 0n } });
  const broke = await approve(poor, { id: again.id });

  expect(request).toMatchObject({ asked: { creditBudget: "2" }, creditBudgetMax: "1" });
  expect(refused.errors?.[0]?.message).toBe("The budget can be at most the 1 credits that your account has.");
  expect(codes(refused)).toEqual(["BAD_REQUEST"]);
  const key = new URLSearchParams(url.hash.slice(1)).get("api_key");
  expect((await createClient(app.baseUrl, key).get("/account/key")).json()).toMatchObject({ creditBudget: 1 });
  expect(codes(broke)).toEqual(["INSUFFICIENT_BALANCE"]);
  const details = { bound: "balance", required: "2", available: "0", topUpUrl: expect.stringContaining("/dashboard/credits") };
  expect(broke.errors?.[0]?.extensions).toMatchObject({ details });
});

it("is denied", async () => {
  const { id } = await ask({ state: "s" });

  const { authorizationRequest, redirectTo } = ok(await deny(person, id)).denyAuthorization;

  expect(redirectTo).toBe("https://app.example/cb#error=access_denied&state=s");
  expect(authorizationRequest).toEqual({ id, decidedAt: expect.stringMatching(/Z$/) });
});

it("gives an app with a challenge a code, which is exchanged once", async () => {
  const codeVerifier = randomBytes(32).toString("base64url");
  const codeChallenge = createHash("sha256").update(codeVerifier).digest("base64url");
  const { id } = await ask({ codeChallenge, permissions: ["BALANCE"] });
  const { redirectTo } = ok(await approve(person, { id })).approveAuthorization;
  const code = String(new URL(redirectTo).searchParams.get("code"));
  const exchange = (verifier: string) =>
    execute(nobody, ExchangeAuthorizationCodeDocument, { input: { code, redirectUrl: REDIRECT, codeVerifier: verifier } });

  const wrong = await exchange("w".repeat(43));
  const elsewhere = await execute(nobody, ExchangeAuthorizationCodeDocument, {
    input: { code, redirectUrl: "https://other.example", codeVerifier },
  });
  const nowhere = await execute(nobody, ExchangeAuthorizationCodeDocument, { input: { code, redirectUrl: "", codeVerifier } });
  const right = await exchange(codeVerifier);
  const again = await exchange(codeVerifier);

  const refusals = [wrong, elsewhere, nowhere].flatMap(({ errors = [] }) => errors);
  expect(refusals.map(({ extensions }) => [extensions.code, extensions.param])).toEqual([
    ["BAD_REQUEST", "codeVerifier"],
    ["BAD_REQUEST", "redirectUrl"],
    ["BAD_REQUEST", "redirectUrl"],
  ]);
  for (const { message } of refusals) expect(message).toMatch(/^(?:codeVerifier|redirectUrl)\b/);
  expect(ok(right).exchangeAuthorizationCode.token).toEqual({
    accessToken: expect.stringMatching(/^sk_\w{43}$/),
    scope: ["BALANCE"],
    expiresIn: 30 * 86_400,
  });
  expect(codes(again)).toEqual(["BAD_REQUEST"]);
});

describe("refuses", () => {
  it("keys, with any permission, and anonymous callers", async () => {
    const { id } = await ask();
    const publishable = await createKey(app, { type: "publishable" });
    const askAs = async (target: Target) => [
      await execute(target, CreateAuthorizationRequestDocument, { input: { redirectUrl: REDIRECT } }),
      await execute(target, MyAuthorizationRequestDocument, { id }),
      await execute(target, NodesOfAuthorizationDocument, { ids: [id] }),
      await execute(target, ApproveAuthorizationDocument, { input: { id } }),
      await execute(target, DenyAuthorizationDocument, { input: { id } }),
    ];

    for (const [key, code] of [
      [app.key, "FORBIDDEN"],
      [publishable.key, "FORBIDDEN"],
      [null, "UNAUTHORIZED"],
    ] as const) {
      expect((await askAs({ ...nobody, key })).map(codes)).toEqual([[code], [code], [code], [code], [code]]);
    }
  });

  it("another session, even of the same person", async () => {
    const { id } = await ask();

    for (const who of [await signIn(app, person), await signUp(app)]) {
      expect(codes(await execute(browser(who), MyAuthorizationRequestDocument, { id }))).toEqual(["NOT_FOUND"]);
      expect(codes(await approve(who, { id }))).toEqual(["NOT_FOUND"]);
      expect(codes(await deny(who, id))).toEqual(["NOT_FOUND"]);
      expect(ok(await execute(browser(who), NodesOfAuthorizationDocument, { ids: [id] })).nodes).toEqual([null]);
    }
    expect(codes(await execute(browser(person), MyAuthorizationRequestDocument, { id: "no-id" }))).toEqual(["NOT_FOUND"]);
  });

  it.each<[what: string, input: Partial<CreateAuthorizationRequestInput>, param: string]>([
    ["javascript:", { redirectUrl: "javascript:alert(1)" }, "redirectUrl"],
    ["an unknown app", { appKey: "pk_0000000000000000000000" }, "appKey"],
    ["an unknown model", { models: ["acme/none"] }, "models"],
    ["a budget of 0", { creditBudget: "0" }, "creditBudget"],
    ["no days", { expiresInDays: 0 }, "expiresInDays"],
    ["too many days", { expiresInDays: 366 }, "expiresInDays"],
    ["the permission keys", { permissions: ["KEYS"] }, "permissions.0"],
    ["a short challenge", { codeChallenge: "a".repeat(42) }, "codeChallenge"],
    ["a long state", { state: "s".repeat(513) }, "state"],
  ])("an invalid request: %s", async (_what, input, param) => {
    const answer = await execute(browser(person), CreateAuthorizationRequestDocument, {
      input: { redirectUrl: REDIRECT, ...input },
    });

    expect(answer.errors?.map(({ extensions }) => [extensions.code, extensions.param])).toEqual([["BAD_REQUEST", param]]);
  });

  it.each<[what: string, choice: Partial<ApproveAuthorizationInput>, param: string]>([
    ["a larger budget", { creditBudget: "2.500000001" }, "creditBudget"],
    ["more days", { expiresInDays: 8 }, "expiresInDays"],
    ["another permission", { permissions: ["BALANCE"] }, "permissions"],
    ["another model", { models: ["acme/video"] }, "models"],
    ["no model", { models: [] }, "models"],
  ])("a grant beyond the request: %s", async (_what, choice, param) => {
    const { id } = await ask({ models: ["chat"], creditBudget: "2.5", expiresInDays: 7, permissions: ["PROFILE"] });

    const answer = await approve(person, { id, ...choice });

    expect(answer.errors?.map(({ extensions }) => [extensions.code, extensions.param])).toEqual([["BAD_REQUEST", param]]);
    expect(codes(await deny(person, id))).toEqual([]);
  });
});

it("is found again by its id until it is decided, and its app by any account", async () => {
  const appKey = await createKey(app, { type: "publishable", name: "Found again" });
  const request = await ask({ appKey: appKey.key });
  const ids = [request.id, request.app?.id ?? "", toGlobalId("AuthorizationRequest", "no-id"), toGlobalId("App", person.accountId)];
  const find = async (target: Target) => ok(await execute(target, NodesOfAuthorizationDocument, { ids })).nodes;

  const before = await find(browser(person));
  await deny(person, request.restId);
  const after = await find(browser(person));
  await execute({ ...nobody, key: app.key }, RevokeApiKeyDocument, { id: appKey.id });
  const revoked = await find(browser(person));

  const shownApp = { __typename: "App", id: request.app?.id, restId: appKey.id, name: "Found again", owner: { handle: "owner" } };
  const { id, restId } = request;
  expect(before).toEqual([{ __typename: "AuthorizationRequest", id, restId, redirectHost: "app.example" }, shownApp, null, null]);
  expect(after).toEqual([null, shownApp, null, null]);
  expect(revoked).toEqual([null, shownApp, null, null]);
});

it("leaves a key that is listed with its origin and its app, which has registered where it returns to", async () => {
  const owner = { ...nobody, key: app.key };
  const input: CreateApiKeyInput = { name: "Sketchpad", type: "PUBLISHABLE", redirectUrls: [REDIRECT] };
  const created = ok(await execute(owner, RegisterAppDocument, { input })).createApiKey;
  const { id } = await ask({ appKey: created.key });
  await approve(person, { id });

  const { me } = ok(await execute(browser(person), MyNewestApiKeyDocument));

  expect(created.apiKey.redirectUrls).toEqual([REDIRECT]);
  expect(me.apiKeys?.edges[0]?.node).toEqual({
    name: "Sketchpad",
    origin: "REDIRECT_FLOW",
    appId: created.apiKey.restId,
    app: {
      id: toGlobalId("App", created.apiKey.restId),
      restId: created.apiKey.restId,
      name: "Sketchpad",
      owner: { handle: "owner", githubUsername: null },
    },
    redirectUrls: [],
    resource: null,
  });
  const change = (redirectUrls: readonly string[]) =>
    execute(owner, ChangeAppDocument, { input: { id: created.apiKey.restId, redirectUrls } });
  const moved = ok(await change(["https://app.example/new"])).updateApiKey;
  expect(moved).toEqual({ apiKey: { redirectUrls: ["https://app.example/new"] } });
  expect(codes(await change(["data:x"]))).toEqual(["BAD_REQUEST"]);
});

describe("of a client that has registered itself", () => {
  it("shows the client's name and resource, and is bound to both", async () => {
    const response = await fetch(`${app.baseUrl}/api/oauth/register`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ client_name: "Sketchpad", redirect_uris: [REDIRECT] }),
    });
    const { client_id: appKey } = (await response.json()) as { client_id: string };
    const { issuer } = app.services.authorizations;
    const codeVerifier = randomBytes(32).toString("base64url");
    const codeChallenge = createHash("sha256").update(codeVerifier).digest("base64url");

    const request = await ask({ appKey, codeChallenge, resource: issuer });
    const { redirectTo } = ok(await approve(person, { id: request.id })).approveAuthorization;
    const code = new URL(redirectTo).searchParams.get("code") ?? "";
    const exchange = (input: { appKey?: string; resource?: string }) =>
      execute(nobody, ExchangeAuthorizationCodeDocument, { input: { code, redirectUrl: REDIRECT, codeVerifier, ...input } });

    expect(request).toMatchObject({ app: null, client: { name: "Sketchpad", documentHost: null }, resource: issuer });
    expect(codes(await exchange({}))).toEqual(["BAD_REQUEST"]);
    expect(codes(await exchange({ appKey, resource: "https://other.example/mcp" }))).toEqual(["BAD_REQUEST"]);
    ok(await exchange({ appKey, resource: `${issuer}/mcp` }));
    const { me } = ok(await execute(browser(person), MyNewestApiKeyDocument));
    expect(me.apiKeys?.edges[0]?.node).toMatchObject({ name: "Sketchpad", origin: "REDIRECT_FLOW", app: null, resource: `${issuer}/mcp` });
  });
});
