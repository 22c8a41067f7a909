/** What docs/media.md tells people to paste, pasted, and the form in examples/upload.html in a real browser on another origin. */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Browser, chromium } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createKey } from "../rest/client.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { createEmptyDir } from "../support/database.js";
import { picture } from "../support/pictures.js";

const DOCUMENT = fileURLToPath(new URL("../../docs/media.md", import.meta.url));
const FORM = fileURLToPath(new URL("../../examples/upload.html", import.meta.url));
/** pino's. */
const ERROR_LEVEL = 50;
const CHROMIUM = "/usr/bin/chromium";

let app: TestApp;
let directory: string;

beforeAll(async () => {
  app = await createTestApp();
  directory = await createEmptyDir();
});
afterAll(async () => {
  await app.close();
  await rm(directory, { recursive: true });
});

describe("docs/media.md", () => {
  it("runs from its first line to its last", async () => {
    const text = await readFile(DOCUMENT, "utf8");
    const blocks = [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = ""]) =>
      block.replaceAll("http://localhost:4000", app.baseUrl),
    );
    expect(blocks.length).toBeGreaterThan(6);
    // A refusal, which curl itself takes for an answer, ends the script.
    const script = ["set -eu", 'curl() { command curl --fail-with-body "$@"; echo; }', ...blocks].join("\n");

    const { code, output } = await run(script);

    expect(app.logs.filter(({ level }) => Number(level) >= ERROR_LEVEL)).toEqual([]);
    expect([code, output]).toEqual([0, expect.stringContaining("Hello from the mill.")]);
    const answers = output.split("\n").flatMap((line) => (line.startsWith("{") ? [JSON.parse(line) as Record<string, unknown>] : []));
    expect(answers.filter(({ duplicate }) => duplicate === true)).toHaveLength(2);
    expect(answers.filter(({ items }) => Array.isArray(items) && items.length > 0)).toHaveLength(2);
    expect(answers.filter(({ deleted }) => deleted === true)).toHaveLength(1);
    expect(answers.filter(({ errors }) => errors !== undefined)).toEqual([]);
    expect(answers.filter(({ data }) => data !== undefined)).toHaveLength(2);
  });
});

async function run(script: string): Promise<{ readonly code: number | null; readonly output: string }> {
  const child = spawn("bash", ["-c", script], {
    cwd: directory,
    env: { ...process.env, SLUICE_KEY: app.key },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (piece: string) => {
    output += piece;
  });
  child.stderr.setEncoding("utf8").on("data", (piece: string) => {
    output += piece;
  });
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { code, output };
}

describe.skipIf(!existsSync(CHROMIUM))("examples/upload.html", () => {
  let server: Server;
  let browser: Browser;
  beforeAll(async () => {
    const page = await readFile(FORM);
    server = createServer((_req, res) => res.setHeader("Content-Type", "text/html").end(page)).listen(0, "127.0.0.1");
    browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
  }, 60_000);
  afterAll(async () => {
    await browser.close();
    server.close();
  });

  it("uploads with a publishable key, from an origin that is not the gateway's", async () => {
    const { key } = await createKey(app, { type: "publishable" });
    const file = join(directory, "mill.png");
    const png = await picture();
    await writeFile(file, png);
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);

    await page.getByLabel("Media host").fill(`${app.baseUrl}/media`);
    await page.getByLabel("Publishable key").fill(key);
    await page.getByLabel("File, up to").setInputFiles(file);
    await page.getByLabel("Tags").fill("Browser, mill");
    await page.getByRole("button", { name: "Upload" }).click();
    const link = page.getByRole("link");
    await link.waitFor();

    const url = (await link.getAttribute("href")) ?? "";
    expect(await page.getByRole("status").textContent()).toBe(`Stored as image/png: ${url}`);
    const stored = await fetch(url.replace("//localhost", "//127.0.0.1").concat("/metadata"));
    expect(await stored.json()).toMatchObject({ name: "mill.png", size: png.length, tags: ["browser", "mill"] });

    await writeFile(file, "<script>alert(1)</script>");
    await page.getByLabel("File, up to").setInputFiles(file);
    await page.getByRole("button", { name: "Upload" }).click();
    await page.getByText("is not image/png").waitFor();
  });
});
