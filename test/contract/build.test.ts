/** The build and the migration command, on a copy of the project. */
import { execFile } from "node:child_process";
import { appendFileSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createEmptyDir } from "../support/database.js";

const root = fileURLToPath(new URL("../../", import.meta.url));
let project: string;

beforeAll(async () => {
  project = await createEmptyDir();
  for (const name of ["src", "scripts", "prisma", "prisma.config.ts", "package.json", "tsconfig.json"]) {
    cpSync(join(root, name), join(project, name), { recursive: true, filter: (file) => !file.includes("/generated") });
  }
  symlinkSync(join(root, "node_modules"), join(project, "node_modules"));
});

afterAll(() => rmSync(project, { recursive: true }));

/** What a command of the project prints. */
async function run(...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: project });
  return stdout;
}

const build = async () => (await run("scripts/build.mjs")).replaceAll(/\d+ ms/g, "some time");
const BUILT_CLIENT = "built the database client in some time\n";
const BUILT_SERVER = "built the server in some time\n";

describe("the build", () => {
  it("makes everything the first time, and nothing when nothing has changed", async () => {
    expect(await build()).toBe(BUILT_CLIENT + BUILT_SERVER);
    expect(await build()).toBe("");
    expect(readdirSync(join(project, "dist"))).toEqual(expect.arrayContaining(["main.js", "embedded-worker.js", "embedded-initialize.js"]));
  });

  it("goes by what files contain, not by when they were written", async () => {
    utimesSync(join(project, "src/main.ts"), new Date(), new Date());
    expect(await build()).toBe("");

    appendFileSync(join(project, "src/main.ts"), "\n// changed\n");
    expect(await build()).toBe(BUILT_SERVER);
  });

  it("sees files that come and go", async () => {
    const file = join(project, "src/lib/added.ts");
    writeFileSync(file, "export const added = 1;\n");
    expect(await build()).toBe(BUILT_SERVER);

    rmSync(file);
    expect(await build()).toBe(BUILT_SERVER);
  });

  it("begins again after a build that was interrupted", async () => {
    rmSync(join(project, "dist/.fingerprint"));

    expect(await build()).toBe(BUILT_SERVER);
  });

  it("says what to do when the packages are not installed", async () => {
    const bare = await createEmptyDir();
    mkdirSync(join(bare, "scripts"));
    for (const name of ["build.mjs", "start.mjs"]) cpSync(join(root, "scripts", name), join(bare, "scripts", name));

    await expect(promisify(execFile)(process.execPath, ["scripts/start.mjs"], { cwd: bare })).rejects.toThrow("Run: npm ci");
    rmSync(bare, { recursive: true });
  });
});

describe("db:migration", () => {
  const writeMigration = (...args: string[]) => run("scripts/run-ts.mjs", "scripts/db-migration.ts", ...args);

  it("writes the next migration from the schema, and nothing when there is nothing to write", { timeout: 120_000 }, async () => {
    const schema = join(project, "prisma/schema.prisma");
    const changed = readFileSync(schema, "utf8").replace(
      "model DeploymentSetting {",
      'model DeploymentSetting {\n  addedAt DateTime? @map("added_at")',
    );
    writeFileSync(schema, changed);

    expect(await writeMigration("added-at")).toMatch(/wrote prisma\/migrations\/\d{14}_added_at\/migration\.sql/);

    const name = readdirSync(join(project, "prisma/migrations")).find((candidate) => candidate.endsWith("_added_at")) ?? "";
    expect(readFileSync(join(project, "prisma/migrations", name, "migration.sql"), "utf8")).toBe(
      '-- AlterTable\nALTER TABLE "deployment_setting" ADD COLUMN     "added_at" TIMESTAMP(3);\n',
    );
    expect(await writeMigration("again")).toContain("there is nothing to write");
  });

  it("wants a name that can be a folder's", async () => {
    await expect(writeMigration("../elsewhere")).rejects.toMatchObject({ code: 2 });
    await expect(writeMigration()).rejects.toMatchObject({ code: 2 });
  });
});
