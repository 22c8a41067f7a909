/** The API reference and the GraphQL explorer: both schemes, examples beside each operation, and accessible. */
import { buildSchema, parse, validate } from "graphql";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { printSdl } from "../../src/graphql/schema.js";
import { GRAPHQL_EXAMPLES } from "../../src/rest/reference/graphql-examples.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { launchBrowser, NO_BROWSER, screenshot } from "../support/browser.js";
import { LOOKS, openContext, seriousFindings } from "../support/dashboard.js";

it.each([...GRAPHQL_EXAMPLES])("has a valid GraphQL document beside %s", (_, text) => {
  expect(validate(buildSchema(printSdl()), parse(text))).toEqual([]);
});

describe.skipIf(NO_BROWSER)("pages for developers", () => {
  let browser: Browser;
  let app: TestApp;

  beforeAll(async () => {
    [browser, app] = await Promise.all([launchBrowser(), createTestApp()]);
  });
  afterAll(async () => {
    await browser?.close();
    await app?.close();
  });

  it.each(LOOKS)("shows the reference without accessibility faults ($scheme, $width px)", async (look) => {
    const context = await openContext(browser, look);
    const page = await context.newPage();
    await page.goto(`${app.baseUrl}/docs`);
    await page.locator("[id$=createChatCompletion] .opblock-summary-control").click();
    const examples = page.locator(".reference-examples");
    await examples.getByText('"messages"').first().waitFor();
    await screenshot(page, `reference-${look.scheme}-${look.width}`);

    expect(await examples.getByRole("heading").allInnerTexts()).toEqual(["curl", "OpenAI SDK", "GraphQL (POST /graphql)"]);
    expect(await page.evaluate("document.documentElement.classList.contains('dark-mode')")).toBe(look.scheme === "dark");
    expect(await seriousFindings(page)).toEqual([]);
    await context.close();
  });

  it("labels every editor of the GraphQL explorer", async () => {
    const page = await browser.newPage();
    await page.goto(`${app.baseUrl}/graphql`);
    await page.locator(".CodeMirror textarea[aria-label]").first().waitFor({ state: "attached" });

    expect(await page.locator(".CodeMirror textarea:not([aria-label])").count()).toBe(0);
    await page.close();
  });
});
