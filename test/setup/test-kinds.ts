/**
 * The kind of each test file, from everything that it imports: those of kind `unit` need neither a build nor a database, and `browser` opens
 * pages in Chromium. A new file is of the right kind by itself.
 */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { filesBelow } from "./files-below.js";

export type TestKind = "unit" | "integration" | "browser";

const BROWSER = "playwright-core";
/** Parts of the paths of modules that are built, or that build, or that start the suite's database server. */
const BUILT = [
  "/generated/",
  "/scripts/build.mjs",
  "/test/support/suite-server.",
  "/test/support/postgres.",
  "/test/support/built-server.",
];
/** It reads the types of all sources, those of the generated ones included. */
const READS_GENERATED_TYPES = "contract/outside-names.test.ts";
const IMPORT = /^(?:import|export) (?!type )[^;]*?from "([^"]+)"|\bimport\("([^"]+)"\)|^import "([^"]+)"/gm;

/** The paths of all test files below `folder`, by their kind. */
export function testKinds(folder: string): Record<TestKind, string[]> {
  const importsOf = new Map<string, readonly string[]>();
  const kinds: Record<TestKind, string[]> = { unit: [], integration: [], browser: [] };
  for (const name of filesBelow(folder)) {
    if (!name.endsWith(".test.ts")) continue;
    const file = join(folder, name);
    const modules = reachableFrom(file, importsOf);
    const isIntegration = name === READS_GENERATED_TYPES || isBuilt(modules);
    const kind = modules.has(BROWSER) ? "browser" : isIntegration ? "integration" : "unit";
    kinds[kind].push(file);
  }
  return kinds;
}

function isBuilt(modules: ReadonlySet<string>): boolean {
  for (const module of modules) if (BUILT.some((part) => module.includes(part))) return true;
  return false;
}

/** Packages by their names, the project's own modules by their paths. */
function reachableFrom(file: string, importsOf: Map<string, readonly string[]>): Set<string> {
  const reached = new Set<string>();
  const open = [file];
  for (let module = open.pop(); module !== undefined; module = open.pop()) {
    if (reached.has(module)) continue;
    reached.add(module);
    if (!module.startsWith("/") || !/\.(?:ts|tsx|mjs)$/.test(module)) continue;
    const imports = importsOf.get(module) ?? readImports(module);
    importsOf.set(module, imports);
    for (const found of imports) open.push(found);
  }
  return reached;
}

function readImports(file: string): string[] {
  if (!existsSync(file)) return [];
  return [...readFileSync(file, "utf8").matchAll(IMPORT)].map(([, from, late, alone]) => {
    const name = from ?? late ?? alone ?? "";
    return name.startsWith(".") ? toSource(resolve(dirname(file), name)) : name;
  });
}

/** The TypeScript file that an import of its JavaScript means. */
function toSource(path: string): string {
  return [path.replace(/\.js$/, ".ts"), path.replace(/\.js$/, ".tsx")].find(existsSync) ?? path;
}
