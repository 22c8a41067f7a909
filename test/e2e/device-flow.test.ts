/**
 * The device flow for people: a program on a terminal (examples/device-login.mjs, with an unmodified openid-client)
 * shows a code, a person types it on a phone, by keyboard alone, and the program spends its grant and no more.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import * as openid from "openid-client";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, type TestContext } from "vitest";
import { createKey } from "../rest/client.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { launchBrowser, NO_BROWSER, openPhone, overflowOf, screenshot, tabTo } from "../support/browser.js";
import { nobody, type Person, signUp } from "../support/sign-in.js";
import { visit } from "../support/visitor.js";

const EXAMPLE = fileURLToPath(new URL("../../examples/device-login.mjs", import.meta.url));

let app: TestApp;
/** As the gateway calls itself. */
let gateway: string;
let appKey: string;

beforeAll(async () => {
  app = await createTestApp();
  gateway = app.baseUrl.replace("127.0.0.1", "localhost");
  appKey = (await createKey(app, { name: "Terminal notes", type: "publishable" })).key;
});
afterAll(() => app.close());

interface Program {
  readonly said: () => string;
  /** The code and address that the program shows. */
  userCode(): Promise<string>;
  /** Its exit code, once it has ended. */
  end(): Promise<number | null>;
}

function runExample({ onTestFinished, expect: expectHere }: TestContext, ...prompts: string[]): Program {
  const env = { ...process.env, SLUICE_APP_KEY: appKey, SLUICE_URL: gateway, SLUICE_MODEL: "sandbox/text-paid" };
  const child = spawn(process.execPath, [EXAMPLE, ...prompts], { env, stdio: ["ignore", "pipe", "pipe"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text: string) => (said += text));
  const ended = once(child, "exit") as Promise<[number | null]>;
  return {
    said: () => said,
    userCode: async () => {
      await expectHere.poll(() => said, { timeout: 10_000 }).toMatch(/type [A-Z]{4}-[A-Z]{4}\n/);
      return /type ([A-Z]{4}-[A-Z]{4})\n/.exec(said)?.[1] ?? "";
    },
    end: async () => (await ended)[0],
  };
}

describe.skipIf(NO_BROWSER !== null).concurrent("the device flow in a browser", () => {
  let browser: Browser;

  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser?.close());

  async function expectUsable(page: Page, name: string): Promise<void> {
    expect(await overflowOf(page)).toBe(0);
    await screenshot(page, name);
  }

  it("leads from a code on a terminal to a key with the chosen limits", async (test) => {
    const page = await (await openPhone(browser)).newPage();
    const program = runExample(test, "[tokens in=1000 out=1000] Hello", "[tokens in=1000 out=1000] Again");
    const userCode = await program.userCode();

    await page.goto(`${gateway}/device`);
    await tabTo(page, 'a[href*="sign-up"]');
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/sign-up\?return_to=/);
    await tabTo(page, "#email");
    await page.keyboard.type("sam@example.com");
    await tabTo(page, "#password");
    await page.keyboard.type("correct horse battery");
    await page.keyboard.press("Enter");

    // The code has the focus: it is typed at once, wrong first.
    await page.waitForURL(`${gateway}/device`);
    await expectUsable(page, "device-code");
    await page.keyboard.type("BCDF GHJ");
    await page.keyboard.press("Enter");
    expect(await page.getByRole("alert").textContent()).toContain("eight letters");
    await expectUsable(page, "device-code-refused");
    await page.keyboard.press("Control+A");
    await page.keyboard.type(userCode.toLowerCase().replace("-", " "));
    await page.keyboard.press("Enter");

    await page.getByRole("heading", { name: "Allow Terminal notes to spend your credits?" }).waitFor();
    expect(await page.locator(".code-shown").textContent()).toBe(userCode);
    await expectUsable(page, "device-confirmation");
    await tabTo(page, 'input[name="model_choice"][value="all"]');
    await page.keyboard.press("ArrowDown");
    await tabTo(page, 'input[name="models"][value="sandbox/text-paid"]', 200);
    await page.keyboard.press("Space");
    await tabTo(page, "#budget", 200);
    await page.keyboard.press("Control+A");
    await page.keyboard.type("0.03");
    // Enter in a field decides nothing.
    await page.keyboard.press("Enter");
    await tabTo(page, 'input[name="permissions"][value="profile"]');
    await page.keyboard.press("Space");
    await expectUsable(page, "device-narrowed");
    await tabTo(page, 'button[value="approve"]');
    await page.keyboard.press("Enter");

    await page.getByRole("heading", { name: "Allowed" }).waitFor();
    expect(await page.locator("dl").textContent()).toContain("0.03 credits");
    await expectUsable(page, "device-allowed");

    expect([await program.end(), program.said()]).toEqual([0, expect.stringContaining("may read: usage\n")]);
    const [, first, second] = program.said().split(/(?<=may read: usage\n)|(?<=credits\)\n)/);
    expect(first).toMatch(/\(0\.\d+ credits\)\n$/);
    expect(second).toMatch(/^402 KEY_BUDGET_EXHAUSTED: /);
  });

  it("fills the code in from the link, and a denial gives the program no key", async (test) => {
    const phone = await openPhone(browser);
    const [name = "", value = ""] = (await signUp(app)).cookie.split("=");
    await phone.addCookies([{ name, value, url: gateway }]);
    const page = await phone.newPage();
    const program = runExample(test);
    const userCode = await program.userCode();

    await page.goto(`${gateway}/device?user_code=${userCode}`);
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByRole("button", { name: "Deny" }).click();
    await page.getByRole("heading", { name: "Denied" }).waitFor();
    await expectUsable(page, "device-denied");

    expect([await program.end(), program.said()]).toEqual([1, expect.stringContaining("No key: access_denied")]);
  });
});

