/** Usage page: filters, virtual table, live rows, CSV export and receipts. */
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createApiKeyInput } from "../../src/services/api-keys/api-keys-input.js";
import { createUsage } from "../rest/seed.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { launchBrowser, NO_BROWSER, screenshot } from "../support/browser.js";
import { type DashboardVisit, visitDashboard } from "../support/dashboard.js";
import { nobody, type Person, signedIn, signUp } from "../support/sign-in.js";

const ROWS = Number(process.env.USAGE_ROWS ?? 3_000);
const FIRST_LOAD_BYTES_MAX = 200_000;
/** Key name that starts like a formula, with markup and right-to-left text. */
const KEY_NAME = '=1+1,"<b>مفتاح</b>';

describe.skipIf(NO_BROWSER)("usage page", () => {
  let browser: Browser;
  let app: TestApp;
  let person: Person;
  let key: string;
  let keyId: string;
  let special: string;

  beforeAll(async () => {
    [browser, app] = await Promise.all([launchBrowser(), createTestApp()]);
    person = await signUp(app, { credits: 10, name: "Ada" });
    const ctx = {
      ...nobody(),
      caller: { kind: "session", accountId: person.accountId, sessionId: person.sessionId, isOperator: false } as const,
    };
    const created = await app.services.apiKeys.create(ctx, createApiKeyInput.parse({ name: KEY_NAME }));
    key = String(created.key);
    keyId = created.apiKey.id;
    const other = await app.services.apiKeys.create(ctx, createApiKeyInput.parse({ name: "other" }));
    const newest = new Date(Date.now() - 60_000);
    await createUsage(app, keyId, ROWS, newest, { costNanocredits: 1_500_000n, inputTextTokens: 7, outputTextTokens: 5 });
    [special = ""] = await createUsage(app, other.apiKey.id, 1, new Date(newest.getTime() - 500), {
      ...{ modality: "image", model: "acme/pictures", modelUsed: "acme/spare", status: "cancelled", costNanocredits: 40_000_000n },
      ...{ outputImageTokens: 1_056, responseTimeMs: 4_321, timeToFirstTokenMs: 1_234, parentRequestId: randomUUID() },
      ...{ heldNanocredits: 50_000_000n, upstreamUs: 4_320_588n, gatewayUs: 412n },
    });
  });
  afterAll(async () => {
    await browser.close();
    await app.close();
  });

  const rowsOf = (visit: DashboardVisit) => visit.page.locator("tr[data-index]");
  const chat = async () => {
    const answer = await fetch(`${app.baseUrl}/v1/chat/completions`, {
      method: "POST",
      headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
      body: JSON.stringify({ model: "acme/chat", messages: [{ role: "user", content: "Hello" }] }),
    });
    expect(answer.status).toBe(200);
  };

  it("renders few of many rows, and moves through all of them by keyboard", async () => {
    const visit = await visitDashboard(browser, app, { person });
    await visit.open("usage");
    await rowsOf(visit).first().waitFor();
    await screenshot(visit.page, "usage-rows");
    const { page } = visit;
    await rowsOf(visit).first().getByRole("link").focus();
    await page.keyboard.press("ArrowDown");
    await expect.poll(() => page.evaluate("document.activeElement.closest('tr')?.dataset.index")).toBe("1");
    const last = String(ROWS);
    await expect
      .poll(
        async () => {
          await page.keyboard.press("End");
          return page.evaluate("document.activeElement.closest('tr')?.dataset.index");
        },
        { interval: 20, timeout: 60_000 },
      )
      .toBe(last);
    expect(await rowsOf(visit).count()).toBeLessThan(60);
    await page.keyboard.press("Home");
    await expect.poll(() => page.evaluate("document.activeElement.closest('tr')?.dataset.index")).toBe("0");
    expect(visit.browserErrors).toEqual([]);
    await visit.context.close();
  });

  it("stores filters in the address, and restores the scroll position on return", async () => {
    const visit = await visitDashboard(browser, app, { person });
    const { page } = visit;
    await visit.open("usage");
    await page.getByRole("combobox", { name: "Type" }).click();
    await page.getByRole("option", { name: "Images" }).click();
    await expect.poll(() => rowsOf(visit).count()).toBe(1);
    expect(new URL(page.url()).searchParams.get("modality")).toBe("IMAGE");
    await page.goBack();
    await expect.poll(() => rowsOf(visit).count()).toBeGreaterThan(1);

    const region = page.getByRole("region", { name: "Requests" });
    await region.evaluate((element) => {
      element.scrollTop = 2_000;
    });
    // Other rows are visible until the table has rendered the new position.
    const shown = page.locator('tr[data-index="50"]');
    await shown.getByRole("link").click();
    await page.getByRole("heading", { name: /^Request to/ }).waitFor();
    await page.goBack();
    await shown.waitFor();
    await expect.poll(() => region.evaluate((element) => element.scrollTop)).toBe(2_000);

    await visit.open(`usage?key=${encodeURIComponent(keyId)}&status=CANCELLED`);
    await page.getByText("No requests match your filters").waitFor();
    await visit.open("usage?q=OTHER");
    await expect.poll(() => rowsOf(visit).count()).toBe(1);
    await screenshot(page, "usage-search");
    await visit.context.close();
  });

  it("sorts by time, tokens, duration and credits, and stores the order in the address", async () => {
    const visit = await visitDashboard(browser, app, { person });
    const { page } = visit;
    await visit.open("usage");
    await rowsOf(visit).first().waitFor();
    const first = () => rowsOf(visit).first().innerText();
    for (const [column, sort] of [
      ["Credits", "-credits"],
      ["Duration", "-duration"],
      ["Tokens", "-tokens"],
    ] as const) {
      await page.getByRole("button", { name: column }).click();
      await expect.poll(first).toContain("acme/spare");
      expect(new URL(page.url()).searchParams.get("sort")).toBe(sort);
      const heading = page.getByRole("columnheader", { name: column });
      expect(await heading.getAttribute("aria-sort")).toBe("descending");
      await page.getByRole("button", { name: column }).click();
      await expect.poll(first).not.toContain("acme/spare");
      expect(await heading.getAttribute("aria-sort")).toBe("ascending");
    }
    expect(await page.locator("td", { hasText: "4,321 ms" }).count()).toBe(0);
    await page.reload();
    await rowsOf(visit).first().waitFor();
    expect(new URL(page.url()).searchParams.get("sort")).toBe("tokens");
    await visit.open("usage?sort=-duration");
    const duration = page.locator("td", { hasText: "4,321 ms" });
    await duration.waitFor();
    // Four digits are not cut.
    expect(await duration.evaluate((cell: { scrollWidth: number; clientWidth: number }) => cell.scrollWidth - cell.clientWidth)).toBe(0);
    const boxes = await Promise.all(["Search", "Status"].map((label) => page.getByLabel(label, { exact: true }).first().boundingBox()));
    expect(boxes[0]?.y).toBe(boxes[1]?.y);
    expect(visit.browserErrors).toEqual([]);
    await visit.context.close();
  });

  it("shows credits and folds its filters on a phone, without sideways scrolling", async () => {
    const visit = await visitDashboard(browser, app, { person, look: { scheme: "light", width: 390 } });
    const { page } = visit;
    await visit.open("usage?sort=-credits");
    await rowsOf(visit).first().getByText("0.04").waitFor();
    const region = page.getByRole("region", { name: "Requests" });
    expect(
      await region.evaluate((element: { scrollWidth: number; clientWidth: number }) => element.scrollWidth - element.clientWidth),
    ).toBe(0);
    const status = page.getByRole("combobox", { name: "Status" });
    expect(await status.isVisible()).toBe(false);
    await page.getByRole("button", { name: "Filters" }).click();
    await status.click();
    await page.getByRole("option", { name: "Cancelled" }).click();
    await page.getByRole("button", { name: "Filters (1)" }).waitFor();
    await expect.poll(() => rowsOf(visit).count()).toBe(1);
    await screenshot(page, "usage-phone");
    await visit.context.close();
  });

  it("adds new charges at the top, unless a filter excludes them or the user has scrolled down", async () => {
    const visit = await visitDashboard(browser, app, { person });
    const { page } = visit;
    await visit.open("usage?model=acme%2Fchat");
    await rowsOf(visit).first().waitFor();
    const newest = () => rowsOf(visit).first().locator("time").getAttribute("datetime");
    const before = await newest();
    await chat();
    await expect.poll(newest).not.toBe(before);
    const region = page.getByRole("region", { name: "Requests" });
    await region.evaluate((element) => {
      element.scrollTop = 1_000;
    });
    await chat();
    await page.getByRole("button", { name: "Show 1 new request" }).click();
    await expect.poll(() => region.evaluate((element) => element.scrollTop)).toBe(0);

    await visit.open("usage?model=acme%2Fpictures");
    await expect.poll(() => rowsOf(visit).count()).toBe(1);
    const sums = page.waitForResponse((response) => response.url().endsWith("/graphql"));
    await chat();
    await sums;
    expect(await rowsOf(visit).count()).toBe(1);
    await visit.context.close();
  });

  it("exports filtered rows as CSV, protected from formulas", async () => {
    const visit = await visitDashboard(browser, app, { person });
    const { page } = visit;
    await visit.open(`usage?key=${encodeURIComponent(keyId)}`);
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download CSV" }).click()]);
    const text = await readFile(await download.path(), "utf8");
    const [head = "", first = "", ...others] = text.trimEnd().split("\r\n");
    const rest = await fetch(`${app.baseUrl}/account/usage?format=csv&limit=${ROWS + 10}&api_key_ids=${keyId}`, {
      headers: signedIn(person),
    });
    // Identical to the REST export except for the additional column with the model used.
    const lines = (await rest.text()).trimEnd().split("\r\n");
    expect([head, first, ...others].map((line) => line.slice(0, line.lastIndexOf(",")))).toEqual(lines);
    expect(head).toMatch(/^id,timestamp,type,model,api_key_id,api_key,/);
    expect(first).toContain(`"'=1+1,""<b>مفتاح</b>"`);
    expect(others.length + 1).toBeGreaterThanOrEqual(ROWS);
    expect(text).not.toContain(special);
    await visit.context.close();
  });

  it("opens the receipt of a request by its address", async () => {
    const visit = await visitDashboard(browser, app, { person });
    const { page } = visit;
    await visit.open("usage?modality=IMAGE");
    await rowsOf(visit).getByRole("link").click();
    await page.getByRole("heading", { level: 1, name: "Request to acme/pictures" }).waitFor();
    await page.getByText("0.04 credits").waitFor();
    await page.getByText("Hold before the request: 0.05 credits").waitFor();
    await page.getByRole("row", { name: "Upstream 4,321 ms" }).waitFor();
    await page.getByRole("row", { name: "Gateway 0.41 ms" }).waitFor();
    await page.getByText("1,056").waitFor();
    await page.getByText("Fallback, because").waitFor();
    await page.getByText(special).waitFor();
    await screenshot(page, "receipt");
    await visit.open(new URL(page.url()).pathname.replace("/dashboard/", ""));
    await page.getByText(special).waitFor();
    await visit.open("usage/VXNhZ2VSZWNvcmQ6MDAwMDAwMDAtMDAwMC00MDAwLTgwMDAtMDAwMDAwMDAwMDAw");
    await page.getByRole("heading", { level: 1, name: "Request not found" }).waitFor();
    expect(visit.browserErrors).toEqual([]);
    await visit.context.close();
  });

  it("loads less than 200 kB of scripts for the overview and its chart", async () => {
    const visit = await visitDashboard(browser, app, { person });
    // What the page loads ahead some seconds later is not counted, also where those seconds pass before the chart is there.
    await visit.page.addInitScript(() => {
      const { setTimeout } = window;
      window.setTimeout = ((work: () => void, ms = 0) => (ms < 5_000 ? setTimeout(work, ms) : 0)) as typeof window.setTimeout;
    });
    const scripts = new Set<string>();
    visit.page.on("response", (response) => {
      if (response.url().endsWith(".js")) scripts.add(response.url());
    });
    await visit.open();
    await visit.page.getByRole("figure", { name: "Credits per day by model" }).waitFor();
    await visit.page.waitForLoadState("networkidle");
    const sizes = await Promise.all(
      [...scripts].map(async (url) => Number((await fetch(url, { headers: { "Accept-Encoding": "gzip" } })).headers.get("content-length"))),
    );
    expect(sizes.every((size) => size > 0)).toBe(true);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(FIRST_LOAD_BYTES_MAX);
    await visit.context.close();
  });
});
