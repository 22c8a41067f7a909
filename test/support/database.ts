/** Databases for tests: a migrated embedded one in a fraction of a second. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { pino } from "pino";
import { type Database, openDatabase } from "../../src/store/database.js";
import { migrate, readMigrations } from "../../src/store/migrations.js";

export const silentLog = pino({ level: "silent" });

// Tests and scripts are run from there.
const projectRoot = process.cwd();
const templates = join(projectRoot, "node_modules/.cache/sluice/templates");

const DAY_MS = 24 * 60 * 60 * 1000;

/**
 * PGlite's program, kept for the life of the process: V8 shares the compiled code with every thread that compiles the
 * same bytes while a reference lives. Otherwise each database of each test would be compiled again, a second of
 * processor time.
 */
const heldProgram = readFile(join(projectRoot, "node_modules/@electric-sql/pglite/dist/pglite.wasm")).then((bytes) =>
  WebAssembly.compile(bytes),
);

export interface TestDatabase {
  readonly database: Database;
  readonly dataDir: string;
  /** Closes the database and removes its files. */
  close(): Promise<void>;
}

/** A migrated, empty embedded database, not shared. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const { dataDir, remove } = await createTestDataDir();
  const database = await openDatabase({ databaseUrl: null, dataDir, log: silentLog });
  return {
    database,
    dataDir,
    close: async () => {
      await database.close();
      await remove();
    },
  };
}

/** A DATA_DIR that holds a migrated, empty embedded database: a process that starts on it has nothing to make. */
export async function createTestDataDir(): Promise<{ readonly dataDir: string; remove(): Promise<void> }> {
  const template = await ensureTemplate();
  const dataDir = await createEmptyDir();
  // Node copies file by file on this thread; five hundred of them take half a second.
  await Promise.all([promisify(execFile)("cp", ["-R", template, join(dataDir, "database")]), heldProgram]);
  return { dataDir, remove: () => rm(dataDir, { recursive: true, force: true }) };
}

/** A new directory below the system's temporary one; the caller removes it. */
export function createEmptyDir(): Promise<string> {
  return mkdtemp(join(tmpdir(), "sluice-test-"));
}

/** The files of a migrated database; made when the migrations or PGlite have changed since the last time. */
export async function ensureTemplate(): Promise<string> {
  const template = join(templates, templateKey());
  if (existsSync(template)) return template;

  mkdirSync(templates, { recursive: true });
  removeOldTemplates();
  const draft = mkdtempSync(join(templates, "draft-"));
  const database = await openDatabase({ databaseUrl: null, dataDir: draft, log: silentLog });
  await migrate(database, silentLog);
  await database.close();
  try {
    renameSync(join(draft, "database"), template);
  } catch (error) {
    // Another process made it at the same time.
    if (!existsSync(template)) throw error;
  }
  rmSync(draft, { recursive: true });
  return template;
}

/** Only those of another day: a run beside this one may be copying a younger one. */
function removeOldTemplates(): void {
  for (const name of readdirSync(templates)) {
    const path = join(templates, name);
    if (Date.now() - statSync(path).mtimeMs > DAY_MS) rmSync(path, { recursive: true, force: true });
  }
}

function templateKey(): string {
  const hash = createHash("sha256");
  for (const { name, sql } of readMigrations()) hash.update(`${name}\0${sql}\0`);
  hash.update(readFileSync(join(projectRoot, "node_modules/@electric-sql/pglite/package.json")));
  const store = join(projectRoot, "src/store");
  for (const name of readdirSync(store).filter((candidate) => candidate.startsWith("embedded")))
    hash.update(readFileSync(join(store, name)));
  return hash.digest("hex").slice(0, 16);
}
