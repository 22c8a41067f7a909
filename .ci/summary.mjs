/** Prints `N passed, N failed` from vitest's JSON report; fails when something failed or nothing ran. */
import { readFileSync } from "node:fs";

const [, , file] = process.argv;
const report = readReport(file);
// A file that does not load has no tests to fail.
const brokenFiles = report.testResults.filter(
  (suite) => suite.status === "failed" && !suite.assertionResults.some((test) => test.status === "failed"),
).length;
const passed = report.numPassedTests;
const failed = report.numFailedTests + brokenFiles + (report.numTotalTests === 0 ? 1 : 0);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : 0;

function readReport(path) {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return { testResults: [], numPassedTests: 0, numFailedTests: 0, numTotalTests: 0 };
  }
}
