/** The models page: what can be called is found by its filters, opened by a link, and reckoned with before it is called. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { launchBrowser, NO_BROWSER, overflowOf, screenshot } from "../support/browser.js";
import { createMember, registerModel } from "../support/community-models.js";
import { type DashboardVisit, visitDashboard, WIDE } from "../support/dashboard.js";

/** Full of markup, right-to-left, and as long as nobody would want it. */
const HOSTILE_TITLE = `<img src=x onerror="document.title='owned'"><script>throw 1</script> ${"نموذج".repeat(80)}${"x".repeat(100)}`.slice(
  0,
  500,
);
const DESK = { ...WIDE, scheme: "dark" } as const;
const PHONE = { ...WIDE, width: 390 };

describe.skipIf(NO_BROWSER)("the models page", () => {
  let browser: Browser;
  let app: TestApp;
  let visit: DashboardVisit;

  beforeAll(async () => {
    [browser, app] = await Promise.all([launchBrowser(), createTestApp()]);
    const owner = await createMember(app, { handle: "grace" });
    await registerModel(app, owner, { name: "poet", title: "Poet of the house", visibility: "public" });
    // As no form would let it in.
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

  it("finds models by type, capability, price, owner and words, with all of it in the address", async () => {
    const { page } = visit;
    await visit.open("models");
    await rows().first().waitFor();
    await screenshot(page, "models");

    await choose("Type", "Video");
    await expect.poll(() => rows().filter({ hasNotText: "Video" }).count()).toBe(0);
    expect(await rows().filter({ hasText: "acme/video" }).count()).toBe(1);
    await choose("Type", "Text");
    await choose("Can", "Calls functions");
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
    await choose("Registered", "By accounts");
    await page.getByText("No model is like that").waitFor();
    await page.goBack();
    await page.getByText("acme/chat-b", { exact: true }).first().waitFor();

    await visit.open("models");
    await page.getByLabel("Search").fill("poet of");
    await expect.poll(() => rows().allInnerTexts()).toEqual([expect.stringContaining("by grace")]);
    expect(queryOf()).toEqual({ q: "poet of" });
    await page.getByLabel("Search").fill("nothing is called this");
    await page.getByRole("button", { name: "Clear the filters" }).click();
    await expect.poll(() => rows().count()).toBeGreaterThan(10);
    expect(queryOf()).toEqual({});
    expect(visit.browserErrors).toEqual([]);
  });

  it("opens a model by its address, reckons exactly what a request would cost, and leads to the playground", async () => {
    const { page } = visit;
    await visit.open("models?q=acme%2Fchat-b");
    await rows().getByRole("link", { name: "acme/chat-b" }).click();
    await page.getByRole("heading", { level: 1, name: "acme/chat-b" }).waitFor();
    await screenshot(page, "model");
    const cost = page.getByRole("status", { name: "What one such request costs" }).locator("span");
    await page.getByLabel("Text in, tokens", { exact: true }).fill("3");
    await page.getByLabel("Text out, tokens", { exact: true }).fill("123456789012");
    // 3 of a millionth, and so many of two: no float could tell.
    await expect.poll(() => cost.getAttribute("title")).toBe("246913.578027 credits");
    await page.getByLabel("Text out, tokens", { exact: true }).fill("-1");
    await page.getByText("A whole number").waitFor();
    await expect.poll(() => cost.getAttribute("title")).toBe("0.000003 credits");

    await page.getByRole("link", { name: "Try it" }).click();
    await page.getByRole("heading", { level: 1, name: "Playground" }).waitFor();
    expect(queryOf()).toEqual({ model: "acme/chat-b" });
    await page.goBack();
    await page.getByRole("link", { name: "Models" }).first().waitFor();
    await visit.open("models/acme%2Fgone");
    await page.getByRole("heading", { level: 1, name: "There is no such model" }).waitFor();
    expect(visit.browserErrors).toEqual([]);
  });

  it.each([PHONE, DESK])("shows a title full of markup, long and right-to-left as the text it is: $scheme, $width px", async (look) => {
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
