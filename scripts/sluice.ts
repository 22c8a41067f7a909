/** `npm run sluice -- <command>`: the operator's command line. It speaks GraphQL to a running gateway; `help` says the rest. */
import { addEnvFile } from "../src/config/env-file.js";
import { StartError } from "../src/lib/start-error.js";
import { runSluice } from "./sluice/run.js";

try {
  addEnvFile(process.env, process.cwd());
  process.exitCode = await runSluice(process.argv.slice(2), process.env, {
    out: (text) => process.stdout.write(`${text}\n`),
    error: (text) => process.stderr.write(`${text}\n`),
  });
} catch (error) {
  if (!(error instanceof StartError)) throw error;
  process.stderr.write(`sluice: ${error.message}\n`);
  process.exitCode = 1;
}
