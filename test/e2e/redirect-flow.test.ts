/**
 * The redirect flow in a real browser, on a phone and by keyboard alone: a person without an account comes from an app,
 * signs up, narrows the request, and is sent back; the app spends its grant and no more, until its key is revoked.
 */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { launchBrowser, NO_BROWSER, openPhone, overflowOf, screenshot, tabTo } from "../support/browser.js";

/** The whole of an app: a link, and a script that finds the key and generates with it. */
function appPage(gateway: string, own: string): string {
  const query = new URLSearchParams({
    redirect_url: `${own}/`,
    models: "sandbox/text-paid,sandbox/text,acme/image",
    budget: "0.5",
    expiry: "14",
    permissions: "profile,balance",
    state: "state of the app",
  });
  return `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><title>Sketchpad</title>
<h1>Sketchpad</h1><a id="connect" href="${gateway}/authorize?${query.toString().replaceAll("&", "&amp;")}">Connect</a>
<p id="told"></p><button id="generate">Generate</button><p id="answers"></p>
<script>
const told = new URLSearchParams(location.hash.slice(1));
history.replaceState(null, "", location.pathname);
document.querySelector("#told").textContent = [...told].map(([name, value]) => name === "api_key" ? "a key" : name + "=" + value).join(", ");
document.querySelector("#generate").onclick = async () => {
  const response = await fetch("${gateway}/v1/chat/completions", {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: "Bearer " + told.get("api_key") },
    body: JSON.stringify({ model: "sandbox/text-paid", max_tokens: 1000, messages: [{ role: "user", content: "[tokens in=1000 out=1000] Hello" }] }),
  });
  const answer = await response.json();
  document.querySelector("#answers").append(response.status + (answer.error ? " " + answer.error.code : "") + "; ");
};
</script></html>`;
}

