/** The pages on which people sign up, in and out, as a browser without scripts uses them. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { PageBrowser, type ShownPage } from "../support/page-browser.js";
import { type Person, signIn, signUp } from "../support/sign-in.js";

const PASSWORD = "correct horse battery";
/** Where people are led who came for nothing in particular. */
const HOME = "/dashboard";

let app: TestApp;
let person: Person;
beforeAll(async () => {
  // All of them come from one address.
  const rateLimits = { anonymousRequestsPer10Seconds: 10_000, publishableRequestsPerMinute: 60, publishableCreditsPerHour: 1_000_000_000n };
  app = await createTestApp({ config: { rateLimits } });
  person = await signUp(app);
});
afterAll(() => app.close());

function open(headers: Record<string, string> = {}): PageBrowser {
  return new PageBrowser(app.baseUrl, { "User-Agent": "Page Browser/1.0", ...headers });
}

async function openSignedIn(as: Person = person): Promise<PageBrowser> {
  const browser = open();
  await browser.get("/sign-in");
  const answer = await browser.submit("/sign-in", { email: as.email, password: as.password });
  expect([answer.status, answer.location]).toEqual([303, HOME]);
  return browser;
}

describe("Signing up and in", () => {
  it("returns to the page that needed it", async () => {
    const browser = open();
    const email = "page@example.com";

    const wanted = await browser.get("/sessions?x=1");
    const signInPage = await browser.get(wanted.location ?? "");
    const signUpLink = /href="([^"]*sign-up[^"]*)"/.exec(signInPage.text)?.[1] ?? "";
    const signUpPage = await browser.get(signUpLink);
    const returnTo = /name="return_to" value="([^"]*)"/.exec(signUpPage.text)?.[1] ?? "";
    const signedUp = await browser.submit("/sign-up", { email, password: PASSWORD, name: "<b>Page</b>", return_to: returnTo });
    const reached = await browser.get(signedUp.location ?? "");

    expect(wanted.location).toBe("/sign-in?return_to=%2Fsessions%3Fx%3D1");
    expect([signedUp.status, signedUp.location]).toEqual([303, "/sessions?x=1"]);
    expect(reached.status).toBe(200);
    expect(reached.text).toContain(email);
    expect(reached.text).toContain("Page Browser/1.0");
    expect(reached.text).toContain("(this one)");
  });

  it("cannot be framed, cached or read by other sites", async () => {
    const page = await open().get("/sign-in");

    expect(Object.fromEntries(page.headers)).toMatchObject({
      "content-security-policy": expect.stringContaining("frame-ancestors 'none'"),
      "x-frame-options": "DENY",
      "cache-control": "no-store",
    });
    expect(page.headers.get("access-control-allow-origin")).toBeNull();
  });

  it("says in the same words that the address or the password is wrong, and keeps the address", async () => {
    const browser = open();
    await browser.get("/sign-in");

    const wrong = await browser.submit("/sign-in", { email: person.email, password: "not the password" });
    const unknown = await browser.submit("/sign-in", { email: "nobody@example.com", password: "not the password" });

    for (const answer of [wrong, unknown]) {
      expect(answer.status).toBe(401);
      expect(answer.headers.get("www-authenticate")).toBeNull();
      expect(answer.text).toContain("The e-mail address or the password is wrong.");
      expect(answer.text).not.toContain("not the password");
    }
    expect(wrong.text).toContain(`value="${person.email}"`);
    expect(browser.cookies.has("sluice_session")).toBe(false);
  });

  it.each([
    ["an address that is none", { email: "page", password: PASSWORD }, 400],
    ["a short password", { email: "short@example.com", password: "1234567" }, 400],
    ["a long password", { email: "long@example.com", password: "p".repeat(129) }, 400],
    ["a field too many", { email: "more@example.com", password: PASSWORD, isOperator: "true" }, 400],
  ])("refuses %s on the form itself", async (_name, fields, status) => {
    const browser = open();
    await browser.get("/sign-up");

    const answer = await browser.submit("/sign-up", fields);

    expect(answer.status).toBe(status);
    expect(answer.text).toContain('role="alert"');
    expect(answer.text).toContain("<h1>Create an account</h1>");
  });

  it("refuses an address that has an account", async () => {
    const browser = open();
    await browser.get("/sign-up");

    const answer = await browser.submit("/sign-up", { email: person.email.toUpperCase(), password: PASSWORD });

    expect(answer.status).toBe(409);
    expect(answer.text).toContain("Sign in instead.");
  });

  it.each([
    "//evil.example",
    "/\\evil.example",
    "https://evil.example",
    "/a\\..\\evil",
    "/\tevil",
    "evil",
    "javascript:alert(1)",
    "/ä",
    `/${"a".repeat(8_192)}`,
  ])("never leads to %s", async (returnTo) => {
    const browser = open();
    await browser.get(`/sign-in?return_to=${encodeURIComponent(returnTo)}`);

    const answer = await browser.submit("/sign-in", { email: person.email, password: person.password, return_to: returnTo });

    expect([answer.status, answer.location]).toEqual([303, HOME]);
  });

  it("gives the browser a session that it did not bring along", async () => {
    const browser = open();
    const planted = (await signIn(app, person)).cookie;
    browser.cookies.set("sluice_session", planted.slice("sluice_session=".length));
    await browser.get("/password");
    await browser.submit("/sign-out");
    browser.cookies.set("sluice_session", planted.slice("sluice_session=".length));
    await browser.get("/sign-in");

    await browser.submit("/sign-in", { email: person.email, password: person.password });

    expect(browser.cookies.get("sluice_session")).toMatch(/^[A-Za-z0-9]{32}$/);
    expect(`sluice_session=${browser.cookies.get("sluice_session")}`).not.toBe(planted);
    const attacker = open({ Cookie: planted });
    expect((await attacker.get("/sessions")).status).toBe(303);
  });

  it("shows no form to a person who is signed in", async () => {
    const browser = await openSignedIn();

    expect((await browser.get("/sign-in?return_to=%2Fpassword")).location).toBe("/password");
  });

  it("states the time to wait after too many attempts", async () => {
    const signInPace = { addressTurnMs: 60_000, emailTurnMs: 60_000, waitingPerAddressMax: 0 };
    const limited = await createTestApp({ config: { signInAttemptsPerMinute: 1, signInPace } });
    try {
      const browser = new PageBrowser(limited.baseUrl);
      await browser.get("/sign-in");
      for (const status of [401, 401]) {
        expect((await browser.submit("/sign-in", { email: "a@example.com", password: PASSWORD })).status).toBe(status);
      }

      const answer = await browser.submit("/sign-in", { email: "a@example.com", password: PASSWORD });

      expect(answer.status).toBe(429);
      expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
      expect(answer.text).toContain("Too many attempts");
    } finally {
      await limited.close();
    }
  });
});

