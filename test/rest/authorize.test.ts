/** The consent page and the decision, as a browser without script meets them (docs/spec/authorization.md#redirect-flow). */
import { createHash, randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databaseOf } from "../e2e/money.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { runGraphql } from "../support/dashboard.js";
import { formTo, openPage, type ShownPage, type Submission, submitForm } from "../support/pages.js";
import { type Person, signIn, signUp } from "../support/sign-in.js";
import { createClient, createKey } from "./client.js";

const REDIRECT = "https://app.example/cb";

let app: TestApp;
let person: Person;

beforeAll(async () => {
  app = await createTestApp();
  person = await signUp(app, { name: "Pat", credits: 100 });
});
afterAll(() => app.close());

type Query = Readonly<Record<string, string>>;

function pathOf(query: Query): string {
  return `/authorize?${new URLSearchParams(query)}`;
}

function ask(query: Query = {}, who: Person | null = person): Promise<ShownPage> {
  return openPage(app.baseUrl, pathOf({ redirect_url: REDIRECT, ...query }), who ? { cookie: who.cookie } : {});
}

function decide(page: ShownPage, decision: "approve" | "deny", submission: Submission = {}): Promise<ShownPage> {
  return submitForm(app.baseUrl, formTo(page, "/authorize"), { cookie: person.cookie, button: ["decision", decision], ...submission });
}

/** What an app finds in the fragment. */
function fragmentOf({ location }: ShownPage): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(new URL(location ?? "about:blank").hash.slice(1)));
}

async function currentKey(key: string): Promise<Record<string, unknown>> {
  return (await createClient(app.baseUrl, key).get("/account/key")).json();
}

function expectRefusalPage(page: ShownPage, status: number, message: RegExp): void {
  expect({ status: page.status, location: page.location }).toEqual({ status, location: null });
  expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
  expect(page.text).toMatch(message);
}

