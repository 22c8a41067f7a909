import { existsSync, statfsSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { type TestKind, testKinds } from "./test/setup/test-kinds.js";

/** Tests that start programs and databases of their own: they take longest, and begun last they would be waited for alone. */
const LONG_FOLDERS = ["e2e", "contract", "store"];

/** The system's memory disk: half of the tests' time is writing databases that are never read again. */
const MEMORY_DISK = "/dev/shm";
const MEMORY_DISK_BYTES_MIN = 4 * 1024 ** 3;

/** Where tests put their files. */
function temporaryDirectory(): string {
  if (!existsSync(MEMORY_DISK)) return tmpdir();
  const { bavail, bsize } = statfsSync(MEMORY_DISK);
  return bavail * bsize < MEMORY_DISK_BYTES_MIN ? tmpdir() : MEMORY_DISK;
}

/** By what the last runs have measured; where they have measured nothing, as on a fresh clone, by folder and then by size. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { cache, config } = this.ctx;
    const isMeasured = ({ moduleId, project }: TestSpecification) =>
      cache.getFileTestResults(`${project.name}:${relative(config.root, moduleId)}`) !== undefined;
    const isLong = ({ moduleId }: TestSpecification) => LONG_FOLDERS.some((folder) => moduleId.includes(`/test/${folder}/`));
    const sizeOf = ({ moduleId }: TestSpecification) => statSync(moduleId).size;
    const unknown = files.filter((file) => !isMeasured(file)).sort((one, other) => sizeOf(other) - sizeOf(one));
    return [...unknown.filter(isLong), ...unknown.filter((file) => !isLong(file)), ...(await super.sort(files.filter(isMeasured)))];
  }
}

// Before the tests' processes are started, which take it over.
process.env.TMPDIR = temporaryDirectory();

const CLIENTS = fileURLToPath(new URL("test/clients/", import.meta.url));
const areClientsInstalled = existsSync(`${CLIENTS}node_modules`);
// Each project reads this file again.
if (!areClientsInstalled && process.env.TEST_CLIENTS_SKIPPED === undefined) {
  process.env.TEST_CLIENTS_SKIPPED = "yes";
  console.warn("The clients of test/clients are not installed: their tests are skipped. `npm run test:clients` installs and runs them.");
}

const kinds = testKinds(fileURLToPath(new URL("test", import.meta.url)));
const project = (name: TestKind, ...globalSetup: string[]) => ({
  extends: true as const,
  test: {
    name,
    include: kinds[name].filter((file) => areClientsInstalled || !file.startsWith(CLIENTS)),
    globalSetup: ["test/setup/time-limits.ts", ...globalSetup],
  },
});

export default defineConfig({
  // Vite would load graphql's ESM build beside the CommonJS one that every library shares in Node: two sets of classes.
  resolve: { alias: [{ find: /^graphql$/, replacement: fileURLToPath(new URL("node_modules/graphql/index.js", import.meta.url)) }] },
  test: {
    projects: [
      project("unit"),
      project("integration", "test/setup/template-database.ts"),
      project("browser", "test/setup/template-database.ts"),
    ],
    setupFiles: ["test/setup/progress.ts"],
    pool: "forks",
    // No module here keeps state of its own, so files can share what they load: that saves two fifths of the time.
    isolate: false,
    // Twice what the smallest machine has cores, because half of the time is spent waiting for time-outs, processes and browsers.
    maxWorkers: 4,
    sequence: { sequencer: LongestFirst },
    // These end hanging tests; a slow test on a busy machine must not fail.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    teardownTimeout: 20_000,
    expect: { poll: { timeout: 20_000, interval: 20 } },
  },
});
