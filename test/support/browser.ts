/** A real browser for tests: Debian's Chromium, driven by playwright-core. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";

const CHROMIUM = "/usr/bin/chromium";

/** For `describe.skipIf(NO_BROWSER)`: why these tests cannot run here; null where they can. */
export const NO_BROWSER = existsSync(CHROMIUM) ? null : `no browser at ${CHROMIUM}: install Debian's package chromium`;
if (NO_BROWSER !== null) console.warn(`Browser tests are skipped: ${NO_BROWSER}.`);

/** Chromium looks for its own services at every start unless told otherwise. */
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--disable-dev-shm-usage",
];

/** For `launchBrowser`: a microphone that beeps, and nobody is asked for it. */
export const BEEPING_MICROPHONE = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"];

export function launchBrowser(flags: readonly string[] = []): Promise<Browser> {
  return chromium.launch({ executablePath: CHROMIUM, headless: true, args: [...FLAGS, ...flags] });
}

/** The width of a small phone. */
export function openPhone(browser: Browser): Promise<BrowserContext> {
  return browser.newContext({ viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true });
}

/** Presses Tab until the element has the focus; how often it took. Fails when the focus comes round without meeting it. */
export async function tabTo(page: Page, selector: string, pressesMax = 60): Promise<number> {
  for (let presses = 1; presses <= pressesMax; presses += 1) {
    await page.keyboard.press("Tab");
    if (await page.evaluate<boolean>(`document.activeElement.matches(${JSON.stringify(selector)})`)) return presses;
  }
  throw new Error(`Tab does not reach ${selector} in ${pressesMax} presses.`);
}

/** By how many pixels the page is wider than its window: 0 where nothing has to be scrolled sideways. */
export function overflowOf(page: Page): Promise<number> {
  return page.evaluate<number>("document.documentElement.scrollWidth - document.documentElement.clientWidth");
}

/** Where pictures of pages are put when somebody wants to look at them; null: nowhere. */
const PICTURES = process.env.SCREENSHOTS || null;

/** A picture of the whole page, below the folder that SCREENSHOTS names. */
export async function screenshot(page: Page, name: string): Promise<void> {
  if (PICTURES !== null) await page.screenshot({ path: join(PICTURES, `${name}.png`), fullPage: true });
}
