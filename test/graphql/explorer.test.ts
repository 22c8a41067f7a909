/** GraphiQL as browsers get it: the files, and the page in Debian's Chromium, on a desktop and on a telephone. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildSchema, type DocumentNode, parse, validate } from "graphql";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { launchBrowser, NO_BROWSER, overflowOf, screenshot } from "../support/browser.js";
import { chatChunk, chatChunks, wireUsage } from "../support/openai-bodies.js";
import { signUp } from "../support/sign-in.js";
import { sse } from "../support/upstream-replies.js";

const EXAMPLES = fileURLToPath(new URL("../../src/graphql/explorer/examples/", import.meta.url));
const SDL = fileURLToPath(new URL("../../schema/schema.graphql", import.meta.url));
/** All that a first visit loads, as it is sent, headers and the whole schema included. It was 9.1 MB. */
const FIRST_VISIT_BYTES_MAX = 460_000;
const HTML = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };

let app: TestApp;

beforeAll(async () => {
  app = await createTestApp();
});
afterAll(() => app.close());

const url = (path = "") => `${app.baseUrl}/graphql${path}`;

describe("the examples", () => {
  it.each(readdirSync(EXAMPLES))("%s is valid", (name) => {
    const document: DocumentNode = parse(readFileSync(join(EXAMPLES, name), "utf8"));

    expect(validate(buildSchema(readFileSync(SDL, "utf8")), document)).toEqual([]);
  });
});

