/** Account page: profile, sessions, data export and account deletion. */
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { buildSchema, type GraphQLEnumType } from "graphql";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { launchBrowser, NO_BROWSER, screenshot } from "../support/browser.js";
import { visitDashboard } from "../support/dashboard.js";
import { signIn } from "../support/sign-in.js";

const SDL = fileURLToPath(new URL("../../schema/schema.graphql", import.meta.url));

describe.skipIf(NO_BROWSER)("account page", () => {
  let browser: Browser;
  let app: TestApp;

  beforeAll(async () => {
    [browser, app] = await Promise.all([launchBrowser(), createTestApp()]);
  });
  afterAll(async () => {
    await browser.close();
    await app.close();
  });

  it("changes profile, alert and password, and ends other sessions", async () => {
    const { page, open, person, browserErrors, context } = await visitDashboard(browser, app);
    await signIn(app, person);
    await open("account");
    await page.getByLabel("Name").fill("Ada Lovelace");
    await page.getByLabel("Handle").fill("Not A Handle!");
    await page.getByRole("button", { name: "Save profile" }).click();
    await page.getByText(/must be of the letters a to z/).waitFor();
    expect(await page.getByLabel("Name").inputValue()).toBe("Ada Lovelace");
    await screenshot(page, "account-refused");
    await page.getByLabel("Handle").fill("ada-lovelace");
    await page.getByRole("button", { name: "Save profile" }).click();
    await page.getByText("Profile saved.").waitFor();
    await page.getByLabel("Alert threshold").fill("0.000000001");
    await page.getByRole("button", { name: "Save alert" }).click();
    await page.getByText("You get an alert below 0.000000001 credits.").waitFor();
    const account = await app.database.prisma.account.findUniqueOrThrow({ where: { id: person.accountId } });
    expect(account).toMatchObject({ name: "Ada Lovelace", handle: "ada-lovelace", lowBalanceNanocredits: 1n });

    await page.getByRole("tab", { name: "Sessions" }).click();
    await expect.poll(() => page.locator("[data-session]").count()).toBe(2);
    await screenshot(page, "account-sessions");
    await page.getByRole("button", { name: "Sign out everywhere else" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Sign out everywhere else" }).click();
    await expect.poll(() => page.locator("[data-session]").count()).toBe(1);

    await page.getByRole("tab", { name: "Profile" }).click();
    await page.getByLabel("Current password").fill("not the password");
    await page.getByLabel("New password").fill("another battery staple");
    await page.getByRole("button", { name: "Change password" }).click();
    await page.getByText("The password is wrong.").waitFor();
    await page.getByLabel("Current password").fill(person.password);
    await page.getByRole("button", { name: "Change password" }).click();
    await page.getByText("Password changed.").waitFor();
    await page.getByRole("tab", { name: "Sessions" }).click();
    await page.getByText("This browser").waitFor();
    expect(await page.getByRole("dialog").count()).toBe(0);
    await signIn(app, { email: person.email, password: "another battery staple" });
    expect(browserErrors).toEqual([]);
    await context.close();
  });

  it("exports all data as a file, and deletes the account", async () => {
    const { page, open, person, browserErrors, context } = await visitDashboard(browser, app);
    const { handle } = await app.database.prisma.account.findUniqueOrThrow({ where: { id: person.accountId } });
    await open("account/data");
    const downloading = page.waitForEvent("download");
    await page.getByRole("button", { name: "Download my data" }).click();
    const download = await downloading;
    const exported = JSON.parse(await readFile(await download.path(), "utf8")) as Record<string, readonly object[]>;
    await page.getByText("Download complete.").waitFor();
    expect(exported.profile).toEqual([expect.objectContaining({ id: person.accountId, email: person.email })]);
    expect(exported.ledger).toEqual(expect.arrayContaining([expect.objectContaining({ kind: "grant" })]));
    expect(exported.usage).toEqual([]);
    const sections = buildSchema(await readFile(SDL, "utf8")).getType("AccountExportSection") as GraphQLEnumType;
    const { exportedAt, ...rest } = exported;
    expect(Object.keys(rest).sort()).toEqual(
      sections
        .getValues()
        .map(({ name }) => name.toLowerCase())
        .sort(),
    );
    await screenshot(page, "account-data");

    await page.getByRole("button", { name: "Delete account" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel(/Type your handle/).fill("somebody-else");
    await dialog.getByRole("textbox", { name: "Password" }).fill(person.password);
    await dialog.getByRole("button", { name: "Delete account" }).click();
    await dialog.getByText(`Type the account's handle, ${handle}`).waitFor();
    await screenshot(page, "account-delete");
    await dialog.getByLabel(/Type your handle/).fill(handle);
    await dialog.getByRole("button", { name: "Delete account" }).click();
    await page.waitForURL("**/sign-in*");
    expect(await app.database.prisma.accountDeletion.count({ where: { accountId: person.accountId } })).toBe(1);
    expect(browserErrors).toEqual([]);
    await context.close();
  });
});
