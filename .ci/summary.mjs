/**
 * `summary.mjs <status> <report> [<report of the second run>]`: prints `N passed, N failed` from vitest's JSON reports, after the
 * names of what failed. A file that was run a second time counts as it went then, and what only then passed is told. Fails when
 * something failed, when nothing ran, and when the checks or the run itself failed though every test passed.
 *
 * `summary.mjs --again <report>`: prints the files that are worth a second run, a line each; none when so many failed that it is
 * no accident.
 */
import { readFileSync } from "node:fs";
import { relative } from "node:path";

/** More failing files than this have a cause in common. */
const AGAIN_FILES_MAX = 3;

if (process.argv[2] === "--again") printFilesToRunAgain(process.argv[3]);
else printSummary(...process.argv.slice(2));

function printFilesToRunAgain(file) {
  const failed = readReport(file).testResults.filter((suite) => suite.status === "failed");
  if (failed.length > AGAIN_FILES_MAX) return;
  for (const { name } of failed) console.log(relative(process.cwd(), name));
}

function printSummary(status, firstFile, secondFile) {
  const first = readReport(firstFile);
  const second = secondFile ? readReport(secondFile) : null;
  const again = new Map((second?.testResults ?? []).map((suite) => [suite.name, suite]));
  const suites = first.testResults.map((suite) => again.get(suite.name) ?? suite);

  const failures = suites.flatMap(failuresOf);
  const unsteady = first.testResults.flatMap(failuresOf).filter((failure) => !failures.includes(failure));
  const passed = suites.flatMap(({ assertionResults }) => assertionResults).filter((test) => test.status === "passed").length;
  const isRunWhole = second ? second.success : first.success;
  if (first.numTotalTests === 0) failures.push("no test ran");
  // Such as an error that no test caught, a check, or a worker that died.
  else if (failures.length === 0 && (status !== "0" || !isRunWhole)) failures.push("something beside the tests; see above");

  for (const test of unsteady) console.log(`unsteady, passed when run alone: ${test}`);
  for (const failure of failures) console.log(`failed: ${failure}`);
  console.log(`${passed} passed, ${failures.length} failed`);
  process.exitCode = failures.length > 0 ? 1 : 0;
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
