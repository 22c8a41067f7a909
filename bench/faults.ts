/**
 * Breaks a running gateway and looks at its books (docs/performance.md):
 *
 *   npm run bench:faults
 *   npm run bench:faults -- --only kill --kills 10 --database embedded
 *
 * `kill`: SIGKILL under load, again and again on the same data. `worker`: SIGKILL to one of four workers under load, again and again,
 * which must be nothing to the callers of the others, and `hang`: one of them hangs (PostgreSQL only). `owner`: SIGKILL to a process
 * whose settlements are committed and not answered, beside another one (PostgreSQL only). `budget`: a lowered budget and grants while
 * leases are out. `last`: an account is emptied. `blackhole` and `reset`: the database goes away behind a proxy while answers are
 * under way (PostgreSQL only). After each, every answer that a caller received whole has its
 * usage row at the price that it named, nothing is charged twice, and every invariant of the books holds.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { buildPrograms } from "./contenders.js";
import { type FaultReport, killUnderLoad, killWorkers, loseDatabase } from "./fault-scenarios.js";
import { changeBudgets, killLeaseOwner, spendTheLast } from "./lease-scenarios.js";
import { findPostgres } from "./support/postgres.js";

const FAULTS = ["kill", "worker", "hang", "owner", "budget", "last", "blackhole", "reset"] as const;

const { values } = parseArgs({
  options: {
    only: { type: "string", default: FAULTS.join(",") },
    database: { type: "string", default: "embedded,postgres" },
    kills: { type: "string", default: "5" },
    /** How long the database is away. */
    seconds: { type: "string", default: "10" },
  },
});
const only = values.only.split(",");
const databases = values.database.split(",");
const kills = Number(values.kills);
const outageMs = Number(values.seconds) * 1_000;

const directory = mkdtempSync(join(tmpdir(), "sluice-faults-"));
const reports: FaultReport[] = [];
try {
  await buildPrograms();
  const postgres = databases.includes("postgres") ? findPostgres() : null;
  if (databases.includes("postgres") && postgres === null)
    console.log("PostgreSQL is not installed: only the embedded database is broken.");
  if (only.includes("kill") && databases.includes("embedded")) await add(killUnderLoad({ directory, postgres: null, kills }));
  if (only.includes("budget") && databases.includes("embedded")) await add(changeBudgets({ directory, postgres: null }));
  if (only.includes("last") && databases.includes("embedded")) await add(spendTheLast({ directory, postgres: null }));
  if (postgres !== null) {
    if (only.includes("kill")) await add(killUnderLoad({ directory, postgres, kills }));
    if (only.includes("worker")) await add(killWorkers({ directory, postgres, kills, signal: "SIGKILL" }));
    if (only.includes("hang")) await add(killWorkers({ directory, postgres, kills: 1, signal: "SIGSTOP" }));
    if (only.includes("owner")) await add(killLeaseOwner({ directory, postgres, kills }));
    if (only.includes("budget")) await add(changeBudgets({ directory, postgres }));
    if (only.includes("last")) await add(spendTheLast({ directory, postgres }));
    if (only.includes("blackhole")) await add(loseDatabase({ directory, postgres, fault: "blackhole", outageMs }));
    if (only.includes("reset")) await add(loseDatabase({ directory, postgres, fault: "reset", outageMs }));
  }
} finally {
  rmSync(directory, { recursive: true, force: true });
}
const failed = reports.filter(({ problems }) => problems.length > 0);
console.log(`\n${reports.length - failed.length} of ${reports.length} faults left the books in order.`);
// At once: Node 20 sometimes waits for ever for connections that were reset.
process.exit(reports.length === 0 || failed.length > 0 ? 1 : 0);

async function add(running: Promise<FaultReport>): Promise<void> {
  const report = await running;
  reports.push(report);
  console.log(`\n## ${report.title}\n`);
  for (const fact of report.facts) console.log(`- ${fact}`);
  for (const problem of report.problems) console.log(`- PROBLEM: ${problem}`);
  if (report.problems.length === 0) console.log("- the books are in order");
}
