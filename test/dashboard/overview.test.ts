/** Overview page: chart, live requests and balance. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createUsage } from "../rest/seed.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { launchBrowser, NO_BROWSER, screenshot } from "../support/browser.js";
import { type DashboardVisit, LOOKS, seriousFindings, visitDashboard } from "../support/dashboard.js";
import { giveCredits, type Person, signedIn, signUp } from "../support/sign-in.js";

const DAY_MS = 86_400_000;
/** Usage on many days, with more models than the chart shows by name. */
const SPENT = Array.from({ length: 150 }, (_, index) => ({
  daysAgo: (index * 7) % 40,
  model: `acme/model-${index % 11}`,
  credits: BigInt((index % 11) + 1) * 3_000_000n,
}));

describe.skipIf(NO_BROWSER)("overview of a new account", () => {
  let browser: Browser;
  let app: TestApp;

  beforeAll(async () => {
    const topUp = { text: "Ask in #ai-platform for credits.", url: "https://pay.example/credits" };
    [browser, app] = await Promise.all([launchBrowser(), createTestApp({ config: { topUp } })]);
  });
  afterAll(async () => {
    await browser?.close();
    await app?.close();
  });

  it.each(LOOKS)("leads from a key to the first request, and is gone afterwards: $scheme, $width px", async (look) => {
    const { page, context, browserErrors, open } = await visitDashboard(browser, app, { look });
    const step = (title: string) => page.getByRole("listitem").filter({ has: page.getByRole("heading", { name: title }) });
    await open();
    await page.getByRole("heading", { name: "Get started" }).waitFor();
    await screenshot(page, `first-run-1-${look.scheme}-${look.width}`);
    expect(await seriousFindings(page)).toEqual([]);
    expect(await page.getByRole("figure", { name: "Credits per day by model" }).count()).toBe(0);

    await page.getByRole("button", { name: "Create key" }).click();
    await step("Create an API key (done)").waitFor();
    const key = (await page.locator("[data-key-value] .mono").textContent()) ?? "";
    const code = (await step("Send a request").locator("pre, code").first().textContent()) ?? "";
    expect(code).toContain(`Bearer ${key}`);
    const { model } = JSON.parse(/-d '(.*)'/s.exec(code)?.[1] ?? "{}") as { readonly model: string };
    const answer = await fetch(`${app.baseUrl}/v1/chat/completions`, {
      method: "POST",
      headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
      body: /-d '(.*)'/s.exec(code)?.[1] ?? "",
    });
    expect(answer.status).toBe(200);
    await step("Check the result (done)").getByText(`${model} answered`).waitFor();
    await page.getByRole("button", { name: "Run it here" }).click();
    await page.getByText(/^Answered for [\d.]+ credits$/).waitFor();
    await screenshot(page, `first-run-2-${look.scheme}-${look.width}`);
    expect(await seriousFindings(page)).toEqual([]);

    await open();
    await page.getByRole("figure", { name: "Credits per day by model" }).waitFor();
    expect(await page.getByRole("heading", { name: "Get started" }).count()).toBe(0);
    expect(browserErrors).toEqual([]);
    await context.close();
  });

  it.each(LOOKS)("says how to get credits without any, and below the threshold: $scheme, $width px", async (look) => {
    const person = await signUp(app);
    const { prisma } = app.database;
    await prisma.account.update({ where: { id: person.accountId }, data: { tier: null, lowBalanceNanocredits: 5_000_000_000n } });
    const { page, context, open } = await visitDashboard(browser, app, { look, person });
    await open();
    const notice = page.getByRole("status").filter({ hasText: "credits left" });
    const link = notice.getByRole("link", { name: "Get credits" });
    await notice.getByText("You have no credits left").waitFor();
    expect(await link.getAttribute("href")).toBe("https://pay.example/credits");
    await notice.getByText("Ask in #ai-platform for credits.").waitFor();
    await screenshot(page, `no-credits-${look.scheme}-${look.width}`);
    expect(await seriousFindings(page)).toEqual([]);

    await giveCredits(app, person.accountId, 2);
    await open();
    await page.getByText("Your balance is low").waitFor();
    await page.getByText(/^2\.00 credits left, below your alert threshold of 5\.00/).waitFor();
    await page.getByRole("link", { name: "View credits" }).click();
    await page.getByRole("heading", { level: 1, name: "Credits" }).waitFor();
    await page.getByRole("row", { name: /Credits added purchased \+2\.00 2\.00$/ }).waitFor();
    await screenshot(page, `credits-${look.scheme}-${look.width}`);
    expect(await seriousFindings(page)).toEqual([]);
    await context.close();
  });
});

