/**
 * Time limits of test files, enforced from outside of their processes: a test that never gives its process a turn cannot be timed out
 * from within. They end what would run for ever, and are far above what the slowest machine needs.
 */
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import type { TestProject } from "vitest/node";

/** What a test process writes about itself. */
export interface Progress {
  readonly file: string;
  /** Null before the first test. */
  readonly test: string | null;
  readonly fileBegunAt: number;
  readonly testBegunAt: number;
}

/** Five times the slowest file beside a busy process on one core. */
const FILE_LIMIT_MS = Number(process.env.TEST_FILE_LIMIT_MS ?? 45 * 60_000);
/** Tests time out by themselves after five minutes at most. */
const TEST_LIMIT_MS = Number(process.env.TEST_LIMIT_MS ?? 15 * 60_000);
const LOOK_INTERVAL_MS = 1_000;

/** Watches the processes of this run. Returns what stops it. */
export default function setup(project: TestProject): () => void {
  const folder = mkdtempSync(join(tmpdir(), "sluice-test-progress-"));
  project.provide("progressFolder", folder);
  const looking = setInterval(() => {
    for (const pid of readdirSync(folder)) endIfOver(join(folder, pid), Number(pid), project.config.root);
  }, LOOK_INTERVAL_MS);
  return () => {
    clearInterval(looking);
    rmSync(folder, { recursive: true, force: true });
  };
}

function endIfOver(path: string, pid: number, root: string): void {
  const progress = readProgress(path);
  const now = Date.now();
  if (progress === null) return;
  const isTestOver = now - progress.testBegunAt > TEST_LIMIT_MS;
  if (!isTestOver && now - progress.fileBegunAt <= FILE_LIMIT_MS) return;
  const limitMs = isTestOver ? TEST_LIMIT_MS : FILE_LIMIT_MS;
  const where = progress.test === null ? "before its first test" : `in the test "${progress.test}"`;
  const said = `${relative(root, progress.file)} was ended ${where}: it took longer than ${limitMs / 1_000} s`;
  console.error(said);
  if (process.env.TEST_ENDED_FILE) appendFileSync(process.env.TEST_ENDED_FILE, `${said}\n`);
  rmSync(path, { force: true });
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended meanwhile.
  }
}

function readProgress(path: string): Progress | null {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as Progress;
  } catch {
    // It is being written, or its process has ended.
    return null;
  }
}

declare module "vitest" {
  export interface ProvidedContext {
    progressFolder: string;
  }
}