describe("A form", () => {
  const fields = () => ({ email: person.email, password: person.password });

  it.each([
    ["/sign-in", fields],
    ["/sign-up", () => ({ email: "from-elsewhere@example.com", password: PASSWORD })],
  ])("is taken from our own pages only: %s", async (path, input) => {
    const browser = open();
    await browser.get(path);

    const cross = await browser.submit(path, input(), { "Sec-Fetch-Site": "cross-site" });
    const same = await browser.submit(path, input(), { "Sec-Fetch-Site": "same-site", Origin: "https://evil.example" });

    expect([cross.status, same.status]).toEqual([403, 403]);
    expect(await app.database.prisma.account.count({ where: { email: "from-elsewhere@example.com" } })).toBe(0);
    expect(browser.cookies.has("sluice_session")).toBe(false);
  });

  it("is taken with the token of the browser that it was shown to", async () => {
    const browser = open();
    const other = open();
    await browser.get("/sign-in");
    await other.get("/sign-in");
    browser.cookies.set("sluice_form", other.cookies.get("sluice_form") ?? "");

    const answers = [await browser.submit("/sign-in", fields()), await open().submit("/sign-in", fields())];

    expect(answers.map(({ status }) => status)).toEqual([403, 403]);
  });

  it("ends a session only with that session's token", async () => {
    const mine = await openSignedIn();
    const token = /value="([^"]+)"/.exec((await mine.get("/sessions")).text)?.[1] ?? "";
    const theirs = await openSignedIn(await signUp(app));

    const answer = await theirs.submit("/sessions/revoke-others", { form_token: token });

    expect(answer.status).toBe(403);
  });
});

