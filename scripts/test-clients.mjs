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

/** npm writes the lock file that it installed by into `node_modules`, without packages that this machine does not need. */
function isInstalled() {
  const installed = join(projectRoot, FOLDER, "node_modules/.package-lock.json");
  if (!existsSync(installed)) return false;
  const packages = (file) => new Map(Object.entries(JSON.parse(readFileSync(file, "utf8")).packages));
  const [wanted, present] = [packages(join(projectRoot, FOLDER, "package-lock.json")), packages(installed)];
  const isMissing = ([path, { optional }]) => path !== "" && !optional && !present.has(path);
  return ![...wanted].some(isMissing) && [...present].every(([path, { version }]) => wanted.get(path)?.version === version);
}

function run(program, ...args) {
  const { status } = spawnSync(program, args, { cwd: projectRoot, stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
}