describe.skipIf(NO_BROWSER !== null)("the redirect flow in a browser", () => {
  let app: TestApp;
  let site: Server;
  let siteUrl: string;
  let browser: Browser;
  let phone: BrowserContext;
  let page: Page;

  beforeAll(async () => {
    [app, browser] = await Promise.all([createTestApp(), launchBrowser()]);
    site = createServer((req, res) => {
      // The app's own way on from where it is returned to, to another of its origins.
      if (req.url?.startsWith("/callback")) res.writeHead(302, { Location: `${siteUrl.replace("127.0.0.1", "localhost")}/` }).end();
      else res.writeHead(200, { "Content-Type": "text/html" }).end(appPage(app.baseUrl, siteUrl));
    });
    await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve));
    siteUrl = `http://127.0.0.1:${(site.address() as AddressInfo).port}`;
    phone = await openPhone(browser);
    page = await phone.newPage();
  });
  afterAll(async () => {
    await browser?.close();
    await new Promise((resolve) => site?.close(resolve) ?? resolve(undefined));
    await app?.close();
  });

  /** What the app's page says of each generation, once there are `count`. */
  async function answers(count: number): Promise<string[]> {
    const read = async () => ((await page.locator("#answers").textContent()) ?? "").split("; ").filter(Boolean);
    await expect.poll(read, { timeout: 10_000 }).toHaveLength(count);
    return read();
  }

  it("leads from sign-up through a narrowed consent to a key that obeys it", async () => {
    await page.goto(siteUrl);
    await tabTo(page, "#connect");
    await page.keyboard.press("Enter");

    await page.waitForURL(/\/sign-in\?return_to=/);
    await tabTo(page, 'a[href*="sign-up"]');
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/sign-up\?return_to=/);
    await tabTo(page, "#email");
    await page.keyboard.type("pat@example.com");
    await tabTo(page, "#password");
    await page.keyboard.type("correct horse battery");
    await page.keyboard.press("Enter");

    await page.waitForURL(/\/authorize\?/);
    expect(await overflowOf(page)).toBe(0);
    await screenshot(page, "consent");
    await tabTo(page, 'input[name="models"][value="acme/image"]');
    await page.keyboard.press("Space");
    await tabTo(page, "#budget");
    await page.keyboard.press("Control+A");
    await page.keyboard.type("9");
    // The browser would hold it back by itself; what the gateway says of it is looked at.
    await page.evaluate(`document.querySelector('form[action="/authorize"]').noValidate = true`);
    await tabTo(page, 'input[name="permissions"][value="balance"]');
    await page.keyboard.press("Space");
    await tabTo(page, 'button[value="approve"]');
    await page.keyboard.press("Enter");
    const alert = page.getByRole("alert");
    await alert.waitFor();
    expect(await alert.textContent()).toBe("The budget can be at most the 0.5 credits that were asked for.");
    await screenshot(page, "consent-refused");

    // The choices are still there; Enter in a field decides nothing.
    expect(await page.locator('input[name="models"][value="acme/image"]').isChecked()).toBe(false);
    await tabTo(page, "#budget");
    await page.keyboard.press("Control+A");
    await page.keyboard.type("0.03");
    await page.keyboard.press("Enter");
    expect(new URL(page.url()).pathname).toBe("/authorize");
    await tabTo(page, 'button[value="approve"]');
    await page.keyboard.press("Enter");

    await page.waitForURL(`${siteUrl}/`);
    expect(await page.locator("#told").textContent()).toBe("a key, state=state of the app");
    const granted = await grantedKey();
    expect(granted).toMatchObject({
      name: new URL(siteUrl).host,
      restrictsModels: true,
      permissions: ["profile"],
      budgetNanocredits: 30_000_000n,
    });
    expect(granted.allowedModels).toEqual(["sandbox/text-paid", "sandbox/text"]);

    await page.click("#generate");
    expect(await answers(1)).toEqual(["200"]);
    await page.click("#generate");
    expect(await answers(2)).toEqual(["200", "402 KEY_BUDGET_EXHAUSTED"]);

    const cookies = (await phone.cookies(app.baseUrl)).map(({ name, value }) => `${name}=${value}`);
    const revoked = await fetch(`${app.baseUrl}/account/keys/${granted.id}`, {
      method: "DELETE",
      headers: { Cookie: cookies.join("; "), "Sec-Fetch-Site": "same-origin" },
    });
    expect(revoked.status).toBe(200);
    await page.click("#generate");
    expect((await answers(3))[2]).toBe("401 UNAUTHORIZED");
  });

  it("sends a person who denies back with that", async () => {
    await page.goto(siteUrl);
    await page.click("#connect");
    await page.waitForURL(/\/authorize\?/);

    await page.click('button[value="deny"]');

    await page.waitForURL(`${siteUrl}/`);
    expect(await page.locator("#told").textContent()).toBe("error=access_denied, state=state of the app");
  });

  it("lets the app send the person on to another address of its own", async () => {
    await page.goto(`${app.baseUrl}/authorize?redirect_url=${encodeURIComponent(`${siteUrl}/callback`)}&state=on`);

    await page.click('button[value="deny"]');

    await page.waitForURL(/^http:\/\/localhost:\d+\/$/, { timeout: 10_000 });
    expect(await page.locator("#told").textContent()).toBe("error=access_denied, state=on");
  });

  it("cannot be framed, and shows the errors of a request on a page of its own", async () => {
    await page.goto(`${app.baseUrl}/authorize?redirect_url=javascript:alert(1)`);
    expect(new URL(page.url()).origin).toBe(app.baseUrl);
    expect(await page.getByRole("alert").textContent()).toContain("redirect URL must be a whole https URL");
    expect(await overflowOf(page)).toBe(0);
    await screenshot(page, "refused");

    await page.goto(siteUrl);
    const address = await page.locator("#connect").getAttribute("href");
    const frame = await page.evaluate<string>(`new Promise((resolve) => {
      const frame = document.createElement("iframe");
      frame.onload = () => { try { resolve(frame.contentDocument === null ? "refused" : "blank"); } catch { resolve("refused"); } };
      frame.src = ${JSON.stringify(address)};
      document.body.append(frame);
    })`);
    expect(frame).toBe("refused");
    const framed = page.frames().find((each) => each !== page.mainFrame());
    expect((await framed?.content()) ?? "").not.toContain("spend your credits");
  });

  /** The newest key that was granted. */
  async function grantedKey() {
    const { prisma } = app.database;
    return prisma.apiKey.findFirstOrThrow({ where: { origin: "redirect_flow" }, orderBy: { createdAt: "desc" } });
  }
});
