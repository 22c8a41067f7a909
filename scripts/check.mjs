/** `npm run check`: everything that can be said about the code without running it, and whether the printed contracts are current. */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { build, CLIENT, DOCUMENTS, projectRoot } from "./build.mjs";

const checks = [
  { name: "format and lint", command: ["node_modules/@biomejs/biome/bin/biome", "ci", "--error-on-warnings"] },
  { name: "types", command: ["node_modules/typescript/bin/tsc"] },
  { name: "types of the explorer", command: ["node_modules/typescript/bin/tsc", "-p", "src/graphql/explorer"] },
  { name: "types of the dashboard", command: ["node_modules/typescript/bin/tsc", "-p", "dashboard"] },
  {
    name: "types of the tests with others' clients",
    needs: "test/clients/node_modules",
    command: ["node_modules/typescript/bin/tsc", "-p", "test/clients"],
  },
  { name: "printed contracts", command: ["scripts/print-schema.mjs", "--check"] },
  { name: "the schema's rules", command: ["node_modules/eslint/bin/eslint.js", "--quiet", "schema/schema.graphql"] },
  { name: "persisted documents", command: ["scripts/codegen.mjs", "--check"] },
];

const outdated = outdatedPackages();
if (outdated.length > 0) console.error(`node_modules is not what package-lock.json says (${outdated.join(", ")}): run npm install`);

await build({ outputs: [CLIENT, DOCUMENTS] });
const failed = checks.filter(({ name, needs, command: [program, ...args] }) => {
  if ([program, needs].some((file) => file && !existsSync(join(projectRoot, file)))) return false;
  console.log(`check: ${name}`);
  return spawnSync(process.execPath, [program, ...args], { cwd: projectRoot, stdio: "inherit" }).status !== 0;
});
if (failed.length > 0) console.error(`check failed: ${failed.map(({ name }) => name).join(", ")}`);
process.exitCode = failed.length > 0 ? 1 : 0;

/** Packages that are installed in another version than the lock file's, whose types would differ. */
function outdatedPackages() {
  const packagesOf = (path) => JSON.parse(readFileSync(join(projectRoot, path), "utf8")).packages;
  const installed = packagesOf("node_modules/.package-lock.json");
  return Object.entries(packagesOf("package-lock.json"))
    .filter(([path, { version }]) => Object.hasOwn(installed, path) && installed[path].version !== version)
    .map(([path]) => path.replace("node_modules/", ""));
}
