/** Layout and accessibility of every page, in both colour schemes, on a phone and on a desktop. */
import { randomUUID } from "node:crypto";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { toGlobalId } from "../../src/graphql/global-ids.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { launchBrowser, NO_BROWSER, overflowOf, screenshot } from "../support/browser.js";
import { type DashboardVisit, LOOKS, seriousFindings, visitDashboard } from "../support/dashboard.js";
import { type Person, signUp } from "../support/sign-in.js";

/** Relative to /dashboard. */
const PATHS = [
  ["", "keys", "keys?new"],
  ["usage", "usage?status=CANCELLED&from=24h", "models", "models?can=TOOLS&cost=paid", "models/acme/chat"],
  ["logs", "logs?status=4xx&code=RATE_LIMITED", "logs/:failure"],
  ["operator", "operator?view=day", "operator?view=engine", "operator/accounts", "operator/accounts?new"],
  [
    "operator/logs",
    "operator/logs/:failure",
    "operator/audit",
    "operator/audit/:audit",
    "operator/spend",
    "operator/spend?by=key",
    "operator/sales",
    "operator/earnings",
  ],
  ["apps", "apps?new"],
  ["my-models", "my-models/new", "my-models/new?step=2", "my-models/new?step=4"],
  ["files", "files?kind=video&tag=none"],
  ["playground", ...["image", "video", "speech", "music", "transcription", "embeddings"].map((kind) => `playground/${kind}`)],
  ["alerts"],
  ["webhooks", "webhooks?new"],
  ["account", "account/sessions", "account/data", "credits"],
].flat();

const FAILURE_ID = "00000000-0000-4000-8000-0000000fa11e";
const AUDIT_ID = "00000000-0000-4000-8000-0000000a0d17";
const ENDPOINT_ID = "00000000-0000-4000-8000-00000000e9d1";

describe.skipIf(NO_BROWSER)("layout and accessibility", () => {
  let browser: Browser;
  let app: TestApp;
  let person: Person;
  let visit: DashboardVisit;

  beforeAll(async () => {
    [browser, app] = await Promise.all([launchBrowser(), createTestApp()]);
    person = await signUp(app, { credits: 10, name: "Ada" });
    await app.database.prisma.account.update({ where: { id: person.accountId }, data: { isOperator: true } });
    await addEndpoint(app, person);
    await addRequests(app, person);
    await addActs(app, person);
    visit = await visitDashboard(browser, app, { person });
  });
  afterAll(async () => {
    await browser.close();
    await app.close();
  });

  it.each([...PATHS, "operator/accounts/:account", `webhooks/${toGlobalId("WebhookEndpoint", ENDPOINT_ID)}`])(
    "fits its window and passes axe in both schemes and widths: /dashboard/%s",
    async (path) => {
      const { page } = visit;
      await visit.open(
        path.replace(":account", person.accountId).replace(":failure", FAILURE_ID).replace(":audit", toGlobalId("AuditEntry", AUDIT_ID)),
      );
      await page.waitForLoadState("networkidle");
      for (const { scheme, width } of LOOKS) {
        await page.emulateMedia({ colorScheme: scheme });
        await page.setViewportSize({ width, height: 900 });
        await expect.poll(() => readAppearance(page), { message: "transitions have not finished" }).toEqual({ scheme, transitions: 0 });
        await screenshot(page, `${path.replace(/\W/g, "-") || "overview"}-${scheme}-${width}`);
        await expect.poll(() => overflowOf(page), { message: "is wider than its window" }).toBe(0);
        // axe is slow, so it checks each scheme and each width once.
        if ((scheme === "light") === width > 600) expect(await seriousFindings(page), scheme).toEqual([]);
      }
      expect(visit.browserErrors).toEqual([]);
    },
  );

  it.each(LOOKS.filter(({ scheme, width }) => (scheme === "light") === width > 600))(
    "pages without scripts fit their window and pass axe: $scheme, $width px",
    async (look) => {
      const { page, context } = await visitDashboard(browser, app, { look, person });
      const check = async (path: string) => {
        await page.goto(`${app.baseUrl}/${path}`);
        await page.getByRole("heading", { level: 1 }).waitFor();
        await screenshot(page, `plain-${path.split(/[^a-z]redirect_url/)[0]?.replace(/\W/g, "-") || "start"}-${look.scheme}-${look.width}`);
        expect(await overflowOf(page), `/${path} is wider than its window`).toBe(0);
        expect(await seriousFindings(page), `/${path}`).toEqual([]);
      };
      for (const path of PLAIN_PATHS) await check(path);
      await check(`authorize?redirect_url=${encodeURIComponent("http://127.0.0.1:9/")}&${ASKED}`);
      await page.locator("#budget").fill("9");
      await page.evaluate(`document.querySelector('form[action="/authorize"]').noValidate = true`);
      await page.getByRole("button", { name: "Allow" }).click();
      await page.getByRole("alert").waitFor();
      await screenshot(page, `plain-refused-${look.scheme}-${look.width}`);
      expect(await seriousFindings(page), "a refused form").toEqual([]);
      await context.clearCookies();
      for (const path of SIGNED_OUT_PATHS) await check(path);
      await context.close();
    },
  );
});

