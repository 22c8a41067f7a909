/** A real browser that shows a stranger's page, on the machine on which a gateway with its defaults listens. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { textOf } from "../graphql/client.js";
import { SignUpDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { launchBrowser, NO_BROWSER } from "../support/browser.js";

const STRANGER = "<!doctype html><title>A stranger's page</title>";

interface Fetched {
  readonly status: number;
  readonly text: string;
}

describe.skipIf(NO_BROWSER !== null)("a page of another origin", () => {
  let app: TestApp;
  let browser: Browser;
  let page: Page;
  let site: Server;

  beforeAll(async () => {
    app = await createTestApp();
    site = createServer((_req, res) => res.writeHead(200, { "content-type": "text/html" }).end(STRANGER)).listen(0, "127.0.0.1");
    await once(site, "listening");
    // Browsers without Local Network Access let any page ask this machine; others once the person has allowed it.
    browser = await launchBrowser(["--host-resolver-rules=MAP evil.test 127.0.0.1", "--disable-features=LocalNetworkAccessChecks"]);
    page = await browser.newPage();
  });
  afterAll(async () => {
    await browser?.close();
    await new Promise((resolve) => site?.close(resolve) ?? resolve(undefined));
    await app?.close();
  });

  /** What a script of the page that is shown gets; a string is why it gets nothing. */
  function fetchFromPage(url: string, init: object = {}): Promise<Fetched | string> {
    const call = `fetch(${JSON.stringify(url)}, ${JSON.stringify(init)})`;
    return page.evaluate<Fetched | string>(`${call}.then(async (r) => ({ status: r.status, text: await r.text() }), String)`);
  }

  function signUp(email: string): object {
    const variables = { input: { email, password: "correct horse battery" } };
    const body = JSON.stringify({ query: textOf(SignUpDocument), variables });
    return { method: "POST", headers: { "content-type": "application/json" }, body };
  }

  const accounts = (email: string) => app.database.prisma.account.count({ where: { email } });

  it("gets nothing when its name is made to lead to the gateway", async () => {
    const origin = app.baseUrl.replace("127.0.0.1", "evil.test");
    // As the stranger's own server answered, before the name led here.
    await page.route(`${origin}/`, (route) => route.fulfill({ contentType: "text/html", body: STRANGER }), { times: 1 });
    await page.goto(`${origin}/`);
    expect(await page.evaluate<string>("document.title + ' ' + origin")).toBe(`A stranger's page ${origin}`);

    for (const [path, init] of [
      ["/graphql", signUp("rebound@example.com")],
      ["/metrics", {}],
      ["/v1/models", {}],
      ["/v1/chat/completions", { method: "POST", headers: { authorization: `Bearer ${app.key}` }, body: "{}" }],
    ] as const) {
      const answer = (await fetchFromPage(origin + path, init)) as Fetched;
      expect([path, answer.status, answer.text.includes("MISDIRECTED_REQUEST")]).toEqual([path, 421, true]);
    }
    expect(await accounts("rebound@example.com")).toBe(0);
    expect(await page.context().cookies()).toEqual([]);
  });

  it("cannot create accounts, and may still send requests with its own key", async () => {
    await page.goto(`http://evil.test:${(site.address() as AddressInfo).port}/`);

    const refused = (await fetchFromPage(`${app.baseUrl}/graphql`, signUp("deputy@example.com"))) as Fetched;
    const asked = (await fetchFromPage(`${app.baseUrl}/v1/models`, { headers: { authorization: `Bearer ${app.key}` } })) as Fetched;

    expect(JSON.parse(refused.text)).toMatchObject({ errors: [{ extensions: { code: "FORBIDDEN" } }] });
    expect(await accounts("deputy@example.com")).toBe(0);
    expect([asked.status, asked.text.includes("acme/chat")]).toEqual([200, true]);
  });

  it("does not affect the gateway's own pages, on which people sign up", async () => {
    await page.goto(`${app.baseUrl.replace("127.0.0.1", "localhost")}/graphql`);

    const answer = (await fetchFromPage("/graphql", signUp("own@example.com"))) as Fetched;

    expect(JSON.parse(answer.text)).toMatchObject({ data: { signUp: { session: {} } } });
    expect(await accounts("own@example.com")).toBe(1);
  });
});
