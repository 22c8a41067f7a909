/** What comments and guides refer to is in the repository: pages and their headings, files, and no document that its reader does not have. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, posix, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { ERROR_CODES } from "../../src/errors.js";

const root = fileURLToPath(new URL("../../", import.meta.url));
const FOLDERS = ["src", "packages", "test", "bench", "scripts", "prisma", "docs", "examples"];
const SINGLE = ["README.md", ".env.example", "vitest.config.ts", "prisma.config.ts", "codegen.ts"];
const SKIPPED = /(?:^|\/)(?:generated|node_modules|migrations|__snapshots__)\//;
/** Its patterns and examples match themselves. */
const ITSELF = "test/contract/references.test.ts";

const files = [
  ...FOLDERS.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map((name) => posix.join(folder, name.split(sep).join("/"))),
  ),
  ...SINGLE,
].filter((file) => !SKIPPED.test(file) && file !== ITSELF && existsSync(join(root, file)));
const read = (file: string) => readFileSync(join(root, file), "utf8");
const readable = files.filter((file) => /\.(?:ts|mts|mjs|js|md|prisma|sql|html|graphql)$|\.env\.example$/.test(file));
const texts = new Map(readable.map((file) => [file, read(file)]));
const pages = readable.filter((file) => file.endsWith(".md"));

/** Sections by number and quoted names of documents that are not here. */
const FOREIGN =
  /\b[Ss]pec(?:ification)? ?§? ?\d|\b[Dd]ecisions? "[A-Z]|\b[Dd]ecisions: [a-z]|\b[Rr]eliability \d|\b[Aa]rchitecture,? (?:"|steps? \d|last section)/;
