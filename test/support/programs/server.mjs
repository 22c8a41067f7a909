/** The built server as `npm start` runs it, but out of the project's folder: a developer's `.env` there must not reach a test. */
import { mkdtempSync, rmdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const directory = mkdtempSync(join(tmpdir(), "sluice-cwd-"));
process.chdir(directory);
await import("../../../dist/main.js");
// It has looked for the file by now, and stays where it is.
rmdirSync(directory);