describe("The sessions page", () => {
  it("signs out of this browser, for good", async () => {
    const browser = await openSignedIn();
    const cookie = browser.cookie;
    await browser.get("/sessions");

    const left = await browser.submit("/sign-out");
    const replayed = await open({ Cookie: cookie }).get("/sessions");

    expect([left.status, left.location]).toEqual([303, "/sign-in"]);
    expect(browser.cookies.has("sluice_session")).toBe(false);
    expect(replayed.location).toBe("/sign-in?return_to=%2Fsessions");
  });

  it("ends another session, and all the others", async () => {
    const who = await signUp(app);
    const browser = await openSignedIn(who);
    const [second, third] = [await signIn(app, who), await signIn(app, who)];
    await browser.get("/sessions");

    const one = await browser.submit(`/sessions/${second.sessionId}/revoke`);
    const afterOne = await browser.get("/sessions");
    const others = await browser.submit("/sessions/revoke-others");
    const afterAll = await browser.get("/sessions");

    expect([one.status, others.status]).toEqual([303, 303]);
    expect(afterOne.text).not.toContain(second.sessionId);
    expect(afterOne.text).toContain(third.sessionId);
    expect(afterAll.text.match(/<li>/g)).toHaveLength(1);
    expect((await open({ Cookie: third.cookie }).get("/sessions")).status).toBe(303);
  });

  it("hides the sessions of other accounts", async () => {
    const browser = await openSignedIn();
    const stranger = await signUp(app);
    await browser.get("/sessions");

    expect((await browser.submit(`/sessions/${stranger.sessionId}/revoke`)).status).toBe(404);
    expect((await open({ Cookie: stranger.cookie }).get("/sessions")).status).toBe(200);
  });

  it("changes the password, which ends every other session", async () => {
    const who = await signUp(app);
    const browser = await openSignedIn(who);
    const before = browser.cookies.get("sluice_session");
    await browser.get("/password");

    const wrong = await browser.submit("/password", { currentPassword: "not the password", newPassword: "another password" });
    const short = await browser.submit("/password", { currentPassword: who.password, newPassword: "1234567" });
    const changed = await browser.submit("/password", { currentPassword: who.password, newPassword: "another password" });

    expect([wrong.status, short.status, changed.status]).toEqual([400, 400, 303]);
    expect(browser.cookies.get("sluice_session")).not.toBe(before);
    expect((await browser.get("/sessions")).text.match(/<li>/g)).toHaveLength(1);
    expect((await open({ Cookie: who.cookie }).get("/sessions")).status).toBe(303);
    await expect(signIn(app, who)).rejects.toMatchObject({ code: "UNAUTHORIZED" });
    await signIn(app, { ...who, password: "another password" });
  });
});