const PAGE = /(?<![\w./-])(docs\/[\w./-]+\.md)(?:#([\w-]+))?/g;
const SOURCE = /(?<![\w./@:{}$*-])((?:[\w.-]+\/)*[\w-][\w.-]*\.(?:ts|mts|mjs|prisma|sql))(?![\w/(-])/g;
const LINK = /\]\(([^()\s]+)\)/g;

/** As GitHub makes them of headings. */
function slugsOf(page: string): ReadonlySet<string> {
  const prose = page.replace(/^(```|~~~).*?^\1/gms, "");
  return new Set([...prose.matchAll(/^#{1,6} +(.+?) *$/gm)].map(([, heading = ""]) => slugOf(heading)));
}

function slugOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .replaceAll(" ", "-");
}

const headings = new Map(pages.map((page) => [page, slugsOf(texts.get(page) ?? "")]));

/** Whether there is such a file, and in it such a heading. */
function isThere(path: string, heading: string | undefined): boolean {
  const slugs = headings.get(path);
  return heading ? (slugs?.has(heading) ?? false) : slugs !== undefined || existsSync(join(root, path));
}

/** What stands in comments, line by line; of a page, what stands in its text. */
function* saidIn(file: string): Generator<readonly [number, string]> {
  for (const [index, line] of (texts.get(file) ?? "").split("\n").entries()) {
    if (file.endsWith(".md") || /^\s*(?:\/\*\*?|\*|\/\/)/.test(line)) yield [index + 1, line];
  }
}

/** Files that guides and comments mention and that belong to other projects, or are generated. */
const ELSEWHERE = new Set(["agent.ts", "a.ts", "login.mjs", "receiver.mjs", "server.mjs", "sluice.d.ts"]);

it("are in the words of the repository: no section or title of a document outside of it", () => {
  const found = [...texts].flatMap(([file, text]) =>
    text.split("\n").flatMap((line, index) => (FOREIGN.test(line) ? [`${file}:${index + 1} ${line.trim()}`] : [])),
  );

  expect(found).toEqual([]);
});

it("name existing pages, and existing headings in them", () => {
  const cited = [...texts].flatMap(([file, text]) =>
    text.split("\n").flatMap((line, index) => [...line.matchAll(PAGE)].map((match) => ({ at: `${file}:${index + 1}`, match }))),
  );

  expect(cited.length).toBeGreaterThan(300);
  expect(
    cited.filter(({ match: [, path = "", heading] }) => !isThere(path, heading)).map(({ at, match: [all] }) => `${at} ${all}`),
  ).toEqual([]);
});

it("name existing source files, by the end of their path at least", () => {
  const known = files.map((file) => `/${file}`);
  const missing = readable.flatMap((file) =>
    [...saidIn(file)].flatMap(([line, said]) =>
      [...said.matchAll(SOURCE)]
        .map(([, path = ""]) => path)
        .filter((path) => !ELSEWHERE.has(path) && !known.some((each) => each.endsWith(`/${path.replace(/^(?:\.\.?\/)+/, "")}`)))
        .map((path) => `${file}:${line} ${path}`),
    ),
  );

  expect(missing).toEqual([]);
});

it("name existing folders and files without their ending, and tests of the rows of security.md", () => {
  const stems = new Set(
    files.flatMap((file) => {
      const stem = file.replace(/(?:\.test)?\.[a-z]+$/, "");
      return stem.split("/").map((_, index, parts) => parts.slice(index).join("/"));
    }),
  );
  const folders = new Set(files.filter((file) => /^(?:src|src\/services|test)\/[^/.]+$/.test(file)).map((file) => posix.basename(file)));
  const named = pages.flatMap((page) =>
    [...(texts.get(page) ?? "").matchAll(/`(?:src\/|test\/)?([a-z-]+(?:\/[a-z-]+)+)`/g)].map(([, path = ""]) => ({ page, path })),
  );
  const ours = named.filter(({ path }) => folders.has(path.split("/")[0] ?? ""));

  expect(ours.length).toBeGreaterThan(40);
  expect(ours.filter(({ path }) => !stems.has(path)).map(({ page, path }) => `${page} ${path}`)).toEqual([]);
});

it("lead somewhere from every link of the pages", () => {
  const links = pages.flatMap((page) =>
    [...(texts.get(page) ?? "").matchAll(LINK)]
      .map(([, target = ""]) => target)
      .filter((target) => !/^[a-z]+:/.test(target))
      .map((target) => ({ page, target })),
  );
  const broken = links.filter(({ page, target }) => {
    const [path = "", heading] = target.split("#");
    return !isThere(path === "" ? page : posix.join(posix.dirname(page), path), heading);
  });

  expect(links.length).toBeGreaterThan(100);
  expect(broken.map(({ page, target }) => `${page} ${target}`)).toEqual([]);
});

it("reach every page of the specification from its first", () => {
  const first = texts.get("docs/spec/README.md") ?? "";
  const others = pages.filter((page) => page.startsWith("docs/spec/") && page !== "docs/spec/README.md");

  expect(others.length).toBeGreaterThan(20);
  expect(others.filter((page) => !first.includes(`(${posix.basename(page)})`))).toEqual([]);
});

it("are answered by the specification for every path of the REST contract and every code of an error", () => {
  const contract = JSON.parse(read("schema/openapi.json"));
  const withoutNames = (path: string) => path.replace(/\{[^}]*\}/g, "{}");
  const told = withoutNames(
    pages
      .filter((page) => page.startsWith("docs/spec/"))
      .map((page) => texts.get(page))
      .join("\n"),
  );
  const words = new Set(told.split(/[\s`(),]+/));
  // A path of the media host is documented without its prefix where that has a host of its own.
  const isTold = (path: string) =>
    words.has(path) || words.has(path.replace(/^\/media(?=\/)/, "")) || words.has(`{}${path.replace(/^\/media/, "")}`);

  expect(Object.keys(contract.paths).length).toBeGreaterThan(60);
  expect(ERROR_CODES.length).toBeGreaterThan(15);
  expect(Object.keys(contract.paths).filter((path) => !isTold(withoutNames(path)))).toEqual([]);
  expect(ERROR_CODES.filter((code) => !words.has(code))).toEqual([]);
});

it.each([
  "/** Keys (Spec 2.1). */",
  'held for (decisions "What is billed")',
  "(reliability 4)",
  "the hold (architecture, step 3)",
  'see architecture "Stores"',
])("finds %s", (line) => {
  expect(line).toMatch(FOREIGN);
});
