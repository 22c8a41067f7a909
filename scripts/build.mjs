/**
 * The build: the Prisma client from the schema, then the bundles of `dist`; for tests also the types of the documents that they send.
 * Each step is left out when its inputs are unchanged.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { compressAssets, digestsAlone } from "./dashboard-assets.mjs";
import { bundleExplorer } from "./explorer-assets.mjs";
import { LIGHTER_PACKAGES } from "./lighter-packages.mjs";

export const projectRoot = dirname(dirname(fileURLToPath(import.meta.url)));
const path = (...parts) => join(projectRoot, ...parts);

export const CLIENT = "src/store/generated";
/** What browsers load of the explorer. */
export const EXPLORER = "src/graphql/explorer/generated";
/** What browsers load of the dashboard. */
export const DASHBOARD = "dashboard/dist";
export const SERVER = "dist";
/** The types of the documents that the tests and the dashboard send; one of the two places. */
export const DOCUMENTS = "test/operations/generated";
export const DASHBOARD_DOCUMENTS = "dashboard/src/client/generated";

/** Every step in order: inputs, output and command. An output is complete when its `.fingerprint` is there. */
const steps = [
  {
    name: "the database client",
    inputs: ["prisma/schema.prisma", "prisma.config.ts", "node_modules/prisma/package.json"],
    output: CLIENT,
    run: generateClient,
  },
  {
    name: "the explorer",
    inputs: [
      "src/graphql/explorer",
      "scripts/explorer-assets.mjs",
      "node_modules/graphiql/package.json",
      "node_modules/@graphiql/react/package.json",
    ],
    output: EXPLORER,
    run: () => bundleExplorer(path("src/graphql/explorer"), path(EXPLORER)),
  },
  {
    name: "the documents' types",
    inputs: [
      "codegen.ts",
      "scripts/type-documents.mjs",
      "schema/schema.graphql",
      { folder: "test/operations", ending: ".graphql" },
      { folder: "dashboard/src", ending: ".graphql" },
      "scripts/dashboard-assets.mjs",
      "node_modules/@graphql-codegen/client-preset/package.json",
    ],
    output: DOCUMENTS,
    run: async () => {
      await runQuietly("scripts/type-documents.mjs", []);
      digestsAlone(path(DASHBOARD_DOCUMENTS, "graphql.ts"));
    },
  },
  {
    name: "the dashboard",
    inputs: ["dashboard", "schema/schema.graphql", "codegen.ts", "scripts/dashboard-assets.mjs", "node_modules/.package-lock.json"],
    output: DASHBOARD,
    run: async () => {
      rmSync(path(DASHBOARD), { recursive: true, force: true });
      // Browsers get React's production build, also when NODE_ENV says test.
      await runQuietly("node_modules/vite/bin/vite.js", ["build", "dashboard", "--logLevel", "warn"], { NODE_ENV: "production" });
      await compressAssets(path(DASHBOARD, "assets"));
    },
  },
  {
    name: "the server",
    // npm's list of installed packages: packages are in the bundle.
    inputs: [
      "src",
      "packages",
      "dashboard",
      "scripts/build.mjs",
      "scripts/explorer-assets.mjs",
      "scripts/dashboard-assets.mjs",
      "scripts/lighter-packages.mjs",
      "scripts/sluice.ts",
      "scripts/sluice",
      { folder: "docs", ending: ".md" },
      "node_modules/.package-lock.json",
    ],
    output: SERVER,
    run: async () => {
      rmSync(path("dist"), { recursive: true, force: true });
      mkdirSync(path("dist"));
      await bundle({
        entries: {
          main: path("src/main.ts"),
          "gateway-worker": path("src/workers/gateway-worker.ts"),
          sluice: path("scripts/sluice.ts"),
        },
        outdir: path("dist"),
        takesPackages: true,
      });
      cpSync(path(EXPLORER), path("dist/explorer"), { recursive: true });
      cpSync(path(DASHBOARD), path("dist/dashboard"), { recursive: true });
      // Pages that the gateway serves.
      for (const folder of ["docs", "docs/spec"]) {
        for (const file of readdirSync(path(folder)).filter((name) => name.endsWith(".md")))
          cpSync(path(folder, file), path("dist", folder, file));
      }
    },
  },
];

/**
 * Runs the steps whose inputs changed and whose outputs are wanted: those of the server, if not told otherwise.
 * @param {{ outputs?: readonly string[], force?: boolean }} options
 */
export async function build({ outputs = [CLIENT, EXPLORER, DOCUMENTS, DASHBOARD, SERVER], force = false } = {}) {
  if (!existsSync(path("node_modules"))) {
    console.error("The packages are not installed. Run: npm ci");
    process.exit(1);
  }
  for (const { name, inputs, output, run } of steps.filter((step) => outputs.includes(step.output))) {
    const fingerprint = fingerprintOf(inputs);
    const stamp = path(output, ".fingerprint");
    if (force || readIfPresent(stamp) !== fingerprint) {
      const startedAt = performance.now();
      rmSync(stamp, { force: true });
      await run();
      mkdirSync(path(output), { recursive: true });
      writeFileSync(stamp, fingerprint);
      // Standard output is that of the program which is built, such as a key that a script takes.
      console.error(`built ${name} in ${Math.round(performance.now() - startedAt)} ms`);
    }
  }
}

