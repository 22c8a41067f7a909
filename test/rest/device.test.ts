/** The device flow over HTTP: what devices are answered, and the pages on which a person decides. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createUserCode } from "../../src/services/authorizations/device-codes.js";
import { LIVE_DEVICE_CODES_PER_ADDRESS_MAX, USER_CODE_GUESSES_PER_MINUTE } from "../../src/services/authorizations/limits.js";
import { databaseOf } from "../e2e/money.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { createMovableClock, type MovableClock } from "../support/clock.js";
import type { ShownPage } from "../support/pages.js";
import { type Person, signedIn, signUp } from "../support/sign-in.js";
import { type Visitor, visit } from "../support/visitor.js";
import { type Answer, type Client, createClient, createKey, expectEnvelope } from "./client.js";

interface DeviceCode {
  readonly device_code: string;
  readonly user_code: string;
  readonly verification_uri: string;
  readonly verification_uri_complete: string;
}

const GRANT = "urn:ietf:params:oauth:grant-type:device_code";

let app: TestApp;
let clock: MovableClock;
let client: Client;
let person: Person;
let visitor: Visitor;
let appKey: string;

beforeAll(async () => {
  clock = createMovableClock();
  app = await createTestApp({
    clock,
    config: {
      rateLimits: { anonymousRequestsPer10Seconds: 10_000, publishableRequestsPerMinute: 60, publishableCreditsPerHour: 1_000_000_000n },
    },
  });
  client = createClient(app.baseUrl, null);
  person = await signUp(app, { name: "Ada", credits: 100 });
  visitor = visit(app.baseUrl, person);
  appKey = (await createKey(app, { name: "Note & <book>", type: "publishable" })).key;
});
afterAll(() => app.close());
// They all come from one address.
beforeEach(() => databaseOf(app).prisma.deviceAuthorization.deleteMany());

function postForm(path: string, fields: Record<string, string>): Promise<Answer> {
  return client.request("POST", path, {
    headers: { "Content-Type": "application/x-www-form-urlencoded" },
    body: String(new URLSearchParams(fields)),
  });
}

async function ask(body: object = {}): Promise<DeviceCode> {
  const answer = await client.post("/api/device/code", body);
  expect(answer.status).toBe(200);
  return answer.json<DeviceCode>();
}

function poll({ device_code }: Pick<DeviceCode, "device_code">): Promise<Answer> {
  return client.post("/api/device/token", { device_code });
}

function expectOAuthError(answer: Answer, error: string): void {
  expect(answer.json()).toEqual({ error, error_description: expect.stringMatching(/\S/) });
  expect(answer.status).toBe(400);
  expect(answer.headers.get("cache-control")).toBe("no-store");
}

async function confirm(userCode: string, by = visitor): Promise<ShownPage> {
  return by.send(await by.open("/device"), "/device", { user_code: userCode });
}

const approve = { decision: "approve" };

describe("POST /api/device/code", () => {
  it("answers JSON and forms the same", async () => {
    const expected = {
      device_code: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
      user_code: expect.stringMatching(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/),
      verification_uri: expect.stringMatching(/^http:\/\/localhost:\d+\/device$/),
      verification_uri_complete: expect.stringMatching(/\/device\?user_code=[A-Z]{4}-[A-Z]{4}$/),
      expires_in: 1_800,
      interval: 5,
    };

    const answers = [
      await client.post("/api/device/code", { client_id: appKey, scope: "profile usage" }),
      await postForm("/api/device/code", { client_id: appKey, scope: "account:balance" }),
      await postForm("/api/device/code", {}),
    ];

    for (const answer of answers) {
      expect(answer.json()).toEqual(expected);
      expect(answer.status).toBe(200);
      expect(answer.headers.get("cache-control")).toBe("no-store");
    }
  });

  it("refuses an app key that is not good", async () => {
    const revoked = await createKey(app, { type: "publishable" });
    await createClient(app.baseUrl, app.key).request("DELETE", `/account/keys/${revoked.id}`);

    for (const client_id of ["pk_unknown", app.key, revoked.key, "x".repeat(500)]) {
      expectOAuthError(await client.post("/api/device/code", { client_id }), "invalid_client");
    }
  });

  it("refuses a scope that apps cannot have, and invalid requests", async () => {
    expectOAuthError(await client.post("/api/device/code", { scope: "profile keys" }), "invalid_scope");
    expectOAuthError(await client.post("/api/device/code", { scope: ["profile"] }), "invalid_request");
    expectOAuthError(await client.post("/api/device/code", { client_id: "x".repeat(513) }), "invalid_request");
    expectOAuthError(await client.request("POST", "/api/device/code", { body: "{" }), "invalid_request");
    expect((await client.request("POST", "/api/device/code", { body: "x", headers: { "Content-Type": "text/plain" } })).status).toBe(415);
    expectEnvelope(await client.get("/api/device/code"), 405, "METHOD_NOT_ALLOWED");
  });

  it("answers the time of the next request to an address with too many waiting devices", async () => {
    for (let index = 0; index < LIVE_DEVICE_CODES_PER_ADDRESS_MAX; index += 1) await ask();

    const answer = await client.post("/api/device/code", {});

    expect(answer.status).toBe(429);
    expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(answer.json()).toMatchObject({ error: "temporarily_unavailable" });
  });
});

describe("POST /api/device/token", () => {
  it("goes from pending to the key and never back", async () => {
    const device = await ask({ client_id: appKey, scope: "balance usage" });
    expectOAuthError(await poll(device), "authorization_pending");
    clock.advance(1);
    expectOAuthError(await poll(device), "slow_down");
    await visitor.send(await confirm(device.user_code), "/device/decision", {
      ...approve,
      budget: "0.25",
      expiry: "3",
      permissions: ["balance"],
    });

    const answer = await poll(device);

    expect(answer.json()).toEqual({
      access_token: expect.stringMatching(/^sk_[A-Za-z0-9]{43}$/),
      token_type: "bearer",
      scope: "balance",
      expires_in: 3 * 86_400,
    });
    expect(answer.headers.get("cache-control")).toBe("no-store");
    expectOAuthError(await poll(device), "invalid_grant");
    const key = answer.json<{ access_token: string }>().access_token;
    expect((await client.get("/account/key", { key })).json()).toMatchObject({
      type: "secret",
      name: "Note & <book>",
      creditBudget: 0.25,
      permissions: ["balance"],
    });
    expect((await client.get("/account/balance", { key })).json()).toEqual({ balance: 0.25 });
    expectEnvelope(await client.get("/account/usage", { key }), 403, "FORBIDDEN");
  });

  it("takes the requests of OAuth clients, here and at the token endpoint", async () => {
    const device = await ask({ client_id: appKey });
    const fields = { grant_type: GRANT, device_code: device.device_code, client_id: appKey };

    expectOAuthError(await postForm("/api/device/token", fields), "authorization_pending");
    clock.advance(5);
    expectOAuthError(await postForm("/api/oauth/token", fields), "authorization_pending");
    await visitor.send(await confirm(device.user_code), "/device/decision", approve);

    expect((await postForm("/api/oauth/token", fields)).json()).toMatchObject({ token_type: "bearer", scope: "", expires_in: 30 * 86_400 });
    expectOAuthError(await postForm("/api/device/token", fields), "invalid_grant");
  });

  it("denies the key to an account that was suspended after the approval", async () => {
    const left = await signUp(app);
    const page = visit(app.baseUrl, left);
    const device = await ask({ client_id: appKey });
    await page.send(await confirm(device.user_code, page), "/device/decision", approve);
    await databaseOf(app).prisma.account.update({ where: { id: left.accountId }, data: { suspendedAt: new Date() } });

    const answer = await poll(device);

    expectOAuthError(answer, "access_denied");
    expect(answer.json<{ error_description: string }>().error_description).toMatch(/^This account is suspended:/);
  });

  it("answers access_denied, expired_token, invalid_grant and invalid_client for their causes", async () => {
    const [denied, expired] = [await ask(), await ask({ client_id: appKey })];
    await visitor.send(await confirm(denied.user_code), "/device/decision", { decision: "deny", budget: "nonsense" });

    expectOAuthError(await poll(denied), "access_denied");
    expectOAuthError(await client.post("/api/device/token", { device_code: "unknown" }), "invalid_grant");
    expectOAuthError(
      await client.post("/api/device/token", { device_code: expired.device_code, client_id: "pk_unknown" }),
      "invalid_client",
    );
    expectOAuthError(
      await client.post("/api/device/token", {
        device_code: expired.device_code,
        client_id: (await createKey(app, { type: "publishable" })).key,
      }),
      "invalid_grant",
    );
    clock.advance(1_800);
    expectOAuthError(await poll(expired), "expired_token");
  });

  it("refuses invalid polls", async () => {
    const { device_code } = await ask();

    expectOAuthError(await client.post("/api/device/token", {}), "invalid_request");
    expectOAuthError(await client.post("/api/device/token", { device_code: 7 }), "invalid_request");
    expectOAuthError(await client.post("/api/device/token", { device_code: "x".repeat(513) }), "invalid_request");
    expectOAuthError(await client.post("/api/device/token", { device_code, grant_type: "password" }), "unsupported_grant_type");
    expectEnvelope(await client.get("/api/device/token"), 405, "METHOD_NOT_ALLOWED");
  });
});

describe("GET /api/device/userinfo", () => {
  it("answers with the name and the e-mail address only to keys that may know them", async () => {
    const keyOf = async (body: object) =>
      (await client.post("/account/keys", body, { headers: signedIn(person) })).json<{ key: string }>().key;
    const always = { sub: person.accountId, preferred_username: expect.stringMatching(/\S/), picture: null };

    const known = await client.get("/api/device/userinfo", { key: await keyOf({ name: "a", accountPermissions: ["profile"] }) });
    const unknown = await client.get("/api/device/userinfo", { key: await keyOf({ name: "b", accountPermissions: ["balance", "usage"] }) });
    const publishable = await client.get("/api/device/userinfo", { key: await keyOf({ name: "c", type: "publishable" }) });

    expect(known.json()).toEqual({ ...always, name: "Ada", email: person.email, email_verified: false });
    expect(unknown.json()).toEqual(always);
    expect(publishable.json()).toEqual(always);
  });

  it("refuses requests without a good key", async () => {
    expectEnvelope(await client.get("/api/device/userinfo"), 401, "UNAUTHORIZED");
    const answer = await client.get("/api/device/userinfo", { key: "sk_wrong" });
    expectEnvelope(answer, 401, "UNAUTHORIZED");
    expect(answer.headers.get("www-authenticate")).toMatch(/^Bearer error="invalid_token"/);
  });
});

describe("the device page", () => {
  it("names the field of a mistyped code as its label does", async () => {
    const page = await confirm("XX");

    expect(page.text).toContain("Enter the eight letters of the code");
    expect(page.text).not.toMatch(/userCode|user_code:/);
  });

  it("has people sign in first, and come back with their code", async () => {
    const page = await visit(app.baseUrl, null).open("/device?user_code=BCDF-GHJK");

    expect(page.status).toBe(303);
    expect(page.headers.get("location")).toBe(`/sign-in?return_to=${encodeURIComponent("/device?user_code=BCDF-GHJK")}`);
  });

  it("fills in a code that came with the link, and does nothing with it", async () => {
    const device = await ask();

    const page = await visitor.open(new URL(device.verification_uri_complete).pathname + new URL(device.verification_uri_complete).search);

    expect(page.status).toBe(200);
    expect(page.forms.find(({ action }) => action === "/device")?.fields).toContainEqual(["user_code", device.user_code]);
    expect(page.text).not.toContain("spend your credits");
    expectOAuthError(await poll(device), "authorization_pending");
  });

  it("shows the text of a link as text", async () => {
    const page = await visitor.open(`/device?user_code=${encodeURIComponent('"><script>alert(1)</script>')}`);

    expect(page.html).not.toContain("<script");
    expect((await visitor.open(`/device?user_code=${"x".repeat(5_000)}`)).status).toBe(200);
  });

  it("cannot be framed, kept or scripted", async () => {
    const device = await ask();
    for (const page of [await visitor.open("/device"), await confirm(device.user_code)]) {
      expect(page.headers.get("content-security-policy")).toMatch(/default-src 'none'.*frame-ancestors 'none'/);
      expect(page.headers.get("x-frame-options")).toBe("DENY");
      expect(page.headers.get("cache-control")).toBe("no-store");
      expect(page.headers.get("access-control-allow-origin")).toBeNull();
      expect(page.html).not.toContain("<script");
    }
  });

  it("shows the device, its address and the time, the code again, and a warning", async () => {
    const device = await ask({ client_id: appKey, scope: "profile" });
    clock.advance(125);

    const page = await confirm(device.user_code.toLowerCase().replace("-", " "));

    expect(page.status).toBe(200);
    expect(page.text).toContain(device.user_code);
    expect(page.text).toContain("Allow Note & <book> to spend your credits?");
    expect(page.html).not.toContain("<book>");
    expect(page.text).toContain("Developer owner");
    expect(page.text).toContain("127.0.0.1");
    expect(page.text).toContain("2 minutes ago");
    expect(page.text).toContain("Continue only if you started this yourself");
    expect(page.forms.find(({ action }) => action === "/device/decision")?.fields).toEqual(
      expect.arrayContaining([
        ["user_code", device.user_code],
        ["model_choice", "all"],
        ["budget", "5"],
        ["expiry", "30"],
        ["permissions", "profile"],
      ]),
    );
  });

  it("calls an app that does not say who it is unverified", async () => {
    const page = await confirm((await ask()).user_code);

    expect(page.text).toContain("Unverified app");
    expect(page.text).toContain("Allow this device to spend your credits?");
  });

  it("names wrong terms, and keeps the entered values", async () => {
    const device = await ask({ scope: "usage" });
    const page = await confirm(device.user_code);

    const again = await visitor.send(page, "/device/decision", { ...approve, budget: "5.01", expiry: "7", permissions: null });

    expect(again.status).toBe(400);
    expect(again.text).toContain("at most the 5 credits");
    const { fields = [] } = again.forms.find(({ action }) => action === "/device/decision") ?? {};
    expect(fields).toEqual(
      expect.arrayContaining([
        ["budget", "5.01"],
        ["expiry", "7"],
      ]),
    );
    expect(fields.map(([name]) => name)).not.toContain("permissions");
    expect((await visitor.send(again, "/device/decision", { ...approve, budget: "5" })).text).toContain("Allowed");
  });

  it.each([
    { permissions: ["balance"] },
    { permissions: ["keys"] },
    { model_choice: "chosen", models: null },
    { model_choice: "chosen", models: ["no/model"] },
    { budget: "0" },
    { budget: "-1" },
    { budget: "1e30" },
    { expiry: "0" },
    { expiry: "31" },
    { expiry: "1.5" },
    { budget: null },
  ])("grants nothing for %j", async (filled) => {
    const device = await ask({ scope: "usage" });

    const answer = await visitor.send(await confirm(device.user_code), "/device/decision", { ...approve, ...filled });

    expect(answer.status).toBe(400);
    expectOAuthError(await poll(device), "authorization_pending");
  });

  it("offers no more than the account has, and says so where it has nothing", async () => {
    const poor = await signUp(app);
    const theirs = visit(app.baseUrl, poor);
    const { user_code } = await ask();
    const page = await confirm(user_code, theirs);
    const refused = await theirs.send(page, "/device/decision", { ...approve, budget: "1.5" });
    await databaseOf(app).prisma.account.update({ where: { id: poor.accountId }, data: { tierNanocredits: 0n } });
    const broke = await theirs.send(refused, "/device/decision", { ...approve, budget: "1" });

    expect(page.text).toContain(
      "can spend up to 1 credit of your balance of 1 credit. It requested 5 credits, which is more than you have.",
    );
    expect(page.forms.find(({ action }) => action === "/device/decision")?.fields).toContainEqual(["budget", "1"]);
    expect([refused.status, broke.status]).toEqual([400, 402]);
    expect(refused.text).toContain("The budget can be at most the 1 credits that your account has.");
    expect(broke.text).toContain("Your account has no credits.");
    expect(broke.forms.find(({ action }) => action === "/device/decision")?.buttons).toEqual([{ name: "decision", value: "deny" }]);
  });

  it("shows its result when it is sent again, and changes nothing", async () => {
    const device = await ask();
    const page = await confirm(device.user_code);
    await visitor.send(page, "/device/decision", approve);

    const again = await visitor.send(page, "/device/decision", { decision: "deny" });

    expect(again.status).toBe(409);
    expect(again.text).toContain("Allowed");
    expect((await confirm(device.user_code)).text).toContain("Allowed");
    expect((await poll(device)).status).toBe(200);
    expect((await confirm(device.user_code)).text).toContain("Connected");
  });

  it("takes its form only from its own page and session", async () => {
    const device = await ask();
    const page = await confirm(device.user_code);
    const attacker = await signUp(app);
    const theirs = await visit(app.baseUrl, attacker).open("/device");
    const token = theirs.forms.find(({ action }) => action === "/device")?.fields.find(([name]) => name === "form_token")?.[1] ?? "";

    for (const [filled, headers] of [
      [{ form_token: null }, {}],
      [{ form_token: "" }, {}],
      [{ form_token: token }, {}],
      [{}, { "Sec-Fetch-Site": "cross-site" }],
      [{}, { "Sec-Fetch-Site": "same-site" }],
    ] as const) {
      const answer = await visitor.send(page, "/device/decision", { ...approve, ...filled }, headers);
      expect(answer.status).toBe(403);
    }
    const unsigned = await visit(app.baseUrl, null).send(page, "/device/decision", approve);
    expect(unsigned.status).toBe(303);
    expectOAuthError(await poll(device), "authorization_pending");
  });

  it("refuses an invalid code, in the same form", async () => {
    for (const user_code of ["", "BCDF-GHJKL", "BCDF-GHJ", "AEIO-UAEI", "1234-5678"]) {
      const page = await visitor.send(await visitor.open("/device"), "/device", { user_code });
      expect([user_code, page.status]).toEqual([user_code, 400]);
      expect(page.forms.find(({ action }) => action === "/device")?.fields).toContainEqual(["user_code", user_code]);
    }
  });

  it("lets an account guess ten times a minute, and others go on", async () => {
    const [guesser, other] = [visit(app.baseUrl, await signUp(app)), visit(app.baseUrl, await signUp(app))];
    const { user_code } = await ask();
    for (let index = 0; index < USER_CODE_GUESSES_PER_MINUTE; index += 1)
      expect((await confirm(createUserCode(), guesser)).status).toBe(404);

    const eleventh = await confirm(createUserCode(), guesser);

    expect(eleventh.status).toBe(429);
    expect(eleventh.headers.get("retry-after")).toBe("6");
    expect((await confirm(user_code, guesser)).status).toBe(429);
    expect((await confirm(user_code, other)).status).toBe(200);
    clock.advance(60);
    expect((await confirm(user_code, guesser)).status).toBe(200);
  });
});
