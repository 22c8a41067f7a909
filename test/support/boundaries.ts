/** The house rules that can be read off the sources: who may import whom, and what must not be there at all. */
import { readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { importsOf, readImports, resolveImport, type Sources } from "./imports.js";

const LINES_MAX = 400;

/** errors.ts, context.ts and limits.ts: importable anywhere but in lib, which knows nothing of the project. */
const COMMON = "common";

/** Each layer, and the layers that it may import besides itself. */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  main: ["app", "workers", "config", "fast", "lib", COMMON],
  workers: ["app", "config", "http", "services", "store", "fast", "lib", COMMON],
  app: ["config", "graphql", "rest", "http", "services", "providers", "store", "formats", "fast", "lib", COMMON],
  config: ["lib", COMMON],
  graphql: ["http", "services", "formats", "fast", "lib", COMMON],
  rest: ["http", "services", "formats", "fast", "lib", COMMON],
  http: ["services", "fast", "lib", COMMON],
  services: ["providers", "store", "formats", "fast", "lib", COMMON],
  providers: ["formats", "fast", "lib", COMMON],
  store: ["fast", "lib", COMMON],
  formats: ["fast", "lib", COMMON],
  fast: ["lib"],
  lib: [],
  common: ["lib"],
  packages: ["providers", "formats", "fast", "lib", COMMON],
  dashboard: [],
};

/**
 * The domains of the services: each may import those before it, types included. Where a domain serves an earlier one,
 * the earlier one owns the interface: generation that of the health reporter, access that of the session finder.
 */
export const DOMAINS: readonly string[] = [
  "requests",
  "secrets",
  "catalog",
  "safety",
  "access",
  "audit",
  "usage-limits",
  "credits",
  "usage",
  "api-keys",
  "files",
  "accounts",
  "presets",
  "runs",
  "sessions",
  "authorizations",
  "integrations",
  "webhooks",
  "payments",
  "earnings",
  "generation",
  "idempotency",
  "metrics",
  "request-log",
  "community-models",
  "routes",
  "vendor-keys",
  "mcp",
  "agents",
  "alerts",
  "account-data",
  "composition",
];
const DOMAIN = /^src\/services\/([^/]+)\//;

const COMMON_FILE = /^src\/(?:errors|context|limits)\.ts$/;
/** What lies in no folder of its own; everything else has one. */
const LOOSE_FILE = /^src\/(?:main|app|context|errors|limits|services\/services)\.ts$/;
const OF_A_FOLDER = /^src\/(?:services\/)?[^/]+$/;

interface PackageRule {
  readonly packages: RegExp;
  readonly forbiddenIn: readonly string[];
}

const PACKAGE_RULES: readonly PackageRule[] = [
  { packages: /^(?:express|multer)(?:\/|$)/, forbiddenIn: ["services", "providers", "store", "formats", "lib", COMMON] },
  {
    packages: /^(?:graphql|graphql-.+|@graphql-yoga\/.+|@pothos\/.+|@escape\.tech\/.+)$/,
    forbiddenIn: ["rest", "http", "services", "providers", "formats", "lib", COMMON],
  },
  {
    packages: /^(?:@prisma\/.+|prisma|pg|@electric-sql\/.+)$/,
    forbiddenIn: ["main", "app", "config", "rest", "http", "providers", "packages", "formats", "lib", COMMON, "dashboard"],
  },
];

const RE_EXPORT = /^export\s+(?:type\s+)?(?:\*|\{[^}]*\})(?:\s+as\s+\w+)?\s+from\s/m;
const ENVIRONMENT = /\bprocess\s*(?:\?\.|\.)\s*env\b|\bprocess\[|\{[^}]*\benv\b[^}]*\}\s*=\s*process\b|\bfrom\s+["'](?:node:)?process["']/;

/** Reads every TypeScript file of the given folders; generated code is not ours to judge. */
export function readSources(root: string, folders: readonly string[]): Sources {
  const files = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map((name) => posix.join(folder, name.replaceAll("\\", "/"))),
  );
  return new Map(
    files
      .filter((file) => /\.tsx?$/.test(file) && !file.includes("/generated/") && !file.includes("/node_modules/"))
      .map((file) => [file, readFileSync(join(root, file), "utf8")]),
  );
}

