/** What docs/authorization.md tells people to paste, pasted: the page in a real browser, the script as a process, the command in a shell. */
import { spawn } from "node:child_process";
import { readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { launchBrowser, NO_BROWSER } from "../support/browser.js";
import { createEmptyDir } from "../support/database.js";
import { formTo, openPage, submitForm } from "../support/pages.js";
import { type Person, signUp } from "../support/sign-in.js";

const DOCUMENT = fileURLToPath(new URL("../../docs/authorization.md", import.meta.url));

let app: TestApp;
let person: Person;
let directory: string;
let text: string;

beforeAll(async () => {
  [app, directory, text] = await Promise.all([createTestApp(), createEmptyDir(), readFile(DOCUMENT, "utf8")]);
  person = await signUp(app, { credits: 100 });
});
afterAll(async () => {
  await app.close();
  await rm(directory, { recursive: true });
});

/** The document's one block in a language that has these words, against this gateway. */
function block(language: string, words = ""): string {
  const blocks = [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, "gms"))].filter(([whole]) => whole.includes(words));
  expect(blocks).toHaveLength(1);
  return (blocks[0]?.[1] ?? "").replaceAll("http://localhost:4000", app.baseUrl);
}

interface Run {
  readonly output: () => string;
  readonly ended: Promise<number | null>;
}

function run(command: string, args: readonly string[], env: Readonly<Record<string, string>>): Run {
  const child = spawn(command, args, { cwd: directory, env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (piece: string) => (output += piece));
  return { output: () => output, ended: new Promise((resolve) => child.once("close", resolve)) };
}

/** Decides as the person, and goes where they are sent. */
async function decide(url: string, decision: "approve" | "deny"): Promise<void> {
  const { cookie } = person;
  const page = await openPage(app.baseUrl, url.slice(app.baseUrl.length), { cookie });
  const { location } = await submitForm(app.baseUrl, formTo(page, "/authorize"), { cookie, button: ["decision", decision] });
  await fetch(location ?? "");
}

it("registers a client, whose id leads to a page that calls it unverified", async () => {
  const shell = run("bash", ["-c", block("sh", "/api/oauth/register")], {});
  expect(await shell.ended).toBe(0);
  const { client_id: clientId } = JSON.parse(shell.output()) as { client_id: string };

  const query = new URLSearchParams({
    client_id: clientId,
    redirect_uri: "http://127.0.0.1/callback",
    response_type: "code",
    code_challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
    code_challenge_method: "S256",
  });
  const page = await fetch(`${app.baseUrl}/authorize?${query}`, { headers: { cookie: person.cookie } });

  expect(page.status).toBe(200);
  expect(await page.text()).toMatch(/unverified/i);
});

it("makes an app key, with which the script signs a person in", async () => {
  const shell = run("bash", ["-c", block("sh", "/account/keys")], { SLUICE_KEY: app.key });
  expect(await shell.ended).toBe(0);
  const created = JSON.parse(shell.output()) as { key: string; name: string };
  await writeFile(join(directory, "login.mjs"), block("js"));

  const login = run("node", ["login.mjs"], { SLUICE_APP_KEY: created.key });
  await expect.poll(login.output, { timeout: 20_000 }).toMatch(/^Open \S+\n/);
  await decide(/^Open (\S+)/.exec(login.output())?.[1] ?? "", "approve");

  expect([await login.ended, login.output()]).toEqual([
    0,
    expect.stringMatching(/A key for 30 days, scope "balance", with a budget of 0\.5\.\n.*Sluice/s),
  ]);
});

it("ends the script when the person denies", async () => {
  await writeFile(join(directory, "login.mjs"), block("js"));

  const login = run("node", ["login.mjs"], {});
  await expect.poll(login.output, { timeout: 20_000 }).toMatch(/^Open \S+\n/);
  await decide(/^Open (\S+)/.exec(login.output())?.[1] ?? "", "deny");

  expect([await login.ended, login.output()]).toEqual([1, expect.stringContaining("Error: access_denied")]);
});

it.skipIf(NO_BROWSER !== null)("has a page that generates with its visitor's credits", async () => {
  const site = createServer((_req, res) => res.writeHead(200, { "Content-Type": "text/html" }).end(block("html")));
  await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve));
  const siteUrl = `http://localhost:${(site.address() as AddressInfo).port}`;
  const browser = await launchBrowser();
  try {
    const context = await browser.newContext();
    const [name = "", value = ""] = person.cookie.split("=");
    await context.addCookies([{ name, value, url: app.baseUrl }]);
    const page = await context.newPage();
    await page.goto(`${siteUrl}/app.html`);
    await page.click("#go");
    await page.waitForURL(/\/authorize\?/);
    await page.click('button[value="approve"]');
    await page.waitForURL(`${siteUrl}/app.html`);
    await page.click("#go");

    await expect.poll(() => page.locator("#out").textContent(), { timeout: 10_000 }).toMatch(/\S/);
    expect(await page.locator("#out").textContent()).toContain("Sluice");
  } finally {
    await browser.close();
    await new Promise((resolve) => site.close(resolve));
  }
});
