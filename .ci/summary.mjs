/**
 * `summary.mjs <report> <status>`: prints `N passed, N failed` from vitest's JSON report, after the names of what failed. Fails
 * when something failed, when nothing ran, and when the checks or the run itself failed though every test passed.
 */
import { readFileSync } from "node:fs";

const [, , file, status = "0"] = process.argv;
const report = readReport(file);
const failedTests = report.testResults.flatMap(({ name, assertionResults }) =>
  assertionResults.filter((test) => test.status === "failed").map((test) => `${name}: ${test.fullName}`),
);
// A file that does not load has no tests to fail.
const brokenFiles = report.testResults
  .filter((suite) => suite.status === "failed" && !suite.assertionResults.some((test) => test.status === "failed"))
  .map(({ name }) => `${name}: the file itself`);
const failures = [...failedTests, ...brokenFiles];
if (report.numTotalTests === 0) failures.push("no test ran");
// Such as an error that no test caught, a check, or a worker that died.
else if (failures.length === 0 && (status !== "0" || !report.success)) failures.push("something beside the tests; see above");

for (const failure of failures) console.log(`failed: ${failure}`);
console.log(`${report.numPassedTests} passed, ${failures.length} failed`);
process.exitCode = failures.length > 0 ? 1 : 0;

function readReport(path) {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return { testResults: [], numPassedTests: 0, numTotalTests: 0, success: false };
  }
}
