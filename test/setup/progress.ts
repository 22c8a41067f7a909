/** Runs before each test file: notes which test is running, where the runner's time limits read it. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, inject } from "vitest";
import type { Progress } from "./time-limits.js";

const file = expect.getState().testPath ?? "";
const fileBegunAt = Date.now();
/** Synchronous, so that it is there when the test never gives its process a turn. */
const note = (test: string | null) => {
  const progress: Progress = { file, test, fileBegunAt, testBegunAt: Date.now() };
  writeFileSync(join(inject("progressFolder"), String(process.pid)), JSON.stringify(progress));
};

note(null);
beforeEach(({ task }) => note(task.fullTestName));
