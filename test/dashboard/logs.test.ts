/** Logs page: failures found by request id in two clicks, filters, live rows, and pages of a long log. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createApiKeyInput } from "../../src/services/api-keys/api-keys-input.js";
import { createFailures, createUsage } from "../rest/seed.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { launchBrowser, NO_BROWSER } from "../support/browser.js";
import { type DashboardVisit, visitDashboard } from "../support/dashboard.js";
import { chatChunks } from "../support/openai-bodies.js";
import { nobody, type Person, signUp } from "../support/sign-in.js";
import { sse } from "../support/upstream-replies.js";

describe.skipIf(NO_BROWSER)("logs page", () => {
  let browser: Browser;
  let app: TestApp;
  let person: Person;
  let key: string;
  let keyId: string;

  beforeAll(async () => {
    [browser, app] = await Promise.all([launchBrowser(), createTestApp()]);
    person = await signUp(app, { credits: 10, name: "Ada" });
    const caller = { kind: "session", accountId: person.accountId, sessionId: person.sessionId, isOperator: false } as const;
    const created = await app.services.apiKeys.create({ ...nobody(), caller }, createApiKeyInput.parse({ name: "production" }));
    key = String(created.key);
    keyId = created.apiKey.id;
  });
  afterAll(async () => {
    await browser.close();
    await app.close();
  });

  const chat = async (body: object) => {
    const answer = await fetch(`${app.baseUrl}/v1/chat/completions`, {
      method: "POST",
      headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
      body: JSON.stringify({ model: "acme/chat", messages: [{ role: "user", content: "Hello" }], ...body }),
    });
    await answer.text();
    return answer.headers.get("x-request-id") ?? "";
  };
  const rowsOf = ({ page }: DashboardVisit) => page.locator(".log-table tbody tr");
  const drawer = ({ page }: DashboardVisit) => page.getByRole("dialog", { name: "Request" });

  it("shows a failure as it happens, and its error with advice by its request ID", async () => {
    const visit = await visitDashboard(browser, app, { person });
    const { page } = visit;
    await visit.open("logs");
    await page.getByText("No requests in the last 30 days").waitFor();
    const requestId = await chat({ temperature: 99 });
    await rowsOf(visit).first().waitFor();
    await chat({});

    await page.getByLabel("Request ID").fill(requestId);
    await expect.poll(() => rowsOf(visit).count()).toBe(1);
    await rowsOf(visit).first().click();
    await drawer(visit).getByText("BAD_REQUEST").waitFor();
    await drawer(visit).getByText(requestId).waitFor();
    await drawer(visit).getByText("Change the request as the message says.").waitFor();
    expect(await drawer(visit).getByRole("button", { name: "Copy request ID" }).count()).toBe(1);
    const address = page.url();
    await page.keyboard.press("Escape");
    await drawer(visit).waitFor({ state: "detached" });
    await page.goto(address);
    await drawer(visit).getByText("BAD_REQUEST").waitFor();
    expect(visit.browserErrors).toEqual([]);
    await visit.context.close();
  });

  it("shows what a broken stream has cost, and opens the model in the playground", async () => {
    app.upstream.replyNext(sse(chatChunks(["a", "b"], { finishReason: null, usage: null }), { end: "cut" }));
    const requestId = await chat({ stream: true });
    const visit = await visitDashboard(browser, app, { person });
    const { page } = visit;
    await visit.open(`logs?q=${requestId}`);
    await rowsOf(visit).first().click();
    await drawer(visit).getByText("UPSTREAM_ERROR").waitFor();
    await drawer(visit).getByText("Charge").first().waitFor();
    await drawer(visit).getByRole("link", { name: "Try in playground" }).click();
    await expect.poll(() => page.url()).toContain("/playground?model=acme%2Fchat");
    await visit.context.close();
  });

  it("filters by status and code, and moves through a long log page by page", async () => {
    const newest = new Date(Date.now() - 3_600_000);
    await createFailures(app, keyId, 120, newest, { status: 429, code: "RATE_LIMITED" });
    await createUsage(app, keyId, 3, newest);
    const visit = await visitDashboard(browser, app, { person });
    const { page } = visit;
    await visit.open("logs?code=RATE_LIMITED");
    await expect.poll(() => rowsOf(visit).count()).toBe(50);
    const newestRow = async () => (await rowsOf(visit).first().getByRole("link").getAttribute("href"))?.split("?")[0];
    for (const rows of [50, 20]) {
      const before = await newestRow();
      await page.getByRole("button", { name: "Older requests" }).click();
      // The page before stays visible until the next one is there.
      await expect.poll(newestRow).not.toBe(before);
      expect(await rowsOf(visit).count()).toBe(rows);
    }
    expect(await page.getByRole("button", { name: "Older requests" }).count()).toBe(0);
    await page.getByRole("button", { name: "Newest" }).click();
    await expect.poll(() => rowsOf(visit).count()).toBe(50);
    await visit.open("logs?status=5xx&code=RATE_LIMITED");
    await page.getByText("No requests match your filters").waitFor();
    await visit.context.close();
  });

  it("shows operators the requests of any account, and of all", async () => {
    const visit = await visitDashboard(browser, app);
    await app.database.prisma.account.update({ where: { id: visit.person.accountId }, data: { isOperator: true } });
    const requestId = await chat({ temperature: 99 });
    await expect.poll(() => app.database.prisma.failedRequest.count({ where: { requestId } })).toBe(1);
    await visit.open(`operator/logs?q=${requestId}`);
    await rowsOf(visit).first().click();
    await drawer(visit).getByRole("link", { name: person.accountId }).waitFor();
    await visit.open(`operator/logs?account=${person.accountId}`);
    await rowsOf(visit).first().waitFor();
    await visit.context.close();
  });
});
