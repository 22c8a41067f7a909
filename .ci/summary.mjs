/**
 * `summary.mjs <status> <folder>`: prints the names of failed tests and `N passed, N failed` from vitest's JSON reports in the
 * folder. Each report `NAME.json` is one run. For a file that was run twice (`NAME.again.json`) the second run counts, and tests
 * that passed only then are listed. Fails when a test failed, when none ran, and when the checks or a run failed although every
 * test passed.
 *
 * `summary.mjs --again <report>`: prints the files that are worth a second run, a line each; none when so many failed that it is
 * no accident.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";

/** More failing files than this have a cause in common. */
const AGAIN_FILES_MAX = 3;

if (process.argv[2] === "--again") printFilesToRunAgain(process.argv[3]);
else printSummary(...process.argv.slice(2));

function printFilesToRunAgain(file) {
  const failed = readReport(file).testResults.filter((suite) => suite.status === "failed");
  if (failed.length > AGAIN_FILES_MAX) return;
  for (const { name } of failed) console.log(relative(process.cwd(), name));
}

function printSummary(status, folder) {
  const runs = readdirSync(folder)
    .filter((file) => file.endsWith(".json") && !file.endsWith(".again.json"))
    .map((file) => readRun(folder, file));

  const failures = runs.flatMap((run) => run.failures);
  const passed = runs.reduce((sum, run) => sum + run.passed, 0);
  if (runs.length === 0) failures.push("no test ran");
  // Such as an error that no test caught, a check, or a worker that died.
  else if (failures.length === 0 && !existsSync(join(folder, "ended.txt")) && (status !== "0" || runs.some((run) => !run.isWhole)))
    failures.push("something beside the tests; see above");

  failures.push(...linesOf(join(folder, "ended.txt")));
  for (const test of runs.flatMap((run) => run.unsteady)) console.log(`unsteady, passed when run alone: ${test}`);
  for (const failure of failures) console.log(`failed: ${failure}`);
  console.log(`${passed} passed, ${failures.length} failed`);
  process.exitCode = failures.length > 0 ? 1 : 0;
}

function readRun(folder, file) {
  const name = file.replace(/\.json$/, "");
  const first = readReport(join(folder, file));
  const secondFile = join(folder, `${name}.again.json`);
  const second = existsSync(secondFile) ? readReport(secondFile) : null;
  const again = new Map((second?.testResults ?? []).map((suite) => [suite.name, suite]));
  const suites = first.testResults.map((suite) => again.get(suite.name) ?? suite);
  const failures = suites.flatMap(failuresOf);
  if (first.numTotalTests === 0) failures.push("no test ran");
  return {
    failures: failures.map((failure) => `${name}: ${failure}`),
    unsteady: first.testResults.flatMap(failuresOf).filter((failure) => !failures.includes(failure)),
    passed: suites.flatMap(({ assertionResults }) => assertionResults).filter((test) => test.status === "passed").length,
    isWhole: second ? second.success : first.success,
  };
}

/** Files that were ended at their time limit, with the test that was running. */
function linesOf(file) {
  return existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean) : [];
}

function failuresOf({ name, status, assertionResults }) {
  const failed = assertionResults.filter((test) => test.status === "failed").map((test) => `${name}: ${test.fullName}`);
  // A file that does not load has no tests to fail.
  return status === "failed" && failed.length === 0 ? [`${name}: the file itself`] : failed;
}

function readReport(path) {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return { testResults: [], numTotalTests: 0, success: false };
  }
}
