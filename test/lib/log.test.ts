/** What a process logs is all there when it ends, however it ends by itself. */
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { transform } from "esbuild";
import { afterAll, beforeAll, expect, it } from "vitest";

/** Of which many are more than is written at once. */
const [FEW, MANY] = [20, 200];
let directory: string;

beforeAll(async () => {
  // Below the project, so that it finds its packages.
  directory = await mkdtemp("node_modules/.cache-log-");
  const { code } = await transform(await readFile("src/lib/log.ts", "utf8"), { loader: "ts", format: "esm" });
  await writeFile(join(directory, "log.mjs"), code);
});
afterAll(() => rm(directory, { recursive: true, force: true }));

it.each([
  ["of itself", MANY, ""],
  ["after the rest has been written", MANY, "await opened.end(); process.exit(0);"],
  ["by process.exit", FEW, "process.exit(0);"],
  ["by an uncaught error", FEW, 'throw new Error("on purpose");'],
  ["after a fatal line", FEW, 'opened.log.fatal("last"); process.kill(process.pid, "SIGKILL");'],
])("has all its lines, in their order, when it ends %s", async (_how, count, ending) => {
  const program = join(directory, `program-${count}-${ending.length}.mjs`);
  const lines = `for (let n = 0; n < ${count}; n += 1) n % 2 ? opened.log.info({ n }, "x".repeat(200)) : opened.write('{"n":' + n + "}\\n");`;
  await writeFile(program, `import { openLog } from "./log.mjs";\nconst opened = openLog("info");\n${lines}\n${ending}\n`);

  const { stdout } = await promisify(execFile)(process.execPath, [program]).catch((error: unknown) => error as { stdout: string });

  const numbers = stdout
    .trim()
    .split("\n")
    .map((line) => (JSON.parse(line) as { n?: number }).n);
  expect(numbers.slice(0, count)).toEqual(Array.from({ length: count }, (_, n) => n));
});
