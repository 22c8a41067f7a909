/** Operator pages: accounts, grants and the state of the gateway. */
import { randomUUID } from "node:crypto";
import { rm } from "node:fs/promises";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { execute } from "../graphql/client.js";
import { ChatReceiptDocument } from "../operations/generated/graphql.js";
import { createUsage } from "../rest/seed.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { launchBrowser, NO_BROWSER, overflowOf, screenshot } from "../support/browser.js";
import { type DashboardVisit, visitDashboard } from "../support/dashboard.js";
import { createEmptyDir } from "../support/database.js";
import { settle } from "../support/ledger.js";
import { isPostgresInstalled, POSTGRES_ABSENT } from "../support/postgres.js";
import { type Person, signedIn, signUp } from "../support/sign-in.js";
import { createPostgresDatabase, type SuiteDatabase } from "../support/suite-server.js";
import { errorReply } from "../support/upstream-replies.js";

async function signUpOperator(app: TestApp): Promise<Person> {
  const operator = await signUp(app, { name: "Olga Operator" });
  await app.database.prisma.account.update({ where: { id: operator.accountId }, data: { isOperator: true } });
  return operator;
}

async function createKey(app: TestApp, person: Person, name: string): Promise<{ readonly id: string; readonly key: string }> {
  const headers = { "content-type": "application/json", ...signedIn(person) };
  const response = await fetch(`${app.baseUrl}/account/keys`, { method: "POST", headers, body: JSON.stringify({ name }) });
  return (await response.json()) as { readonly id: string; readonly key: string };
}

/** Status of a request with the key. */
async function statusWith(app: TestApp, key: string | undefined): Promise<number> {
  return (await fetch(`${app.baseUrl}/account/key`, { headers: { authorization: `Bearer ${key}` } })).status;
}

async function handleOf({ database }: TestApp, { accountId }: Person): Promise<string> {
  return (await database.prisma.account.findUniqueOrThrow({ where: { id: accountId } })).handle;
}

/** Name of the greatest length with markup, right-to-left text and no place to break. */
const STRANGE = `<b>\u05e9\u05dc\u05d5\u05dd</b>${"\u0645".repeat(50)}${"W".repeat(58)}`;

/** Grants credits like a user: finds the account, fills in the form and confirms. */
async function grant({ page, open }: DashboardVisit, search: string, credits: string): Promise<void> {
  await open("operator/accounts");
  await page.getByLabel("Search").fill(search);
  await page.getByRole("button", { name: "Search" }).click();
  await page.getByRole("status").getByText("1 account").waitFor();
  await page.getByRole("region", { name: "Accounts" }).getByRole("link").click();
  await page.getByRole("button", { name: "Grant credits" }).click();
  await page.getByRole("dialog").getByLabel("Credits").fill(credits);
  await page.getByLabel("Note").fill("from the test");
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("button", { name: `Grant ${credits} credits` }).click();
}

