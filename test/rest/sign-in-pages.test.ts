/** The pages on which people sign up, in and out, as a browser without scripts uses them. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { PageBrowser } from "../support/page-browser.js";
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

    const wanted = await browser.get("/device?x=1");
    const signInPage = await browser.get(wanted.location ?? "");
    const signUpLink = /href="([^"]*sign-up[^"]*)"/.exec(signInPage.text)?.[1] ?? "";
    const signUpPage = await browser.get(signUpLink);
    const returnTo = /name="return_to" value="([^"]*)"/.exec(signUpPage.text)?.[1] ?? "";
    const signedUp = await browser.submit("/sign-up", { email, password: PASSWORD, name: "<b>Page</b>", return_to: returnTo });
    const reached = await browser.get(signedUp.location ?? "");

    expect(wanted.location).toBe("/sign-in?return_to=%2Fdevice%3Fx%3D1");
    expect([signedUp.status, signedUp.location]).toEqual([303, "/device?x=1"]);
    expect(reached.status).toBe(200);
    expect(reached.text).toContain(email);
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

  it("marks the fields that are refused", async () => {
    const browser = open();
    await browser.get("/sign-up");

    const answer = await browser.submit("/sign-up", { email: "short@example.com", password: "1234567" });

    expect(answer.text).toMatch(/<input id="password" [^>]*aria-invalid="true"/);
    expect(answer.text).not.toMatch(/<input id="email" [^>]*aria-invalid/);
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
    await browser.get("/device");
    await browser.submit("/sign-out");
    browser.cookies.set("sluice_session", planted.slice("sluice_session=".length));
    await browser.get("/sign-in");

    await browser.submit("/sign-in", { email: person.email, password: person.password });

    expect(browser.cookies.get("sluice_session")).toMatch(/^[A-Za-z0-9]{32}$/);
    expect(`sluice_session=${browser.cookies.get("sluice_session")}`).not.toBe(planted);
    const attacker = open({ Cookie: planted });
    expect((await attacker.get("/device")).status).toBe(303);
  });

  it("shows no form to a person who is signed in", async () => {
    const browser = await openSignedIn();

    expect((await browser.get("/sign-in?return_to=%2Fdevice")).location).toBe("/device");
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

  it("is taken with the token of its own session", async () => {
    const mine = await openSignedIn();
    const token = /name="form_token" value="([^"]+)"/.exec((await mine.get("/device")).text)?.[1] ?? "";
    const theirs = await openSignedIn(await signUp(app));

    const answers = [await theirs.submit("/sign-out", { form_token: token }), await mine.submit("/sign-out", { form_token: token })];

    expect(answers.map(({ status }) => status)).toEqual([403, 303]);
  });
});

describe("Signing out", () => {
  it("ends the session of this browser for good", async () => {
    const browser = await openSignedIn();
    const cookie = browser.cookie;
    await browser.get("/device");

    const left = await browser.submit("/sign-out");
    const replayed = await open({ Cookie: cookie }).get("/device");

    expect([left.status, left.location]).toEqual([303, "/sign-in"]);
    expect(browser.cookies.has("sluice_session")).toBe(false);
    expect(replayed.location).toBe("/sign-in?return_to=%2Fdevice");
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
    await browser.get("/device");
    const from = { Referer: `${app.baseUrl}/device`, Accept: "text/html" };
    const [expired, huge, json] = [
      await browser.submit("/device", { form_token: `1.${"a".repeat(43)}` }, from),
      await browser.submit("/device", { more: "x".repeat(300_000) }, from),
      await browser.request("/device", { method: "POST", body: "{}", headers: { ...from, "Content-Type": "application/json" } }),
    ];

    expect([expired.status, huge.status, json.status]).toEqual([403, 413, 415]);
    for (const page of [expired, huge, json]) {
      expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
      expect(page.text).toContain('role="alert"');
      expect(page.text).toContain('href="/device"');
    }
    expect((await browser.get("/device")).status).toBe(200);
  });

  it("leads nowhere else", async () => {
    for (const Referer of ["https://evil.example/device", `${app.baseUrl}//evil.example/`, "javascript:alert(1)"]) {
      const page = await open({ Referer }).submit("/sign-in", {});
      expect([Referer, page.status]).toEqual([Referer, 403]);
      expect(page.text.match(/<a [^>]*>/g)).toEqual(['<a href="/">', '<a class="button" href="/">']);
    }
  });

  it("is answered in full while it is still being sent", async () => {
    const browser = await openSignedIn();
    await browser.get("/device");

    // Far more than is read: closing at once would reset the connection before the page is there.
    const page = await browser.submit("/device", { more: "x".repeat(8_000_000) });

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

describe("the address of a former account page", () => {
  it.each([
    ["/home", "/dashboard"],
    ["/home?done=revoked", "/dashboard"],
    ["/home/keys", "/dashboard/keys"],
    ["/home/keys/new", "/dashboard/keys?new"],
    ["/home/keys/made", "/dashboard/keys"],
    ["/sessions", "/dashboard/account/sessions"],
    ["/password", "/dashboard/account"],
  ])("redirects %s to its page of the dashboard, with and without a session", async (path, successor) => {
    const signedIn = await openSignedIn();

    const answers = [await open().get(path), await signedIn.get(path), await signedIn.request(path, { method: "HEAD" })];

    expect(answers.map(({ status, location }) => [status, location])).toEqual(Array(3).fill([303, successor]));
    expect((await signedIn.get(successor)).text).toContain('<div id="dashboard"');
    expect((await open().get(successor)).location).toBe(`/sign-in?return_to=${encodeURIComponent(successor)}`);
  });

  it.each(["/home/keys/new", "/sessions/revoke-others", "/password"])("changes nothing by a form: %s", async (path) => {
    const browser = await openSignedIn(await signUp(app));
    await browser.get("/device");

    expect((await browser.submit(path, { name: "x" })).status).toBe(path.startsWith("/sessions") ? 404 : 405);
  });
});

describe("Every page", () => {
  it("has a language, a title, one heading, a label for each field, no script, and a policy that allows none", async () => {
    const browser = await openSignedIn(await signUp(app));
    const nobody = open({ Accept: "text/html" });
    const pages = [
      ...(await Promise.all(["/", "/sign-in", "/sign-up", "/nowhere"].map((path) => nobody.get(path)))),
      await browser.get(`/authorize?redirect_url=${encodeURIComponent("https://app.example/")}&permissions=profile`),
      await browser.get("/device"),
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
