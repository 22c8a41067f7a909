/** Runs before each test file: notes which test is running, where the runner's time limits read it. */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeEach, expect, inject } from "vitest";
import type { Progress } from "./time-limits.js";

const file = expect.getState().testPath ?? "";
const fileBegunAt = Date.now();
const path = join(inject("progressFolder"), String(process.pid));
/** Synchronous, so that it is there when the test never gives its process a turn. */
const note = (test: string | null) => {
  const progress: Progress = { file, test, fileBegunAt, testBegunAt: Date.now() };
  writeFileSync(path, JSON.stringify(progress));
};

note(null);
beforeEach(({ task }) => note(task.fullTestName));
// The first hook here is the last that runs. A process without another file waits for the end of the run.
afterAll(() => rmSync(path, { force: true }));