describe.skipIf(NO_BROWSER)("operator", () => {
  let browser: Browser;
  let app: TestApp;
  let operator: Person;

  beforeAll(async () => {
    const tiers = [
      { name: "free", nanocredits: 1_000_000_000n, period: "day" },
      { name: "plus", nanocredits: 5_000_000_000n, period: "day" },
    ] as const;
    [browser, app] = await Promise.all([launchBrowser(), createTestApp({ config: { tiers } })]);
    operator = await signUpOperator(app);
  });
  afterAll(async () => {
    await browser.close();
    await app.close();
  });

  it("finds an account, grants credits once, sets a tier, and allows publishing and operating", async () => {
    const person = await signUp(app, { name: "Ada" });
    const visit = await visitDashboard(browser, app, { person: operator });
    const { page } = visit;

    await grant(visit, person.email, "2.5");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await expect.poll(() => page.locator("main [data-balance]").getAttribute("data-balance")).toBe("3.5");

    await page
      .getByRole("combobox", { name: "Tier" })
      .or(page.getByLabel("Tier", { exact: true }))
      .first()
      .click();
    await page.getByRole("option", { name: "plus" }).click();
    await page.getByRole("button", { name: "Set tier" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Set tier" }).click();
    await expect.poll(() => page.locator("main [data-balance]").getAttribute("data-balance")).toBe("7.5");

    await page.getByRole("button", { name: "Allow publishing" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Allow publishing" }).click();
    await page.getByRole("button", { name: "Revoke publishing" }).waitFor();
    await page.getByRole("region", { name: "Ledger" }).getByText("from the test").waitFor();
    await page.getByRole("button", { name: "Make operator" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Make operator" }).click();
    await page.getByRole("button", { name: "Remove operator" }).waitFor();
    await screenshot(page, "operator-account");

    const account = await app.database.prisma.account.findUniqueOrThrow({ where: { id: person.accountId } });
    expect(account).toMatchObject({ tier: "plus", isPublisher: true, isOperator: true, packNanocredits: 2_500_000_000n });
    const notes = await app.database.prisma.ledgerEntry.findMany({ where: { accountId: person.accountId, note: "from the test" } });
    expect(notes.length).toBeGreaterThan(0);
    await visit.open("operator/accounts?kind=operators");
    await page.getByRole("status").getByText("3 accounts").waitFor();
    await screenshot(page, "operator-accounts");
    expect(visit.browserErrors).toEqual([]);
    await visit.context.close();
  });

  it("shows accounts on a phone without sideways scrolling, and the requests of one day", async () => {
    const person = await signUp(app, { name: "Dora Day" });
    const { id } = await createKey(app, person, "days");
    // Before the day that the gateway's page counts.
    const [later, earlier] = [2, 3].map((days) => new Date(Date.now() - days * 86_400_000)) as [Date, Date];
    await createUsage(app, id, 1, later, { model: "acme/later", modelUsed: "acme/later" });
    await createUsage(app, id, 1, earlier, { model: "acme/earlier", modelUsed: "acme/earlier" });
    const visit = await visitDashboard(browser, app, { person: operator, look: { scheme: "light", width: 390 } });
    const { page } = visit;

    await visit.open("operator/accounts");
    const table = page.getByRole("region", { name: "Accounts" });
    await table.getByText(person.email).filter({ visible: true }).waitFor();
    expect(await table.evaluate((element) => element.scrollWidth - element.clientWidth)).toBe(0);

    await visit.open(`operator/logs?${new URLSearchParams({ account: person.accountId, day: earlier.toISOString().slice(0, 10) })}`);
    await page.getByText("acme/earlier").filter({ visible: true }).waitFor();
    expect(await page.getByText("acme/later").count()).toBe(0);
    await visit.context.close();
  });

  it("suspends and restores an account, ends its sessions, and makes a password link", async () => {
    const person = await signUp(app, { name: "Lea Leaver" });
    const suspended = async () =>
      (await app.database.prisma.account.findUniqueOrThrow({ where: { id: person.accountId } })).suspensionReason;
    const { page, open } = await visitDashboard(browser, app, { person: operator });
    await open(`operator/accounts/${person.accountId}`);
    const dialog = page.getByRole("dialog");

    await page.getByRole("button", { name: "Suspend account" }).click();
    expect(await dialog.getByRole("button", { name: "Suspend account" }).isDisabled()).toBe(true);
    await dialog.getByLabel("Reason").fill("A leaver.");
    await dialog.getByRole("button", { name: "Suspend account" }).click();
    await page.getByText(/^Since .*: A leaver\.$/).waitFor();
    await screenshot(page, "operator-account-suspended");
    expect(await suspended()).toBe("A leaver.");

    await page.getByRole("button", { name: "Restore account" }).click();
    await dialog.getByRole("button", { name: "Restore account" }).click();
    await page.getByText("API keys and sessions are accepted.").waitFor();
    expect(await suspended()).toBeNull();

    await page.getByRole("button", { name: "End sessions" }).click();
    await dialog.getByRole("button", { name: "End sessions" }).click();
    await page.getByText("Sessions ended: 1.").waitFor();

    await page.getByRole("button", { name: "Create password link" }).click();
    await dialog.getByRole("button", { name: "Create link" }).click();
    const link = await dialog.getByText(/\/set-password\?token=/).textContent();
    // A key press must not lose the link, which is shown once.
    await page.keyboard.press("Escape");
    await dialog.getByRole("button", { name: "Done" }).click();
    await dialog.waitFor({ state: "detached" });
    expect(await page.getByText(/set-password/).count()).toBe(0);
    expect(await (await fetch(link ?? "")).text()).toContain(person.email);
  });

  it("revokes a leaked key of another account with a reason, and finds the act in the audit log", async () => {
    const person = await signUp(app, { name: "Kim" });
    const [leaked, other] = await Promise.all(["leaked", "other"].map((name) => createKey(app, person, name)));
    const { page, open, browserErrors, context } = await visitDashboard(browser, app, { person: operator });
    await open(`operator/accounts/${person.accountId}`);
    const keys = page.getByRole("region", { name: "Keys of the account" });
    await keys.getByText("other").waitFor();
    await page.getByLabel("Search keys").fill(leaked?.id ?? "");
    await keys.getByText("other").waitFor({ state: "detached" });

    await keys.getByRole("button", { name: "Revoke leaked" }).click();
    await page.getByRole("dialog").getByLabel("Reason").fill("Found in a public repository.");
    await page.getByRole("dialog").getByRole("button", { name: "Revoke key" }).click();
    await page.getByText("No keys match your search").waitFor();

    expect(await statusWith(app, leaked?.key)).toBe(401);
    expect(await statusWith(app, other?.key)).toBe(200);
    const audit = page.getByRole("region", { name: "Audit log" });
    await audit.getByText("Revoked key").waitFor();
    await audit.getByRole("link", { name: "just now" }).click();
    const entry = page.getByRole("dialog", { name: "Audit log entry" });
    await entry.getByText("Found in a public repository.").waitFor();
    expect(await entry.getByText(leaked?.id ?? "").count()).toBeGreaterThan(0);
    expect(browserErrors).toEqual([]);
    await context.close();
  });

  it("takes back at most the available credits, and says how many", async () => {
    const person = await signUp(app, { name: "Rich", credits: 3 });
    const { page, open, context } = await visitDashboard(browser, app, { person: operator });
    await open(`operator/accounts/${person.accountId}`);

    await page.getByRole("button", { name: "Take back credits" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("textbox", { name: "Credits" }).fill("-1");
    await dialog.getByRole("button", { name: "Continue" }).click();
    await dialog.getByRole("button", { name: "Take back" }).click();
    await dialog
      .getByText(/must be/)
      .first()
      .waitFor();
    await dialog.getByRole("textbox", { name: "Credits" }).fill("5");
    await dialog.getByLabel("Note").fill("a refund");
    await dialog.getByRole("button", { name: "Continue" }).click();
    await dialog.getByRole("button", { name: "Take back" }).click();
    await dialog.getByText("3.00 credits were taken back. The bucket had no more available credits.").waitFor();
    await dialog.getByRole("button", { name: "Done" }).click();

    await page.getByRole("region", { name: "Ledger" }).getByText("a refund").waitFor();
    const { packNanocredits } = await app.database.prisma.account.findUniqueOrThrow({ where: { id: person.accountId } });
    expect(packNanocredits).toBe(0n);
    await context.close();
  });

  it("filters the audit log by operator, account, action and day", async () => {
    const person = await signUp(app, { name: "Audited" });
    const { page, open, context } = await visitDashboard(browser, app, { person: operator });
    await open(`operator/accounts/${person.accountId}`);
    await page.getByRole("button", { name: "End sessions" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "End sessions" }).click();
    await page.getByText("Sessions ended: 1.").waitFor();

    await open("operator/audit");
    const handle = await handleOf(app, person);
    await page.getByRole("combobox", { name: "Account", exact: true }).fill(handle);
    await page.getByRole("option", { name: handle }).click();
    await page.waitForURL(/account=/);
    await page.getByRole("combobox", { name: "Operator" }).fill("Olga");
    await page.getByRole("option", { name: await handleOf(app, operator) }).click();
    const rows = page.getByRole("region", { name: "Audit log" }).getByRole("row");
    await page.waitForURL(/actor=/);
    await expect.poll(() => rows.count()).toBe(2);
    await page.getByRole("combobox", { name: "Action" }).click();
    await page.getByRole("option", { name: "Granted credits" }).click();
    await page.getByText("No entries match your filters").waitFor();
    await page.getByRole("button", { name: "Clear filters" }).click();
    await page.getByLabel("To (UTC)").fill("2020-01-31");
    await page.getByText("No entries match your filters").waitFor();
    await context.close();
  });

  it("sees an invalid amount at its field, and keeps the input", async () => {
    const visit = await visitDashboard(browser, app, { person: operator });
    const { page } = visit;

    await grant(visit, operator.email, "-1");

    await page.getByText("must be", { exact: false }).first().waitFor();
    expect(await page.getByLabel("Note").inputValue()).toBe("from the test");
    await visit.context.close();
  });

  it("sees requests, upstreams and errors of the gateway live, and settlements behind Engine", async () => {
    const visit = await visitDashboard(browser, app, { person: operator });
    const { page } = visit;
    await visit.open("operator");
    await page.getByText("No model calls in the last hour").waitFor();

    await execute(app, ChatReceiptDocument);
    app.upstream.replyNext(errorReply(500));
    await execute({ ...app, headers: { "x-request-id": "shown-to-the-operator" } }, ChatReceiptDocument);

    await page.getByRole("region", { name: "Models and upstreams" }).getByText("50.0%").waitFor();
    await page.getByRole("region", { name: "Recent errors" }).getByText("shown-to-the-operator").waitFor();
    await expect.poll(() => page.locator("[data-requests]").getAttribute("data-requests")).toBe("1");
    await page.getByText("1 5xx").waitFor();
    await page.getByRole("img", { name: /^2 requests, at most [12] per minute/ }).waitFor();
    await page.getByText("Failing").waitFor();
    await screenshot(page, "operator-gateway");
    await page.getByText("Last 24 hours", { exact: true }).click();
    await page.getByText("Requests per hour").waitFor();
    await expect.poll(() => page.locator("[data-requests]").getAttribute("data-requests")).toBe("1");
    await page.getByText("Engine", { exact: true }).click();
    await expect.poll(async () => Number(await page.locator("[data-rate]").getAttribute("data-rate"))).toBeGreaterThanOrEqual(0);
    await page.getByText("This process").waitFor();
    await screenshot(page, "operator-engine");
    expect(visit.browserErrors).toEqual([]);
    await visit.context.close();
  });

  it("limits an account, which refuses its keys, and removes the limit", async () => {
    const person = await signUp(app, { name: "Grace" });
    const { key } = await createKey(app, person, "of Grace");
    const visit = await visitDashboard(browser, app, { person: operator });
    const { page, browserErrors } = visit;
    await grant(visit, person.email, "2.5");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Add limit" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("At most").fill("1");
    await dialog.getByRole("combobox", { name: "Of" }).click();
    await page.getByRole("option", { name: "requests", exact: true }).click();
    await dialog.getByRole("button", { name: "Add limit" }).click();
    await page.getByRole("cell", { name: "1 requests" }).waitFor();
    const chat = () =>
      fetch(`${app.baseUrl}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({ model: "acme/chat", messages: [{ role: "user", content: "Hi" }] }),
      }).then(({ status }) => status);

    expect([await chat(), await chat()]).toEqual([200, 429]);

    await page.reload();
    await page.getByText("1 (100%)").waitFor();
    await page.getByRole("region", { name: "Audit log" }).getByText(/limit/i).first().waitFor();
    await screenshot(page, "operator-account-limits");
    expect(await overflowOf(page)).toBeLessThanOrEqual(0);
    await page.getByRole("button", { name: "Remove", exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Remove limit" }).click();
    await page.getByText("No limits. Those of its keys are set by the account.").waitFor();
    expect(await chat()).toBe(200);
    expect(browserErrors).toEqual([]);
    await visit.context.close();
  });

  it("retries charges that the database refused", async () => {
    const accountId = randomUUID();
    await app.infrastructure.settler.refused.keep(settle({ accountId, apiKeyId: null }, 5n), new Error("there is no such account"));
    const visit = await visitDashboard(browser, app, { person: operator });
    const { page } = visit;
    await visit.open("operator");
    await page.getByText("1 charge refused by the database").waitFor();
    await page.getByRole("link", { name: "Open engine" }).click();
    await page.getByText("1 answer was delivered but could not be charged.").waitFor();
    await page.getByRole("region", { name: "Refused settlements" }).getByText("there is no such account").waitFor();
    await page.getByText("1 waiting").waitFor();
    await screenshot(page, "operator-refused");

    // Creates the missing account. The gateway may retry before the click on the button.
    await app.database.prisma.account.create({ data: { id: accountId, handle: `late-${accountId}`, packNanocredits: 100n } });
    const tryAgain = page.getByRole("button", { name: "Try again" });
    if (await tryAgain.isVisible()) await tryAgain.click();

    await page.getByText("No refused settlements").waitFor();
    expect(await app.database.prisma.usageRecord.count({ where: { accountId } })).toBe(1);
    expect(visit.browserErrors).toEqual([]);
    await visit.context.close();
  });

  it("sees long names with markup and right-to-left text on a phone", async () => {
    const person = await signUp(app, { name: STRANGE });
    const { prisma } = app.database;
    await prisma.account.update({ where: { id: person.accountId }, data: { githubUsername: `g${"h".repeat(38)}` } });
    const visit = await visitDashboard(browser, app, { person: operator, look: { scheme: "light", width: 360 } });
    for (const path of [`operator/accounts?q=${person.accountId}`, `operator/accounts/${person.accountId}`]) {
      await visit.open(path);
      await visit.page.getByText(STRANGE).first().waitFor();
      expect(await overflowOf(visit.page)).toBe(0);
      await screenshot(visit.page, `operator-strange-${path.includes("?") ? "list" : "one"}`);
    }
    expect(visit.browserErrors).toEqual([]);
    await visit.context.close();
  });

  it("is required for the operator pages, which the navigation hides from other accounts", async () => {
    const visit = await visitDashboard(browser, app);

    await visit.open("operator");

    await visit.page.getByRole("heading", { level: 1, name: "Operators only" }).waitFor();
    expect(await visit.page.getByRole("navigation", { name: "Pages" }).getByText("Operator").count()).toBe(0);
    await visit.context.close();
  });
});

/** Scripts that read the clock in two pages on one machine. */
const NOTE_CLICKS = 'window.addEventListener("click", () => { window.lastClickAt = Date.now(); }, true);';
const WHEN_BALANCE_MOVES = `new Promise((resolve) => {
  const shown = document.querySelector("header [data-balance]");
  new MutationObserver(() => resolve(Date.now())).observe(shown, { attributes: true, attributeFilter: ["data-balance"] });
})`;

const ABSENT = NO_BROWSER ?? (isPostgresInstalled ? null : POSTGRES_ABSENT);
if (ABSENT !== null) console.warn(`skipped, a grant on one process that another shows: ${ABSENT}`);

describe.skipIf(ABSENT !== null)("two processes on one PostgreSQL", () => {
  let browser: Browser;
  let shared: SuiteDatabase;
  let places: string[];
  let processes: TestApp[];

  beforeAll(async () => {
    [browser, shared] = await Promise.all([launchBrowser(), createPostgresDatabase()]);
    places = [await createEmptyDir(), await createEmptyDir()];
    const config = { databaseUrl: shared.url, encryptionKey: "the same for both processes" };
    processes = [];
    for (const dataDir of places) processes.push(await createTestApp({ dataDir, config }));
  });
  afterAll(async () => {
    await browser.close();
    await Promise.all(processes.map((each) => each.close()));
    await shared.drop();
    await Promise.all(places.map((place) => rm(place, { recursive: true, force: true })));
  });

  it("show a grant on one process as a new balance in a browser on the other", async ({ annotate }) => {
    const [one, other] = processes as [TestApp, TestApp];
    const person = await signUp(other, { name: "Ada" });
    const operators = await visitDashboard(browser, one, { person: await signUpOperator(one) });
    const persons = await visitDashboard(browser, other, { person });
    await persons.open();
    const balance = () => persons.page.locator("header [data-balance]").getAttribute("data-balance");
    // Free credits of the tier.
    await expect.poll(balance).toBe("1");

    const seenAt = persons.page.evaluate<number>(WHEN_BALANCE_MOVES);
    await operators.page.addInitScript(NOTE_CLICKS);
    await grant(operators, person.email, "12.5");

    // The page updates without a reload.
    await expect.poll(balance).toBe("13.5");
    const grantedAt = await operators.page.evaluate<number>("lastClickAt");
    await annotate(`The balance moved ${(await seenAt) - grantedAt} ms after the click that granted the credits.`);
    await persons.page.getByRole("status", { name: "Balance: 13.50 credits" }).waitFor();
    await screenshot(persons.page, "operator-grant-seen-elsewhere");
    await operators.open("operator?view=engine");
    await operators.page.getByText("Another gateway").waitFor();
    expect([...operators.browserErrors, ...persons.browserErrors]).toEqual([]);
    await Promise.all([operators.context.close(), persons.context.close()]);
  });
});
