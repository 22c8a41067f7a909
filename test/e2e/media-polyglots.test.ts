/** Files that are two things at once, on the media host: a real browser that opens them, or a page that uses them, runs none of it. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { launchBrowser, NO_BROWSER } from "../support/browser.js";

const PNG = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==", "base64");
const GIF = Buffer.from("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7", "base64");
/** A browser that runs it shows it: the title changes, and the address is requested. */
const SCRIPT = (host: string) => `document.title="ran";fetch("${host}/ran");`;
const PAGE = (host: string) => `<!doctype html><html><script>${SCRIPT(host)}</script><img src=x onerror='${SCRIPT(host)}'></html>`;

interface Polyglot {
  readonly name: string;
  readonly declared: string;
  readonly bytes: (host: string) => Buffer;
}

const CORPUS: readonly Polyglot[] = [
  { name: "a page called a.png", declared: "image/png", bytes: (host) => Buffer.from(PAGE(host)) },
  { name: "a page called a page", declared: "text/html", bytes: (host) => Buffer.from(PAGE(host)) },
  { name: "a page behind a picture", declared: "text/html", bytes: (host) => Buffer.concat([PNG, Buffer.from(PAGE(host))]) },
  { name: "a page behind white space", declared: "text/plain", bytes: (host) => Buffer.from(`\n\n   ${PAGE(host)}`) },
  {
    name: "a drawing with a script",
    declared: "image/svg+xml",
    bytes: (host) => Buffer.from(`<svg xmlns="http://www.w3.org/2000/svg" onload='${SCRIPT(host)}'><script>${SCRIPT(host)}</script></svg>`),
  },
  {
    name: "XHTML",
    declared: "application/xhtml+xml",
    bytes: (host) =>
      Buffer.from(`<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><body><script>${SCRIPT(host)}</script></body></html>`),
  },
  {
    name: "an archive behind a GIF",
    declared: "image/gif",
    bytes: () => Buffer.concat([GIF, Buffer.from(`PK\x05\x06${"\0".repeat(18)}`)]),
  },
  {
    name: "a script that begins like a GIF",
    declared: "text/javascript",
    bytes: (host) => Buffer.from(`GIF89a=1;${SCRIPT(host)}`),
  },
  { name: "a script", declared: "text/javascript", bytes: (host) => Buffer.from(SCRIPT(host)) },
  {
    name: "a PDF with a page in it",
    declared: "application/pdf",
    bytes: (host) => Buffer.from(`%PDF-1.4\n1 0 obj<</OpenAction<</S/JavaScript/JS(app.alert(1))>>>>endobj\n${PAGE(host)}\n%%EOF`),
  },
  {
    name: "a film with a page in it",
    declared: "video/mp4",
    bytes: (host) => Buffer.concat([Buffer.from("\0\0\0\x18ftypisom\0\0\x02\0isomiso2", "latin1"), Buffer.from(PAGE(host))]),
  },
];

describe.skipIf(NO_BROWSER !== null)("in a browser", () => {
  let app: TestApp;
  let browser: Browser;
  let other: Server;
  let host: string;
  let asked: string[];
  let markup = "";

  beforeAll(async () => {
    app = await createTestApp();
    browser = await launchBrowser();
    // Hears of every script that ran, and has the pages that use the files.
    other = createServer((req, res) => {
      asked.push(req.url ?? "");
      res.writeHead(200, { "Content-Type": "text/html", "Access-Control-Allow-Origin": "*" }).end(markup);
    }).listen(0, "127.0.0.1");
    await once(other, "listening");
    asked = [];
    host = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
  });
  afterAll(async () => {
    await browser.close();
    other.closeAllConnections();
    other.close();
    await app.close();
  });

  async function uploaded({ declared, bytes }: Polyglot): Promise<string> {
    const headers = { Authorization: `Bearer ${app.key}`, "Content-Type": declared };
    const answer = await fetch(`${app.baseUrl}/media/upload`, { method: "POST", headers, body: new Uint8Array(bytes(host)) });
    return `${app.baseUrl}/media/${((await answer.json()) as { id: string }).id}`;
  }

  /** A file that is saved instead of shown ends the navigation. */
  async function visit(page: Page, url: string): Promise<void> {
    await page.goto(url, { waitUntil: "load" }).catch((error: unknown) => {
      if (!/download|ERR_ABORTED/i.test(String(error))) throw error;
    });
  }

  it("has a witness that tells when a script runs", async () => {
    markup = PAGE(host);
    const page = await browser.newPage();

    await visit(page, host);

    await expect.poll(() => asked, { timeout: 10_000 }).toContain("/ran");
    expect(await page.title()).toBe("ran");
    await page.close();
    asked = [];
  });

  it.each(CORPUS)("$name is opened, framed and used, and runs nothing", async (polyglot) => {
    const url = await uploaded(polyglot);
    const page = await browser.newPage();

    await visit(page, url);
    const title = await page.title();
    markup = `<script src="${url}"></script><iframe src="${url}"></iframe><object data="${url}"></object><embed src="${url}"><img src="${url}">`;
    await page.goto(`${host}/uses`, { waitUntil: "load" });
    // A script would have run by the time that a further request is answered.
    await page.evaluate(`fetch("${host}/done")`);

    expect(title).not.toBe("ran");
    expect(await page.title()).not.toBe("ran");
    expect(asked.filter((path) => path === "/ran")).toEqual([]);
    expect(asked).toContain("/done");
    await page.close();
    asked = [];
  });

  it.each(CORPUS)("$name has the headers that see to it", async (polyglot) => {
    const { headers } = await fetch(await uploaded(polyglot));

    expect(headers.get("content-type")).not.toMatch(/html|xml|svg|javascript/);
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("content-security-policy")).toBe("default-src 'none'; sandbox; frame-ancestors 'none'");
    expect(headers.get("cross-origin-resource-policy")).toBe("cross-origin");
    const isShown = /^(?:image|video|audio)\/|^text\/plain/.test(headers.get("content-type") ?? "");
    expect(headers.get("content-disposition")?.startsWith("attachment") ?? false).toBe(!isShown);
  });
});
