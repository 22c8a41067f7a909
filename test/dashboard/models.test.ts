/** Models page: filters, details and the cost calculator. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { toGlobalId } from "../../src/graphql/global-ids.js";
import { createUsage } from "../rest/seed.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { launchBrowser, NO_BROWSER, overflowOf, screenshot } from "../support/browser.js";
import { createMember, type Member, registerModel } from "../support/community-models.js";
import { type DashboardVisit, visitDashboard, WIDE } from "../support/dashboard.js";
import { eventually } from "../support/eventually.js";

/** Title with markup, right-to-left text and the greatest length. */
const HOSTILE_TITLE = `<img src=x onerror="document.title='owned'"><script>throw 1</script> ${"نموذج".repeat(80)}${"x".repeat(100)}`.slice(
  0,
  500,
);
const DESK = { ...WIDE, scheme: "dark" } as const;
const PHONE = { ...WIDE, width: 390 };

describe.skipIf(NO_BROWSER)("models page", () => {
  let browser: Browser;
  let app: TestApp;
  let visit: DashboardVisit;
  let owner: Member;

  beforeAll(async () => {
    [browser, app] = await Promise.all([launchBrowser(), createTestApp()]);
    owner = await createMember(app, { handle: "grace" });
    await registerModel(app, owner, { name: "poet", title: "Poet of the house", visibility: "public" });
    // Written to the database, because the form would reject it.
    await registerModel(app, owner, {
      name: "hostile",
      title: HOSTILE_TITLE,
      description: `</script><b>${"y".repeat(400)}`,
      visibility: "public",
    });
    visit = await visitDashboard(browser, app, { name: "Ada" });
  });
  afterAll(async () => {
    await browser?.close();
    await app?.close();
  });

  const rows = () => visit.page.getByRole("region", { name: "Models" }).locator("tbody tr");
  const choose = async (label: string, option: string) => {
    await visit.page.getByRole("combobox", { name: label, exact: true }).click();
    await visit.page.getByRole("option", { name: option, exact: true }).click();
  };
  const queryOf = () => Object.fromEntries(new URL(visit.page.url()).searchParams);

  it("filters by type, capability, price, source and text, and stores the filters in the address", async () => {
    const { page } = visit;
    await visit.open("models");
    await rows().first().waitFor();
    await screenshot(page, "models");

    await choose("Type", "Video");
    await expect.poll(() => rows().filter({ hasNotText: "Video" }).count()).toBe(0);
    expect(await rows().filter({ hasText: "acme/video" }).count()).toBe(1);
    await choose("Type", "Text");
    await choose("Capabilities", "Tool calling");
    await expect.poll(() => rows().filter({ hasText: "acme/chat-b" }).count()).toBe(0);
    await rows().getByRole("link", { name: "acme/chat", exact: true }).waitFor();
    expect(queryOf()).toEqual({ modality: "TEXT", can: "TOOLS" });
    await page.reload();
    await rows().getByRole("link", { name: "acme/chat", exact: true }).waitFor();
    expect(await rows().filter({ hasText: "acme/chat-b" }).count()).toBe(0);

    await visit.open("models?modality=TEXT&cost=free");
    await page.getByText("acme/free", { exact: true }).first().waitFor();
    expect(await page.getByText("acme/chat", { exact: true }).count()).toBe(0);
    await visit.open("models?modality=TEXT&cost=paid&max=10&order=dear");
    await rows().first().waitFor();
    expect(await page.getByText("acme/dear", { exact: true }).count()).toBe(0);
    await choose("Source", "Community");
    await page.getByText("No models match your filters").waitFor();
    await page.goBack();
    await page.getByText("acme/chat-b", { exact: true }).first().waitFor();

    await visit.open("models");
    await page.getByLabel("Search").fill("poet of");
    await expect.poll(() => rows().allInnerTexts()).toEqual([expect.stringContaining("by grace")]);
    expect(queryOf()).toEqual({ q: "poet of" });
    await page.getByLabel("Search").fill("nothing is called this");
    await page.getByRole("button", { name: "Clear filters" }).click();
    await expect.poll(() => rows().count()).toBeGreaterThan(10);
    expect(queryOf()).toEqual({});
    expect(visit.browserErrors).toEqual([]);
  });

  it("opens a model by its address, calculates the exact cost of a request, and links to the playground", async () => {
    const { page } = visit;
    await visit.open("models?q=acme%2Fchat-b");
    await rows().getByRole("link", { name: "acme/chat-b" }).click();
    await page.getByRole("heading", { level: 1, name: "acme/chat-b" }).waitFor();
    await screenshot(page, "model");
    const cost = page.getByRole("status", { name: "Cost per request" }).locator("span");
    await page.getByLabel("Text input (tokens)", { exact: true }).fill("3");
    await page.getByLabel("Text output (tokens)", { exact: true }).fill("123456789012");
    // 3 at one millionth, and 123456789012 at two millionths: too many digits for floating point.
    await expect.poll(() => cost.getAttribute("title")).toBe("246913.578027 credits");
    await page.getByLabel("Text output (tokens)", { exact: true }).fill("-1");
    await page.getByText("Enter a whole number").waitFor();
    await expect.poll(() => cost.getAttribute("title")).toBe("0.000003 credits");

    await page.getByRole("link", { name: "Try in playground" }).click();
    await page.getByRole("heading", { level: 1, name: "Playground" }).waitFor();
    expect(queryOf()).toEqual({ model: "acme/chat-b" });
    await page.goBack();
    await page.getByRole("link", { name: "Models" }).first().waitFor();
    await visit.open("models/acme/gone");
    await page.getByRole("heading", { level: 1, name: "Model not found" }).waitFor();
    expect(visit.browserErrors).toEqual([]);
  });

  it("opens a model by its plain ID, with the slash as it is or encoded, and redirects other names of it", async () => {
    const { page } = visit;
    for (const name of ["acme/chat-b", "acme%2Fchat-b", toGlobalId("Model", "acme/chat-b"), "acme/chat-b/"]) {
      await visit.open(`models/${name}`);
      await page.getByRole("heading", { level: 1, name: "acme/chat-b" }).waitFor();
      if (name.startsWith("acme")) expect(decodeURIComponent(new URL(page.url()).pathname)).toContain("/dashboard/models/acme/chat-b");
      else await expect.poll(() => new URL(page.url()).pathname).toBe("/dashboard/models/acme/chat-b");
    }
    await visit.open("models?q=acme%2Fchat-b");
    expect(await rows().getByRole("link", { name: "acme/chat-b" }).getAttribute("href")).toBe("/dashboard/models/acme/chat-b");
    await visit.open("models/community/grace/poet");
    await page.getByRole("heading", { level: 1, name: "Poet of the house" }).waitFor();
    expect(visit.browserErrors).toEqual([]);
  });

  it("shows the last day, code to copy and the price history of a model", async () => {
    const { page } = visit;
    await createUsage(app, owner.keyId, 40, new Date(), { model: "acme/chat", responseTimeMs: 100, timeToFirstTokenMs: 20 });
    await eventually(async () => {
      expect(await app.database.prisma.usageHourRollup.count({ where: { model: "acme/chat", level: 2 } })).toBeGreaterThan(0);
    });
    await app.services.priceHistory.look();
    await app.database.prisma.modelPrice.create({
      data: {
        model: "acme/chat",
        since: new Date("2026-01-05T12:00:00Z"),
        pricing: { imagePricing: "request", rates: { inputTextTokens: "4000000" } },
      },
    });

    await visit.open("models/acme/chat");
    const figures = page.locator(".card", { hasText: "Last 24 hours" }).first();
    await figures.getByText("100.0%").waitFor();
    await figures.getByText("No failures").waitFor();
    const history = page.getByRole("region", { name: "Price history" });
    await expect.poll(() => history.locator("tbody tr").count()).toBe(2);
    expect(await history.locator("tbody tr").first().innerText()).toContain("−75%");
    expect(await history.locator("tbody tr").last().innerText()).toMatch(/Jan 5, 2026\s+4\.00/);
    expect(await page.getByRole("region", { name: "curl code" }).innerText()).toContain('"model": "acme/chat"');
    await page.getByRole("tab", { name: "Python" }).click();
    expect(await page.getByRole("region", { name: "Python code" }).innerText()).toContain('model="acme/chat"');
    await page.getByRole("tab", { name: "GraphQL" }).click();
    expect(await page.getByRole("region", { name: "GraphQL code" }).innerText()).toContain("createChatCompletion");
    expect(visit.browserErrors).toEqual([]);
  });

  it("shows prices and folds its filters on a phone, without sideways scrolling", async () => {
    const phone = await visitDashboard(browser, app, { look: PHONE, person: visit.person });
    await phone.open("models?q=acme/chat-b");
    const row = phone.page.getByRole("region", { name: "Models" }).locator("tbody tr").first();
    await row.getByText("1.00").waitFor();
    const region = phone.page.getByRole("region", { name: "Models" });
    expect(
      await region.evaluate((element: { scrollWidth: number; clientWidth: number }) => element.scrollWidth - element.clientWidth),
    ).toBe(0);
    const type = phone.page.getByRole("combobox", { name: "Type" });
    expect(await type.isVisible()).toBe(false);
    await phone.page.getByRole("button", { name: "Filters" }).click();
    await type.click();
    await phone.page.getByRole("option", { name: "Text", exact: true }).click();
    await phone.page.getByRole("button", { name: "Filters (1)" }).waitFor();
    expect(phone.browserErrors).toEqual([]);
    await phone.context.close();
  });

  it.each([PHONE, DESK])("shows a long title with markup and right-to-left text as plain text: $scheme, $width px", async (look) => {
    const other = await visitDashboard(browser, app, { look, person: visit.person });
    await other.open("models?q=hostile");
    const link = other.page.getByRole("link", { name: HOSTILE_TITLE.slice(0, 60) });
    await link.waitFor();
    expect(await overflowOf(other.page)).toBe(0);
    await screenshot(other.page, `models-hostile-${look.scheme}-${look.width}`);
    await link.click();
    const heading = other.page.getByRole("heading", { level: 1 });
    await expect.poll(() => heading.textContent()).toBe(HOSTILE_TITLE);
    expect(await overflowOf(other.page)).toBe(0);
    await screenshot(other.page, `model-hostile-${look.scheme}-${look.width}`);
    expect(await other.page.title()).toContain("<img");
    expect(other.browserErrors).toEqual([]);
    await other.context.close();
  });
});