/** Pages that work without scripts. */
const PLAIN_PATHS = ["home", "home/keys", "home/keys/new", "sessions", "password", "device", "device?user_code=BCDF-GHJK", "nothing/here"];
const ASKED = "budget=0.5&expiry=14&permissions=profile,balance&models=sandbox/text-paid,sandbox/text,acme/image";
const SIGNED_OUT_PATHS = ["", "sign-in", "sign-up", `sign-in?return_to=${encodeURIComponent("/device")}`];

/** Adds a failing endpoint with a long URL and deliveries of all states. */
async function addEndpoint({ database }: TestApp, { accountId }: Person): Promise<void> {
  const url = `https://hooks.example.com/${"a-long-path/".repeat(12)}`;
  await database.prisma.webhookEndpoint.create({
    data: {
      ...{ id: ENDPOINT_ID, accountId, url, secret: new Uint8Array(32), events: ["usage.recorded", "balance.low"] },
      failingSince: new Date(),
      isEnabled: false,
      disabledReason: "failing",
    },
  });
  const states = [
    { status: "failed", lastStatus: 500, lastError: "The endpoint answered 500: <b>Internal \u05e9\u05dc\u05d5\u05dd</b>", attempts: 8 },
    { status: "failed", lastStatus: null, lastError: "No answer within 10 seconds.", attempts: 8 },
    { status: "delivered", lastStatus: 204, lastError: null, attempts: 1 },
  ] as const;
  await database.prisma.webhookDelivery.createMany({
    data: states.map((state, index) => ({
      ...{ id: randomUUID(), endpointId: ENDPOINT_ID, event: "usage.recorded", eventKey: String(index) },
      ...{ payload: {}, nextAttemptAt: new Date(), finishedAt: new Date(), ...state },
    })),
  });
}

/** Adds acts of operators: with long texts, by the command line, and on a deleted account. */
async function addActs({ database }: TestApp, { accountId }: Person): Promise<void> {
  const common = { accountId, actorAccountId: accountId, address: "2001:db8:85a3::8a2e:370:7334", requestId: `req-${"a".repeat(100)}` };
  await database.prisma.auditEntry.createMany({
    data: [
      {
        ...common,
        id: AUDIT_ID,
        act: "revoke_api_key",
        objectId: randomUUID(),
        before: { isRevoked: false },
        after: { isRevoked: true, apiKeyIds: [randomUUID(), randomUUID()] },
        reason: `Found in a public repository. ${"A long reason. ".repeat(20)}`,
      },
      { ...common, id: randomUUID(), act: "set_tier", before: { tier: "free" }, after: { tier: null } },
      {
        id: randomUUID(),
        act: "suspend_account",
        accountId: randomUUID(),
        after: { isSuspended: true },
        reason: "\u05e9\u05dc\u05d5\u05dd",
      },
    ],
  });
}

/** Adds failures of several kinds, and a charged generation. */
async function addRequests({ database }: TestApp, { accountId }: Person): Promise<void> {
  const common = { accountId, apiKeyName: "production", route: "/v1/chat/completions", model: "acme/chat", milliseconds: 12 };
  const failures = [
    {
      id: FAILURE_ID,
      status: 402,
      code: "INSUFFICIENT_BALANCE",
      message: "The request needs 0.25 credits, and 0.1 are available.",
      leftOut: 41,
    },
    { id: randomUUID(), status: 429, code: "RATE_LIMITED", message: "Too many requests with this key.", leftOut: 0 },
    { id: randomUUID(), status: 502, code: "UPSTREAM_ERROR", message: `The upstream failed. ${"A long message. ".repeat(20)}`, leftOut: 0 },
    { id: randomUUID(), status: 400, code: "BAD_REQUEST", message: "messages: is required", leftOut: 0, model: null },
  ];
  await database.prisma.failedRequest.createMany({
    data: failures.map((failure, index) => ({
      ...{
        ...common,
        apiKeyId: randomUUID(),
        requestId: `req-${index}-${"a".repeat(100)}`,
        timestamp: new Date(Date.now() - index * 1000),
      },
      ...failure,
    })),
  });
  await database.prisma.usageRecord.create({
    data: {
      ...{ id: randomUUID(), accountId, timestamp: new Date(), modality: "text", model: "acme/chat", modelUsed: "acme/chat" },
      ...{ meterSource: "pack", costNanocredits: 1_500_000n, responseTimeMs: 812, status: "ok", usageSource: "provider" },
      ...{ inputTextTokens: 120, outputTextTokens: 340 },
    },
  });
}

/** Colour scheme of the page, and the number of running transitions. */
function readAppearance(page: Page): Promise<{ readonly scheme: string | null; readonly transitions: number }> {
  return page.evaluate(() => ({
    scheme: document.documentElement.getAttribute("data-mantine-color-scheme"),
    transitions: document.getAnimations().filter((each) => each instanceof CSSTransition).length,
  }));
}
