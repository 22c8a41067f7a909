/** The documentation as Markdown: /llms.txt and the pages that it lists. */
import { readdirSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { GUIDES } from "../../src/rest/reference/guides.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { type Client, createClient, expectEnvelope } from "./client.js";

const BASE = "https://ai.example";
let app: TestApp;
let client: Client;

beforeAll(async () => {
  app = await createTestApp({ config: { baseUrl: BASE } });
  client = createClient(app.baseUrl, app.key);
});
afterAll(() => app.close());

describe("/llms.txt", () => {
  it("lists the contracts and pages, which are all there, without a key", async () => {
    const list = await client.get("/llms.txt", { key: null });
    const links = [...list.text.matchAll(/^- \[([^\]]+)\]\(([^)]+)\)/gm)].map(([, title, url]) => ({ title, url: url ?? "" }));

    expect(list.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    expect(list.text).toMatch(/^# Sluice\n\n> A gateway/);
    expect(list.text).toContain(`Base URL of OpenAI clients: ${BASE}/v1\n`);
    expect(links.length).toBeGreaterThan(40);
    for (const { title, url } of links) {
      expect(url.startsWith(BASE)).toBe(true);
      const page = await client.get(url.slice(BASE.length), { key: null });
      expect([url, page.status]).toEqual([url, 200]);
      if (!url.endsWith(".md")) continue;
      expect(page.headers.get("content-type")).toBe("text/markdown; charset=utf-8");
      expect(page.text.startsWith(`# ${title}\n`)).toBe(true);
    }
  });

  it("lists every page of the contract", () => {
    const pages = readdirSync(new URL("../../docs/spec/", import.meta.url)).map((name) => `spec/${name}`);

    expect([...(GUIDES.get("Contract") ?? [])].sort()).toEqual(pages.sort());
  });
});

it.each(["/docs/nothing.md", "/docs/testing.md", "/docs/spec/..%2Fspec%2Fchat.md", "/docs/..%2Fpackage.json.md", "/docs/spec/chat"])(
  "has no page %s",
  async (path) => {
    expectEnvelope(await client.get(path, { key: null }), 404, "NOT_FOUND");
  },
);
