/** Signing in with GitHub, against a server that speaks as GitHub does. */

import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { execute, ok } from "../graphql/client.js";
import { MeDocument, type MeQuery } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { type FakeGitHub, type GitHubUser, startFakeGitHub } from "../support/fake-github.js";
import { PageBrowser } from "../support/page-browser.js";
import { nobody, signUp } from "../support/sign-in.js";

let github: FakeGitHub;
let app: TestApp;
let people = 1_000;

beforeAll(async () => {
  github = await startFakeGitHub();
  app = await createTestApp({ config: { github: github.settings } });
});
afterAll(async () => {
  await app.close();
  await github.close();
});
beforeEach(() => {
  github.failure = null;
});

/** A GitHub user without an account here. */
function newPerson(more: Partial<GitHubUser> = {}): GitHubUser {
  people += 1;
  const email = `gh-${people}@example.com`;
  return { id: people, login: `Octo-${people}`, name: "Octo Cat", emails: [{ email, primary: true, verified: true }], ...more };
}

function verified(email: string): GitHubUser["emails"] {
  return [
    { email: "other@example.com", primary: false, verified: true },
    { email, primary: true, verified: true },
  ];
}

/** Clicks the button; where GitHub is asked at. */
async function start(browser: PageBrowser, returnTo?: string): Promise<string> {
  await browser.get(`/sign-in${returnTo === undefined ? "" : `?return_to=${encodeURIComponent(returnTo)}`}`);
  const sent = await browser.submit("/sign-in/github", returnTo === undefined ? {} : { return_to: returnTo });
  expect(sent.status).toBe(303);
  return sent.location ?? "";
}

/** The whole way, to the page that the browser ends on. */
async function signInWithGitHub(user: GitHubUser, browser = new PageBrowser(app.baseUrl), returnTo?: string) {
  const asked = await start(browser, returnTo);
  github.user = user;
  return { browser, back: await comeBack(browser, github.authorize(asked)) };
}

/** The gateway believes to be at localhost, and the test browser is at its address. */
function comeBack(browser: PageBrowser, address: string) {
  const { pathname, search } = new URL(address);
  return browser.get(pathname + search, { "Sec-Fetch-Site": "cross-site" });
}

async function meOf(browser: PageBrowser): Promise<NonNullable<MeQuery["me"]>> {
  const headers = { Cookie: browser.cookie, "Sec-Fetch-Site": "same-origin" };
  return ok(await execute({ ...app, key: null, headers }, MeDocument)).me;
}

