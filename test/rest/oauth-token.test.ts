/** Codes and their exchange for keys (RFC 6749 4.1.3 and 5, RFC 7636, RFC 8414; docs/spec/authorization.md#codes). */
import { createHash, randomBytes, randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { API_KEYS_PER_ACCOUNT_MAX } from "../../src/limits.js";
import { authorizationQuery } from "../../src/services/authorizations/request-input.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { createMovableClock } from "../support/clock.js";
import { nobody, type Person, signUp } from "../support/sign-in.js";
import { createClient, createKey } from "./client.js";

const REDIRECT = "https://app.example/cb?x=1";

const clock = createMovableClock();
let app: TestApp;
let person: Person;

beforeAll(async () => {
  app = await createTestApp({ clock });
  person = await signUp(app, { credits: 100 });
});
afterAll(() => app.close());

interface Issued {
  readonly code: string;
  readonly verifier: string;
}

/** A code that the person has just granted. */
async function grant(query: Readonly<Record<string, string>> = {}): Promise<Issued> {
  const { accountId, sessionId } = person;
  const ctx = { ...nobody(), caller: { kind: "session", accountId, sessionId, isOperator: false } as const };
  const verifier = randomBytes(32).toString("base64url");
  const code_challenge = createHash("sha256").update(verifier).digest("base64url");
  const { authorizations } = app.services;
  const { id } = await authorizations.create(
    ctx,
    authorizationQuery.parse({ redirect_uri: REDIRECT, code_challenge, state: "s 1", ...query }),
  );
  const { redirectTo } = await authorizations.approve(ctx, { id });
  const url = new URL(redirectTo);
  expect({ hash: url.hash, x: url.searchParams.get("x"), state: url.searchParams.get("state") }).toEqual({
    hash: "",
    x: "1",
    state: "s 1",
  });
  expect(url.searchParams.get("iss")).toBe(authorizations.issuer);
  return { code: url.searchParams.get("code") ?? "", verifier };
}

function toFields({ code, verifier }: Issued, more: Readonly<Record<string, string>> = {}): Record<string, string> {
  return { grant_type: "authorization_code", code, redirect_uri: REDIRECT, code_verifier: verifier, ...more };
}

function post(fields: Readonly<Record<string, string>>, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
  return fetch(`${app.baseUrl}/api/oauth/token`, { method: "POST", body: new URLSearchParams(fields), headers });
}

function basic(credentials: string): string {
  return `Basic ${Buffer.from(credentials).toString("base64")}`;
}

async function exchange(fields: Readonly<Record<string, string>>): Promise<{ status: number; body: Record<string, unknown> }> {
  const response = await post(fields);
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

async function expectOAuthError(fields: Readonly<Record<string, string>>, error: string, description = /\S/): Promise<void> {
  expect(await exchange(fields)).toEqual({ status: 400, body: { error, error_description: expect.stringMatching(description) } });
}

async function statusOf(key: unknown): Promise<number> {
  return (await createClient(app.baseUrl, String(key)).get("/account/key")).status;
}

describe("a code", () => {
  it("is exchanged for the key as it was granted", async () => {
    const issued = await grant({ permissions: "profile,balance", budget: "2.5", expiry: "7", models: "chat" });

    const response = await post(toFields(issued));

    expect(response.status).toBe(200);
    expect(response.headers.get("cache-control")).toBe("no-store");
    expect(response.headers.get("access-control-allow-origin")).toBe("*");
    const body = (await response.json()) as Record<string, string>;
    expect(body).toEqual({
      access_token: expect.stringMatching(/^sk_[0-9A-Za-z]{43}$/),
      token_type: "bearer",
      scope: "profile balance",
      expires_in: 7 * 86_400,
    });
    const key = (await createClient(app.baseUrl, String(body.access_token)).get("/account/key")).json();
    expect(key).toMatchObject({ name: "app.example", permissions: ["profile", "balance"], creditBudget: 2.5, expiresIn: 7 * 86_400 });
  });

  it("is exchanged as JSON too", async () => {
    const response = await fetch(`${app.baseUrl}/api/oauth/token`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(toFields(await grant())),
    });

    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ token_type: "bearer", scope: "", expires_in: 30 * 86_400 });
  });

  it("works once: a second time it is refused, and its key ends", async () => {
    const issued = await grant();
    const { body } = await exchange(toFields(issued));
    expect(await statusOf(body.access_token)).toBe(200);

    await expectOAuthError(toFields(issued), "invalid_grant", /has been used/);

    expect(await statusOf(body.access_token)).toBe(401);
  });

  it("works once, however many come at once", async () => {
    const issued = await grant();

    const answers = await Promise.all(Array.from({ length: 6 }, () => exchange(toFields(issued))));

    expect(answers.map(({ status }) => status).sort()).toEqual([200, 400, 400, 400, 400, 400]);
    const key = answers.find(({ status }) => status === 200)?.body.access_token;
    expect(await statusOf(key)).toBe(401);
  });

  it("ends the key of its app even when it comes again with another verifier, long after", async () => {
    const issued = await grant();
    const { body } = await exchange(toFields(issued));
    clock.advance(3600);

    await expectOAuthError(toFields(issued, { code_verifier: "w".repeat(43) }), "invalid_grant");

    expect(await statusOf(body.access_token)).toBe(401);
  });

  it("is good for 10 minutes and no longer", async () => {
    const [early, late] = [await grant(), await grant()];

    clock.advance(599);
    expect((await exchange(toFields(early))).status).toBe(200);
    clock.advance(1);

    await expectOAuthError(toFields(late), "invalid_grant", /expired/);
  });

  it.each([
    ["another verifier", { code_verifier: "w".repeat(43) }, "invalid_grant", /code_verifier/],
    ["a verifier of another length", { code_verifier: "w".repeat(128) }, "invalid_grant", /code_verifier/],
    ["another address", { redirect_uri: "https://app.example/cb" }, "invalid_grant", /redirect_uri/],
  ])("is refused with %s, and good still with the right one", async (_what, wrong, error, description) => {
    const issued = await grant();

    await expectOAuthError(toFields(issued, wrong as Record<string, string>), error, description);

    expect((await exchange(toFields(issued))).status).toBe(200);
  });

  it("bears five wrong tries", async () => {
    const [tried, overtried] = [await grant(), await grant()];
    const wrong = { code_verifier: "w".repeat(43) };
    for (let count = 0; count < 4; count += 1) await expectOAuthError(toFields(tried, wrong), "invalid_grant");
    await Promise.all(Array.from({ length: 5 }, () => expectOAuthError(toFields(overtried, wrong), "invalid_grant")));

    expect((await exchange(toFields(tried))).status).toBe(200);
    await expectOAuthError(toFields(overtried), "invalid_grant", /too often/);
  });

  it("belongs to the app that requested it", async () => {
    const [own, other, secret] = [
      await createKey(app, { type: "publishable", name: "Own" }),
      await createKey(app, { type: "publishable" }),
      await createKey(app),
    ];
    const issued = await grant({ client_id: own.key });

    for (const client of [{ client_id: other.key }, { client_id: secret.key }, { client_id: "app" }, {}]) {
      await expectOAuthError(toFields(issued, client as Record<string, string>), "invalid_client");
    }
    const { body } = await exchange(toFields(issued, { client_id: own.key }));

    const name = (await createClient(app.baseUrl, String(body.access_token)).get("/account/key")).json().name;
    expect(name).toBe("Own");
  });

  it("is refused when its app has been revoked", async () => {
    const own = await createKey(app, { type: "publishable" });
    const issued = await grant({ client_id: own.key });
    await createClient(app.baseUrl, app.key).request("DELETE", `/account/keys/${own.id}`);

    await expectOAuthError(toFields(issued, { client_id: own.key }), "invalid_client");
  });

  it("is stored as a digest", async () => {
    const { code } = await grant();
    const { prisma } = app.database;

    expect(code).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(JSON.stringify(await prisma.authorizationCode.findMany())).not.toContain(code);
    expect(JSON.stringify(app.logs)).not.toContain(code);
  });
});

