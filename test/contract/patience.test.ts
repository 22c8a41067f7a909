/** Tests wait for events, not for a time: a slow machine must not make them fail. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { filesBelow } from "../setup/files-below.js";

const tests = fileURLToPath(new URL("../", import.meta.url));

const RULES: readonly { readonly says: string; readonly pattern: RegExp }[] = [
  { says: "waits with eventually() of test/support: vi.waitFor gives up after a second", pattern: /vi\.waitFor\(/ },
  { says: "is not tried again when it fails: that hides what is wrong", pattern: /\bretry: ?\d/ },
  { says: "waits ten seconds at least", pattern: /\.poll\(.*timeout: ?(?:\d{1,4}|\d_\d{3}) ?[,}]/ },
  {
    says: "bounds no wall time by a number: a condition, a share of the whole or processor time",
    pattern: /performance\.now\(\) - \w+\)\.toBeLessThan\(/,
  },
  {
    says: "bounds no processor time by a number: how it grows (test/support/growth.ts), or a share of other work in the same run",
    pattern: /(?:took|elapsed|processor|longest|hold|held|pause|stall)\w*Ms\w*(?:\(.*\))?\)\.toBeLessThan(?:OrEqual)?\([\d_.]+\)/i,
  },
  { says: "has no time limit below vitest.config.ts's", pattern: /^\s*(?:it|describe|test)\b.*\{ timeout: ?(?:\d{1,5}|\d{1,2}_\d{3}) \}/ },
];

it("keeps to them", () => {
  const files = filesBelow(tests).filter(
    (name) => name.endsWith(".ts") && name !== "contract/patience.test.ts" && name !== "support/eventually.ts",
  );
  const breaches = files.flatMap((name) =>
    readFileSync(join(tests, name), "utf8")
      .split("\n")
      .flatMap((line, index) => RULES.filter(({ pattern }) => pattern.test(line)).map(({ says }) => `${name}:${index + 1} ${says}`)),
  );

  expect(breaches).toEqual([]);
});

it.each([
  "await vi.waitFor(() => seen);",
  'it("races", { retry: 2 }, async () => {',
  "await expect.poll(read, { timeout: 1_000, interval: 20 }).toBe(1);",
  "expect(performance.now() - startedAt).toBeLessThan(100);",
  "expect(longestHoldMs).toBeLessThan(50);",
  "expect(processorMs(() => read(text))).toBeLessThanOrEqual(20);",
  'it("is slow", { timeout: 60_000 }, async () => {',
])("finds %s", (line) => {
  expect(RULES.filter(({ pattern }) => pattern.test(line))).toHaveLength(1);
});