describe("a browser that opens an address", () => {
  const BROWSER = { Accept: "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8" };

  it("gets a page at / that says how to begin, and programs the JSON that they know", async () => {
    const browser = open(BROWSER);
    const page = await browser.get("/");
    const programs = await Promise.all(
      ["*/*", "application/json", "application/json, text/html;q=0.9", ""].map((Accept) => open({ Accept }).get("/")),
    );

    expect([page.status, page.headers.get("content-type"), page.headers.get("vary")]).toEqual([200, "text/html; charset=utf-8", "Accept"]);
    const { port } = new URL(app.baseUrl);
    for (const told of [`http://localhost:${port}/v1<`, `curl http://localhost:${port}/v1/models`, `href="http://localhost:${port}/docs"`])
      expect(page.text).toContain(told);
    expect(page.text).toContain('href="/sign-in"');
    expect(page.text).toContain('href="/sign-up"');
    expect([...browser.cookies]).toEqual([]);
    for (const answer of programs) {
      expect(JSON.parse(answer.text)).toMatchObject({ name: "Sluice", links: { graphql: "/graphql" } });
      expect(answer.headers.get("vary")).toBe("Accept");
    }
  });

  it("gets the dashboard at / once its person is signed in", async () => {
    const browser = await openSignedIn();

    const answer = await browser.get("/", BROWSER);

    expect([answer.status, answer.location]).toEqual([200, null]);
    expect(answer.text).toContain('<div id="dashboard"');
  });

  it("is sent to sign in, and back, by an address of the dashboard", async () => {
    const answer = await new PageBrowser(app.baseUrl).get("/dashboard/keys?new", BROWSER);

    expect([answer.status, answer.location]).toEqual([303, "/sign-in?return_to=%2Fdashboard%2Fkeys%3Fnew"]);
  });

  it.each([
    ["a path that there is not", "GET", "/nowhere", 404],
    ["a method that a path does not take", "GET", "/v1/chat/completions", 405],
    ["a method that a page does not take", "GET", "/sign-out", 405],
    ["a path that cannot be read", "GET", "/%zz", 400],
    ["a media file that there is not", "GET", "/media/0123456789abcdef", 404],
  ])("gets %s on a page that leads back, in the words of the JSON error", async (_what, method, path, status) => {
    const [page, answer] = await Promise.all([open(BROWSER).request(path, { method }), open({ Accept: "*/*" }).request(path, { method })]);

    expect([page.status, answer.status]).toEqual([status, status]);
    expect([page.headers.get("vary"), answer.headers.get("vary")]).toEqual(["Accept", "Accept"]);
    expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(page.headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
    expect(page.text).toContain('href="/"');
    const { error } = JSON.parse(answer.text) as { error: { message: string } };
    expect(decodeText(page.text)).toContain(error.message);
    expect(page.headers.get("allow")).toBe(answer.headers.get("allow"));
  });

  it("finds the media host's own answer as it was", async () => {
    const answer = await open(BROWSER).get("/media/");

    expect(JSON.parse(answer.text)).toEqual({ name: "Sluice media", version: "2.0.0" });
  });

  it("shows the text of a path as text", async () => {
    const page = await open(BROWSER).get(`/${encodeURIComponent("<script>alert(1)</script>")}`);

    expect(page.status).toBe(404);
    expect(page.text).not.toContain("<script");
  });
});

describe("a refused form", () => {
  it("is answered with a page for every error, with a link to the form", async () => {
    const browser = await openSignedIn();
    await browser.get("/password");
    const from = { Referer: `${app.baseUrl}/password`, Accept: "text/html" };
    const [expired, huge, json] = [
      await browser.submit("/password", { form_token: `1.${"a".repeat(43)}` }, from),
      await browser.submit("/password", { more: "x".repeat(300_000) }, from),
      await browser.request("/password", { method: "POST", body: "{}", headers: { ...from, "Content-Type": "application/json" } }),
    ];

    expect([expired.status, huge.status, json.status]).toEqual([403, 413, 415]);
    for (const page of [expired, huge, json]) {
      expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
      expect(page.text).toContain('role="alert"');
      expect(page.text).toContain('href="/password"');
    }
    expect((await browser.get("/password")).status).toBe(200);
  });

  it("leads nowhere else", async () => {
    for (const Referer of ["https://evil.example/password", `${app.baseUrl}//evil.example/`, "javascript:alert(1)"]) {
      const page = await open({ Referer }).submit("/sign-in", {});
      expect([Referer, page.status]).toEqual([Referer, 403]);
      expect(page.text.match(/<a [^>]*>/g)).toEqual(['<a href="/">', '<a class="button" href="/">']);
    }
  });

  it("is answered in full while it is still being sent", async () => {
    const browser = await openSignedIn();
    await browser.get("/password");

    // Far more than is read: closing at once would reset the connection before the page is there.
    const page = await browser.submit("/password", { more: "x".repeat(8_000_000) });

    expect(page.status).toBe(413);
    expect(page.text).toContain("</html>");
  });
});

function decodeText(text: string): string {
  return text
    .replace(/&#39;/g, "'")
    .replace(/&quot;/g, '"')
    .replace(/&amp;/g, "&");
}

describe("the home page", () => {
  const ownKeys = async (browser: PageBrowser) => {
    const answer = await browser.get("/account/keys", { "Sec-Fetch-Site": "same-origin" });
    return (JSON.parse(answer.text) as { data: Record<string, unknown>[] }).data;
  };
  const sealedOf = (page: ShownPage) => /name="new_key" value="([^"]+)"/.exec(page.text)?.[1] ?? "";
  const preOf = (page: ShownPage, name: string) =>
    decodeText(new RegExp(`<pre class="${name}"><code>([^<]*)</code>`).exec(page.text)?.[1] ?? "");

  /** Fills the form in and sends it. */
  async function make(browser: PageBrowser, fields: Record<string, string>): Promise<ShownPage> {
    const form = await browser.get("/home/keys/new");
    return browser.submit("/home/keys/new", { new_key: sealedOf(form), model_choice: "all", budget: "", expiry: "", ...fields });
  }

  it("requires a session, and is returned to after the sign-in", async () => {
    for (const path of ["/home", "/home/keys", "/home/keys/new", "/home/keys/made"]) {
      expect((await open().get(path)).location).toBe(`/sign-in?return_to=${encodeURIComponent(path)}`);
    }
    expect((await open().submit("/home/keys/new", { name: "x" })).location).toBe("/sign-in");
  });

  it("shows the balance by bucket with the next refill, the keys, the usage, and where to go on", async () => {
    const who = await signUp(app, { credits: 2.5 });
    const browser = await openSignedIn(who);
    const empty = await browser.get("/home");
    const key = preOf(await followed(browser, await make(browser, { name: "<b>Robot</b>", budget: "0.5", expiry: "7" })), "secret");
    const used = await fetch(`${app.baseUrl}/text/hello?model=sandbox/text`, { headers: { Authorization: `Bearer ${key}` } });
    await used.text();

    const page = await browser.get("/home");

    expect(used.status).toBe(200);
    expect(empty.text).toContain("You have none yet.");
    expect(empty.text).toContain("Nothing was generated in the last 30 days.");
    for (const told of [
      "3.5 credits",
      "1 credit, next refill <time",
      "2.5 credits",
      "0.5 credits",
      `${key.slice(0, 10)}…`,
      "sandbox/text",
      "Sign out",
    ])
      expect(page.text).toContain(told);
    expect(page.text).toContain("&lt;b&gt;Robot&lt;/b&gt;");
    expect(page.text).not.toContain("<b>Robot");
    for (const href of ["/docs", "/openapi.json", "/graphql", "/models"])
      expect(page.text).toMatch(new RegExp(`href="http://localhost:\\d+${href}"`));
    expect(page.headers.get("cache-control")).toBe("no-store");
  });

  async function followed(browser: PageBrowser, answer: ShownPage): Promise<ShownPage> {
    expect([answer.status, answer.location]).toEqual([303, "/home/keys/made"]);
    return browser.get(answer.location ?? "");
  }

  it("makes a key and shows it once, with a command that runs as it is pasted", async () => {
    const browser = await openSignedIn(await signUp(app));

    const answer = await make(browser, { name: "Robot", budget: "0.25", expiry: "3", permissions: "usage" });
    const given = browser.cookies.get("sluice_new_key") ?? "";
    const cookieLine = answer.headers.getSetCookie().join("\n");
    const shown = await followed(browser, answer);
    const reloaded = await browser.get("/home/keys/made");

    const key = preOf(shown, "secret");
    expect(key).toMatch(/^sk_[0-9A-Za-z]{43}$/);
    expect(cookieLine).toMatch(/; Max-Age=120; Path=\/home\/keys\/made; HttpOnly; SameSite=Strict$/);
    // Neither is it in what the browser was given to carry, however that is written.
    expect(given.length).toBeGreaterThan(20);
    expect(given + Buffer.from(given, "base64url").toString("latin1")).not.toContain(key);
    expect(`${answer.location}${answer.text}`).not.toContain(key.slice(3));
    expect(shown.headers.get("cache-control")).toBe("no-store");
    expect(browser.cookies.has("sluice_new_key")).toBe(false);
    expect([reloaded.status, reloaded.text.includes("sk_"), reloaded.text.includes("A new key is shown once")]).toEqual([200, false, true]);
    expect(await ownKeys(browser)).toMatchObject([{ name: "Robot", creditBudget: 0.25, permissions: ["usage"], allowedModels: null }]);
    const command = preOf(shown, "command");
    expect(command).toContain(`Bearer ${key}`);
    const { stdout } = await promisify(execFile)("sh", ["-c", `${command} -sS`]);
    expect(JSON.parse(stdout)).toMatchObject({ choices: [{ message: { role: "assistant", content: expect.stringMatching(/\S/) } }] });
  });

  it("makes one key of one form, however often it is sent", async () => {
    const browser = await openSignedIn(await signUp(app));
    const form = await browser.get("/home/keys/new");
    const fields = { new_key: sealedOf(form), name: "Robot", model_choice: "all", budget: "", expiry: "" };

    const answers = await Promise.all([1, 2, 3].map(() => browser.submit("/home/keys/new", fields)));
    const shown = await followed(browser, answers[0] as ShownPage);

    expect(answers.map(({ status, location }) => [status, location])).toEqual(Array(3).fill([303, "/home/keys/made"]));
    expect(await ownKeys(browser)).toHaveLength(1);
    expect((await ownKeys(browser))[0]?.start).toBe(preOf(shown, "secret").slice(0, 10));
  });

  it("refuses a form of another session, and a made up one", async () => {
    const [mine, theirs] = [await openSignedIn(), await openSignedIn()];
    const sealed = sealedOf(await theirs.get("/home/keys/new"));
    const before = await ownKeys(mine);

    const answers = [await make(mine, { name: "x", new_key: sealed }), await make(mine, { name: "x", new_key: "x" })];
    const planted = await mine.get("/home/keys/made", { Cookie: `${mine.cookie}; sluice_new_key=${sealed}` });

    expect(answers.map(({ status }) => status)).toEqual([403, 403]);
    expect(planted.text).not.toContain("sk_");
    expect(await ownKeys(mine)).toHaveLength(before.length);
  });

  it.each([
    [{ name: " " }, "name", "The name must have 1 to 120 characters"],
    [{ budget: "0" }, "budget", "The budget must be an amount of credits above 0"],
    [{ budget: "much" }, "budget", "The budget must be an amount of credits above 0"],
    [{ expiry: "366" }, "expiry", "The time must be a whole number of days from 1 to 365"],
    [{ model_choice: "chosen" }, "models", "The models must be at least one"],
    [{ permissions: "everything" }, "permissions", "Permissions must be one of"],
  ])("names the error for %j beside a link to the field, and keeps the rest", async (wrong, id, message) => {
    const browser = await openSignedIn();
    const before = await ownKeys(browser);

    const page = await make(browser, { name: "Kept", expiry: "9", ...wrong });

    expect(page.status).toBe(400);
    expect(page.text).toMatch(new RegExp(`role="alert" id="wrong"><a href="#${id}">${message}`));
    expect(page.text).toContain(id === "name" ? 'value="9"' : 'value="Kept"');
    expect(await ownKeys(browser)).toHaveLength(before.length);
    expect(sealedOf(page)).not.toBe("");
  });

  it("revokes a key, with the token of its own form alone", async () => {
    const who = await signUp(app);
    const browser = await openSignedIn(who);
    await followed(browser, await make(browser, { name: "Robot", model_choice: "chosen", models: "acme/image" }));
    const id = String((await ownKeys(browser))[0]?.id);
    await browser.get("/home");

    const byGet = await browser.get(`/home/keys/${id}/revoke`);
    const forged = await browser.submit(`/home/keys/${id}/revoke`, { form_token: "x" });
    const foreign = await (await openSignedIn()).submit(`/home/keys/${id}/revoke`);
    const there = await ownKeys(browser);
    const revoked = await browser.submit(`/home/keys/${id}/revoke`);
    const after = await browser.get(revoked.location ?? "");

    expect([byGet.status, forged.status, foreign.status, there.length]).toEqual([405, 403, 403, 1]);
    expect([revoked.status, revoked.location]).toEqual([303, "/home?done=revoked"]);
    expect(after.text).toContain("The key is revoked.");
    expect(await ownKeys(browser)).toEqual([]);
  });
});