describe("an invalid authorization request", () => {
  const PKCE = { code_challenge: "a".repeat(43) };
  const refused: readonly [string, Query, RegExp][] = [
    ["javascript:", { redirect_url: "javascript:alert(1)" }, /whole https URL/],
    ["data:", { redirect_url: "data:text/html,x" }, /whole https URL/],
    ["//evil", { redirect_url: "//evil" }, /whole https URL/],
    ["https://good@evil", { redirect_url: "https://good@evil" }, /name or password/],
    ["a fragment", { redirect_url: `${REDIRECT}#x` }, /fragment/],
    ["a control character", { redirect_url: `${REDIRECT}\n` }, /percent-encoded/],
    ["a backslash", { redirect_url: "https:\\\\evil.example" }, /percent-encoded/],
    ["http off this machine", { redirect_url: "http://app.example/" }, /must be https/],
    ["2,049 characters", { redirect_url: `https://app.example/${"a".repeat(2_029)}` }, /longer than 2048/],
    ["no redirect", { redirect_url: "" }, /redirect_url: is required/],
    ["two redirects", { redirect_uri: REDIRECT }, /redirect_uri: is another name/],
    ["two app keys", { app_key: "pk_1", client_id: "pk_1" }, /client_id: is another name/],
    ["a secret key as app key", { app_key: `sk_${"a".repeat(43)}` }, /app key is not valid/],
    ["an unknown app key", { app_key: "pk_0000000000000000000000" }, /app key is not valid/],
    ["the permission keys", { permissions: "profile,keys" }, /permissions.*must be one of profile, balance or usage/],
    ["an unknown scope", { scope: "openid" }, /scope.*must be one of/],
    ["two lists of permissions", { permissions: "profile", scope: "usage" }, /scope: is another name/],
    ["a budget of 0", { budget: "0" }, /budget: must be an amount/],
    ["a negative budget", { budget: "-1" }, /budget: must be an amount/],
    ["a budget in words", { budget: "lots" }, /budget: must be an amount/],
    ["a budget in science", { budget: "1e3" }, /budget: must be an amount/],
    ["a budget beyond all bounds", { budget: "1000000001" }, /budget: must be an amount/],
    ["a budget of a tenth of a nanocredit", { budget: "0.0000000001" }, /budget: must be an amount/],
    ["no days", { expiry: "0" }, /expiry/],
    ["366 days", { expiry: "366" }, /expiry/],
    ["half a day", { expiry: "0.5" }, /expiry/],
    ["an unknown model", { models: "acme/chat,acme/none" }, /no model "acme\/none"\. The closest are: acme\//],
    ["a plain challenge", { ...PKCE, code_challenge_method: "plain" }, /must be S256/],
    ["a short challenge", { code_challenge: "a".repeat(42) }, /43 to 128/],
    ["a long challenge", { code_challenge: "a".repeat(129) }, /43 to 128/],
    ["a code without a challenge", { response_type: "code" }, /code_challenge: is required/],
    ["another response type", { response_type: "token" }, /response_type: must be `code`/],
    ["a long state", { state: "s".repeat(513) }, /state/],
    ["a state with a line break", { state: "a\nb" }, /state: must not hold control/],
  ];

  it.each(refused)("is refused on the page, signed in or not, without a redirect: %s", async (_what, query, message) => {
    for (const page of await Promise.all([ask(query, null), ask(query)])) expectRefusalPage(page, 400, message);
  });

  it("may not repeat a parameter", async () => {
    expectRefusalPage(
      await openPage(app.baseUrl, `${pathOf({ redirect_url: REDIRECT })}&redirect_url=https://evil.example`),
      400,
      /only once/,
    );
  });

  it("may not name an app key that is revoked or expired", async () => {
    const revoked = await createKey(app, { type: "publishable" });
    await createClient(app.baseUrl, app.key).request("DELETE", `/account/keys/${revoked.id}`);
    const secret = await createKey(app);

    for (const key of [revoked.key, secret.key]) expectRefusalPage(await ask({ app_key: key }, null), 400, /app key is not valid/);
  });
});

describe("a valid authorization request", () => {
  it("asks an anonymous visitor to sign in, and returns", async () => {
    const page = await ask({ state: "x y", models: "acme/chat" }, null);

    expect(page.status).toBe(303);
    const target = new URL(page.location ?? "", app.baseUrl);
    expect(target.origin + target.pathname).toBe(`${app.baseUrl}/sign-in`);
    expect(target.searchParams.get("return_to")).toBe(pathOf({ redirect_url: REDIRECT, state: "x y", models: "acme/chat" }));
  });

  it("names the requesting app on the pages to sign in and up, in the words of the consent page", async () => {
    const hostile = `<img src=x>\u202e"${"y".repeat(100)}`;
    const { key, id } = await createKey(app, { type: "publishable", redirectUrls: [REDIRECT] });
    // No operation takes such a name, but rows may have one from before.
    await app.database.prisma.apiKey.update({ where: { id }, data: { name: hostile } });
    const signInFor = async (query: Query) => openPage(app.baseUrl, (await ask(query, null)).location ?? "");

    const known = await signInFor({ app_key: key });
    const signUpPage = await openPage(app.baseUrl, /href="([^"]*sign-up[^"]*)"/.exec(known.html)?.[1] ?? "");
    const unknown = await signInFor({ models: "chat" });
    const wrong = await submitForm(app.baseUrl, formTo(unknown, "/sign-in"), {
      cookie: unknown.headers.getSetCookie()[0]?.split(";")[0] ?? "",
      set: { email: person.email, password: "wrong password" },
    });
    const misused = await openPage(
      app.baseUrl,
      `/sign-in?return_to=${encodeURIComponent(pathOf({ redirect_url: "https://evil.example/", app_key: key }))}`,
    );

    for (const page of [known, signUpPage]) {
      expect(page.text).toMatch(/<img src=x> "y{47}… requests access to your credits\. .* Developer owner Redirects to app\.example/);
      expect(page.html).not.toMatch(/<img|\u202e|y{48}/);
      expect(page.text).not.toContain("Unverified");
    }
    for (const page of [unknown, wrong]) expect(page.text).toMatch(/app\.example requests access to your credits\..*Unverified app\./);
    expect(wrong.status).toBe(401);
    expect(misused.text).not.toMatch(/requests access|evil/);
    expect((await openPage(app.baseUrl, "/sign-in?return_to=%2Fdevice")).text).toContain("Sign in to connect a device");
    expect((await openPage(app.baseUrl, "/sign-in?return_to=%2Fintegrations%2Fconnect%3Ftoken%3Dx")).text).not.toContain("requests access");
    expect((await openPage(app.baseUrl, "/sign-in")).text).not.toMatch(/requests access|to connect/);
  });

  it("shows the account, the app, the permissions and the return address", async () => {
    const page = await ask({ models: "chat,acme/image", budget: "2.50", expiry: "7", permissions: "profile,usage" });

    expect(page.status).toBe(200);
    expect(page.text).toContain("It requests a key for 2 models that is valid for 7 days and can spend up to 2.5 credits");
    expect(page.text).toContain("Your usage: models, times and costs");
    expect(page.text).toContain("Allow app.example to spend your credits?");
    expect(page.text).toContain("Unverified app.");
    expect(page.text).toContain("Redirects to app.example");
    expect(page.text).toContain(person.email);
    const form = formTo(page, "/authorize");
    expect(form.choices.map(({ name, value, isChecked }) => [name, value, isChecked])).toEqual([
      ["models", "acme/chat", true],
      ["models", "acme/image", true],
      ["permissions", "profile", true],
      ["permissions", "usage", true],
    ]);
    expect(Object.fromEntries(form.fields)).toMatchObject({ budget: "2.5", expiry: "7" });
    expect(form.buttons.map(({ value }) => value)).toEqual(["approve", "deny"]);
  });

  it("requests every model, 5 credits and 30 days by default, and nothing else", async () => {
    const form = formTo(await ask(), "/authorize");

    expect(Object.fromEntries(form.fields)).toMatchObject({ model_choice: "all", budget: "5", expiry: "30" });
    expect(form.choices.filter(({ name }) => name === "permissions")).toEqual([]);
    expect(form.choices.filter(({ name, isChecked }) => name === "models" && isChecked)).toEqual([]);
    expect(form.choices.some(({ name, value }) => name === "models" && value === "acme/video")).toBe(true);
  });

  it("ignores a parameter without a value", async () => {
    const form = formTo(
      await ask({ models: "", budget: "", expiry: "", permissions: "", app_key: "", code_challenge: "", state: "" }),
      "/authorize",
    );

    expect(Object.fromEntries(form.fields)).toMatchObject({ model_choice: "all", budget: "5", expiry: "30" });
  });

  it("is shown under its own name and its owner's", async () => {
    const { key } = await createKey(app, {
      type: "publishable",
      name: "Sketch <b>pad</b>",
      redirectUrls: [REDIRECT, "http://127.0.0.1/cb"],
    });

    const page = await ask({ app_key: key });

    expect(page.text).toContain("Allow Sketch <b>pad</b> to spend your credits?");
    expect(page.html).not.toContain("<b>pad</b>");
    expect(page.text).toMatch(/Developer owner/);
    expect(page.text).not.toMatch(/Unverified|has not registered/);
    expect((await ask({ client_id: key, redirect_url: "http://127.0.0.1:49152/cb" })).status).toBe(200);
    for (const redirect of ["https://app.example/cb2", "https://app.example/", "http://127.0.0.1:49152/other", "https://evil.example/cb"]) {
      expectRefusalPage(await ask({ app_key: key, redirect_url: redirect }), 400, /not one that this app has registered/);
    }
  });

  it("says so when the app has not registered where it returns to", async () => {
    const { key } = await createKey(app, { type: "publishable", name: "Sketchpad" });

    const page = await ask({ app_key: key });

    expect(page.text).toMatch(/has not registered its redirect URL.*app\.example/);
  });

  it("cannot be framed, kept, or sent on with a referrer", async () => {
    const page = await ask();

    expect(page.headers.get("content-security-policy")).toMatch(
      /default-src 'none'.*form-action 'self' https:\/\/app\.example https:;.*frame-ancestors 'none'/,
    );
    expect(page.headers.get("x-frame-options")).toBe("DENY");
    expect(page.headers.get("cross-origin-opener-policy")).toBe("same-origin");
    expect(page.headers.get("cache-control")).toBe("no-store");
    expect(page.headers.get("access-control-allow-origin")).toBeNull();
    expect(page.html).not.toContain("<script");
  });
});

describe("approving", () => {
  it("sends the browser back with a key in the fragment that matches the request", async () => {
    const page = await ask({ models: "chat,acme/image", budget: "2.5", expiry: "7", permissions: "profile usage", state: "a b&c=1/é" });

    const answer = await decide(page, "approve");

    expect(answer.status).toBe(303);
    expect(answer.location).toMatch(/^https:\/\/app\.example\/cb#api_key=sk_[0-9A-Za-z]{43}&state=/);
    expect(answer.headers.get("referrer-policy")).toBe("no-referrer");
    expect(answer.headers.get("cache-control")).toBe("no-store");
    const { api_key: key = "", ...rest } = fragmentOf(answer);
    expect(rest).toEqual({ state: "a b&c=1/é" });
    const current = await currentKey(key);
    expect(current).toMatchObject({
      valid: true,
      type: "secret",
      name: "app.example",
      permissions: ["profile", "usage"],
      creditBudget: 2.5,
    });
    expect(current.expiresIn).toSatisfy((seconds: number) => seconds > 7 * 86_400 - 60 && seconds <= 7 * 86_400);
    const { data } = (await createClient(app.baseUrl, key).get("/v1/models")).json<{ data: { id: string }[] }>();
    expect(data.map(({ id }) => id)).toEqual(["acme/chat"]);
  });

  it("keeps the query of the redirect, and adds no state where none was sent", async () => {
    const answer = await decide(await ask({ redirect_url: `${REDIRECT}?next=%2Fhome` }), "approve");

    expect(answer.location).toMatch(/^https:\/\/app\.example\/cb\?next=%2Fhome#api_key=sk_\w+$/);
  });

  it("grants at most the person's balance", async () => {
    const page = await ask({ models: "chat,acme/image", budget: "2.5", expiry: "7", permissions: "profile,usage" });

    const answer = await decide(page, "approve", { set: { models: ["acme/chat"], budget: "0.5", expiry: "1", permissions: [] } });

    const current = await currentKey(fragmentOf(answer).api_key ?? "");
    expect(current).toMatchObject({ creditBudget: 0.5, permissions: [] });
    expect(current.expiresIn).toSatisfy((seconds: number) => seconds <= 86_400);
    expect(await grantedModels(answer)).toEqual(["acme/chat"]);
  });

  it("narrows every model to chosen ones", async () => {
    const all = await decide(await ask(), "approve");
    const some = await decide(await ask(), "approve", { set: { model_choice: "chosen", models: ["acme/chat", "acme/image"] } });

    expect(await grantedModels(all)).toBeNull();
    expect(await grantedModels(some)).toEqual(["acme/chat", "acme/image"]);
  });

  it.each([
    ["a larger budget", { budget: "2.500000001" }, /at most the 2\.5 credits/],
    ["no budget", { budget: "" }, /The budget must be an amount/],
    ["a budget of 0", { budget: "0" }, /The budget must be an amount/],
    ["more days", { expiry: "8" }, /at most the 7 days/],
    ["no days", { expiry: "0" }, /The expiry must be a whole number of days from 1 to 365/],
    ["another permission", { permissions: ["profile", "balance"] }, /not asked for/],
    ["the permission keys", { permissions: ["keys"] }, /Permissions must be one of/],
    ["another model", { models: ["acme/chat", "acme/video"] }, /Only models that were asked for/],
    ["all models", { model_choice: "all" }, /Only models that were asked for/],
    ["no model", { models: [] }, /at least one model/],
    ["an unknown model", { models: ["acme/none"] }, /no model/],
  ])("refuses a form that was changed to grant more than was requested: %s", async (_what, set, message) => {
    const page = await ask({ models: "acme/chat", budget: "2.5", expiry: "7", permissions: "profile" });
    const before = await keyCount();

    const answer = await decide(page, "approve", { set: set as Record<string, string | string[]> });

    expectRefusalPage(answer, 400, message);
    expect(await keyCount()).toBe(before);
    // The page shows the entered values again, and can be sent once they are corrected.
    const again = formTo(answer, "/authorize");
    const second = await submitForm(app.baseUrl, again, {
      cookie: person.cookie,
      button: ["decision", "approve"],
      set: { models: ["acme/chat"], budget: "1", expiry: "1", permissions: [], model_choice: "chosen" },
    });
    expect(second.status).toBe(303);
    expect(await keyCount()).toBe(before + 1);
  });

  it("grants only permissions that the page showed, ignoring extra fields", async () => {
    const page = await ask();

    const answer = await decide(page, "approve", {
      set: { redirect_url: "https://evil.example/", app_key: "x", accountId: "x", state: "forged" },
    });

    expect(answer.location).toMatch(/^https:\/\/app\.example\/cb#api_key=sk_\w+$/);
  });

  it("works once", async () => {
    const page = await ask();
    const before = await keyCount();

    const answers = await Promise.all(Array.from({ length: 5 }, () => decide(page, "approve")));

    expect(answers.map(({ status }) => status).sort()).toEqual([303, 409, 409, 409, 409]);
    expect(await keyCount()).toBe(before + 1);
    expectRefusalPage(await decide(page, "approve"), 409, /already approved or denied/);
    expectRefusalPage(await decide(page, "deny"), 409, /already approved or denied/);
  });

  it("is for one of the newest 50 pages of a session", async () => {
    const who = await signUp(app);
    const first = await ask({}, who);
    await Promise.all(Array.from({ length: 49 }, () => ask({}, who)));
    expect((await decide(first, "deny", { cookie: who.cookie })).status).toBe(303);
    const second = await ask({}, who);
    await Promise.all(Array.from({ length: 49 }, () => ask({}, who)));
    await ask({}, who);

    expectRefusalPage(await decide(second, "deny", { cookie: who.cookie }), 404, /No such authorization request/);
  });

  it("fails when the app has been revoked, or has registered other addresses, since the page was shown", async () => {
    const revoked = await createKey(app, { type: "publishable" });
    const moved = await createKey(app, { type: "publishable" });
    const pages = [await ask({ app_key: revoked.key }), await ask({ app_key: moved.key })] as const;
    const owner = createClient(app.baseUrl, app.key);
    await owner.request("DELETE", `/account/keys/${revoked.id}`);
    await owner.request("PATCH", `/account/keys/${moved.id}`, { body: { redirectUrls: ["https://app.example/other"] } });

    expectRefusalPage(await decide(pages[0], "approve"), 400, /was revoked/);
    expectRefusalPage(await decide(pages[1], "approve"), 400, /not one that this app has registered/);
    expectRefusalPage(await decide(pages[1], "deny"), 400, /not one that this app has registered/);
  });

  async function grantedModels(answer: ShownPage): Promise<unknown> {
    const start = (fragmentOf(answer).api_key ?? "").slice(0, 10);
    const apiKeys = await ownKeys();
    return apiKeys.find((key) => key.start === start)?.allowedModels;
  }

  async function keyCount(): Promise<number> {
    return (await ownKeys()).length;
  }
});

describe("a budget beyond the balance", () => {
  const inputOf = (page: ShownPage, id: string) => new RegExp(`<input[^>]* id="${id}"[^>]*>`).exec(page.html)?.[0] ?? "";

  it("is neither offered nor taken, and the form keeps the entered text", async () => {
    const poor = await signUp(app, { credits: 0.25 });
    const { cookie } = poor;

    const page = await ask({ budget: "2.5", permissions: "usage" }, poor);
    const refused = await decide(page, "approve", { cookie, set: { budget: "1.250000001", expiry: "7", permissions: [] } });
    const granted = await decide(refused, "approve", { cookie, set: { budget: "1.25" } });

    // A new account's tier gives one credit.
    expect(page.text).toContain(
      "can spend up to 1.25 credits of your balance of 1.25 credits. It requested 2.5 credits, which is more than you have.",
    );
    expect(inputOf(page, "budget")).toContain('value="1.25"');
    expect(inputOf(page, "budget")).toContain('max="1.25"');
    expectRefusalPage(refused, 400, /The budget can be at most the 1\.25 credits that your account has\./);
    expect(refused.html).toMatch(/role="alert" id="wrong"><a href="#budget">/);
    expect(inputOf(refused, "budget")).toContain('value="1.250000001"');
    expect(inputOf(refused, "budget")).toContain('aria-invalid="true"');
    expect(inputOf(refused, "expiry")).toContain('value="7"');
    expect(await currentKey(fragmentOf(granted).api_key ?? "")).toMatchObject({ creditBudget: 1.25 });
  });

  it("is not reached by a request within it", async () => {
    const page = await ask({ budget: "2.5" });

    expect(page.text).toContain("can spend up to 2.5 credits of your balance of 101 credits.");
    expect(page.text).not.toContain("more than you have");
    expect(inputOf(page, "budget")).toContain('max="2.5"');
  });

  it("is impossible with an empty balance: the page says so, with the remedy", async () => {
    const broke = await signUp(app);
    const { cookie } = broke;
    const before = await ask({}, broke);
    await databaseOf(app).prisma.account.update({ where: { id: broke.accountId }, data: { tierNanocredits: 0n } });

    const page = await ask({}, broke);
    const refused = await decide(before, "approve", { cookie });

    expect(page.text).toContain("Your account has no credits.");
    expect(page.text).toMatch(
      /ask the operator of this gateway for credits, .* Your free credits are refilled on \d+ \w+ \d{4}, 00:00 UTC\./,
    );
    expect(formTo(page, "/authorize").buttons).toEqual([{ name: "decision", value: "deny" }]);
    expectRefusalPage(refused, 402, /Your account has no credits/);
    expect((await decide(page, "deny", { cookie })).location).toBe(`${REDIRECT}#error=access_denied`);
  });
});

describe("denying", () => {
  it("sends the browser back with an error in the fragment, and makes no key", async () => {
    const before = (await ownKeys()).length;

    const answer = await decide(await ask({ state: "s 1" }), "deny");

    expect(answer.status).toBe(303);
    expect(answer.location).toBe("https://app.example/cb#error=access_denied&state=s%201");
    expect((await ownKeys()).length).toBe(before);
  });

  it("takes a form in which nothing is filled in", async () => {
    const answer = await decide(await ask(), "deny", { set: { budget: [], expiry: [], model_choice: [] } });

    expect(answer.location).toBe("https://app.example/cb#error=access_denied");
  });

  it("has the error in the query too for an app with a challenge, where OAuth clients look", async () => {
    const challenge = createHash("sha256").update(randomBytes(32).toString("base64url")).digest("base64url");

    const answer = await decide(await ask({ code_challenge: challenge, state: "s", redirect_url: `${REDIRECT}?x=1` }), "deny");

    const url = new URL(answer.location ?? "");
    expect(Object.fromEntries(url.searchParams)).toEqual({ x: "1", error: "access_denied", state: "s", iss: issuer() });
    expect(url.hash).toBe("#error=access_denied&state=s");
  });
});

describe("a decision that the person did not make", () => {
  it("is refused without a token, with a made up one, and with another session's", async () => {
    const other = await signIn(app, person);
    const page = await ask();
    const othersToken = Object.fromEntries(formTo(await ask({}, other), "/authorize").fields).form_token ?? "";

    for (const token of [[], "", "x", `1.${"a".repeat(43)}`, othersToken]) {
      expectRefusalPage(await decide(page, "approve", { set: { form_token: token } }), 403, /not sent from this site/);
    }
    expect((await decide(page, "deny")).status).toBe(303);
  });

  it("is refused from another site, even with a valid token", async () => {
    const page = await ask();

    for (const site of ["cross-site", "same-site"]) {
      expectRefusalPage(await decide(page, "approve", { headers: { "Sec-Fetch-Site": site } }), 403, /another site/);
    }
    const { cookie } = person;
    const form = formTo(page, "/authorize");
    const body = new URLSearchParams([...form.fields.map(([name, value]) => [name, value]), ["decision", "approve"]]);
    const old = await fetch(`${app.baseUrl}/authorize`, {
      method: "POST",
      redirect: "manual",
      body,
      headers: { Cookie: cookie, Origin: "https://evil.example" },
    });
    expect(old.status).toBe(403);
  });

  it("is refused without a session", async () => {
    const page = await ask();

    expectRefusalPage(
      await submitForm(app.baseUrl, formTo(page, "/authorize"), { button: ["decision", "approve"] }),
      403,
      /not sent from this site/,
    );
  });

  it("is refused with the reason when the account was suspended meanwhile", async () => {
    const left = await signUp(app);
    const page = await ask({}, left);
    const input = { accountId: left.accountId, reason: "test" };
    const suspension = "mutation ($input: SuspendAccountInput!) { suspendAccount(input: $input) { account { id } } }";
    await runGraphql(app, { Authorization: `Bearer ${app.key}` }, suspension, { input });

    expectRefusalPage(await decide(page, "approve", { cookie: left.cookie }), 403, /This account is suspended/);
  });

  it("is refused for another session's request, even of the same person", async () => {
    const request = Object.fromEntries(formTo(await ask(), "/authorize").fields).request_id ?? "";
    const stranger = await signUp(app);
    const elsewhere = await signIn(app, person);

    for (const who of [stranger, elsewhere]) {
      const page = await ask({}, who);
      const answer = await decide(page, "approve", { cookie: who.cookie, set: { request_id: request } });
      expectRefusalPage(answer, 404, /No such authorization request/);
    }
  });

  it("is refused for a missing request", async () => {
    const page = await ask();

    expectRefusalPage(await decide(page, "approve", { set: { request_id: "00000000-0000-4000-8000-000000000000" } }), 404, /No such/);
    expectRefusalPage(await decide(page, "approve", { set: { request_id: "'; DROP TABLE" } }), 400, /request_id/);
    expectRefusalPage(await decide(page, "approve", { button: ["decision", "maybe"] }), 400, /decision/);
  });

  it("cannot be sent as JSON, nor by GET", async () => {
    const { status } = await fetch(`${app.baseUrl}/authorize`, {
      method: "POST",
      headers: { Cookie: person.cookie, "Content-Type": "application/json", "Sec-Fetch-Site": "same-origin" },
      body: "{}",
    });
    const byGet = await ask({ decision: "approve" });

    expect(status).toBe(415);
    expect(byGet.status).toBe(200);
    expect(byGet.location).toBeNull();
  });
});

describe("the granted key", () => {
  it("is listed with the app that it was granted to, and stops at once when it is revoked", async () => {
    const appKey = await createKey(app, { type: "publishable", name: "Sketchpad", redirectUrls: [REDIRECT] });
    const { api_key: key = "" } = fragmentOf(await decide(await ask({ app_key: appKey.key, models: "acme/chat" }), "approve"));
    const client = createClient(app.baseUrl, key);
    expect((await client.get("/account/key")).status).toBe(200);

    const listed = (await ownKeys()).find(({ start }) => start === key.slice(0, 10));

    expect(listed).toMatchObject({
      name: "Sketchpad",
      origin: "redirect_flow",
      app: { id: appKey.id, name: "Sketchpad" },
      redirectUrls: [],
    });
    const manager = await createManager();
    expect((await createClient(app.baseUrl, manager).request("DELETE", `/account/keys/${listed?.id}`)).status).toBe(200);
    expect((await client.get("/account/key")).status).toBe(401);
  });

  it("manages no keys", async () => {
    const { api_key: key = "" } = fragmentOf(await decide(await ask({ permissions: "profile,balance,usage" }), "approve"));

    expect((await createClient(app.baseUrl, key).get("/account/keys")).status).toBe(403);
    expect((await createClient(app.baseUrl, key).get("/account/profile")).status).toBe(200);
  });
});

function issuer(): string {
  return app.services.authorizations.issuer;
}

interface ListedKey {
  readonly id: string;
  readonly start: string;
  readonly allowedModels: readonly string[] | null;
}

let managerKey: Promise<string> | null = null;

/** A key of the person's with which the keys are managed, as a dashboard would with the session. */
function createManager(): Promise<string> {
  managerKey ??= (async () => {
    const ctx = { ...(await import("../support/sign-in.js")).nobody(), caller: sessionOf(person) };
    const { createApiKeyInput } = await import("../../src/services/api-keys/api-keys-input.js");
    const { key } = await app.services.apiKeys.create(ctx, createApiKeyInput.parse({ name: "manager", accountPermissions: ["keys"] }));
    return String(key);
  })();
  return managerKey;
}

function sessionOf({ accountId, sessionId }: Person) {
  return { kind: "session", accountId, sessionId, isOperator: false } as const;
}

async function ownKeys(): Promise<readonly ListedKey[]> {
  return (await createClient(app.baseUrl, await createManager()).get("/account/keys")).json<{ data: ListedKey[] }>().data;
}
