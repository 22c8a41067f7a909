/** The build and the migration command, on copies of the project. */
import { execFile } from "node:child_process";
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isMigrationName, writeMigration } from "../../scripts/write-migration.js";
import { createEmptyDir, createTestDatabase } from "../support/database.js";

const root = fileURLToPath(new URL("../../", import.meta.url));
/** The whole project, with its database client. */
let project: string;
/** The project with hardly any source to bundle: rebuilding does not depend on the size of the sources. */
let sketch: string;

beforeAll(async () => {
  project = await copyProject(["src", "packages", "scripts", "prisma", "prisma.config.ts", "package.json", "tsconfig.json"]);
  sketch = await copyProject(["scripts", "prisma", "prisma.config.ts", "package.json", "tsconfig.json", "codegen.ts", "schema", "docs"]);
  for (const copy of [project, sketch]) addColumn(join(copy, "prisma/schema.prisma"));
  for (const entry of bundleEntries()) {
    mkdirSync(dirname(join(sketch, entry)), { recursive: true });
    writeFileSync(join(sketch, entry), "export {};\n");
  }
  const explorer = "src/graphql/explorer";
  mkdirSync(join(sketch, explorer), { recursive: true });
  for (const name of ["tsconfig.json", "no-style-element.ts"]) cpSync(join(root, explorer, name), join(sketch, explorer, name));
  writeFileSync(join(sketch, explorer, "main.tsx"), "export {};\n");
  mkdirSync(join(sketch, "dashboard/src/shell"), { recursive: true });
  for (const name of ["dashboard/vite.config.ts", "dashboard/src/shell/shell.graphql"]) cpSync(join(root, name), join(sketch, name));
  cpSync(join(root, "test/operations"), join(sketch, "test/operations"), {
    recursive: true,
    filter: (source) => !source.endsWith("generated"),
  });
  for (const entry of ["early.ts", "main.tsx"]) writeFileSync(join(sketch, "dashboard/src", entry), "console.log(1);\n");
});

afterAll(() => {
  for (const copy of [project, sketch]) rmSync(copy, { recursive: true });
});

async function copyProject(names: readonly string[]): Promise<string> {
  const copy = await createEmptyDir();
  for (const name of names) cpSync(join(root, name), join(copy, name), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  return copy;
}

/** What no migration makes yet. */
function addColumn(schema: string): void {
  const column = 'addedAt DateTime? @map("added_at")';
  writeFileSync(schema, readFileSync(schema, "utf8").replace("model DeploymentSetting {", `model DeploymentSetting {\n  ${column}`));
}

/** The source files that scripts/build.mjs begins with. */
function bundleEntries(): string[] {
  return readFileSync(join(root, "scripts/build.mjs"), "utf8").match(/(?:src|scripts|packages)\/[\w/-]+\.ts(?=")/g) ?? [];
}

/** What a command of the project prints. */
async function run(cwd: string, ...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd });
  return stdout;
}

/** The output on stderr. */
async function runForWords(cwd: string, ...args: string[]): Promise<string> {
  const { stderr } = await promisify(execFile)(process.execPath, args, { cwd });
  return stderr;
}

const build = async (cwd: string) => (await runForWords(cwd, "scripts/build.mjs")).replaceAll(/\d+ ms/g, "some time");
const BUILT_CLIENT = "built the database client in some time\n";
const BUILT_EXPLORER = "built the explorer in some time\n";
const BUILT_DOCUMENTS = "built the documents' types in some time\n";
const BUILT_DASHBOARD = "built the dashboard in some time\n";
const BUILT_SERVER = "built the server in some time\n";

describe("the build", () => {
  it("makes everything the first time, and nothing when nothing has changed", async () => {
    expect(await build(sketch)).toBe(BUILT_CLIENT + BUILT_EXPLORER + BUILT_DOCUMENTS + BUILT_DASHBOARD + BUILT_SERVER);
    expect(await build(sketch)).toBe("");
    // Of the whole project, before the tests began.
    expect(readdirSync(join(root, "dist"))).toEqual(
      expect.arrayContaining(["main.js", "embedded-worker.js", "embedded-initialize.js", "guest-program.js", "explorer", "dashboard"]),
    );
  });

  it("compares files by content, not by time", async () => {
    await build(sketch);
    utimesSync(join(sketch, "src/main.ts"), new Date(), new Date());
    expect(await build(sketch)).toBe("");

    appendFileSync(join(sketch, "src/main.ts"), "\n// changed\n");
    expect(await build(sketch)).toBe(BUILT_SERVER);
  });

  it("notices new and removed files", async () => {
    const file = join(sketch, "src/added.ts");
    await build(sketch);
    writeFileSync(file, "export const added = 1;\n");
    expect(await build(sketch)).toBe(BUILT_SERVER);

    rmSync(file);
    expect(await build(sketch)).toBe(BUILT_SERVER);
  });

  it("begins again after a build that was interrupted", async () => {
    await build(sketch);
    rmSync(join(sketch, "dist/.fingerprint"));

    expect(await build(sketch)).toBe(BUILT_SERVER);
  });

  it("says how to install missing packages", async () => {
    const bare = await createEmptyDir();
    mkdirSync(join(bare, "scripts"));
    for (const name of ["build.mjs", "dashboard-assets.mjs", "explorer-assets.mjs", "lighter-packages.mjs", "start.mjs"])
      cpSync(join(root, "scripts", name), join(bare, "scripts", name));

    await expect(promisify(execFile)(process.execPath, ["scripts/start.mjs"], { cwd: bare })).rejects.toThrow("Run: npm ci");
    rmSync(bare, { recursive: true });
  });
});

describe("db:migration", () => {
  const runMigration = (...args: string[]) => run(project, "scripts/run-ts.mjs", "scripts/db-migration.ts", ...args);

  it("writes the next migration from the schema, and no migration without a change", { timeout: 300_000 }, async () => {
    // The client of the same schema, which takes long to make.
    const client = "src/store/generated";
    if (existsSync(join(sketch, client))) cpSync(join(sketch, client), join(project, client), { recursive: true });

    expect(await runMigration("added-at")).toMatch(/wrote prisma\/migrations\/\d{14}_added_at\/migration\.sql/);

    const migrations = join(project, "prisma/migrations");
    const names = readdirSync(migrations);
    const name = names.find((candidate) => candidate.endsWith("_added_at")) ?? "";
    expect(readFileSync(join(migrations, name, "migration.sql"), "utf8")).toBe(
      '-- AlterTable\nALTER TABLE "deployment_setting" ADD COLUMN     "added_at" TIMESTAMP(3);\n',
    );
    const { database, close } = await createTestDatabase();
    expect(await writeMigration(database, join(project, "prisma"), "again")).toBeNull();
    expect(readdirSync(migrations)).toEqual(names);
    await close();
  });

  it.each(["../elsewhere", "Added", "added at", "-added", ""])("takes no name that is not a folder's: %j", (name) => {
    expect(isMigrationName(name)).toBe(false);
  });

  it("wants a name that can be a folder's", async () => {
    await expect(runMigration("../elsewhere")).rejects.toMatchObject({ code: 2 });
    await expect(runMigration()).rejects.toMatchObject({ code: 2 });
  });
});
