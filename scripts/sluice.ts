/** `npm run sluice -- <command>`: the operator's command line. It speaks GraphQL to a running gateway; `help` says the rest. */
import { runSluice } from "./sluice/run.js";

process.exitCode = await runSluice(process.argv.slice(2), process.env, {
  out: (text) => process.stdout.write(`${text}\n`),
  error: (text) => process.stderr.write(`${text}\n`),
});
