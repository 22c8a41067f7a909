/** Runs a TypeScript file of the project: `node scripts/run-ts.mjs bench/main.ts [arguments]`. */
import { mkdirSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { build, bundle, CLIENT, projectRoot } from "./build.mjs";

const [file, ...rest] = process.argv.slice(2);
if (!file) {
  console.error("usage: node scripts/run-ts.mjs <file.ts> [arguments]");
  process.exit(2);
}

const parent = join(projectRoot, "node_modules/.cache/sluice");
const outdir = join(parent, `run-${process.pid}`);
mkdirSync(outdir, { recursive: true });
process.on("exit", () => rmSync(outdir, { recursive: true, force: true }));
await build({ outputs: [CLIENT] });
await bundle({ entries: { main: resolve(file) }, outdir });

// The program sees the arguments that it would see if Node had run it itself.
process.argv = [process.argv[0], resolve(file), ...rest];
await import(pathToFileURL(join(outdir, "main.js")).href);
