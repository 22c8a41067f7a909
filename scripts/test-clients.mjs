/** `npm run test:clients [-- options of vitest]`: installs the clients of test/clients and runs its tests. With `--install`: only installs. */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { build, CLIENT, projectRoot } from "./build.mjs";

const FOLDER = "test/clients";
const [first, ...rest] = process.argv.slice(2);

if (!isInstalled()) run("npm", "ci", "--prefix", FOLDER);
if (first !== "--install") {
  await build({ outputs: [CLIENT] });
  run(process.execPath, "node_modules/typescript/bin/tsc", "-p", FOLDER);
  run(process.execPath, "node_modules/vitest/vitest.mjs", "run", FOLDER, ...(first === undefined ? [] : [first, ...rest]));
}

/** npm writes the lock file that it installed by into `node_modules`, with fewer fields. */
function isInstalled() {
  const installed = join(projectRoot, FOLDER, "node_modules/.package-lock.json");
  if (!existsSync(installed)) return false;
  const versions = (file) => Object.entries(JSON.parse(readFileSync(file, "utf8")).packages).map(([path, { version }]) => [path, version]);
  const wanted = new Map(versions(join(projectRoot, FOLDER, "package-lock.json")));
  return versions(installed).every(([path, version]) => wanted.get(path) === version);
}

function run(program, ...args) {
  const { status } = spawnSync(program, args, { cwd: projectRoot, stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
}
