/** `npm run check`: everything that can be said about the code without running it, and whether the printed contracts are current. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { build, projectRoot } from "./build.mjs";

const checks = [
  { name: "format and lint", command: ["node_modules/@biomejs/biome/bin/biome", "ci", "--error-on-warnings"] },
  { name: "types", command: ["node_modules/typescript/bin/tsc"] },
  { name: "printed contracts", command: ["scripts/print-schema.mjs", "--check"] },
];

await build({ upTo: "src/store/generated" });
const failed = checks.filter(({ name, command: [program, ...args] }) => {
  if (!existsSync(join(projectRoot, program))) return false;
  console.log(`check: ${name}`);
  return spawnSync(process.execPath, [program, ...args], { cwd: projectRoot, stdio: "inherit" }).status !== 0;
});
if (failed.length > 0) console.error(`check failed: ${failed.map(({ name }) => name).join(", ")}`);
process.exitCode = failed.length > 0 ? 1 : 0;
