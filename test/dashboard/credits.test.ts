/** Credits page: a person buys credits at the development checkout, and sees the balance move in another tab. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createApiKeyInput } from "../../src/services/api-keys/api-keys-input.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { launchBrowser, NO_BROWSER, screenshot } from "../support/browser.js";
import { visitDashboard } from "../support/dashboard.js";
import { chatCompletion, wireUsage } from "../support/openai-bodies.js";
import { nobody, signUp } from "../support/sign-in.js";
import { json } from "../support/upstream-replies.js";

describe.skipIf(NO_BROWSER)("credits page", () => {
  let browser: Browser;
  let app: TestApp;

  beforeAll(async () => {
    [browser, app] = await Promise.all([launchBrowser(), createTestApp()]);
  });
  afterAll(async () => {
    await browser.close();
    await app.close();
  });

  it("sells credits, which another tab shows at once", async () => {
    const person = await signUp(app);
    const [visit, other] = [await visitDashboard(browser, app, { person }), await visitDashboard(browser, app, { person })];
    const { page } = visit;
    await other.open("credits");
    await other.page.getByRole("heading", { name: "Buy credits" }).waitFor();
    await visit.open("credits");
    await page.getByLabel("Credits", { exact: true }).fill("0.5");
    await page.getByRole("button", { name: "Continue to payment" }).click();
    await page.getByText(/must be from 1 to 10000/).waitFor();
    for (const [amount, fault] of [
      ["0", "must be more than 0"],
      ["-1", "must be"],
      ["10000.01", "must be from 1 to 10000"],
      ["1.001", "must have at most 2 decimals"],
    ] as const) {
      await page.getByLabel("Credits", { exact: true }).fill(amount);
      await page.getByRole("button", { name: "Continue to payment" }).click();
      await page.getByText(fault).first().waitFor();
    }
    await page.getByRole("button", { name: "25 credits" }).click();
    await screenshot(page, "credits-buy");
    await page.getByRole("button", { name: "Continue to payment" }).click();
    await page.getByRole("heading", { name: "Buy 25 credits?" }).waitFor();
    await screenshot(page, "checkout");
    await page.getByRole("button", { name: "Pay" }).click();
    await page.getByText("This checkout is paid.").waitFor();
    await other.page.getByText("25.00").first().waitFor();
    // The checkout is on the host where the person is signed in.
    expect(new URL(page.url()).host).toBe(new URL(app.baseUrl).host);
    await page.getByRole("link", { name: "Back to your credits" }).click();
    await page.getByRole("cell", { name: "Purchase" }).waitFor();
    await page.getByRole("cell", { name: "Paid", exact: true }).first().waitFor();
    await screenshot(page, "credits-bought");
    expect(visit.browserErrors).toEqual([]);
    expect(other.browserErrors).toEqual([]);
    await visit.context.close();
    await other.context.close();
  });

  it("tops up by itself below the threshold, once under load, and shows refund and receipt", async () => {
    const person = await signUp(app, { credits: 6 });
    const { accountId, sessionId } = person;
    const session = { kind: "session", accountId, sessionId, isOperator: false } as const;
    const { key } = await app.services.apiKeys.create({ ...nobody(), caller: session }, createApiKeyInput.parse({ name: "load" }));
    const visit = await visitDashboard(browser, app, { person });
    const { page } = visit;
    await visit.open("credits");
    await page.getByLabel("When the balance falls below").fill("0");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("must be more than 0").waitFor();
    await page.getByLabel("When the balance falls below").fill("3");
    await page.getByLabel("Credits to buy each time").fill("20");
    await page.getByRole("switch", { name: "Buy credits when the balance is low" }).click();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Automatic top-ups are on.").waitFor();

    for (let i = 0; i < 5; i += 1) app.upstream.replyNext(json(chatCompletion({ usage: wireUsage(1, 1) })));
    const answers = await Promise.all(Array.from({ length: 5 }, () => chat(app, key ?? "")));
    expect(answers).toEqual([200, 200, 200, 200, 200]);
    // From 7, one of the free tier, by five calls of one credit each to 2, and 20 more.
    await page.getByText("Automatic", { exact: true }).waitFor();
    await page.getByText("22.00").first().waitFor();
    const { prisma } = app.database;
    expect(await prisma.topUp.count({ where: { accountId: person.accountId } })).toBe(1);
    await page.getByRole("cell", { name: /^DEV-/ }).waitFor();
    await screenshot(page, "credits-automatic");

    const topUp = await prisma.topUp.findFirstOrThrow({ where: { accountId: person.accountId } });
    await page.getByRole("switch", { name: "Buy credits when the balance is low" }).click();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Automatic top-ups are off.").waitFor();
    const operator = { ...session, isOperator: true };
    await app.services.topUps.refund({ ...nobody(), caller: operator }, { topUpId: topUp.id, reason: "asked for it" });
    await page.getByText(/^20(?:\.00)? refunded$/).waitFor();
    const [receipt] = await Promise.all([visit.context.waitForEvent("page"), page.getByRole("link", { name: /^DEV-/ }).click()]);
    await receipt.getByRole("heading", { name: /^Receipt DEV-/ }).waitFor();
    await receipt.getByText("20.00 USD").first().waitFor();
    await screenshot(receipt, "receipt");
    await screenshot(page, "credits-refunded");

    await receipt.close();
    await page.bringToFront();
    await page.getByRole("switch", { name: "Buy credits when the balance is low" }).click();
    await page.getByLabel("Credits to buy each time").fill("20.13");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("The development checkout declines amounts that end in .13.").first().waitFor();
    await screenshot(page, "credits-declined");
    expect(visit.browserErrors).toEqual([]);
    await visit.context.close();
  });

  it("shows an operator the sales of the day", async () => {
    const person = await signUp(app);
    await app.database.prisma.account.update({ where: { id: person.accountId }, data: { isOperator: true } });
    const visit = await visitDashboard(browser, app, { person });
    await visit.open("operator/sales");
    // 25 and 20 credits were bought above.
    await visit.page.getByRole("cell", { name: "development" }).waitFor();
    await visit.page.getByRole("cell", { name: /^45\.00 USD/ }).waitFor();
    await visit.page.getByRole("cell", { name: /^20\.00 USD/ }).waitFor();
    await screenshot(visit.page, "operator-sales");
    expect(visit.browserErrors).toEqual([]);
    await visit.context.close();
  });
});

const chat = async (app: TestApp, key: string) => {
  const answer = await fetch(`${app.baseUrl}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "acme/dear", max_tokens: 1, messages: [{ role: "user", content: "Hi" }] }),
  });
  await answer.text();
  return answer.status;
};