describe.skipIf(NO_BROWSER)("overview page", () => {
  let browser: Browser;
  let app: TestApp;
  let person: Person;
  let key: string;
  let visit: DashboardVisit;

  beforeAll(async () => {
    [browser, app] = await Promise.all([launchBrowser(), createTestApp()]);
    person = await signUp(app, { credits: 10 });
    const created = await fetch(`${app.baseUrl}/account/keys`, {
      method: "POST",
      headers: { ...signedIn(person), "Content-Type": "application/json" },
      body: JSON.stringify({ name: "Weather app <b>", creditBudget: 5 }),
    });
    const { id, key: value } = (await created.json()) as { readonly id: string; readonly key: string };
    key = value;
    for (const { daysAgo, model, credits } of SPENT) {
      const newest = new Date(Date.now() - daysAgo * DAY_MS);
      await createUsage(app, id, 1, newest, { model, modelUsed: model, costNanocredits: credits, responseTimeMs: 400 + daysAgo });
    }
    visit = await visitDashboard(browser, app, { person });
  });
  afterAll(async () => {
    await browser?.close();
    await app?.close();
  });

  const spend = () =>
    fetch(`${app.baseUrl}/v1/chat/completions`, {
      method: "POST",
      headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
      body: JSON.stringify({ model: "acme/chat", messages: [{ role: "user", content: "Hello" }] }),
    });

  it.each(LOOKS)("shows days, models and requests, and passes axe: $scheme, $width px", async (look) => {
    const { page, context, open } = await visitDashboard(browser, app, { look, person });
    await open();
    await page.getByRole("figure", { name: "Credits per day by model" }).waitFor();
    await page.getByText("Other models").waitFor();
    await page.waitForLoadState("networkidle");
    await screenshot(page, `overview-full-${look.scheme}-${look.width}`);

    expect(await seriousFindings(page)).toEqual([]);
    await context.close();
  });

  it("shows a new request and the new balance without a reload", async () => {
    const { page } = visit;
    await visit.open();
    await page.getByRole("region", { name: "Requests" }).waitFor();
    const balance = page.getByRole("status", { name: /^Balance/ });
    const before = await balance.locator("span").getAttribute("title");
    expect((await spend()).status).toBe(200);

    await page.getByRole("cell", { name: "acme/chat", exact: true }).waitFor();
    await expect.poll(() => balance.locator("span").getAttribute("title")).not.toBe(before);
    const row = page.getByRole("row").filter({ has: page.getByRole("cell", { name: "acme/chat", exact: true }) });
    await row.getByRole("link").click();
    await page.getByRole("heading", { level: 1, name: "Request to acme/chat" }).waitFor();
    await page.getByText(/^Hold before the request: [\d.]+ credits/).waitFor();
    await page.getByRole("row", { name: /^Gateway [\d.,]+ ms/ }).waitFor();
    await screenshot(page, "receipt-live");
    expect(visit.browserErrors).toEqual([]);
  });

  it("opens the requests of a day from the chart", async () => {
    const { page } = visit;
    await visit.open();
    const chart = page.getByRole("figure", { name: "Credits per day by model" }).getByRole("slider");
    await chart.focus();
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("End");
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/dashboard\/usage\?from=/);

    expect(new URL(page.url()).searchParams.get("from")).toBe(new Date(Math.floor(Date.now() / DAY_MS) * DAY_MS).toISOString());
  });

  it("sends the queries of the first load once, before the code of the page has loaded", async () => {
    const { page, context, open } = await visitDashboard(browser, app, { person });
    const order: string[] = [];
    page.on("request", (request) => {
      const { pathname } = new URL(request.url());
      if (pathname === "/graphql") order.push(String(request.postDataJSON().extensions.persistedQuery.sha256Hash));
    });
    // The rest of the code waits until all queries are on their way.
    await page.route(/\/assets\/main-[^/]*\.js$/, async (route) => {
      await expect.poll(() => order.length).toBe(3);
      await route.continue();
    });
    await open();
    await page.getByRole("figure", { name: "Credits per day by model" }).waitFor();
    await page.getByRole("region", { name: "Requests" }).waitFor();

    expect(order).toHaveLength(3);
    expect(new Set(order).size).toBe(3);
    await context.close();
  });

  it.each([1280, 390])("moves nothing when slow answers replace the placeholders: %i px", async (width) => {
    const { page, context, open } = await visitDashboard(browser, app, { look: { scheme: "light", width }, person });
    const held: (() => void)[] = [];
    await page.route("**/graphql", async (route) => {
      await new Promise<void>((resolve) => held.push(resolve));
      await route.continue();
    });
    await page.addInitScript(() => {
      const shifts = { sum: 0 };
      Object.assign(window, { shifts });
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) shifts.sum += (entry as PerformanceEntry & { value: number }).value;
      }).observe({ type: "layout-shift", buffered: true });
    });
    await open();
    await page.getByRole("status", { name: "Loading" }).first().waitFor();
    await expect.poll(() => held.length).toBe(3);
    for (const answer of held) answer();
    await page.getByRole("figure", { name: "Credits per day by model" }).waitFor();
    await page.getByRole("region", { name: "Requests" }).waitFor();
    // Shifts are reported with the frame after theirs.
    await page.evaluate("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(resolve))))");

    expect(await page.evaluate<number>("window.shifts.sum")).toBeLessThan(0.05);
    await context.close();
  });
});