describe("the served explorer", () => {
  const assetsOf = (page: string) => [...page.matchAll(/\/graphql(\/assets\/[\w.-]+)/g)].map(([, path = ""]) => path);

  it("is a page that runs its one script, cannot be framed, and is revalidated each time", async () => {
    const response = await fetch(url(), { headers: HTML });
    const page = await response.text();

    expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
    const [, integrity = ""] = /<script type="module" src="[^"]+" integrity="([^"]+)"><\/script>/.exec(page) ?? [];
    expect(response.headers.get("content-security-policy")?.split("; ")).toEqual([
      "default-src 'none'",
      `script-src '${integrity}'`,
      "style-src 'self'",
      "img-src 'self' data:",
      "connect-src 'self'",
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ]);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "x-frame-options": "DENY",
      "cache-control": "private, no-cache",
      "referrer-policy": "no-referrer",
      vary: "Accept",
    });
    expect(response.headers.get("access-control-allow-origin")).toBeNull();
    expect(page).not.toMatch(/(?:src|href)=["']?(?:https?:|\/\/)/);
    const etag = response.headers.get("etag") ?? "";
    expect((await fetch(url("/"), { headers: { ...HTML, "if-none-match": etag } })).status).toBe(304);
  });

  it("is files named by their content, compressed, that browsers keep", async () => {
    const paths = new Set(assetsOf(await (await fetch(url(), { headers: HTML })).text()));
    expect([...paths].map((path) => path.replace(/[0-9a-f]{16}/, "*")).sort()).toEqual([
      "/assets/explorer-*.css",
      "/assets/explorer-*.js",
      "/assets/schema-*.json",
    ]);
    for (const path of paths) {
      const texts = new Set<string>();
      for (const coding of ["br", "gzip", "identity"]) {
        const response = await fetch(url(path), { headers: { "accept-encoding": coding } });
        expect(response.headers.get("content-encoding")).toBe(coding === "identity" ? null : coding);
        expect(response.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
        expect(response.headers.get("vary")).toBe("Accept-Encoding");
        texts.add(await response.text());
        const etag = response.headers.get("etag") ?? "";
        const again = await fetch(url(path), { headers: { "accept-encoding": coding, "if-none-match": etag } });
        expect([again.status, again.headers.get("etag")]).toEqual([304, etag]);
      }
      expect(texts.size).toBe(1);
      expect((await fetch(url(path), { method: "HEAD" })).status).toBe(200);
    }
  });

  it("is refused for a file of another build", async () => {
    expect((await fetch(url("/assets/explorer-0000000000000000.js"))).status).toBe(404);
    expect((await fetch(url("/assets/..%2fmanifest.json"))).status).toBe(404);
  });

  it("leaves the schema out where introspection is for keys alone", async () => {
    const closed = await createTestApp({ config: { graphql: { introspection: false, graphiql: true } } });
    expect(await (await fetch(`${closed.baseUrl}/graphql`, { headers: HTML })).text()).not.toContain("schema-");
    await closed.close();
  });
});

describe.skipIf(NO_BROWSER)("in a browser", () => {
  let browser: Browser;
  let context: BrowserContext;
  /** At a desk: the tests go on where the one before them was. */
  let page: Page;
  const complaints: string[] = [];
  const answers: Promise<number>[] = [];
  beforeAll(async () => {
    browser = await launchBrowser();
    context = await browser.newContext();
    page = await context.newPage();
    page.on("requestfinished", (request) => {
      answers.push(request.sizes().then(({ responseBodySize, responseHeadersSize }) => responseBodySize + responseHeadersSize));
    });
    await load(page);
  });
  afterAll(() => browser?.close());
  afterEach(() => expect(complaints.splice(0)).toEqual([]));

  async function load(target: Page): Promise<void> {
    target.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
    });
    target.on("pageerror", (error) => complaints.push(String(error)));
    await target.goto(url());
    await target.locator(".graphiql-query-editor .CodeMirror").waitFor();
  }

  const keyField = (target: Page) => target.getByLabel("API key");
  const run = (target: Page) => target.locator(".graphiql-execute-button");
  const answerOf = (target: Page) => target.evaluate<string>("document.querySelector('.result-window .CodeMirror').CodeMirror.getValue()");
  const example = (target: Page, title: string) => target.getByLabel("Examples").selectOption({ label: title });
  const documentation = (target: Page) => target.locator(".graphiql-sidebar button[aria-label*='Documentation']");

  it("loads little, complains of nothing under its policy, and runs an operation with the key that is typed in", async () => {
    await documentation(page).click();
    await page.getByText("Root Types").waitFor();
    const sizes = await Promise.all(answers);
    const bytes = sizes.reduce((sum, size) => sum + size, 0);
    console.info(`A first visit to GraphiQL loads ${bytes} bytes in ${sizes.length} answers.`);
    expect(sizes).toHaveLength(4);
    expect(bytes).toBeLessThan(FIRST_VISIT_BYTES_MAX);

    await keyField(page).fill(app.key);
    await run(page).click();

    await expect.poll(() => answerOf(page)).toContain('"available"');
    await screenshot(page, "explorer");
  });

  it("streams a subscription over the WebSocket, and stops it", async () => {
    app.upstream.replyNext(sse(chatChunks(["Wind ", "turns"], { usage: wireUsage(10, 2) })));
    await example(page, "A streamed chat");

    await run(page).click();

    await expect.poll(() => answerOf(page)).toContain('"cost": "0.000014"');
    expect(await answerOf(page)).toMatch(/"turns".*"Wind "/s);

    app.upstream.replyNext(sse([chatChunk({ content: "One " })], { end: "hang" }));
    const seen = app.upstream.requests.length;
    await run(page).click();
    await expect.poll(() => answerOf(page)).toContain('"One "');
    await page.getByRole("button", { name: "Stop query" }).click();
    expect(await app.upstream.requests[seen]?.closedByClient).toBeGreaterThan(0);
  });

  it("keeps the key for its tab alone, and out of the address", async () => {
    await page.reload();

    expect(await keyField(page).inputValue()).toBe(app.key);
    expect(page.url()).toBe(url());
    expect(await page.evaluate("localStorage.length")).toBe(0);
    expect(await page.evaluate("document.cookie")).toBe("");
    const other = await context.newPage();
    await load(other);
    expect(await keyField(other).inputValue()).toBe("");
    await other.close();
  });

  it("opens dialogs under its policy, and an example that was closed", async () => {
    await page.getByLabel("Open settings dialog").click();
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    const tabs = page.locator(".graphiql-tab");
    await tabs.last().click();
    await tabs.last().getByLabel("Close Tab").click();
    await expect.poll(() => tabs.count()).toBe(2);

    await example(page, "Models with prices");

    // GraphiQL itself may call a tab like its neighbour once that was closed: only the name of the new tab is compared.
    await expect.poll(async () => (await tabs.allInnerTexts()).slice(2)).toEqual(["ModelsWithPrices"]);
  });

  it("says why a subscription was refused", async () => {
    await keyField(page).fill("sk_wrong");
    await example(page, "A streamed chat");

    await run(page).click();

    await expect.poll(() => answerOf(page)).toMatch(/key/i);
  });

  it("sends requests with the session when there is no key, subscriptions too", async () => {
    const { cookie } = await signUp(app, { credits: 5 });
    const [name = "", value = ""] = cookie.split("=");
    await context.addCookies([{ name, value, url: app.baseUrl }]);
    await keyField(page).fill("");

    await example(page, "Who am I, and what can I spend?");
    await run(page).click();
    await expect.poll(() => answerOf(page)).toContain('"pack": "5"');

    app.upstream.replyNext(sse(chatChunks(["Signed in"], { usage: wireUsage(10, 2) })));
    await example(page, "A streamed chat");
    await run(page).click();
    await expect.poll(() => answerOf(page)).toContain('"Signed in"');
  });

  it("is used on a telephone", async () => {
    const window = { width: 390, height: 844 };
    const phone = await (await browser.newContext({ viewport: window, hasTouch: true, isMobile: true })).newPage();
    await load(phone);
    await keyField(phone).fill(app.key);
    await example(phone, "Models with prices");
    await run(phone).tap();
    await expect.poll(() => answerOf(phone)).toContain('"acme/chat"');
    await screenshot(phone, "explorer-390");

    for (const [part, widthMin, heightMin] of [
      [".graphiql-query-editor .CodeMirror", 280, 200],
      [".result-window .CodeMirror", 280, 200],
      [".graphiql-execute-button", 40, 40],
    ] as const) {
      const { x, y, width, height } = (await phone.locator(part).boundingBox()) ?? { x: -1, y: -1, width: 0, height: 0 };
      expect(Math.min(x, y)).toBeGreaterThanOrEqual(0);
      expect(x + width).toBeLessThanOrEqual(window.width);
      expect(y + height).toBeLessThanOrEqual(window.height);
      expect(width).toBeGreaterThanOrEqual(widthMin);
      expect(height).toBeGreaterThanOrEqual(heightMin);
    }
    expect(await overflowOf(phone)).toBe(0);
    await phone.locator(".graphiql-query-editor .CodeMirror").tap();
    await phone.keyboard.press("Control+A");
    await phone.keyboard.type("{ __typename ");
    await run(phone).tap();
    await expect.poll(() => answerOf(phone)).toContain('"Query"');
    await documentation(phone).tap();
    await phone.getByText("Root Types").waitFor();
    await screenshot(phone, "explorer-390-documentation");
    expect(await overflowOf(phone)).toBe(0);
    await phone.context().close();
  });

  it("cannot be framed", async () => {
    const framing = await context.newPage();
    const refused = framing.waitForEvent("console", (message) => message.text().includes("frame-ancestors"));
    await framing.setContent(`<iframe src="${url()}"></iframe>`);

    expect((await refused).type()).toBe("error");
    await framing.close();
  });
});
