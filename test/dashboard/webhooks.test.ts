/** Webhooks in the dashboard: an endpoint from its first test event to its end. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { launchBrowser, NO_BROWSER, screenshot } from "../support/browser.js";
import { visitDashboard } from "../support/dashboard.js";
import { startWebhookReceiver, verifyWebhook, type WebhookReceiver } from "../support/webhook-receiver.js";

describe.skipIf(NO_BROWSER)("the page of webhooks", () => {
  let browser: Browser;
  let app: TestApp;
  let receiver: WebhookReceiver;

  beforeAll(async () => {
    [browser, app, receiver] = await Promise.all([
      launchBrowser(),
      createTestApp({ config: { upstreamAllowHosts: ["127.0.0.1"] } }),
      startWebhookReceiver(),
    ]);
  });
  afterAll(async () => {
    await browser.close();
    await app.close();
    await receiver.close();
  });

  it("adds an endpoint, shows its secret once, sends a test event and again, pauses, and deletes it", async () => {
    const { page, open, browserErrors, context } = await visitDashboard(browser, app);
    await open("webhooks");
    await page.getByRole("button", { name: "Add an endpoint" }).first().click();
    const dialog = page.getByRole("dialog");
    const address = dialog.getByRole("textbox", { name: "Address" });
    await address.fill("nonsense");
    await dialog.getByLabel(/usage\.recorded/).check();
    await dialog.getByRole("button", { name: "Add the endpoint" }).click();
    await expect.poll(() => address.getAttribute("aria-invalid")).toBe("true");
    expect(await address.inputValue()).toBe("nonsense");
    await screenshot(page, "webhooks-new");
    await address.fill(receiver.url);
    await dialog.getByRole("button", { name: "Add the endpoint" }).click();
    const secret = (await page.locator("[data-webhook-secret] .mono").textContent()) ?? "";
    expect(secret).toMatch(/^whsec_/);
    await screenshot(page, "webhooks-secret");
    await page.getByRole("button", { name: "I have copied it" }).click();

    await page.getByRole("heading", { level: 1, name: receiver.url }).waitFor();
    await page.getByRole("button", { name: "Send a test event" }).click();
    await page.getByRole("link", { name: "webhook.test" }).waitFor();
    await expect.poll(() => receiver.received.length).toBe(1);
    const [message] = receiver.received;
    expect(message && verifyWebhook(secret, message)).toMatchObject({ type: "webhook.test" });
    await page.getByText("delivered", { exact: true }).waitFor();
    await screenshot(page, "webhooks-one");
    await page.getByRole("link", { name: "webhook.test" }).click();
    await dialog.getByText('"endpointId"').waitFor();
    await screenshot(page, "webhooks-delivery");
    expect(page.url()).toContain("?delivery=");
    await dialog.getByRole("button", { name: "Send again" }).click();
    await expect.poll(() => receiver.received[1]?.headers["webhook-id"]).toBe(message?.headers["webhook-id"]);
    await page.goBack();
    await dialog.waitFor({ state: "hidden" });

    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("button", { name: "Pause the endpoint" }).click();
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByRole("button", { name: "Replace the secret" }).click();
    await dialog.getByRole("button", { name: "Replace the secret" }).click();
    const renewed = (await page.locator("[data-webhook-secret] .mono").textContent()) ?? "";
    expect(renewed).toMatch(/^whsec_/);
    expect(renewed).not.toBe(secret);
    await page.getByRole("button", { name: "I have copied it" }).click();
    await dialog.waitFor({ state: "hidden" });

    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("button", { name: "Delete the endpoint" }).click();
    await page.getByText("You have no endpoints yet").waitFor();
    expect(browserErrors).toEqual([]);
    await context.close();
  });
});
