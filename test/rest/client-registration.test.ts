/** Clients that register, and the resource that a key is for (RFC 7591, 8707, 9728; docs/spec/authorization.md#clients-that-register). */
import { createHash, randomBytes } from "node:crypto";
import { request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  CLIENT_DOCUMENT_BYTES_MAX,
  CLIENT_DOCUMENT_FAILURE_CACHE_MS,
  CLIENT_DOCUMENTS_BURST,
  CLIENT_ID_CHARS_MAX,
  CLIENT_NAME_CHARS_MAX,
  CLIENT_REDIRECT_URLS_CHARS_MAX,
  CLIENT_REDIRECT_URLS_MAX,
  CLIENT_REGISTRATION_DAYS,
  CLIENT_REGISTRATIONS_BURST,
} from "../../src/services/authorizations/limits.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { createMovableClock } from "../support/clock.js";
import { formTo, openPage, submitForm } from "../support/pages.js";
import { nobody, type Person, signIn, signUp } from "../support/sign-in.js";
import { json, raw } from "../support/upstream-replies.js";
import { createClient, createKey, resourceOf } from "./client.js";

const LOOPBACK = "http://127.0.0.1/callback";
const WEB = "https://app.example/cb";

const clock = createMovableClock();
let app: TestApp;
let person: Person;
let base: string;

beforeAll(async () => {
  app = await createTestApp({ clock, config: { trustProxyHops: 1, upstreamAllowHosts: ["127.0.0.1", "localhost"] } });
  person = await signUp(app, { credits: 100 });
  base = app.services.authorizations.issuer;
});
afterAll(() => app.close());

let addresses = 0;
/** Each test has an address of its own, so that the limits of one do not reach another. */
function nextAddress(): string {
  addresses += 1;
  return `198.51.${addresses >> 8}.${addresses & 255}`;
}

interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

