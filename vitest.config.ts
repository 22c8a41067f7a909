import { existsSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** They take longest: begun last, they would be waited for alone. */
const LONGEST = [
  "contract/build",
  "store/embedded",
  "e2e/crash",
  "services/agents/sandbox",
  "contract/permission-matrix",
  "store/events",
  "e2e/idempotency",
  "services/generation/jobs/jobs",
  "rest/speech",
  "providers/sandbox/speech",
  "graphql/transport",
  "store/ledger-properties",
  "store/migrations",
  "providers/http",
  "providers/sandbox/video",
  "services/credits/settler-outage",
];

/** The system's memory disk: half of what the tests do is writing databases that nobody reads again. */
const MEMORY_DISK = "/dev/shm";
const MEMORY_DISK_BYTES_MIN = 4 * 1024 ** 3;

/** Where tests put their files. */
function temporaryDirectory(): string {
  if (!existsSync(MEMORY_DISK)) return tmpdir();
  const { bavail, bsize } = statfsSync(MEMORY_DISK);
  return bavail * bsize < MEMORY_DISK_BYTES_MIN ? tmpdir() : MEMORY_DISK;
}

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification) => LONGEST.some((name) => moduleId.endsWith(`/test/${name}.test.ts`));
    const sorted = await super.sort(files);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

// Before the tests' processes are started, which take it over.
process.env.TMPDIR = temporaryDirectory();

export default defineConfig({
  // Vite would load graphql's ESM build beside the CommonJS one that every library shares in Node: two sets of classes.
  resolve: { alias: [{ find: /^graphql$/, replacement: fileURLToPath(new URL("node_modules/graphql/index.js", import.meta.url)) }] },
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/setup/template-database.ts"],
    pool: "forks",
    // No module here keeps state of its own, so files can share what they load: that saves two fifths of the time.
    isolate: false,
    // Twice what the smallest machine has cores, because half of the time is spent waiting for time-outs, processes and browsers.
    maxWorkers: 4,
    sequence: { sequencer: LongestFirst },
    // These end what hangs; what is merely slow on a busy machine must not fail.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    teardownTimeout: 20_000,
    expect: { poll: { timeout: 20_000, interval: 20 } },
  },
});
