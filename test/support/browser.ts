/** Browser for tests: Debian's Chromium, driven by playwright-core. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";

const CHROMIUM = "/usr/bin/chromium";

/** Reason why browser tests cannot run here, otherwise null. For `describe.skipIf(NO_BROWSER)`. */
export const NO_BROWSER = existsSync(CHROMIUM) ? null : `no browser at ${CHROMIUM}: install Debian's package chromium`;
if (NO_BROWSER !== null) console.warn(`Browser tests are skipped: ${NO_BROWSER}.`);

/** Disables Chromium's calls of its own services at start. */
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

/** Flags for a fake microphone that beeps and needs no permission. */
export const BEEPING_MICROPHONE = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"];

export function launchBrowser(flags: readonly string[] = []): Promise<Browser> {
  return chromium.launch({ executablePath: CHROMIUM, headless: true, args: [...FLAGS, ...flags] });
}

/** Context with the screen of a small phone. */
export function openPhone(browser: Browser): Promise<BrowserContext> {
  return browser.newContext({ viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true });
}

/** Presses Tab until the element has the focus, and returns the number of presses. Throws after `pressesMax`. */
export async function tabTo(page: Page, selector: string, pressesMax = 60): Promise<number> {
  for (let presses = 1; presses <= pressesMax; presses += 1) {
    await page.keyboard.press("Tab");
    if (await page.evaluate<boolean>(`document.activeElement.matches(${JSON.stringify(selector)})`)) return presses;
  }
  throw new Error(`Tab does not reach ${selector} in ${pressesMax} presses.`);
}

/** Pixels by which the page is wider than its window, 0 without horizontal scrolling. */
export function overflowOf(page: Page): Promise<number> {
  return page.evaluate<number>("document.documentElement.scrollWidth - document.documentElement.clientWidth");
}

/** Folder for screenshots, null for none. */
const PICTURES = process.env.SCREENSHOTS || null;

/** Saves a screenshot of the full page in the folder SCREENSHOTS. */
export async function screenshot(page: Page, name: string): Promise<void> {
  if (PICTURES !== null) await page.screenshot({ path: join(PICTURES, `${name}.png`), fullPage: true });
}