async function register(metadata: unknown, address = nextAddress()): Promise<Answer> {
  const response = await fetch(`${app.baseUrl}/api/oauth/register`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Forwarded-For": address },
    body: typeof metadata === "string" ? metadata : JSON.stringify(metadata),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

async function registered(...redirect_uris: readonly string[]): Promise<string> {
  const { body } = await register({ client_name: "Sketchpad", redirect_uris });
  return String(body.client_id);
}

interface Challenge {
  readonly verifier: string;
  readonly query: Readonly<Record<string, string>>;
}

function challengeFor(query: Readonly<Record<string, string>>): Challenge {
  const verifier = randomBytes(32).toString("base64url");
  const code_challenge = createHash("sha256").update(verifier).digest("base64url");
  return { verifier, query: { response_type: "code", code_challenge, code_challenge_method: "S256", ...query } };
}

async function consent({ query }: Pick<Challenge, "query">) {
  return openPage(app.baseUrl, `/authorize?${new URLSearchParams(query)}`, {
    cookie: person.cookie,
    headers: { "X-Forwarded-For": nextAddress() },
  });
}

/** The person allows the request; resolves with the code and where it was sent. */
async function grant(asking: Challenge): Promise<{ readonly code: string; readonly location: URL }> {
  const page = await consent(asking);
  const answer = await submitForm(app.baseUrl, formTo(page, "/authorize"), { cookie: person.cookie, button: ["decision", "approve"] });
  const location = new URL(answer.location ?? "about:blank");
  return { code: location.searchParams.get("code") ?? "", location };
}

async function exchange(fields: Readonly<Record<string, string>>): Promise<Answer> {
  const body = new URLSearchParams({ grant_type: "authorization_code", ...fields });
  const response = await fetch(`${app.baseUrl}/api/oauth/token`, { method: "POST", body, headers: { "X-Forwarded-For": nextAddress() } });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

/** A key for a resource, or the refusal. */
async function keyFor(atAuthorize: string | null, atToken: string | null): Promise<Answer> {
  const client_id = await registered(LOOPBACK);
  const asking = challengeFor({ client_id, redirect_uri: LOOPBACK, ...(atAuthorize !== null && { resource: atAuthorize }) });
  const { code } = await grant(asking);
  const fields = { code, client_id, redirect_uri: LOOPBACK, code_verifier: asking.verifier };
  return exchange({ ...fields, ...(atToken !== null && { resource: atToken }) });
}

function askMcp(key: string | null): Promise<Response> {
  return fetch(`${app.baseUrl}/mcp`, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...(key !== null && { Authorization: `Bearer ${key}` }) },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" }),
  });
}

async function rowsByTable(): Promise<ReadonlyMap<string, number>> {
  const { prisma } = app.database;
  const tables = await prisma.$queryRaw<{ name: string }[]>`SELECT tablename::text AS name FROM pg_tables WHERE schemaname = 'public'`;
  const counts = new Map<string, number>();
  for (const { name } of tables) {
    const [row] = await prisma.$queryRawUnsafe<{ count: number }[]>(`SELECT count(*)::int AS count FROM "${name}"`);
    counts.set(name, row?.count ?? 0);
  }
  return counts;
}

describe("a registration", () => {
  it("is answered with the data of a public client, for requests of other kinds too", async () => {
    const { status, body } = await register({
      client_name: "Sketchpad",
      redirect_uris: [LOOPBACK, WEB, WEB],
      token_endpoint_auth_method: "client_secret_basic",
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      logo_uri: "javascript:alert(1)",
      scope: "everything",
    });

    expect(status).toBe(201);
    expect(body).toEqual({
      client_id: expect.stringMatching(/^app_[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{43}$/),
      client_id_issued_at: Math.floor(clock.now().getTime() / 1000),
      client_name: "Sketchpad",
      redirect_uris: [LOOPBACK, WEB],
      grant_types: ["authorization_code"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
    });
  });

  it("stores nothing", async () => {
    const before = await rowsByTable();

    await registered(LOOPBACK);

    expect(before.size).toBeGreaterThan(10);
    expect(await rowsByTable()).toEqual(before);
  });

  it.each([
    ["javascript:alert(1)"],
    ["data:text/html,x"],
    ["file:///etc/passwd"],
    ["myapp://callback"],
    ["http://app.example/cb"],
    ["http://127.0.0.1.evil.example/cb"],
    ["https://app.example/cb#fragment"],
    ["https://user:pass@app.example/cb"],
    ["https://app.example\\@evil.example/"],
    ["https://x;script-src/cb"],
    ["https://a,b.example/cb"],
    ["https://*/cb"],
    ["https://аpp.example/cb"],
    ["//app.example/cb"],
    ["/cb"],
    [""],
    ["https://app.example/\u0000"],
    ["https://app.example/\r\nSet-Cookie: x=1"],
    [`https://app.example/${"x".repeat(2_100)}`],
  ])("refuses the redirect address %j", async (redirect) => {
    const { status, body } = await register({ redirect_uris: [LOOPBACK, redirect] });

    expect([status, body.error]).toEqual([400, expect.stringMatching(/^invalid_(redirect_uri|client_metadata)$/)]);
    expect(Object.keys(body)).toEqual(["error", "error_description"]);
  });

  it("shows a name without characters that cannot be seen", async () => {
    const registered = await register({ client_name: "Claude\u001b[2J\nCode\u2800", redirect_uris: [LOOPBACK] });
    const unseen = await register({ client_name: "\u3164\u2800\u115f", redirect_uris: [LOOPBACK] });

    expect(registered.body).toMatchObject({ client_name: "Claude [2J Code" });
    expect(unseen.body).not.toHaveProperty("client_name");
  });

  it("gets codes alone, never a key in the address", async () => {
    const { client_id } = (await register({ client_name: "A", redirect_uris: [LOOPBACK] })).body as { client_id: string };

    const page = await consent({ query: { client_id, redirect_uri: LOOPBACK, response_type: "code" } });

    expect(page.status).toBe(400);
    expect(page.text).toContain("code_challenge");
  });

  it.each([
    ["no redirect address", {}, "invalid_redirect_uri"],
    ["an empty list of them", { redirect_uris: [] }, "invalid_redirect_uri"],
    ["a text instead of a list", { redirect_uris: LOOPBACK }, "invalid_redirect_uri"],
    ["a grant without codes", { redirect_uris: [LOOPBACK], grant_types: ["client_credentials"] }, "invalid_client_metadata"],
    ["a response without codes", { redirect_uris: [LOOPBACK], response_types: ["token"] }, "invalid_client_metadata"],
    ["a name that is no text", { redirect_uris: [LOOPBACK], client_name: { en: "x" } }, "invalid_client_metadata"],
    ["no JSON", "{", "invalid_client_metadata"],
    ["a list", "[]", "invalid_client_metadata"],
  ])("refuses %s", async (_what, metadata, error) => {
    expect(await register(metadata)).toMatchObject({ status: 400, body: { error } });
  });

  it("is bounded in names, addresses and their sum, at the bound and one past it", async () => {
    const named = (chars: number) => register({ redirect_uris: [LOOPBACK], client_name: "n".repeat(chars) });
    const many = (count: number) => register({ redirect_uris: Array.from({ length: count }, (_, place) => `${LOOPBACK}${place}`) });
    const long = (chars: number) => register({ redirect_uris: [`${WEB}/${"x".repeat(chars - WEB.length - 1)}`] });

    const statuses = async (...answers: Promise<Answer>[]) => (await Promise.all(answers)).map(({ status }) => status);
    expect(await statuses(named(CLIENT_NAME_CHARS_MAX), named(CLIENT_NAME_CHARS_MAX + 1))).toEqual([201, 400]);
    expect(await statuses(many(CLIENT_REDIRECT_URLS_MAX), many(CLIENT_REDIRECT_URLS_MAX + 1))).toEqual([201, 400]);
    expect(await statuses(long(CLIENT_REDIRECT_URLS_CHARS_MAX), long(CLIENT_REDIRECT_URLS_CHARS_MAX + 1))).toEqual([201, 400]);
  });

  it("has an id that /authorize takes, at its longest", async () => {
    const redirect_uri = `${WEB}/${"x".repeat(CLIENT_REDIRECT_URLS_CHARS_MAX - WEB.length - 1)}`;
    const { body } = await register({ redirect_uris: [redirect_uri], client_name: "𝒏".repeat(CLIENT_NAME_CHARS_MAX / 2) });
    const client_id = String(body.client_id);

    const signedOut = await openPage(app.baseUrl, `/authorize?${new URLSearchParams(challengeFor({ client_id, redirect_uri }).query)}`);

    expect(client_id.length).toBeLessThan(CLIENT_ID_CHARS_MAX);
    expect(signedOut.location).toMatch(/^\/sign-in\?return_to=/);
    const signIn = await openPage(app.baseUrl, signedOut.location ?? "");
    expect(signIn.text).toContain("(unverified app) requests access to your credits");
    expect(formTo(signIn, "/sign-in").fields.find(([name]) => name === "return_to")?.[1]).toContain(client_id);
  });

  it("is limited for each client address", async () => {
    const address = nextAddress();
    const answers: number[] = [];
    for (let count = 0; count < CLIENT_REGISTRATIONS_BURST + 1; count += 1) {
      answers.push((await register({ redirect_uris: [LOOPBACK] }, address)).status);
    }

    expect(answers).toEqual([...Array.from({ length: CLIENT_REGISTRATIONS_BURST }, () => 201), 429]);
    expect((await register({ redirect_uris: [LOOPBACK] })).status).toBe(201);
  });

  it("is good for 400 days", async () => {
    const client_id = await registered(LOOPBACK);
    const asking = { client_id, redirect_uri: LOOPBACK };

    clock.advance(CLIENT_REGISTRATION_DAYS * 86_400 - 1);
    person = await signIn(app, person);
    expect((await consent(challengeFor(asking))).status).toBe(200);
    clock.advance(1);

    const page = await consent(challengeFor(asking));
    expect(page.status).toBe(400);
    expect(page.text).toContain("the app must register again");
  });
});

describe("the redirect address of a registered client", () => {
  const REGISTERED = [WEB, LOOPBACK, "http://localhost:3000/cb", "http://[::1]/cb?x=1"];

  it.each([
    [WEB, true],
    [`${WEB}/`, false],
    [`${WEB}?x=1`, false],
    ["https://app.example:443/cb", false],
    ["https://app.example:8443/cb", false],
    ["https://APP.example/cb", false],
    ["http://app.example/cb", false],
    ["https://app.example.evil.example/cb", false],
    ["https://app.example@evil.example/cb", false],
    [LOOPBACK, true],
    ["http://127.0.0.1:49152/callback", true],
    ["https://127.0.0.1:49152/callback", false],
    ["http://127.0.0.1:49152/callback/", false],
    ["http://127.0.0.1:49152/other", false],
    ["http://127.0.0.2:49152/callback", false],
    ["http://localhost:49152/callback", false],
    ["http://localhost:49152/cb", true],
    ["http://localhost/cb", true],
    ["http://localhost:49152/cb#x", false],
    ["http://localhost:99999/cb", false],
    ["http://localhost.evil.example/cb", false],
    ["http://[::1]:8080/cb?x=1", true],
    ["http://[::1]:8080/cb?x=2", false],
    ["javascript:alert(1)//", false],
    ["myapp://cb", false],
  ])("%s: %s", async (redirect_uri, isAllowed) => {
    const client_id = await registered(...REGISTERED);

    const page = await consent(challengeFor({ client_id, redirect_uri }));

    expect([page.status, page.location]).toEqual([isAllowed ? 200 : 400, null]);
    if (isAllowed) {
      const { location } = await grant(challengeFor({ client_id, redirect_uri }));
      expect(location.href.startsWith(redirect_uri)).toBe(true);
    } else expect(page.forms.some(({ action }) => action === "/authorize")).toBe(false);
  });
});

describe("a client id", () => {
  it("counts only as it was issued", async () => {
    const client_id = await registered(LOOPBACK);
    const [content = "", signature = ""] = client_id.slice("app_".length).split(".");
    const forged = Buffer.from(JSON.stringify([1, "Forged", [WEB]])).toString("base64url");
    const ids = [`app_${forged}.${signature}`, `app_${content}.${"A".repeat(43)}`, `app_${content}`, `${client_id}x`, "app_", "nonsense"];

    for (const id of ids) {
      const page = await consent(challengeFor({ client_id: id, redirect_uri: LOOPBACK }));
      expect([id, page.status]).toEqual([id, 400]);
    }
  });

  it("is the one that a code is exchanged with", async () => {
    const client_id = await registered(LOOPBACK);
    const asking = challengeFor({ client_id, redirect_uri: LOOPBACK });
    const { code } = await grant(asking);
    const fields = { code, redirect_uri: LOOPBACK, code_verifier: asking.verifier };

    expect(await exchange(fields)).toMatchObject({ status: 400, body: { error: "invalid_client" } });
    expect(await exchange({ ...fields, client_id: await registered(WEB) })).toMatchObject({ body: { error: "invalid_client" } });
    expect(await exchange({ ...fields, client_id, redirect_uri: "http://127.0.0.1:1/callback" })).toMatchObject({
      body: { error: "invalid_grant" },
    });
    expect(await exchange({ ...fields, client_id })).toMatchObject({ status: 200 });
  });

  it("is shown by its name, cleaned and marked, and never as more", async () => {
    const client_name = 'Anthropic\u202e<script>alert(1)</script>\u200b "verified"';
    const { body } = await register({ client_name, redirect_uris: [LOOPBACK] });

    const page = await consent(challengeFor({ client_id: String(body.client_id), redirect_uri: LOOPBACK }));

    expect(page.html).not.toContain("<script>alert");
    expect(page.html).not.toMatch(/[\u202e\u200b]/);
    expect(page.text).toMatch(/\(unverified app\) to spend your credits\?/);
    expect(page.text).toContain("Unverified app. It chose this name itself. The key goes to this device (127.0.0.1)");
  });
});

describe("a client whose id is the address of a document", () => {
  let documents = 0;
  /** The address of a new document with this content. */
  function document(content: unknown): string {
    documents += 1;
    const path = `/apps/${documents}.json`;
    const address = `http://127.0.0.1:${app.upstream.port}${path}`;
    const stated = typeof content === "function" ? content(address) : content;
    app.upstream.replyNext(stated instanceof Uint8Array ? raw(stated) : json(stated));
    return address;
  }
  const about = (more: object) => (client_id: string) => ({ client_id, client_name: "Doc", redirect_uris: [LOOPBACK, WEB], ...more });

  it.each([
    ["that names another address", about({ client_id: "https://other.example/x" }), "its client_id is another address"],
    ["without a usable redirect address", about({ redirect_uris: ["javascript:alert(1)", "app://x"] }), "redirect_uris"],
    ["that authenticates with a secret", about({ token_endpoint_auth_method: "client_secret_post" }), "token_endpoint_auth_method"],
    ["that is a list", [], "is wrong"],
    ["that is no JSON", new Uint8Array(Buffer.from("<html>")), "it holds no JSON"],
    ["with a name that is too long", about({ client_name: "n".repeat(CLIENT_NAME_CHARS_MAX + 1) }), "client_name"],
    ["that is too large", about({ more: "x".repeat(CLIENT_DOCUMENT_BYTES_MAX) }), `more than ${CLIENT_DOCUMENT_BYTES_MAX} bytes`],
  ])("is refused with a document %s", async (_what, content, reason) => {
    const client_id = document(content);

    const page = await consent(challengeFor({ client_id, redirect_uri: LOOPBACK }));

    expect(page.status).toBe(400);
    expect(page.text).toContain(reason);
  });

  it("may return to an address of its document only", async () => {
    const client_id = document(about({}));

    expect((await consent(challengeFor({ client_id, redirect_uri: WEB }))).status).toBe(200);
    expect((await consent(challengeFor({ client_id, redirect_uri: "https://evil.example/" }))).status).toBe(400);
    expect((await consent(challengeFor({ client_id, redirect_uri: "http://127.0.0.1:5/callback" }))).status).toBe(200);
  });

  it.each([
    ["http://169.254.169.254/latest/meta-data"],
    ["https://10.0.0.1/client.json"],
    ["https://user:pass@app.example/client.json"],
    ["https://app.example/client.json#x"],
    ["https://app.example/"],
    ["https://app.example/a/../client.json"],
    ["https://APP.example/client.json"],
    ["http://app.example/client.json"],
    ["https://app.example:22/client.json"],
  ])("is refused at %s without a request", async (client_id) => {
    const page = await consent(challengeFor({ client_id, redirect_uri: LOOPBACK }));

    expect(page.status).toBe(400);
  });

  it("without an answer is nameless on the person's own device, and refused elsewhere", async () => {
    const client_id = "http://localhost:9/client.json";

    const own = await consent(challengeFor({ client_id, redirect_uri: LOOPBACK }));
    const elsewhere = await consent(challengeFor({ client_id, redirect_uri: WEB }));

    expect(own.status).toBe(200);
    expect(own.text).toContain("Allow 127.0.0.1 to spend your credits?");
    expect(own.text).toContain("Unverified app. It has not identified itself.");
    expect(elsewhere.status).toBe(400);
    expect(elsewhere.text).toContain("it could not be read");
  });

  it("that could not be read is not asked for again at once", async () => {
    const client_id = document("nothing");
    const asked = () => app.upstream.requests.filter(({ path }) => client_id.endsWith(path)).length;
    await consent(challengeFor({ client_id, redirect_uri: LOOPBACK }));
    await consent(challengeFor({ client_id, redirect_uri: LOOPBACK }));
    expect(asked()).toBe(1);

    clock.advance(CLIENT_DOCUMENT_FAILURE_CACHE_MS / 1000);
    app.upstream.replyNext(json(about({})(client_id)));

    expect((await consent(challengeFor({ client_id, redirect_uri: LOOPBACK }))).status).toBe(200);
    expect((await consent(challengeFor({ client_id, redirect_uri: LOOPBACK }))).status).toBe(200);
    expect(asked()).toBe(2);
  });

  it("is looked up for an address a limited number of times", async () => {
    const address = nextAddress();
    const lookUp = (place: number) => {
      const { query } = challengeFor({ client_id: `http://localhost:9/limited/${place}`, redirect_uri: LOOPBACK });
      return openPage(app.baseUrl, `/authorize?${new URLSearchParams(query)}`, {
        cookie: person.cookie,
        headers: { "X-Forwarded-For": address },
      });
    };
    const statuses: number[] = [];
    for (let place = 0; place <= CLIENT_DOCUMENTS_BURST; place += 1) statuses.push((await lookUp(place)).status);

    expect(statuses).toEqual([...Array.from({ length: CLIENT_DOCUMENTS_BURST }, () => 200), 429]);
    // Known ones are still shown.
    expect((await lookUp(0)).status).toBe(200);
  });

  it("is not offered where the operator has switched documents off", async () => {
    const off = await createTestApp({ config: { readsClientDocuments: false } });
    try {
      const metadata = await (await fetch(`${off.baseUrl}/.well-known/oauth-authorization-server`)).json();
      expect(metadata).toMatchObject({ client_id_metadata_document_supported: false });
      const { query } = challengeFor({ client_id: "https://app.example/client.json", redirect_uri: LOOPBACK });
      expect((await openPage(off.baseUrl, `/authorize?${new URLSearchParams(query)}`)).text).toContain("this gateway reads none");
    } finally {
      await off.close();
    }
  });
});

describe("a resource", () => {
  it("is named by a 401 of /mcp, whose metadata says how to sign in", async () => {
    const none = await askMcp(null);
    const bad = await askMcp("sk_wrong");
    const url = `${base}/.well-known/oauth-protected-resource/mcp`;

    expect([none.status, none.headers.get("www-authenticate")]).toEqual([401, `Bearer resource_metadata="${url}"`]);
    expect(bad.headers.get("www-authenticate")).toMatch(/^Bearer error="invalid_token", error_description="[^"]+", resource_metadata="/);
    const common = {
      authorization_servers: [base],
      scopes_supported: ["profile", "balance", "usage"],
      bearer_methods_supported: ["header"],
      resource_name: expect.any(String),
    };
    const metadata = async (path: string) => (await createClient(app.baseUrl, null).get(path)).json();
    expect(await metadata("/.well-known/oauth-protected-resource/mcp")).toEqual({ resource: `${base}/mcp`, ...common });
    expect(await metadata("/.well-known/oauth-protected-resource")).toEqual({ resource: base, ...common });
    // Other routes have no such metadata.
    const other = await fetch(`${app.baseUrl}/account/key`);
    expect(other.headers.get("www-authenticate")).toBe("Bearer");
  });

  it("leads to an authorization host of its own, which alone registers clients", async () => {
    const own = await createTestApp({ config: { baseUrl: "http://gateway.example", authUrl: "http://login.example/auth" } });
    try {
      const metadata = "/.well-known/oauth-protected-resource/mcp";
      const ask = async (host: string, path: string, body?: object) => {
        const headers = { host, ...(body && { "content-type": "application/json" }) };
        const answer = await request(own.baseUrl + path, {
          method: body ? "POST" : "GET",
          headers,
          ...(body && { body: JSON.stringify(body) }),
        });
        return { status: answer.statusCode, headers: answer.headers, body: await answer.body.json() };
      };

      const refused = await ask("gateway.example", "/mcp", {});
      expect(refused.headers["www-authenticate"]).toBe(`Bearer resource_metadata="http://gateway.example${metadata}"`);
      expect(await ask("gateway.example", metadata)).toMatchObject({
        body: { resource: "http://gateway.example/mcp", authorization_servers: ["http://login.example/auth"] },
      });
      expect(await ask("login.example", "/.well-known/oauth-authorization-server/auth")).toMatchObject({
        body: { registration_endpoint: "http://login.example/auth/api/oauth/register" },
      });
      expect((await ask("login.example", "/auth/api/oauth/register", { redirect_uris: [LOOPBACK] })).status).toBe(201);
      expect((await ask("gateway.example", "/api/oauth/register", { redirect_uris: [LOOPBACK] })).status).toBe(404);
    } finally {
      await own.close();
    }
  });

  it("is bound into the key: the narrower of the two that were requested", async () => {
    const mcp = `${base}/mcp`;
    const boundTo = async (atAuthorize: string | null, atToken: string | null) => {
      const { status, body } = await keyFor(atAuthorize, atToken);
      if (status !== 200) return body.error;
      return resourceOf(app, String(body.access_token));
    };

    expect(await boundTo(mcp, null)).toBe(mcp);
    expect(await boundTo(mcp, mcp)).toBe(mcp);
    expect(await boundTo(null, mcp)).toBe(mcp);
    expect(await boundTo(base, mcp)).toBe(mcp);
    expect(await boundTo(`${base}/`, null)).toBe(base);
    expect(await boundTo(null, null)).toBeNull();
    expect(await boundTo(mcp, base)).toBe("invalid_target");
    expect(await boundTo(mcp, "https://other.example/mcp")).toBe("invalid_target");
    expect(await boundTo(null, "nonsense")).toBe("invalid_target");
  });

  it.each([["https://other.example/mcp"], ["/mcp"], ["nonsense"], ["javascript:alert(1)"]])(
    "of another server is refused: %s",
    async (resource) => {
      const client_id = await registered(LOOPBACK);

      const page = await consent(challengeFor({ client_id, redirect_uri: LOOPBACK, resource }));

      expect(page.status).toBe(400);
      expect(page.text).toContain(`The resource must be ${base}/mcp or ${base}.`);
    },
  );

  it("that is named twice is refused", async () => {
    const { query } = challengeFor({ redirect_uri: LOOPBACK });
    const twice = `${new URLSearchParams(query)}&resource=${base}/mcp&resource=${base}`;

    expect((await openPage(app.baseUrl, `/authorize?${twice}`, { cookie: person.cookie })).status).toBe(400);
    const response = await fetch(`${app.baseUrl}/api/oauth/token`, {
      method: "POST",
      body: new URLSearchParams(
        `grant_type=authorization_code&code=x&redirect_uri=${LOOPBACK}&code_verifier=${"v".repeat(43)}&resource=a&resource=b`,
      ),
    });
    expect([response.status, await response.json()]).toMatchObject([400, { error: "invalid_request" }]);
  });

  it("is unbound in requests and codes of an older process", async () => {
    const asking = challengeFor({ redirect_uri: LOOPBACK, resource: `${base}/mcp` });
    const page = await consent(asking);
    const { prisma } = app.database;
    await prisma.$executeRaw`UPDATE authorization_request SET request = request - 'client' - 'resource'`;
    const { location } = await submitForm(app.baseUrl, formTo(page, "/authorize"), {
      cookie: person.cookie,
      button: ["decision", "approve"],
    });
    await prisma.$executeRaw`UPDATE authorization_code SET "grant" = "grant" - 'clientId' - 'resource' WHERE used_at IS NULL`;
    const code = new URL(location ?? "about:blank").searchParams.get("code") ?? "";

    const { status, body } = await exchange({ code, redirect_uri: LOOPBACK, code_verifier: asking.verifier });

    expect(status).toBe(200);
    expect(await resourceOf(app, String(body.access_token))).toBeNull();
    expect((await askMcp(String(body.access_token))).status).toBe(200);
  });

  it("of another server keeps its key out of /mcp, and nothing else", async () => {
    const { id, key } = await createKey(app, { name: "moved" });
    const setResource = (resource: string | null) => app.database.prisma.apiKey.update({ where: { id }, data: { resource } });

    await setResource("https://other.example/mcp");
    const refused = await askMcp(key);

    expect(refused.status).toBe(401);
    expect(refused.headers.get("www-authenticate")).toContain(`resource_metadata="${base}/.well-known/oauth-protected-resource/mcp"`);
    expect(await refused.json()).toMatchObject({ error: { message: expect.stringContaining("https://other.example/mcp") } });
    expect((await createClient(app.baseUrl, key).get("/account/key")).status).toBe(200);
  });

  it("of this gateway lets its key in", async () => {
    for (const resource of [`${base}/mcp`, base]) {
      const { body } = await keyFor(resource, null);
      const key = String(body.access_token);
      expect((await askMcp(key)).status).toBe(200);
      const chat = { model: "sandbox/text", messages: [{ role: "user", content: "Hello" }] };
      expect((await createClient(app.baseUrl, key).post("/v1/chat/completions", chat)).status).toBe(200);
    }
  });

  it("is bound into a device's key too", async () => {
    const post = async (path: string, fields: Readonly<Record<string, string>>) => {
      const response = await fetch(app.baseUrl + path, { method: "POST", body: new URLSearchParams(fields) });
      return (await response.json()) as Record<string, string>;
    };
    const { device_code = "", user_code = "" } = await post("/api/device/code", {});
    const { accountId, sessionId } = person;
    const ctx = { ...nobody(), caller: { kind: "session", accountId, sessionId, isOperator: false } as const };
    await app.services.deviceAuthorizations.approve(ctx, { userCode: user_code });

    expect(await post("/api/device/token", { device_code, resource: "https://other.example" })).toMatchObject({ error: "invalid_target" });
    const { access_token = "" } = await post("/api/device/token", { device_code, resource: `${base}/mcp` });

    expect(await resourceOf(app, access_token)).toBe(`${base}/mcp`);
  });
});
