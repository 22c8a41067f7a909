/** Programs for tests that need a process of their own, which they can kill. */
import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundle, projectRoot } from "../../scripts/build.mjs";

/** The server as `npm start` runs it: built before the first test file. */
export const SERVER_PROGRAM = join(projectRoot, "test/support/programs/server.mjs");

const cache = fileURLToPath(new URL("../../node_modules/.cache/sluice/", import.meta.url));

/** Compiles a TypeScript file for Node. Returns the program's path; the caller removes its folder. */
export async function compile(entry: string): Promise<{ readonly program: string; readonly folder: string }> {
  const folder = await mkdtemp(join(cache, "program-"));
  await bundle({ entries: { program: entry }, outdir: folder });
  return { program: join(folder, "program.js"), folder };
}
