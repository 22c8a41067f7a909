import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

export default defineConfig({
  // Vite would load graphql's ESM build beside the CommonJS one that every library shares in Node: two sets of classes.
  resolve: { alias: [{ find: /^graphql$/, replacement: fileURLToPath(new URL("node_modules/graphql/index.js", import.meta.url)) }] },
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/setup/template-database.ts"],
    pool: "forks",
    // No module here keeps state of its own, so files can share what they load: that saves two fifths of the time.
    isolate: false,
    // One more than the smallest machine has cores, because a third of the time is spent waiting for time-outs and processes.
    maxWorkers: 3,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    teardownTimeout: 20_000,
  },
});
