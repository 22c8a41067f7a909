/** An unmodified OAuth client library against the gateway: discovery, authorization code with PKCE, errors (RFC 6749, 7636, 8414, 9207). */
import * as client from "openid-client";
import { request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createClient, createKey } from "../rest/client.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { formTo, openPage, submitForm } from "../support/pages.js";
import { type Person, signUp } from "../support/sign-in.js";

const REDIRECT = "http://127.0.0.1/callback";

let app: TestApp;
let person: Person;
let server: client.Configuration;
let appKey: string;

beforeAll(async () => {
  app = await createTestApp();
  person = await signUp(app, { credits: 100 });
  ({ key: appKey } = await createKey(app, { type: "publishable", name: "Sketchpad", redirectUrls: [REDIRECT] }));
  server = await discover(app.baseUrl.replace("127.0.0.1", "localhost"));
});
afterAll(() => app.close());

function discover(issuer: string): Promise<client.Configuration> {
  return client.discovery(new URL(issuer), appKey, undefined, client.None(), {
    algorithm: "oauth2",
    execute: [client.allowInsecureRequests],
  });
}

/** Sends the person to `url`, where they decide; resolves to where they are sent back. */
async function decide(url: URL, decision: "approve" | "deny"): Promise<URL> {
  const { cookie } = person;
  const page = await openPage(app.baseUrl, url.pathname + url.search, { cookie });
  const { location } = await submitForm(app.baseUrl, formTo(page, "/authorize"), { cookie, button: ["decision", decision] });
  return new URL(location ?? "about:blank");
}

describe("an OAuth client", () => {
  it("gets a key for a code, and generates with it", async () => {
    const codeVerifier = client.randomPKCECodeVerifier();
    const state = client.randomState();
    const url = client.buildAuthorizationUrl(server, {
      redirect_uri: REDIRECT.replace("127.0.0.1", "127.0.0.1:49152"),
      scope: "profile balance",
      budget: "1.5",
      models: "sandbox/text",
      state,
      code_challenge: await client.calculatePKCECodeChallenge(codeVerifier),
      code_challenge_method: "S256",
    });

    const returned = await decide(url, "approve");
    const tokens = await client.authorizationCodeGrant(server, returned, { pkceCodeVerifier: codeVerifier, expectedState: state });

    expect(tokens).toMatchObject({ token_type: "bearer", scope: "profile balance", expires_in: 30 * 86_400 });
    const caller = createClient(app.baseUrl, tokens.access_token);
    expect((await caller.get("/account/key")).json()).toMatchObject({ name: "Sketchpad", creditBudget: 1.5 });
    const chat = await caller.post("/v1/chat/completions", { model: "sandbox/text", messages: [{ role: "user", content: "Hello" }] });
    expect(chat.status).toBe(200);
    const profile = await client.fetchUserInfo(server, tokens.access_token, client.skipSubjectCheck);
    expect(profile).toMatchObject({ sub: person.accountId, email: person.email });
    await expect(
      client.authorizationCodeGrant(server, returned, { pkceCodeVerifier: codeVerifier, expectedState: state }),
    ).rejects.toMatchObject({ error: "invalid_grant", status: 400 });
    expect((await caller.get("/account/key")).status).toBe(401);
  });

  it("gets the person's denial", async () => {
    const codeVerifier = client.randomPKCECodeVerifier();
    const state = client.randomState();
    const url = client.buildAuthorizationUrl(server, {
      redirect_uri: REDIRECT,
      state,
      code_challenge: await client.calculatePKCECodeChallenge(codeVerifier),
      code_challenge_method: "S256",
    });

    const returned = await decide(url, "deny");

    await expect(
      client.authorizationCodeGrant(server, returned, { pkceCodeVerifier: codeVerifier, expectedState: state }),
    ).rejects.toMatchObject({ error: "access_denied" });
  });
});

describe("the discovery document", () => {
  const wellKnown = "/.well-known/oauth-authorization-server";

  it("names every endpoint, and may be read by any page", async () => {
    const answer = await createClient(app.baseUrl, null).get(wellKnown);

    const issuer = app.services.authorizations.issuer;
    expect(answer.headers.get("access-control-allow-origin")).toBe("*");
    expect(answer.json()).toEqual({
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/api/oauth/token`,
      registration_endpoint: `${issuer}/api/oauth/register`,
      device_authorization_endpoint: `${issuer}/api/device/code`,
      userinfo_endpoint: `${issuer}/api/device/userinfo`,
      scopes_supported: ["profile", "balance", "usage"],
      response_types_supported: ["code"],
      response_modes_supported: ["query"],
      grant_types_supported: ["authorization_code", "urn:ietf:params:oauth:grant-type:device_code"],
      token_endpoint_auth_methods_supported: ["none"],
      code_challenge_methods_supported: ["S256"],
      authorization_response_iss_parameter_supported: true,
      client_id_metadata_document_supported: true,
    });
  });

  it("is found below a path, and above it where RFC 8414 looks; so are all addresses in it", async () => {
    const below = await createTestApp({ config: { baseUrl: "http://gateway.example", authUrl: "http://gateway.example/auth" } });
    try {
      const caller = createClient(below.baseUrl, null);
      for (const path of [`/auth${wellKnown}`, `${wellKnown}/auth`]) {
        expect((await caller.get(path)).json()).toMatchObject({
          issuer: "http://gateway.example/auth",
          token_endpoint: "http://gateway.example/auth/api/oauth/token",
        });
      }
      expect((await caller.get(wellKnown)).status).toBe(404);
      expect((await openPage(below.baseUrl, "/auth/authorize?redirect_url=https://app.example/")).location).toMatch(
        /^\/auth\/sign-in\?return_to=%2Fauth%2Fauthorize/,
      );
      const { cookie } = await signUp(below);
      const page = await openPage(below.baseUrl, "/auth/authorize?redirect_url=https://app.example/", { cookie });
      const { location } = await submitForm(below.baseUrl, formTo(page, "/auth/authorize"), { cookie, button: ["decision", "approve"] });
      expect(location).toMatch(/^https:\/\/app\.example\/#api_key=sk_/);
    } finally {
      await below.close();
    }
  });

  it("is found on its own host, and on no other", async () => {
    const own = await createTestApp({ config: { baseUrl: "http://gateway.example", authUrl: "http://login.example/auth" } });
    try {
      const ask = async (host: string, path: string) => {
        const { statusCode, body } = await request(own.baseUrl + path, { headers: { host } });
        return { statusCode, body: (await body.json()) as Record<string, unknown> };
      };
      for (const path of [`/auth${wellKnown}`, `${wellKnown}/auth`]) {
        expect(await ask("login.example", path)).toMatchObject({ statusCode: 200, body: { issuer: "http://login.example/auth" } });
        expect((await ask("gateway.example", path)).statusCode).toBe(404);
      }
    } finally {
      await own.close();
    }
  });
});
