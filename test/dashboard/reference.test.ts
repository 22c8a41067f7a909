/** The API reference and the GraphQL explorer: both schemes, examples beside each operation, and accessible. */
import { buildSchema, parse, validate } from "graphql";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { printSdl } from "../../src/graphql/schema.js";
import { GRAPHQL_EXAMPLES, WITHOUT_GRAPHQL } from "../../src/rest/reference/graphql-examples.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { launchBrowser, NO_BROWSER, overflowOf, screenshot } from "../support/browser.js";
import { LOOKS, openContext, seriousFindings } from "../support/dashboard.js";

const schema = buildSchema(printSdl());

it.each([...GRAPHQL_EXAMPLES])("has a valid GraphQL document beside %s", (_, text) => {
  expect(validate(schema, parse(text))).toEqual([]);
});

it("has an example in GraphQL for every operation, or the reason why there is none", async () => {
  const app = await createTestApp();
  const { paths } = (await (await fetch(`${app.baseUrl}/openapi.json`)).json()) as {
    paths: Record<string, Record<string, { operationId?: string }>>;
  };
  await app.close();
  const ids = Object.values(paths).flatMap((methods) => Object.values(methods).flatMap(({ operationId }) => operationId ?? []));

  expect(ids.length).toBeGreaterThan(80);
  expect([...GRAPHQL_EXAMPLES.keys(), ...WITHOUT_GRAPHQL.keys()].toSorted()).toEqual(ids.toSorted());
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
    expect(await examples.getByRole("tab").allInnerTexts()).toEqual(["curl", "OpenAI SDK", "GraphQL"]);
    await examples.getByRole("tab", { name: "curl" }).press("ArrowLeft");
    await examples.getByRole("tabpanel", { name: "GraphQL example" }).getByText("createChatCompletion").waitFor();
    expect(await overflowOf(page)).toBe(0);
    expect(await page.evaluate("document.documentElement.classList.contains('dark-mode')")).toBe(look.scheme === "dark");
    expect(await seriousFindings(page)).toEqual([]);
    await context.close();
  });

  it("runs a request with the key of the tab", async () => {
    const page = await browser.newPage();
    await page.addInitScript(`sessionStorage.setItem("sluice:api-key", ${JSON.stringify(app.key)})`);
    // The page has so many operations that only those in view are in the document.
    await page.goto(`${app.baseUrl}/docs#/Keys/getCurrentKey`);
    await page.getByRole("button", { name: "Try it out" }).click();
    const answer = page.waitForResponse((response) => response.url().endsWith("/account/key"));
    await page.getByRole("button", { name: "Execute" }).click();

    expect((await answer).status()).toBe(200);
    await page.locator(".live-responses-table").getByText('"valid"').waitFor();
    await page.close();
  });

  it.each(LOOKS)(
    "shows the GraphQL explorer with its answer in the window, without accessibility faults ($scheme, $width px)",
    async (look) => {
      const context = await openContext(browser, look);
      const page = await context.newPage();
      await page.goto(`${app.baseUrl}/graphql`);
      await page.locator(".CodeMirror textarea[aria-label]").first().waitFor({ state: "attached" });
      await page.locator(".graphiql-response .CodeMirror, .graphiql-response").first().waitFor();
      await screenshot(page, `explorer-${look.scheme}-${look.width}`);

      expect(await page.locator(".CodeMirror textarea:not([aria-label])").count()).toBe(0);
      expect(await overflowOf(page)).toBe(0);
      const answer = await page.locator(".graphiql-response").boundingBox();
      expect(answer?.height).toBeGreaterThan(150);
      expect((answer?.y ?? 0) + 100).toBeLessThan(page.viewportSize()?.height ?? 0);
      expect(await seriousFindings(page)).toEqual([]);
      await context.close();
    },
  );
});
