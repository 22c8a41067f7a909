/** Sessions over REST: whom the cookie stands for, and how a session ends. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { type Person, signedIn, signIn, signUp } from "../support/sign-in.js";
import { type Answer, type Client, createClient, createKey, expectEnvelope } from "./client.js";

let app: TestApp;
let client: Client;
beforeAll(async () => {
  app = await createTestApp();
  client = createClient(app.baseUrl, null);
});
afterAll(() => app.close());

interface SessionJson {
  readonly id: string;
  readonly isCurrent: boolean;
}

function ask(
  person: Pick<Person, "cookie">,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  return client.request(method, path, { headers: { ...signedIn(person), ...headers }, ...(body !== undefined && { body }) });
}

async function statusOf(person: Pick<Person, "cookie">): Promise<number> {
  return (await ask(person, "GET", "/account/profile")).status;
}

describe("A request with the cookie of a session", () => {
  it("is the account's, with every permission and both prefixes", async () => {
    const person = await signUp(app, { name: "Ada" });

    for (const path of ["/account/profile", "/api/account/profile"]) {
      const answer = await ask(person, "GET", path);
      expect(answer.json()).toMatchObject({ name: "Ada", email: person.email, tier: "free" });
      expect(answer.headers.get("cache-control")).toBe("private, no-store");
    }
    const statuses = await Promise.all(["balance", "usage", "usage/daily", "keys"].map((path) => ask(person, "GET", `/account/${path}`)));
    expect(statuses.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  });

  it("makes a key that may manage keys, which no key can", async () => {
    const person = await signUp(app);

    const bySession = await ask(person, "POST", "/account/keys", { name: "manager", accountPermissions: ["keys", "profile"] });
    const { key, permissions } = bySession.json<{ key: string; permissions: string[] }>();
    const byKey = await client.post("/account/keys", { name: "other", accountPermissions: ["keys", "profile"] }, { key });

    expect(permissions).toEqual(["keys", "profile"]);
    expect(byKey.json()).toMatchObject({ permissions: ["profile"] });
  });

  it("is anonymous when the cookie is changed, doubled, made up or empty", async () => {
    const { cookie } = await signUp(app);
    const token = cookie.slice("sluice_session=".length);
    const other = token.startsWith("a") ? `b${token.slice(1)}` : `a${token.slice(1)}`;
    const cookies = [
      `sluice_session=${other}`,
      `sluice_session=${token}x`,
      `sluice_session="${token}"`,
      `${cookie}; ${cookie}`,
      `${cookie}; sluice_session=${other}`,
      `__Host-sluice_session=${token}`,
      "sluice_session=",
      `sluice_session=${"z".repeat(10_000)}`,
    ];

    for (const changed of cookies) expectEnvelope(await ask({ cookie: changed }, "GET", "/account/profile"), 401, "UNAUTHORIZED");
    expect(await statusOf({ cookie })).toBe(200);
  });

  it("is anonymous when another site makes it", async () => {
    const person = await signUp(app);
    const { cookie: Cookie } = person;
    const foreign: Record<string, string>[] = [
      { "Sec-Fetch-Site": "cross-site" },
      { "Sec-Fetch-Site": "same-site" },
      { Origin: "https://evil.example" },
      { Origin: "null" },
      {},
    ];

    for (const headers of foreign) {
      const answer = await client.post("/account/keys", { name: "stolen" }, { headers: { Cookie, ...headers } });
      expectEnvelope(answer, 401, "UNAUTHORIZED");
      expect(answer.headers.get("access-control-allow-credentials")).toBeNull();
    }
    const link = await client.get("/account/profile", {
      headers: { Cookie, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate" },
    });
    expect(link.status).toBe(401);
    expect((await ask(person, "GET", "/account/keys")).json()).toEqual({ data: [] });
  });

  it("is the key's when it holds one, good or not", async () => {
    const person = await signUp(app);
    const { key } = await createKey(app, { accountPermissions: ["profile"] });
    const ownerKey = { Authorization: `Bearer ${key}` };

    expect((await ask(person, "GET", "/account/profile", undefined, ownerKey)).json()).toMatchObject({ email: null });
    expect((await ask(person, "GET", `/account/profile?key=${key}`)).json()).toMatchObject({ email: null });
    expectEnvelope(await ask(person, "GET", "/account/profile", undefined, { Authorization: "Bearer sk_wrong" }), 401, "UNAUTHORIZED");
  });
});

describe("GET and DELETE /account/sessions", () => {
  it("lists the account's own, newest first, without their tokens", async () => {
    const first = await signUp(app);
    const second = await signIn(app, first);
    await signUp(app);

    const answer = await ask(second, "GET", "/account/sessions");

    expect(answer.json()).toEqual({
      data: [second, first].map(({ sessionId }) => ({
        id: sessionId,
        createdAt: expect.stringMatching(/Z$/),
        expiresAt: expect.stringMatching(/Z$/),
        userAgent: "test",
        ipAddress: "127.0.0.1",
        isCurrent: sessionId === second.sessionId,
      })),
    });
  });

  it("ends one, whose cookie is refused from then on", async () => {
    const first = await signUp(app);
    const second = await signIn(app, first);
    expect(await statusOf(second)).toBe(200);

    const answer = await ask(first, "DELETE", `/account/sessions/${second.sessionId}`);

    expect(answer.json()).toEqual({ id: second.sessionId, revoked: true });
    expect([await statusOf(second), await statusOf(first)]).toEqual([401, 200]);
    expectEnvelope(await ask(first, "DELETE", `/account/sessions/${second.sessionId}`), 404, "NOT_FOUND");
  });

  it("ends the others", async () => {
    const first = await signUp(app);
    const [second, third] = [await signIn(app, first), await signIn(app, first)];
    const stranger = await signUp(app);

    const answer = await ask(second, "DELETE", "/account/sessions");

    expect(answer.json()).toEqual({ ended: 2 });
    expect(await Promise.all([first, second, third, stranger].map(statusOf))).toEqual([401, 200, 401, 200]);
    expect((await ask(second, "GET", "/account/sessions")).json<{ data: SessionJson[] }>().data).toHaveLength(1);
  });

  it("knows no session of another account, and no invalid id", async () => {
    const person = await signUp(app);
    const stranger = await signUp(app);

    for (const id of [stranger.sessionId, crypto.randomUUID(), "1", "%00"]) {
      const answer = await ask(person, "DELETE", `/account/sessions/${id}`);
      expect([id, answer.status]).toEqual([id, id === "%00" ? 400 : 404]);
    }
    expect(await statusOf(stranger)).toBe(200);
  });

  it.each<[string, string, unknown?]>([
    ["GET", "/account/sessions"],
    ["DELETE", "/account/sessions"],
    ["DELETE", "/account/sessions/00000000-0000-7000-8000-000000000000"],
    ["PATCH", "/account/profile", { name: "Key" }],
  ])("refuse keys and anonymous callers: %s %s", async (method, path, body) => {
    const all = ["profile", "balance", "usage", "keys"];
    const secret = await createKey(app, { accountPermissions: all });
    const publishable = await createKey(app, { type: "publishable", accountPermissions: ["profile"] });

    for (const key of [app.key, secret.key, publishable.key]) {
      expectEnvelope(await client.request(method, path, { key, ...(body !== undefined && { body }) }), 403, "FORBIDDEN");
    }
    expectEnvelope(await client.request(method, path, body !== undefined ? { body } : {}), 401, "UNAUTHORIZED");
  });
});

describe("PATCH /account/profile", () => {
  it("changes the fields that are sent", async () => {
    const person = await signUp(app, { name: "Ada" });

    const renamed = await ask(person, "PATCH", "/account/profile", { handle: ` Ada-${Date.now()} ` });
    const pictured = await ask(person, "PATCH", "/account/profile", { image: "https://example.com/ada.png", name: "Ada L." });
    const cleared = await ask(person, "PATCH", "/account/profile", { image: null, name: null });

    expect(renamed.json()).toMatchObject({ name: "Ada", image: null, handle: expect.stringMatching(/^ada-\d+$/) });
    expect(pictured.json()).toMatchObject({ name: "Ada L.", image: "https://example.com/ada.png", email: person.email });
    expect(cleared.json()).toMatchObject({ name: null, image: null });
  });

  it("refuses a handle that is taken, in any case", async () => {
    const [one, two] = [await signUp(app), await signUp(app)];
    const handle = `taken-${Date.now()}`;
    await ask(one, "PATCH", "/account/profile", { handle });

    const answer = await ask(two, "PATCH", "/account/profile", { handle: handle.toUpperCase() });

    expectEnvelope(answer, 409, "CONFLICT");
    expect(answer.json()).toMatchObject({ error: { param: "handle" } });
    expect((await ask(one, "PATCH", "/account/profile", { handle })).status).toBe(200);
  });

  it.each<[string, object]>([
    ["handle", { handle: "owner" }],
    ["handle", { handle: "a".repeat(40) }],
    ["handle", { handle: "-a" }],
    ["handle", { handle: null }],
    ["name", { name: "" }],
    ["name", { name: "n".repeat(121) }],
    ["name", { name: "a\0b" }],
    ["image", { image: "http://example.com/a.png" }],
    ["image", { image: "javascript:alert(1)" }],
    ["image", { image: `https://example.com/${"a".repeat(2_030)}` }],
    ["email", { email: "other@example.com" }],
    ["tier", { tier: "pro" }],
  ])("refuses a %s that is not allowed: %o", async (param, body) => {
    const person = await signUp(app);

    const answer = await ask(person, "PATCH", "/account/profile", body);

    expectEnvelope(answer, 400, "BAD_REQUEST");
    expect(answer.json()).toMatchObject({ error: { param } });
  });
});
