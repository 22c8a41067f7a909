import { fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type DataDir, DataDirInUse, openDataDir, openWorkerDir, visitLeftBehind } from "../../src/store/data-dir.js";
import { createEmptyDir } from "../support/database.js";

let directory: string;
let opened: DataDir[];

beforeEach(async () => {
  directory = await createEmptyDir();
  opened = [];
});

afterEach(async () => {
  for (const dataDir of opened) await dataDir.release();
  await rm(directory, { recursive: true });
});

async function open(path = join(directory, "data")): Promise<DataDir> {
  const dataDir = await openDataDir(path);
  opened.push(dataDir);
  return dataDir;
}

async function reopen(dataDir: DataDir): Promise<DataDir> {
  await dataDir.release();
  return open();
}

describe("the lock", () => {
  it("makes a directory that only its owner can read", async () => {
    const { path } = await open();

    expect(statSync(path).mode & 0o777).toBe(0o700);
  });

  it("refuses a directory that is in use, naming the process that has it", async () => {
    const { path } = await open();

    await expect(openDataDir(path)).rejects.toThrow(`The data directory ${path} is in use by the process ${process.pid}.`);
  });

  it("refuses it under another name too", async () => {
    const { path } = await open();
    const alias = join(directory, "alias");
    symlinkSync(path, alias);

    await expect(openDataDir(alias)).rejects.toThrow("is in use by");
  });

  it("is granted to one of many at once", async () => {
    const attempts = await Promise.allSettled(Array.from({ length: 8 }, () => open()));

    expect(attempts.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  });

  it("gives it to the next one after a release", async () => {
    const first = await open();

    await expect(reopen(first)).resolves.toMatchObject({ path: first.path });
  });

  it("is gone with a process that was killed", async () => {
    const program = join(directory, "holder.mjs");
    await build({
      stdin: {
        contents: `import { openDataDir } from "./data-dir.ts"; await openDataDir(process.argv[2]); process.send("locked"); process.on("message", () => {});`,
        resolveDir: fileURLToPath(new URL("../../src/store/", import.meta.url)),
      },
      bundle: true,
      platform: "node",
      format: "esm",
      outfile: program,
      logLevel: "silent",
    });
    const path = join(directory, "data");
    const holder = fork(program, [path]);
    await once(holder, "message");
    await expect(openDataDir(path)).rejects.toThrow(`in use by the process ${holder.pid}`);

    holder.kill("SIGKILL");
    await once(holder, "exit");

    await expect(open()).resolves.toMatchObject({ path });
  });
});

describe("the workers of a gateway", () => {
  async function openWorker(number: number): Promise<DataDir> {
    const dataDir = await openWorkerDir(join(directory, "data"), number);
    opened.push(dataDir);
    return dataDir;
  }

  it("each have a directory and an identity of their own, and the secrets together", async () => {
    const primary = await open();
    const secret = primary.secret("encryptionKey");

    const workers = [await openWorker(1), await openWorker(2)];

    expect(workers.map(({ ownPath }) => ownPath)).toEqual([join(primary.path, "workers/1"), join(primary.path, "workers/2")]);
    expect(new Set([primary, ...workers].map(({ instanceId }) => instanceId)).size).toBe(3);
    for (const worker of workers) {
      expect(worker.path).toBe(primary.path);
      expect(worker.secret("encryptionKey")).toBe(secret);
    }
  });

  it("inherit what one of the same number had, or take another directory as long as that is alive", async () => {
    await open();
    const first = await openWorker(2);

    expect(await openWorker(2)).toMatchObject({ workerNumber: 1 });
    await first.release();
    expect(await openWorker(2)).toMatchObject({ workerNumber: 2, instanceId: first.instanceId });
  });

  it("take over abandoned directories, and those of a gateway of one process; which takes over theirs", async () => {
    const primary = await open();
    const [one, two, three] = [await openWorker(1), await openWorker(2), await openWorker(3)];
    const visited: string[] = [];
    const visit = async (from: DataDir, ...left: readonly DataDir[]) => {
      visited.length = 0;
      const wanted = async (path: string) => left.some(({ ownPath }) => ownPath === path);
      await visitLeftBehind(from, wanted, async (path) => {
        visited.push(path);
        await expect(openDataDir(path)).rejects.toThrow(DataDirInUse);
      });
      return visited;
    };

    await three.release();
    expect(await visit(one, primary, two, three)).toEqual([primary.path, three.ownPath]);
    expect(await visit(one, two)).toEqual([]);
    await one.release();
    expect(await visit(primary, one, two, three)).toEqual([one.ownPath, three.ownPath]);
  });
});

describe("kept data", () => {
  it("keeps the instance id", async () => {
    const first = await open();
    const second = await reopen(first);

    expect(first.instanceId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(second.instanceId).toBe(first.instanceId);
  });

  it("makes a secret of 32 bytes once and keeps it", async () => {
    const first = await open();
    const secret = first.secret("encryptionKey");
    const second = await reopen(first);

    expect(Buffer.from(secret, "base64")).toHaveLength(32);
    expect(second.secret("encryptionKey")).toBe(secret);
    expect(second.secret("another")).not.toBe(secret);
  });

  it("stores a drafted secret when it is kept, not before", async () => {
    const dataDir = await open();
    const file = join(dataDir.path, "secrets.json");
    const draft = dataDir.draftSecret("encryptionKey");

    expect(existsSync(file)).toBe(false);
    draft.keep();
    expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({ encryptionKey: draft.value });
    expect(dataDir.secret("encryptionKey")).toBe(draft.value);
  });

  it("lets only the owner read the secrets", async () => {
    const dataDir = await open();
    dataDir.secret("encryptionKey");

    expect(statSync(join(dataDir.path, "secrets.json")).mode & 0o777).toBe(0o600);
  });

  it("stops at damaged secrets instead of making new ones", async () => {
    const dataDir = await open();
    dataDir.secret("encryptionKey");
    await dataDir.release();
    const file = join(dataDir.path, "secrets.json");
    const damaged = readFileSync(file, "utf8").slice(0, 20);
    writeFileSync(file, damaged);

    await expect(openDataDir(dataDir.path)).rejects.toThrow(`${file} is damaged`);
    expect(readFileSync(file, "utf8")).toBe(damaged);
  });

  it("lets go of a directory that it could not open", async () => {
    const dataDir = await open();
    await dataDir.release();
    const file = join(dataDir.path, "instance-id");
    writeFileSync(file, "nothing like it");
    await expect(openDataDir(dataDir.path)).rejects.toThrow("does not hold a UUID");
    await rm(file);

    await expect(open()).resolves.toMatchObject({ path: dataDir.path });
  });
});
