/** Webhooks page: an endpoint from its creation to its deletion. */
import { randomUUID } from "node:crypto";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { toGlobalId } from "../../src/graphql/global-ids.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { launchBrowser, NO_BROWSER, screenshot } from "../support/browser.js";
import { visitDashboard } from "../support/dashboard.js";
import { startWebhookReceiver, verifyWebhook, type WebhookReceiver } from "../support/webhook-receiver.js";

describe.skipIf(NO_BROWSER)("webhooks page", () => {
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

  it("adds an endpoint, shows its secret once, redelivers a test event, rotates the secret, and deletes the endpoint", async () => {
    const { page, open, browserErrors, context } = await visitDashboard(browser, app);
    await open("webhooks");
    await page.getByRole("button", { name: "Add endpoint" }).first().click();
    const dialog = page.getByRole("dialog");
    const address = dialog.getByRole("textbox", { name: "Endpoint URL" });
    await address.fill("nonsense");
    await dialog.getByLabel(/usage\.recorded/).check();
    await dialog.getByRole("button", { name: "Add endpoint" }).click();
    await expect.poll(() => address.getAttribute("aria-invalid")).toBe("true");
    expect(await address.inputValue()).toBe("nonsense");
    await screenshot(page, "webhooks-new");
    await address.fill(receiver.url);
    await dialog.getByRole("button", { name: "Add endpoint" }).click();
    const secret = (await page.locator("[data-webhook-secret] .mono").textContent()) ?? "";
    expect(secret).toMatch(/^whsec_/);
    await screenshot(page, "webhooks-secret");
    await page.keyboard.press("Escape");
    expect(await page.locator("[data-webhook-secret]").count()).toBe(1);
    await page.getByRole("button", { name: "Done" }).click();

    await page.getByRole("heading", { level: 1, name: receiver.url }).waitFor();
    await page.getByRole("button", { name: "Send test event" }).click();
    await page.getByRole("link", { name: "webhook.test" }).waitFor();
    await expect.poll(() => receiver.received.length).toBe(1);
    const [message] = receiver.received;
    expect(message && verifyWebhook(secret, message)).toMatchObject({ type: "webhook.test" });
    await page.getByText("Delivered", { exact: true }).waitFor();
    await screenshot(page, "webhooks-one");
    await page.getByRole("link", { name: "webhook.test" }).click();
    await dialog.getByText('"endpointId"').waitFor();
    await screenshot(page, "webhooks-delivery");
    expect(page.url()).toContain("?delivery=");
    await dialog.getByRole("button", { name: "Redeliver" }).click();
    await expect.poll(() => receiver.received[1]?.headers["webhook-id"]).toBe(message?.headers["webhook-id"]);
    await page.goBack();
    await dialog.waitFor({ state: "hidden" });

    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("button", { name: "Pause endpoint" }).click();
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByRole("button", { name: "Rotate secret" }).click();
    await dialog.getByRole("button", { name: "Rotate secret" }).click();
    const renewed = (await page.locator("[data-webhook-secret] .mono").textContent()) ?? "";
    expect(renewed).toMatch(/^whsec_/);
    expect(renewed).not.toBe(secret);
    await page.getByRole("button", { name: "Done" }).click();
    await dialog.waitFor({ state: "hidden" });

    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("button", { name: "Delete endpoint" }).click();
    await page.getByText("No endpoints yet").waitFor();
    expect(browserErrors).toEqual([]);
    await context.close();
  });

  it("shows a delivery that failed and is retried as failed, with the time of the next attempt", async () => {
    const { page, open, person, context } = await visitDashboard(browser, app);
    const [endpointId, deliveryId] = [randomUUID(), randomUUID()];
    await app.database.prisma.webhookEndpoint.create({
      data: { id: endpointId, accountId: person.accountId, url: receiver.url, secret: new Uint8Array(32), events: ["usage.recorded"] },
    });
    await app.database.prisma.webhookDelivery.create({
      data: {
        ...{ id: deliveryId, endpointId, event: "usage.recorded", eventKey: "1", payload: {}, status: "pending", attempts: 1 },
        ...{ lastStatus: 500, lastError: "The endpoint answered 500.", nextAttemptAt: new Date(Date.now() + 3_600_000 * 2 + 60_000) },
      },
    });
    await open(`webhooks/${toGlobalId("WebhookEndpoint", endpointId)}`);
    const row = page.getByRole("region", { name: "Deliveries" }).locator("tbody tr");
    await expect.poll(() => row.innerText()).toMatch(/Failed\s+Retried in 2 hours/);
    await screenshot(page, "webhooks-retried");
    expect(await row.count()).toBe(1);
    await context.close();
  });
});
