/** The official MCP SDK signs in by itself: from the 401 of /mcp to a key for it (RFC 9728, 7591, 8707, 9207; docs/mcp.md). */
import { auth, type OAuthClientProvider, UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { OAuthClientInformationMixed, OAuthClientMetadata, OAuthTokens } from "@modelcontextprotocol/sdk/shared/auth.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createClient, resourceOf } from "../rest/client.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { formTo, openPage, type ShownPage, submitForm } from "../support/pages.js";
import { type Person, signUp } from "../support/sign-in.js";
import { json } from "../support/upstream-replies.js";
import { expectNothingHeld } from "./money.js";

const REDIRECT = "http://127.0.0.1/callback";

let app: TestApp;
let person: Person;
/** As clients know it. */
let base: string;

beforeAll(async () => {
  app = await createTestApp({ config: { upstreamAllowHosts: ["127.0.0.1"] } });
  person = await signUp(app, { credits: 100 });
  base = app.services.authorizations.issuer;
});
afterAll(() => app.close());

/** A program with a memory; the person's browser opens each page that it names. */
class Program implements OAuthClientProvider {
  authorizationUrl: URL | null = null;
  information: OAuthClientInformationMixed | undefined;
  granted: OAuthTokens | undefined;
  #verifier = "";

  constructor(readonly redirectUrl = "http://127.0.0.1:49152/callback") {}

  get clientMetadata(): OAuthClientMetadata {
    return { client_name: "Sketchpad", redirect_uris: [REDIRECT], grant_types: ["authorization_code", "refresh_token"] };
  }
  clientInformation() {
    return this.information;
  }
  saveClientInformation(information: OAuthClientInformationMixed) {
    this.information = information;
  }
  tokens() {
    return this.granted;
  }
  saveTokens(tokens: OAuthTokens) {
    this.granted = tokens;
  }
  redirectToAuthorization(url: URL) {
    this.authorizationUrl = url;
  }
  saveCodeVerifier(verifier: string) {
    this.#verifier = verifier;
  }
  codeVerifier() {
    return this.#verifier;
  }
}

function transportOf(program: Program): StreamableHTTPClientTransport {
  return new StreamableHTTPClientTransport(new URL(`${base}/mcp`), { authProvider: program });
}

async function openConsent({ authorizationUrl }: Program): Promise<ShownPage> {
  const { pathname, search } = authorizationUrl ?? new URL("about:blank");
  return openPage(app.baseUrl, pathname + search, { cookie: person.cookie });
}

/** The person allows what the page shows; resolves with the code. */
async function allow(page: ShownPage, set: Readonly<Record<string, string>> = {}): Promise<string> {
  const submission = { cookie: person.cookie, button: ["decision", "approve"], set } as const;
  const { location } = await submitForm(app.baseUrl, formTo(page, "/authorize"), submission);
  const returned = new URL(location ?? "about:blank").searchParams;
  expect(returned.get("iss")).toBe(base);
  return returned.get("code") ?? "";
}

/** From the first 401 to the tokens. */
async function logIn(program: Program): Promise<ShownPage> {
  const transport = transportOf(program);
  await expect(new Client({ name: "sketchpad", version: "1.0.0" }).connect(transport)).rejects.toBeInstanceOf(UnauthorizedError);
  const page = await openConsent(program);
  await transport.finishAuth(await allow(page, { budget: "2" }));
  await transport.close();
  return page;
}

describe("an MCP client without a key", () => {
  it("registers, gets a key for /mcp within the budget, and uses its tools", async () => {
    const program = new Program();

    const page = await logIn(program);

    const client = new Client({ name: "sketchpad", version: "1.0.0" });
    await client.connect(transportOf(program));
    const result = await client.callTool({ name: "generate_text", arguments: { prompt: "[echo] hello", model: "sandbox/text-paid" } });
    await client.close();
    expect(page.text).toContain("Allow Sketchpad (unverified app) to spend your credits?");
    expect(page.text).toContain("Unverified app.");
    expect(page.text).toContain("127.0.0.1:49152");
    expect(page.text).toContain(`${base}/mcp`);
    expect(result).toMatchObject({ content: [{ type: "text", text: "hello" }] });
    const key = (await createClient(app.baseUrl, program.granted?.access_token ?? "").get("/account/key")).json<{ creditBudget: number }>();
    expect(key).toMatchObject({ name: "Sketchpad", permissions: [] });
    expect(await resourceOf(app, program.granted?.access_token ?? "")).toBe(`${base}/mcp`);
    expect(key.creditBudget).toBeLessThan(2);
    expect(key.creditBudget).toBeGreaterThan(1.9);
    await expectNothingHeld(app);
  });

  it("signs in again with its registration, on another port", async () => {
    const program = new Program();
    await logIn(program);
    const later = Object.assign(new Program("http://127.0.0.1:49153/callback"), { information: program.information });

    await logIn(later);

    expect(later.information?.client_id).toBe(program.information?.client_id);
    expect(later.granted?.access_token).not.toBe(program.granted?.access_token);
    expect((await createClient(app.baseUrl, later.granted?.access_token ?? "").get("/account/key")).status).toBe(200);
  });

  it("is described by the document at its client id", async () => {
    const address = `http://127.0.0.1:${app.upstream.port}/apps/sketchpad.json`;
    const described = { client_id: address, client_name: "Documented", redirect_uris: ["sketchpad://back", REDIRECT] };
    app.upstream.replyNext(json({ ...described, logo_uri: "https://logo.example/x.png", token_endpoint_auth_method: "none" }));
    // The SDK sends an https address only; the test's server speaks http.
    const program = Object.assign(new Program(), { information: { client_id: address } });

    const page = await logIn(program);

    expect(page.text).toContain("Allow Documented (unverified app) to spend your credits?");
    expect(page.text).toContain(`Identified at 127.0.0.1:${app.upstream.port}`);
    expect(page.html).not.toContain("logo.example");
    expect((await createClient(app.baseUrl, program.granted?.access_token ?? "").get("/account/key")).json()).toMatchObject({
      name: "Documented",
    });
    expect(await resourceOf(app, program.granted?.access_token ?? "")).toBe(`${base}/mcp`);
    const requests = app.upstream.requests.filter(({ path }) => path === "/apps/sketchpad.json");
    expect(requests.map(({ method, headers }) => [method, headers.accept, headers.authorization])).toEqual([
      ["GET", "application/json", undefined],
    ]);
  });

  it("asks for permissions that stay unticked until the person ticks them", async () => {
    const program = new Program();
    const transport = transportOf(program);
    await new Client({ name: "sketchpad", version: "1.0.0" }).connect(transport).catch(() => undefined);

    const page = await openConsent(program);

    expect(program.authorizationUrl?.searchParams.get("scope")).toBe("profile balance usage");
    const boxes = formTo(page, "/authorize").choices.filter(({ name }) => name === "permissions");
    expect(boxes.map(({ value, isChecked }) => [value, isChecked])).toEqual([
      ["profile", false],
      ["balance", false],
      ["usage", false],
    ]);
    await transport.finishAuth(await allow(page, { permissions: "balance" }));
    expect(program.granted).toMatchObject({ scope: "balance" });
  });

  it("is not asked twice: the SDK finds tokens that are good", async () => {
    const program = new Program();
    await logIn(program);
    program.authorizationUrl = null;

    const client = new Client({ name: "sketchpad", version: "1.0.0" });
    await client.connect(transportOf(program));
    await client.close();

    expect(program.authorizationUrl).toBeNull();
  });

  it("learns of the person's denial", async () => {
    const program = new Program();
    expect(await auth(program, { serverUrl: `${base}/mcp` })).toBe("REDIRECT");
    const page = await openConsent(program);

    const { location } = await submitForm(app.baseUrl, formTo(page, "/authorize"), {
      cookie: person.cookie,
      button: ["decision", "deny"],
    });

    expect(new URL(location ?? "").searchParams.get("error")).toBe("access_denied");
  });
});
