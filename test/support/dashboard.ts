/** The dashboard in a real browser, with a signed-in account. */
import axe, { type AxeResults } from "axe-core";
import type { Browser, BrowserContext, Page } from "playwright-core";
import type { TestApp } from "./app.js";
import { type Person, type PersonOptions, signUp } from "./sign-in.js";

export interface Look {
  readonly scheme: "light" | "dark";
  readonly width: number;
}

export const WIDE: Look = { scheme: "light", width: 1280 };
export const LOOKS: readonly Look[] = [
  WIDE,
  { scheme: "dark", width: 1280 },
  { scheme: "light", width: 390 },
  { scheme: "dark", width: 390 },
];

export interface DashboardVisit {
  readonly context: BrowserContext;
  readonly page: Page;
  readonly person: Person;
  /** Script errors and violations of the content security policy. */
  readonly browserErrors: readonly string[];
  /** Opens an address below /dashboard and waits for its heading. */
  open(path?: string): Promise<void>;
}

/** Opens a tab for `person`, or for a new account. Close `context` when done. */
export async function visitDashboard(
  browser: Browser,
  app: Pick<TestApp, "baseUrl" | "services">,
  options: { readonly look?: Look; readonly person?: Person } & PersonOptions = {},
): Promise<DashboardVisit> {
  const { look = WIDE, person = await signUp(app, { credits: 10, ...options }) } = options;
  const context = await openContext(browser, look);
  const [name = "", value = ""] = person.cookie.split(/=(.*)/s);
  await context.addCookies([{ name, value, url: app.baseUrl, httpOnly: true }]);
  // Long enough for a busy machine. Only a real hang should fail.
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  const browserErrors: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error") browserErrors.push(`${message.text()} (${message.location().url})`);
  });
  page.on("pageerror", (error) => browserErrors.push(String(error)));
  return {
    context,
    page,
    person,
    browserErrors,
    open: async (path = "") => {
      await page.goto(`${app.baseUrl}/dashboard${path === "" ? "" : `/${path}`}`);
      await page.getByRole("heading", { level: 1 }).waitFor();
    },
  };
}

export function openContext(browser: Browser, { scheme, width }: Look): Promise<BrowserContext> {
  const height = width < 600 ? 844 : 900;
  return browser.newContext({ viewport: { width, height }, colorScheme: scheme, reducedMotion: "reduce" });
}

/** Serious and critical accessibility violations found by axe, as sentences. */
export async function seriousFindings(page: Page): Promise<string[]> {
  // Injected through the debugger, because the content security policy of the page blocks inline scripts.
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate<AxeResults>(
    `axe.run(document, { resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] })`,
  );
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => `${id} at ${target.join(" ")}: ${failureSummary}`));
}

/** Runs a GraphQL operation outside the browser. Rejects on errors. */
export async function runGraphql(
  app: Pick<TestApp, "baseUrl">,
  headers: Readonly<Record<string, string>>,
  query: string,
  variables: Readonly<Record<string, unknown>> = {},
): Promise<void> {
  const response = await fetch(`${app.baseUrl}/graphql`, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers },
    body: JSON.stringify({ query, variables }),
  });
  const { errors } = (await response.json()) as { readonly errors?: readonly unknown[] };
  if (errors) throw new Error(JSON.stringify(errors));
}