/** Packages that read files of their own, or that are loaded only when they are needed. */
const packagesWithFiles = [
  "@echogarden/espeak-ng-emscripten",
  "@electric-sql/pglite",
  "@mediabunny/aac-encoder",
  "@mediabunny/flac-encoder",
  "@prisma/client",
  "@prisma/schema-engine-wasm",
  "@ai-sdk/*",
  "esbuild",
  "gpt-tokenizer",
  "h264-mp4-encoder",
  "mediabunny",
  "opentype.js",
  "opusscript",
  "pg-native",
  "sharp",
  "wasm-media-encoders",
];
/** CommonJS packages ask for Node's own modules by `require`, which an ES module does not have. */
const commonJsBanner =
  'import { createRequire as createBundleRequire } from "node:module";\nconst require = createBundleRequire(import.meta.url);';

const withPackages = {
  external: packagesWithFiles,
  banner: { js: commonJsBanner },
  plugins: LIGHTER_PACKAGES,
  // V8 keeps the source text in memory, in two bytes a character when one of them is not Latin-1.
  minifyWhitespace: true,
  lineLimit: 200,
  legalComments: "external",
};

/**
 * Bundles TypeScript for this Node. Packages stay outside, so `outdir` must be below the project. With `takesPackages` most are bundled:
 * a start that reads a thousand files takes two seconds longer.
 * @param {{ entries: Record<string, string>, outdir: string, takesPackages?: boolean }} options
 */
export async function bundle(options) {
  const esbuild = await import("esbuild");
  for (const each of bundlesOf(options)) await esbuild.build(each);
  // Its child process would live as long as the server.
  await esbuild.stop();
}

/**
 * Bundles as `bundle` does, and again on every change of a source. `onBuilt` runs after each bundle without errors.
 * @param {{ entries: Record<string, string>, outdir: string, onBuilt: () => void }} options
 */
export async function watchBundle({ onBuilt, ...options }) {
  const esbuild = await import("esbuild");
  const notify = {
    name: "notify",
    setup: (build) => build.onEnd(({ errors }) => (errors.length === 0 ? onBuilt() : undefined)),
  };
  const contexts = await Promise.all(
    bundlesOf(options).map((each) => esbuild.context({ ...each, plugins: [...(each.plugins ?? []), notify] })),
  );
  for (const context of contexts) await context.watch();
}

/**
 * The database's worker and program and the sandbox's worker are entries of their own, under the names that `src/lib/worker-file.ts` looks
 * for; so is the program of agents' processes.
 */
function bundlesOf({ entries, outdir, takesPackages = false }) {
  const program = {
    entryPoints: {
      "embedded-worker": path("src/store/embedded-worker.ts"),
      "embedded-initialize": path("src/store/embedded-initialize.ts"),
      "sandbox-worker": path("packages/sandbox/src/sandbox-worker.ts"),
      "bundle-program": path("src/services/agents/bundle-program.ts"),
      "inspect-media-worker": path("src/services/generation/media/inspect-media-worker.ts"),
      ...entries,
    },
    outdir,
    bundle: true,
    ...(takesPackages ? withPackages : { packages: "external" }),
    platform: "node",
    target: "node20",
    format: "esm",
    // Modules that are imported on demand stay separate files, so a start does not wait for them.
    splitting: true,
    sourcemap: true,
    logLevel: "warning",
  };
  // Runs in Deno, without packages.
  const guest = {
    entryPoints: { "guest-program": path("src/services/agents/sandbox/guest-program.ts") },
    outdir,
    bundle: true,
    platform: "neutral",
    target: "es2023",
    format: "esm",
    logLevel: "warning",
  };
  return [program, guest];
}

async function generateClient() {
  // Prisma downloads its native schema engine unless this variable names one. No generator uses it: any program will do.
  const env = { PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, CHECKPOINT_DISABLE: "1", PRISMA_HIDE_UPDATE_MESSAGE: "1" };
  await runQuietly("node_modules/prisma/build/index.js", ["generate"], env);
}

/** Runs a package's program. Its output is shown only when it fails. */
async function runQuietly(program, args, env = {}) {
  const child = spawn(process.execPath, [path(program), ...args], {
    cwd: projectRoot,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  for (const output of [child.stdout, child.stderr]) output.setEncoding("utf8").on("data", (text) => (said += text));
  const code = await new Promise((resolve) => {
    child.once("error", ({ message }) => {
      said += message;
      resolve(1);
    });
    child.once("close", resolve);
  });
  if (code === 0) return;
  console.error(said);
  process.exit(1);
}

/** A digest of the names and contents of files and folders; generated folders are left out, their inputs decide. */
function fingerprintOf(inputs) {
  const hash = createHash("sha256");
  for (const input of inputs) {
    for (const file of listFiles(input))
      hash
        .update(`${file}\0`)
        .update(readFileSync(path(file)))
        .update("\0");
  }
  return hash.digest("hex");
}

function listFiles(input) {
  if (typeof input === "object") return listFiles(input.folder).filter((file) => file.endsWith(input.ending));
  const folder = readdirIfFolder(input);
  if (!folder) return [input];
  return folder
    .filter((entry) => entry.name !== "generated" && entry.name !== "dist")
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => (entry.isDirectory() ? listFiles(join(input, entry.name)) : [join(input, entry.name)]));
}

function readdirIfFolder(input) {
  try {
    return readdirSync(path(input), { withFileTypes: true });
  } catch (error) {
    if (error.code === "ENOTDIR") return null;
    throw error;
  }
}

function readIfPresent(file) {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (error.code === "ENOENT") return null;
    throw error;
  }
}

const isMain = process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href;
if (isMain) await build({ force: process.argv.includes("--force"), ...(process.argv.includes("--client") && { outputs: [CLIENT] }) });