/** Every breach, as `file: description`. */
export function findBreaches(sources: Sources): string[] {
  const perFile = [...sources].flatMap(([file, text]) => findFileBreaches(file, text).map((breach) => `${file}: ${breach}`));
  return [...perFile, ...findCycles(sources)];
}

function findFileBreaches(file: string, text: string): string[] {
  const layer = layerOf(file);
  if (!(layer in ALLOWED)) return [`is in no layer of the architecture`];
  const breaches = OF_A_FOLDER.test(file) && !LOOSE_FILE.test(file) ? ["lies in no folder: put it into that of its domain"] : [];
  breaches.push(...readImports(text).flatMap((target) => judgeImport(file, layer, target)));
  const domain = domainOf(file);
  if (domain !== null && !DOMAINS.includes(domain)) breaches.push(`${domain} is not in the list of domains`);
  if (RE_EXPORT.test(text)) breaches.push("re-exports: import from the file that defines the thing");
  // What runs in a browser has no environment, and shows programs that read theirs.
  const mayNameEnvironment = layer === "config" || layer === "main" || layer === "dashboard";
  if (ENVIRONMENT.test(text) && !mayNameEnvironment) breaches.push("reads the environment: only src/config does");
  const lines = text.trimEnd().split("\n").length;
  if (lines > LINES_MAX) breaches.push(`has ${lines} lines, more than ${LINES_MAX}: split it by sub-domain`);
  return breaches;
}

function judgeImport(file: string, layer: string, target: string): string[] {
  if (!target.startsWith(".")) {
    const isForbidden = PACKAGE_RULES.some(({ packages, forbiddenIn }) => packages.test(target) && forbiddenIn.includes(layer));
    return isForbidden ? [`${layer} must not import the package ${target}`] : [];
  }
  const imported = resolveImport(file, target);
  const targetLayer = layerOf(imported);
  const isAllowed = targetLayer === layer || ALLOWED[layer]?.includes(targetLayer);
  if (!isAllowed) return [`${layer} must not import ${targetLayer} (${target})`];
  const [domain, targetDomain] = [domainOf(file), domainOf(imported)];
  const isBelow = domain === null || targetDomain === null || DOMAINS.indexOf(targetDomain) <= DOMAINS.indexOf(domain);
  return isBelow ? [] : [`${domain} must not import ${targetDomain}, which stands after it in the list of domains (${target})`];
}

function domainOf(file: string): string | null {
  return DOMAIN.exec(file)?.[1] ?? null;
}

/** `src/rest/routes/usage.ts` is of `rest`; a file in the middle of src is of the layer that bears its name. */
function layerOf(file: string): string {
  if (COMMON_FILE.test(file)) return COMMON;
  const [top = "", second = ""] = file.split("/");
  return top === "src" ? second.replace(/\.ts$/, "") : top;
}

/** Circles of imports, types included: what refers to each other cannot be read, moved or understood apart. */
function findCycles(sources: Sources): string[] {
  const graph = importsOf(sources);
  const done = new Set<string>();
  const cycles: string[] = [];
  const visit = (file: string, path: readonly string[]): void => {
    if (path.includes(file)) {
      cycles.push(`${file}: imports itself in a circle: ${[...path.slice(path.indexOf(file)), file].join(" -> ")}`);
      return;
    }
    if (done.has(file)) return;
    for (const target of graph.get(file) ?? []) visit(target, [...path, file]);
    done.add(file);
  };
  for (const file of graph.keys()) visit(file, []);
  return cycles;
}