describe("Every page", () => {
  it("has a language, a title, one heading, a label for each field, no script, and a policy that allows none", async () => {
    const browser = await openSignedIn(await signUp(app));
    const form = await browser.get("/home/keys/new");
    const sealed = /name="new_key" value="([^"]+)"/.exec(form.text)?.[1] ?? "";
    const made = await browser.submit("/home/keys/new", { new_key: sealed, name: "Robot", model_choice: "all" });
    const nobody = open({ Accept: "text/html" });
    const pages = [
      ...(await Promise.all(["/", "/sign-in", "/sign-up", "/nowhere"].map((path) => nobody.get(path)))),
      form,
      await browser.get(made.location ?? ""),
      await browser.get(`/authorize?redirect_url=${encodeURIComponent("https://app.example/")}&permissions=profile`),
      ...(await Promise.all(["/home", "/home/keys", "/sessions", "/password", "/device"].map((path) => browser.get(path)))),
    ];

    for (const { text, headers } of pages) {
      const title = /<title>([^<]+)<\/title>/.exec(text)?.[1] ?? "";
      const unlabelled = [...text.matchAll(/<input\b[^>]*>/g)]
        .map(([tag]) => tag)
        .filter((tag) => !/type="(?:hidden|checkbox|radio)"/.test(tag))
        .filter((tag) => !text.includes(`<label for="${/ id="([^"]*)"/.exec(tag)?.[1]}">`));
      const outside = text.replace(/<label class="choice">.*?<\/label>/gs, "").match(/<input type="(?:checkbox|radio)"/g);
      expect([title, text.match(/<h1>/g)?.length, unlabelled, outside]).toEqual([expect.stringMatching(/\S · Sluice$/), 1, [], null]);
      expect(text).toContain('<html lang="en">');
      expect(text).not.toContain("<script");
      expect(headers.get("content-security-policy")).toMatch(
        /^default-src 'none'; img-src data:; style-src 'sha256-[^']+'; form-action 'self'.*frame-ancestors 'none'$/,
      );
    }
  });
});