it("comes of a request that waits for an hour and no longer", async () => {
  const { accountId, sessionId } = person;
  const ctx = { ...nobody(), caller: { kind: "session", accountId, sessionId, isOperator: false } as const };
  const { authorizations } = app.services;
  const [early, late] = [
    await authorizations.create(ctx, authorizationQuery.parse({ redirect_uri: REDIRECT })),
    await authorizations.create(ctx, authorizationQuery.parse({ redirect_uri: REDIRECT })),
  ];

  clock.advance(3599);
  await authorizations.approve(ctx, { id: early.id });
  clock.advance(1);

  await expect(authorizations.approve(ctx, { id: late.id })).rejects.toMatchObject({ code: "NOT_FOUND" });
});

it("refuses an account that has as many keys as it may have, until it has fewer", async () => {
  const { prisma } = app.database;
  const { accountId } = person;
  const issued = await grant();
  const rows = Array.from({ length: API_KEYS_PER_ACCOUNT_MAX }, () => ({
    ...{ id: randomUUID(), accountId, hash: randomBytes(32), type: "secret" as const, name: "one of many", start: "sk_0000000" },
  }));
  await prisma.apiKey.createMany({ data: rows });

  await expectOAuthError(toFields(issued), "access_denied", /at most 1000 keys/);
  await prisma.apiKey.deleteMany({ where: { name: "one of many" } });

  expect((await exchange(toFields(issued))).status).toBe(200);
});

