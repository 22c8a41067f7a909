/** The dashboard in a real browser: somebody who is signed in, at a width and in a scheme. */
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
  /** What the browser has complained of: errors of scripts, and what the page's policy forbade. */
  readonly browserErrors: readonly string[];
  /** Opens an address below /dashboard and waits for its heading. */
  open(path?: string): Promise<void>;
}

/** Signs a new account up, unless told who it is, and opens a tab for it. Close `context` when done. */
export async function visitDashboard(
  browser: Browser,
  app: Pick<TestApp, "baseUrl" | "services">,
  options: { readonly look?: Look; readonly person?: Person } & PersonOptions = {},
): Promise<DashboardVisit> {
  const { look = WIDE, person = await signUp(app, { credits: 10, ...options }) } = options;
  const context = await openContext(browser, look);
  const [name = "", value = ""] = person.cookie.split(/=(.*)/s);
  await context.addCookies([{ name, value, url: app.baseUrl, httpOnly: true }]);
  // It ends what hangs; what is merely slow on a busy machine must not fail.
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

/** What axe finds that is serious or critical, as sentences. */
export async function seriousFindings(page: Page): Promise<string[]> {
  // As a parameter of the debugger: the page's policy lets no script of ours in.
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate<AxeResults>(
    `axe.run(document, { resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] })`,
  );
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => `${id} at ${target.join(" ")}: ${failureSummary}`));
}

/** What happens elsewhere meanwhile, by the graph. Fails on errors. */
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
