/** Files page: upload, list, filters, preview and deletion. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { launchBrowser, NO_BROWSER, screenshot } from "../support/browser.js";
import { type DashboardVisit, LOOKS, visitDashboard } from "../support/dashboard.js";
import { picture } from "../support/pictures.js";

describe.skipIf(NO_BROWSER)("files page", () => {
  let browser: Browser;
  let app: TestApp;
  let visit: DashboardVisit;

  beforeAll(async () => {
    [browser, app] = await Promise.all([launchBrowser(), createTestApp()]);
    visit = await visitDashboard(browser, app);
  });
  afterAll(async () => {
    await browser.close();
    await app.close();
  });

  const choose = async (...files: { name: string; mimeType: string; buffer: Buffer }[]) =>
    visit.page.locator('input[type="file"]').setInputFiles(files);

  it("uploads, lists, filters, shows and deletes files", async () => {
    const { page, open } = visit;
    await open("files");
    await page.getByText("No files yet").waitFor();
    await page.getByRole("radio", { name: "In the public gallery" }).check();
    await choose(
      { name: "mill.png", mimeType: "image/png", buffer: await picture() },
      { name: "notes ‮gnp.txt", mimeType: "text/plain", buffer: Buffer.from("The mill stands at the river.") },
    );
    await page.getByText("without an account.").last().waitFor();
    await screenshot(page, "files-publish");
    await page.getByRole("button", { name: "Publish" }).click();
    await page.getByText("2 of 2 uploaded").waitFor();
    const tiles = page.locator(".file-tile");
    await expect.poll(() => tiles.count()).toBe(2);
    await expect.poll(() => page.locator("img.file-picture").evaluate((img: HTMLImageElement) => img.naturalWidth)).toBeGreaterThan(0);
    await page.getByRole("progressbar", { name: /^Files: 2 of/ }).waitFor();
    for (const { scheme, width } of LOOKS.slice(0, 3)) {
      await page.emulateMedia({ colorScheme: scheme });
      await page.setViewportSize({ width, height: 900 });
      await page.reload();
      await expect.poll(() => tiles.count()).toBe(2);
      await screenshot(page, `files-full-${scheme}-${width}`);
    }
    await page.emulateMedia({ colorScheme: "light" });
    await page.setViewportSize({ width: 1280, height: 900 });

    await page.getByRole("combobox", { name: "Type" }).click();
    await page.getByRole("option", { name: "Images" }).click();
    await page.getByText("1 file", { exact: true }).waitFor();
    expect(new URL(page.url()).search).toBe("?kind=image");
    await page.goBack();
    await expect.poll(() => tiles.count()).toBe(2);

    await tiles.filter({ hasText: "mill.png" }).click();
    await page.getByRole("heading", { level: 1, name: "mill.png" }).waitFor();
    await expect.poll(() => page.locator("img.file-whole").evaluate((img: HTMLImageElement) => img.naturalWidth)).toBeGreaterThan(0);
    await page.getByRole("button", { name: "Enlarge mill.png" }).click();
    const enlarged = page.getByRole("dialog", { name: "mill.png" });
    await expect.poll(() => enlarged.locator("img").evaluate((img: HTMLImageElement) => img.naturalWidth)).toBeGreaterThan(0);
    await screenshot(page, "files-enlarged");
    await page.keyboard.press("Escape");
    await enlarged.waitFor({ state: "hidden" });
    await screenshot(page, "files-one");
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("button", { name: "Delete file" }).click();
    await page.getByRole("heading", { level: 1, name: "Files" }).waitFor();
    await expect.poll(() => tiles.count()).toBe(1);
  });

  it("uploads files unlisted unless the gallery is selected and confirmed", async () => {
    const { page, open } = visit;
    await open("files");
    expect(await page.getByRole("radio", { name: "Only a link" }).isChecked()).toBe(true);
    await page.getByRole("radio", { name: "In the public gallery" }).check();
    await choose({ name: "alone.png", mimeType: "image/png", buffer: await picture() });
    await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    expect(await page.getByText("uploaded").count()).toBe(0);
    await page.getByRole("radio", { name: "Only a link" }).check();
    await choose({ name: "alone.png", mimeType: "image/png", buffer: await picture() });
    const link = page.getByRole("link", { name: "alone.png" });
    await link.click();
    await page.getByRole("heading", { level: 1, name: "alone.png" }).waitFor();
    expect(await page.getByRole("button", { name: "Delete" }).count()).toBe(0);
    await page.getByText("SHA-256").waitFor();
  });

  it("allows connections to the gateway and the media host only", async () => {
    const answer = await fetch(`${app.baseUrl}/dashboard/files`, { headers: { Cookie: visit.person.cookie, Accept: "text/html" } });
    const policy = answer.headers.get("content-security-policy") ?? "";
    expect(policy).toContain(`connect-src 'self' http://localhost:${new URL(app.baseUrl).port};`);
  });

  it("shows why an upload failed, and retries it", async () => {
    const { page, open } = visit;
    await open("files");
    await choose({ name: "empty.bin", mimeType: "application/octet-stream", buffer: Buffer.alloc(0) });
    const alert = page.getByRole("alert");
    await expect.poll(() => alert.textContent()).toContain("The file is empty.");
    await page.getByRole("button", { name: "Try again" }).click();
    await alert.waitFor();
    await page.getByRole("button", { name: "Remove empty.bin" }).click();
    await expect.poll(() => alert.count()).toBe(0);
    expect(visit.browserErrors).toEqual([]);
  });
});