describe("Signing in with GitHub", () => {
  it("makes an account at the first time and finds it at the next", async () => {
    const person = newPerson();

    const { browser, back } = await signInWithGitHub(person);
    const again = await signInWithGitHub({ ...person, login: `Renamed-${person.id}` });

    expect([back.status, back.location]).toEqual([303, "/dashboard"]);
    const me = await meOf(browser);
    expect(me).toMatchObject({
      id: expect.any(String),
      handle: `octo-${person.id}`,
      name: "Octo Cat",
      email: `gh-${person.id}@example.com`,
      githubUsername: `Renamed-${person.id}`,
      image: `https://avatars.example.com/u/${person.id}`,
      tier: "free",
    });
    expect(await meOf(again.browser)).toEqual(me);
    expect(again.browser.cookies.get("sluice_session")).not.toBe(browser.cookies.get("sluice_session"));
  });

  it("sends a challenge, requests only the identity, and returns to the page that began it", async () => {
    const browser = new PageBrowser(app.baseUrl);

    const asked = new URL(await start(browser, "/device?from=here"));
    github.user = newPerson();
    const back = await comeBack(browser, github.authorize(asked.href));

    expect(`${asked.origin}${asked.pathname}`).toBe(`${github.url}/login/oauth/authorize`);
    expect(Object.fromEntries(asked.searchParams)).toEqual({
      response_type: "code",
      client_id: github.settings.clientId,
      redirect_uri: expect.stringMatching(/^http:\/\/localhost:\d+\/api\/auth\/callback\/github$/),
      scope: "read:user user:email",
      state: expect.stringMatching(/^\S{20,}$/),
      code_challenge: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
      code_challenge_method: "S256",
    });
    expect(back.location).toBe("/device?from=here");
  });

  it("lets the page's form lead to GitHub, and to nowhere else", async () => {
    const page = await new PageBrowser(app.baseUrl).get("/sign-in");

    expect(page.text).toContain("Sign in with GitHub");
    expect(page.headers.get("content-security-policy")).toContain(`form-action 'self' ${github.url};`);
  });

  it("stores no token of GitHub, also not at the second sign-in", async () => {
    const person = newPerson();
    await signInWithGitHub(person);
    await signInWithGitHub(person);

    expect(await rowsOf(person)).toEqual([expect.objectContaining({ accessToken: null, refreshToken: null, idToken: null })]);
  });

  it.each([
    ["a made-up state", (address: string) => address.replace(/state=[^&]+/, "state=made-up-by-somebody-else-0000000")],
    ["no state", (address: string) => address.replace(/&state=.*/, "")],
    ["a code that GitHub does not know", (address: string) => address.replace(/code=[^&]+/, "code=0123456789")],
    ["no code", (address: string) => address.replace(/code=[^&]+&/, "")],
  ])("refuses %s", async (_name, change) => {
    const browser = new PageBrowser(app.baseUrl);
    const asked = await start(browser);
    github.user = newPerson();

    const back = await comeBack(browser, change(github.authorize(asked)));

    expect(back.status).toBe(400);
    expect(back.text).toContain("Start again");
    expect(browser.cookies.has("sluice_session")).toBe(false);
  });

  it("refuses an answer to another browser's request", async () => {
    const attacker = new PageBrowser(app.baseUrl);
    const victim = new PageBrowser(app.baseUrl);
    const asked = await start(attacker);
    await start(victim);
    github.user = newPerson();

    const back = await comeBack(victim, github.authorize(asked));

    expect(back.status).toBe(400);
    expect(victim.cookies.has("sluice_session")).toBe(false);
  });

  it("takes an answer once", async () => {
    const browser = new PageBrowser(app.baseUrl);
    const asked = await start(browser);
    github.user = newPerson();
    const address = github.authorize(asked);

    const first = await comeBack(browser, address);
    const second = await comeBack(browser, address);

    expect([first.status, second.status]).toEqual([303, 400]);
  });

  it("says so when the person did not agree", async () => {
    const browser = new PageBrowser(app.baseUrl);
    const state = new URL(await start(browser)).searchParams.get("state");

    const back = await comeBack(browser, `${app.baseUrl}/api/auth/callback/github?error=access_denied&state=${state}`);

    expect(back.status).toBe(403);
    expect(back.text).toContain("GitHub sign-in was denied.");
  });

  it("keeps an account from another GitHub user with the same unverified address", async () => {
    const person = newPerson();
    const owner = await signUp(app, { email: `gh-${person.id}@example.com` });

    const { browser, back } = await signInWithGitHub(person);

    expect(back.status).toBe(409);
    expect(back.text).toContain("Sign in with its password.");
    expect(browser.cookies.has("sluice_session")).toBe(false);
    expect(await rowsOf(person)).toEqual([]);
    expect(owner.accountId).toEqual(expect.any(String));
  });

  it("links an address that both have verified", async () => {
    const email = `gh-shared-${people}@example.com`;
    const first = await signInWithGitHub(newPerson({ emails: verified(email) }));

    const second = await signInWithGitHub(newPerson({ emails: verified(email.toUpperCase()) }));

    expect(second.back.status).toBe(303);
    expect((await meOf(second.browser)).id).toBe((await meOf(first.browser)).id);
  });

  it.each<[string, GitHubUser["emails"]]>([
    ["that GitHub has not verified", [{ email: "unverified@example.com", primary: true, verified: false }]],
    ["that is not ASCII", [{ email: "ада@пример.рф", primary: true, verified: true }]],
    ["that is there at all", []],
  ])("refuses a person without an address: none %s", async (_name, emails) => {
    const { browser, back } = await signInWithGitHub(newPerson({ emails }));

    expect(back.status).toBe(403);
    expect(back.text).toContain("Verify it there");
    expect(browser.cookies.has("sluice_session")).toBe(false);
  });

  it.each([
    ["is broken", { status: 503, body: "{}" }],
    ["answers no JSON", { status: 200, body: "<html>" }],
  ])("reports that GitHub %s, and starts no session", async (_name, failure) => {
    const browser = new PageBrowser(app.baseUrl);
    const asked = await start(browser);
    github.user = newPerson();
    const address = github.authorize(asked);
    github.failure = failure;

    const back = await comeBack(browser, address);

    expect(back.status).toBeGreaterThanOrEqual(400);
    expect(browser.cookies.has("sluice_session")).toBe(false);
  });

  it("gives a person with a taken or reserved name another handle", async () => {
    const first = newPerson();
    await signInWithGitHub(first);

    const { browser } = await signInWithGitHub(newPerson({ login: first.login }));
    const reserved = await signInWithGitHub(newPerson({ login: "Sandbox" }));

    expect((await meOf(browser)).handle).toMatch(new RegExp(`^octo-${first.id}-\\d{6}$`));
    expect((await meOf(reserved.browser)).handle).toMatch(/^sandbox-\d{6}$/);
  });
});

it("comes back to the authorization host, wherever that is", async () => {
  const hosted = await createTestApp({ config: { github: github.settings, authUrl: "https://auth.example.com/people" } });
  try {
    const { redirectTo, cookies } = await hosted.services.gitHubSignIn.start(nobody(), "/people/device");

    expect(new URL(redirectTo).searchParams.get("redirect_uri")).toBe("https://auth.example.com/people/api/auth/callback/github");
    expect(cookies).toEqual([expect.stringMatching(/^__Secure-sluice\.state=.+; Path=\/; HttpOnly; Secure; SameSite=Lax$/)]);
  } finally {
    await hosted.close();
  }
});

it("is not offered where it is not configured", async () => {
  const plain = await createTestApp();
  const browser = new PageBrowser(plain.baseUrl);
  try {
    const page = await browser.get("/sign-in");
    const start = await browser.submit("/sign-in/github");

    expect(page.text).not.toContain("GitHub");
    expect(start.status).toBe(400);
  } finally {
    await plain.close();
  }
});

function rowsOf({ id }: GitHubUser) {
  const { prisma } = app.database;
  return prisma.signInMethod.findMany({ where: { providerId: "github", providerAccountId: String(id) } }) as Promise<
    { accessToken: string | null }[]
  >;
}
