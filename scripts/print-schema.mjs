/**
 * The printed contracts: `node scripts/print-schema.mjs` fails when schema/schema.graphql or schema/openapi.json is not what the
 * code says, `--write` makes them so.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { bundle, projectRoot } from "./build.mjs";

const folder = join(projectRoot, "schema");
const outdir = join(projectRoot, "node_modules/.cache/sluice", `schema-${process.pid}`);
process.on("exit", () => rmSync(outdir, { recursive: true, force: true }));
const entries = { graphql: join(projectRoot, "src/graphql/schema.ts"), rest: join(projectRoot, "src/rest/router.ts") };
await bundle({ entries, outdir });
const load = (name) => import(pathToFileURL(join(outdir, `${name}.js`)).href);
const [{ printSdl }, { printOpenApi }] = await Promise.all([load("graphql"), load("rest")]);

for (const [name, print] of [
  ["schema.graphql", printSdl],
  ["openapi.json", printOpenApi],
]) {
  const printed = print();
  const target = join(folder, name);
  if (process.argv.includes("--write")) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(target, printed);
  } else if (readStored(target) !== printed) {
    console.error(`schema/${name} is not what the code says: run \`node scripts/print-schema.mjs --write\` and look at the difference.`);
    process.exitCode = 1;
  }
}

function readStored(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}
