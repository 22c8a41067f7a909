/**
 * The programs and commands that guides ask a reader to paste: one name for the key everywhere, and no variable that is
 * not set before.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Kind, parse, validate } from "graphql";
import { describe, expect, it } from "vitest";
import { ENVIRONMENT_NAMES } from "../../src/config/config.js";
import { schema } from "../../src/graphql/schema.js";

const root = fileURLToPath(new URL("../../", import.meta.url));
/** What a reader has: the key, an app's key, an endpoint's secret, and what the gateway itself is configured with. */
const KNOWN = new Set<string>([
  "SLUICE_KEY",
  "SLUICE_APP_KEY",
  "WEBHOOK_SECRET",
  "SLUICE_URL",
  "SLUICE_AUTH_URL",
  "SLUICE_MODEL",
  ...ENVIRONMENT_NAMES,
]);

function filesBelow(folder: string, pattern: RegExp): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => pattern.test(name) && !name.startsWith("decisions"))
    .map((name) => join(folder, name));
}

const GUIDES = ["README.md", ...filesBelow("docs", /\.md$/), ...filesBelow("examples", /\.md$/)];
const PROGRAMS = filesBelow("examples", /\.(?:mjs|ts|html)$/);
/** The descriptions of both contracts, and what a first start prints. */
const TOLD = ["schema/openapi.json", "schema/schema.graphql", "src/main.ts"];
const read = (file: string) => readFileSync(join(root, file), "utf8");

/** The shell's blocks of a guide, one after the other. */
function shellOf(text: string): string {
  return [...text.matchAll(/^```(?:sh|bash|console)\n(.*?)^```$/gms)].map(([, block]) => block).join("\n");
}

describe("the guides", () => {
  it.each(GUIDES)("%s uses no variable that it has not set, beside those that every reader has", (file) => {
    // What the shell does not fill in: comments, and documents between single quotes.
    const shell = shellOf(read(file))
      .replace(/(?:^|[ \t])#.*$/gm, "")
      .replace(/'[^']*'/g, "''");
    const set = new Set([...shell.matchAll(/(?:^|[\s;(])(?:export\s+)?([A-Za-z_]\w*)=/gm)].map(([, name]) => name));
    const used = [...shell.matchAll(/\$\{?([A-Za-z_]\w*)/g)].map(([, name = ""]) => name);

    expect(used.filter((name) => !KNOWN.has(name) && !set.has(name))).toEqual([]);
  });

  it.each(GUIDES)("%s selects fields that the schema has", (file) => {
    const text = read(file);
    const blocks = [...text.matchAll(/^```graphql\n(.*?)^```$/gms)].map(([, block = ""]) => block);
    const inJson = [...text.matchAll(/"query":\s*("(?:[^"\\]|\\.)*")/g)].map(([, query = ""]) => String(JSON.parse(query)));

    // A block may show several operations without names.
    const definitions = [...blocks, ...inJson].flatMap((document) => parse(document).definitions);
    const refusals = definitions.flatMap((definition) => validate(schema, { kind: Kind.DOCUMENT, definitions: [definition] }));

    expect(refusals.map(({ message }) => message)).toEqual([]);
  });

  it("call the key SLUICE_KEY, in every header, and so do the contracts and the first start", () => {
    const named = [...GUIDES, ...PROGRAMS, ...TOLD].flatMap((file) =>
      [...read(file).matchAll(/Bearer \$\{?([A-Za-z_]\w*)\}?(?=["'\\])/g)].map(([, name]) => `${file}: ${name}`),
    );

    expect(named.length).toBeGreaterThan(50);
    expect(named.filter((each) => !/: (?:SLUICE_KEY|token|key|apiKey|newOwnerKey)$/.test(each))).toEqual([]);
    expect(named.filter((each) => each.startsWith("src/main.ts"))).toEqual(["src/main.ts: SLUICE_KEY"]);
  });

  it("read no other variable in their programs", () => {
    const names = [...GUIDES, ...PROGRAMS].flatMap((file) =>
      [...read(file).matchAll(/process\.env\.([A-Z_]\w*)/g)].map(([, name = ""]) => `${file}: ${name}`),
    );

    expect(names.length).toBeGreaterThan(2);
    expect(names.filter((each) => !KNOWN.has(each.split(": ")[1] ?? ""))).toEqual([]);
  });

  it("name the licence of package.json", () => {
    expect(JSON.parse(read("package.json"))).toMatchObject({ license: "MIT" });
    expect(read("LICENSE")).toMatch(/^MIT License\n/);
  });
});
