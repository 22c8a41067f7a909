/** Open tabs while the gateway restarts, as at each deployment: they are live again without a reload. */
import { rm } from "node:fs/promises";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { OWNER_KEY } from "../support/app.js";
import { launchBrowser, NO_BROWSER } from "../support/browser.js";
import { type BuiltServer, startBuiltServer } from "../support/built-server.js";
import { openContext, runGraphql, WIDE } from "../support/dashboard.js";
import { createEmptyDir, createTestDataDir } from "../support/database.js";
import { freePort } from "../support/free-port.js";
import { isPostgresInstalled } from "../support/postgres.js";
import { createPostgresDatabase } from "../support/suite-server.js";

const GRANT = "mutation ($input: GrantCreditsInput!) { grantCredits(input: $input) { __typename } }";

describe.skipIf(NO_BROWSER)("an open tab at a restart of the gateway", () => {
  let browser: Browser;
  const removals: (() => unknown)[] = [];

  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser?.close());
  afterEach(async () => {
    for (const remove of removals.splice(0).reverse()) await remove();
  });

  const ends = [
    ["one process", 1, "SIGTERM", true],
    ["one process", 1, "SIGKILL", true],
    ["several workers", 2, "SIGTERM", isPostgresInstalled],
    ["several workers", 2, "SIGKILL", isPostgresInstalled],
  ] as const;

  it.each(ends)("is live again without a reload (%s, %i, %s)", async (_, workers, signal, canRun) => {
    if (!canRun) return;
    const start = await prepare(workers);
    const first = await start();
    const person = await signUp(first);
    const context = await open(first, person.cookie);
    const overview = await watch(context);
    const other = await watch(context);
    for (const { page } of [overview, other]) await page.goto(`${first.baseUrl}/dashboard`);
    await Promise.all([overview, other].map((tab) => grantUntilLive(first, person.accountId, tab)));
    await overview.page.evaluate("window.isSamePage = true");

    first.child.kill(signal);
    await first.ended;
    for (const { page } of [overview, other]) await page.getByText("Cannot reach the gateway").first().waitFor();
    await other.page.getByRole("link", { name: "Webhooks" }).click();
    await other.page.getByRole("heading", { level: 1, name: "This page could not be loaded" }).waitFor();
    const second = await start();

    await overview.page.getByText("Cannot reach the gateway").waitFor({ state: "detached" });
    await other.page.getByRole("heading", { level: 1, name: "Webhooks" }).waitFor();
    await Promise.all([overview, other].map((tab) => grantUntilLive(second, person.accountId, tab)));
    expect(await overview.page.evaluate("window.isSamePage")).toBe(true);
  });

  async function prepare(workers: number): Promise<() => Promise<BuiltServer>> {
    const port = String(await freePort());
    const { dataDir, env } = workers === 1 ? await embedded() : await shared(workers);
    return async () => {
      const server = await startBuiltServer({ dataDir, env: { ...env, PORT: port } });
      removals.push(() => server.stop());
      return server;
    };
  }

  async function embedded() {
    const { dataDir, remove } = await createTestDataDir();
    removals.push(remove);
    return { dataDir, env: {} };
  }

  async function shared(workers: number) {
    const [database, dataDir] = await Promise.all([createPostgresDatabase(), createEmptyDir()]);
    removals.push(database.drop, () => rm(dataDir, { recursive: true }));
    return { dataDir, env: { DATABASE_URL: database.url, WORKERS: String(workers) } };
  }

  async function open({ baseUrl }: BuiltServer, cookie: string): Promise<BrowserContext> {
    const context = await openContext(browser, WIDE);
    removals.push(() => context.close());
    context.setDefaultTimeout(60_000);
    const [name = "", value = ""] = cookie.split(/=(.*)/s);
    await context.addCookies([{ name, value, url: baseUrl, httpOnly: true }]);
    return context;
  }
});

interface Tab {
  readonly page: Page;
  /** Events of the balance that came over a WebSocket. */
  readonly events: { count: number };
}

async function watch(context: BrowserContext): Promise<Tab> {
  const page = await context.newPage();
  const events = { count: 0 };
  page.on("websocket", (socket) =>
    socket.on("framereceived", ({ payload }) => {
      if (String(payload).includes('"balanceChanged"')) events.count += 1;
    }),
  );
  return { page, events };
}

/** Gives credits until an event arrives, then until the page shows the newest balance. */
async function grantUntilLive(server: BuiltServer, accountId: string, { page, events }: Tab): Promise<void> {
  const before = events.count;
  let granted = 0;
  await expect
    .poll(
      async () => {
        await runGraphql(server, { Authorization: `Bearer ${OWNER_KEY}` }, GRANT, { input: { accountId, bucket: "PACK", credits: "1" } });
        granted += 1;
        return events.count - before;
      },
      { timeout: 60_000, interval: 200 },
    )
    .toBeGreaterThan(0);
  expect(granted).toBeGreaterThan(0);
  await expect.poll(() => page.locator("[data-balance]").first().getAttribute("data-balance"), { timeout: 60_000 }).toMatch(/^\d/);
}

async function signUp({ baseUrl }: BuiltServer): Promise<{ readonly accountId: string; readonly cookie: string }> {
  const response = await fetch(`${baseUrl}/graphql`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "Sec-Fetch-Site": "same-origin" },
    body: JSON.stringify({
      query: "mutation ($input: SignUpInput!) { signUp(input: $input) { accountId } }",
      variables: { input: { email: "open-tab@example.com", password: "correct horse battery" } },
    }),
  });
  const { data } = (await response.json()) as { readonly data: { readonly signUp: { readonly accountId: string } } };
  return { ...data.signUp, cookie: response.headers.getSetCookie()[0]?.split(";", 1)[0] ?? "" };
}
