/** `npm run dev`: one address for the gateway and the dashboard's modules. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { afterAll, beforeAll, expect, it } from "vitest";
import { projectRoot } from "../../scripts/build.mjs";
import { createTestDataDir } from "../support/database.js";
import { eventually } from "../support/eventually.js";
import { freePort } from "../support/free-port.js";

let data: Awaited<ReturnType<typeof createTestDataDir>>;
let port: number;

beforeAll(async () => {
  data = await createTestDataDir();
  port = await freePort("localhost");
});
afterAll(() => data.remove());

it("serves the gateway, and dashboard pages with the modules of their sources", { timeout: 120_000 }, async () => {
  const address = `http://localhost:${port}`;
  const child = spawn(process.execPath, ["scripts/dev.mjs"], {
    cwd: projectRoot,
    env: { PATH: process.env.PATH ?? "", PORT: String(port), DATA_DIR: data.dataDir, LOG_LEVEL: "silent" },
    stdio: "ignore",
  });
  const ended = once(child, "exit");
  try {
    await Promise.race([ready(address), ended.then(() => Promise.reject(new Error("npm run dev has ended.")))]);

    const signUp = await fetch(`${address}/graphql`, {
      method: "POST",
      headers: { "content-type": "application/json", "sec-fetch-site": "same-origin" },
      body: JSON.stringify({
        query: 'mutation { signUp(input: { email: "first@example.com", password: "correct horse battery" }) { __typename } }',
      }),
    });
    const cookie = signUp.headers
      .getSetCookie()
      .map((line) => line.split(";", 1)[0])
      .join("; ");
    const page = await fetch(`${address}/dashboard/keys`, { headers: { cookie } });
    const html = await page.text();
    const main = await fetch(`${address}/@dashboard/src/main.tsx`);

    expect(page.headers.get("content-security-policy")).toBeNull();
    expect(html).toContain('src="/@dashboard/src/main.tsx"');
    expect([main.status, main.headers.get("content-type")]).toEqual([200, "text/javascript"]);
  } finally {
    child.kill("SIGTERM");
  }
  expect(await ended).toEqual([0, null]);
});

/** A start builds the gateway, so several patiences may pass. */
async function ready(address: string): Promise<void> {
  for (let attempts = 0; ; attempts += 1) {
    try {
      await eventually(async () => expect((await fetch(`${address}/readyz`)).status).toBe(200));
      return;
    } catch (error) {
      if (attempts === 4) throw error;
    }
  }
}