describe.concurrent("an unmodified openid-client", () => {
  let person: Person;
  let config: openid.Configuration;

  beforeAll(async () => {
    person = await signUp(app);
    config = await openid.discovery(new URL(gateway), appKey, undefined, openid.None(), {
      algorithm: "oauth2",
      execute: [openid.allowInsecureRequests],
    });
  });

  it("discovers, requests, polls and learns the account of its key", async () => {
    const device = await openid.initiateDeviceAuthorization(config, { scope: "profile" });
    const polling = openid.pollDeviceAuthorizationGrant(config, device);
    const visitor = visit(gateway, person);
    const page = await visitor.send(await visitor.open("/device"), "/device", { user_code: device.user_code });
    expect((await visitor.send(page, "/device/decision", { decision: "approve", budget: "1" })).status).toBe(200);

    const token = await polling;

    expect(token).toMatchObject({
      access_token: expect.stringMatching(/^sk_/),
      token_type: "bearer",
      scope: "profile",
    });
    // A second may pass between the making of the key and the answer.
    expect(2_592_000 - (token.expires_in ?? 0)).toBeOneOf([0, 1]);
    expect(await openid.fetchUserInfo(config, token.access_token, person.accountId)).toMatchObject({ email: person.email });
  });

  it("gets each failure by its name", async () => {
    const device = await openid.initiateDeviceAuthorization(config, {});
    const caller = { kind: "session", accountId: person.accountId, sessionId: person.sessionId, isOperator: false } as const;
    await app.services.deviceAuthorizations.deny({ ...nobody(), caller }, { userCode: device.user_code });

    await expect(openid.initiateDeviceAuthorization(config, { scope: "keys" })).rejects.toMatchObject({ error: "invalid_scope" });
    await expect(
      openid.genericGrantRequest(config, "urn:ietf:params:oauth:grant-type:device_code", { device_code: "unknown" }),
    ).rejects.toMatchObject({
      error: "invalid_grant",
    });
    await expect(
      openid.genericGrantRequest(config, "urn:ietf:params:oauth:grant-type:device_code", { device_code: device.device_code }),
    ).rejects.toMatchObject({ error: "access_denied" });
    const stranger = new openid.Configuration(config.serverMetadata(), "pk_unknown", undefined, openid.None());
    openid.allowInsecureRequests(stranger);
    await expect(openid.initiateDeviceAuthorization(stranger, {})).rejects.toMatchObject({ error: "invalid_client" });
  });
});