describe("the token endpoint", () => {
  it.each([
    ["no grant type", { grant_type: "" }, "unsupported_grant_type"],
    ["another grant type", { grant_type: "password" }, "unsupported_grant_type"],
    ["a name that objects have", { grant_type: "constructor" }, "unsupported_grant_type"],
    ["an unknown code", { code: "x" }, "invalid_grant"],
    ["a very long code", { code: "x".repeat(4_097) }, "invalid_request"],
    ["a short verifier", { code_verifier: "v".repeat(42) }, "invalid_request"],
    ["a long verifier", { code_verifier: "v".repeat(129) }, "invalid_request"],
  ])("refuses %s in the words of RFC 6749", async (_what, wrong, error) => {
    await expectOAuthError(toFields(await grant(), wrong as Record<string, string>), error);
  });

  it("names the missing field", async () => {
    await expectOAuthError({}, "invalid_request", /grant_type/);
    await expectOAuthError({ grant_type: "authorization_code" }, "invalid_request", /code/);
  });

  it.each([
    ["as it is", (key: string) => `${key}:`],
    ["form-encoded", (key: string) => `${key.replaceAll("_", "%5F")}:`],
  ])("takes the app of a code from Authorization: Basic with an empty password, %s", async (_name, credentials) => {
    const { key } = await createKey(app, { type: "publishable" });
    const headers = { Authorization: basic(credentials(key)) };

    expect((await post(toFields(await grant({ client_id: key })), headers)).status).toBe(200);
    expect((await post(toFields(await grant({ client_id: key }), { client_id: key }), headers)).status).toBe(200);
  });

  it("says how an app without a secret sends its name when it sends one, and uses the name in the body", async () => {
    const { key } = await createKey(app, { type: "publishable" });
    const headers = { Authorization: basic(`${key}:any`) };

    const refused = await post(toFields(await grant({ client_id: key })), headers);

    expect(refused.status).toBe(400);
    expect(await refused.json()).toEqual({
      error: "invalid_client",
      error_description: expect.stringMatching(/^Apps have no secret here\. Send client_id in the body/),
    });
    expect((await post(toFields(await grant({ client_id: key }), { client_id: key }), headers)).status).toBe(200);
  });

  it.each([
    ["another app in the body", "pk_other:", { client_id: "pk_another" }],
    ["no colon", "pk_other", {}],
    ["a malformed escape", "%zz:", {}],
  ])("refuses Authorization: Basic with %s", async (_name, credentials, more) => {
    const response = await post(toFields(await grant(), more as Record<string, string>), { Authorization: basic(credentials) });

    expect([response.status, await response.json()]).toMatchObject([400, { error: "invalid_client" }]);
  });

  it.each(["Bearer x", "Basic Og==", "Digest x"])("ignores credentials that name no app: %s", async (authorization) => {
    expect((await post(toFields(await grant()), { Authorization: authorization })).status).toBe(200);
  });

  it.each(["/api/device/code", "/api/device/token"])("reads Authorization: Basic also at %s", async (path) => {
    const body = new URLSearchParams({ device_code: "x" });
    const headers = { Authorization: basic("pk_unknown:secret") };

    const response = await fetch(app.baseUrl + path, { method: "POST", headers, body });

    expect([response.status, await response.json()]).toMatchObject([400, { error: "invalid_client" }]);
  });

  it.each([
    ["another type", "text/plain", "x", 415],
    ["broken JSON", "application/json", "{", 400],
    ["a list", "application/json", "[]", 400],
    ["a broken escape", "application/x-www-form-urlencoded", "code=%zz", 400],
    ["a code given twice", "application/x-www-form-urlencoded", "grant_type=authorization_code&code=a&code=b", 400],
  ])("refuses %s", async (_what, type, body, status) => {
    const response = await fetch(`${app.baseUrl}/api/oauth/token`, { method: "POST", headers: { "Content-Type": type }, body });

    expect(response.status).toBe(status);
    expect(await response.json()).toEqual({ error: "invalid_request", error_description: expect.stringMatching(/\S/) });
    expect(response.headers.get("cache-control")).toBe("no-store");
  });

  it("answers browsers' preflight requests, and other methods with 405", async () => {
    const url = `${app.baseUrl}/api/oauth/token`;
    const preflight = await fetch(url, {
      method: "OPTIONS",
      headers: { Origin: "https://app.example", "Access-Control-Request-Method": "POST" },
    });

    expect(preflight.status).toBe(204);
    expect(preflight.headers.get("access-control-allow-origin")).toBe("*");
    expect((await fetch(url)).status).toBe(405);
  });
});
