/** Blobs as files: whole or not there, whatever happens to the process that writes them. */
import { spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { readdir, rm, truncate } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { BlobInfo, BlobStore } from "../../src/store/blobs.js";
import { openDirectoryBlobs } from "../../src/store/directory-blobs.js";
import { compile } from "../support/compile.js";
import { createEmptyDir } from "../support/database.js";

let dataDir: string;
let blobs: BlobStore;

beforeAll(async () => {
  dataDir = await createEmptyDir();
  blobs = await openDirectoryBlobs(dataDir);
});
afterAll(() => rm(dataDir, { recursive: true }));

async function listed(store: BlobStore, folder: string): Promise<BlobInfo[]> {
  const all: BlobInfo[] = [];
  for await (const blob of store.list(folder)) all.push(blob);
  return all;
}

async function readAll(stream: AsyncIterable<Buffer> | null): Promise<Buffer | null> {
  if (!stream) return null;
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

describe("a blob", () => {
  it("is read as it was written, whole and in parts", async () => {
    const bytes = randomBytes(200_000);

    expect(await blobs.put("media/whole", bytes)).toBe(200_000);

    expect((await blobs.read("media/whole"))?.equals(bytes)).toBe(true);
    expect((await readAll(await blobs.open("media/whole")))?.equals(bytes)).toBe(true);
    expect((await readAll(await blobs.open("media/whole", { start: 10, end: 19 })))?.equals(bytes.subarray(10, 20))).toBe(true);
    expect(await blobs.head("media/whole")).toMatchObject({ key: "media/whole", sizeBytes: 200_000, writtenAt: expect.any(Date) });
  });

  it("may come in pieces, and be empty", async () => {
    async function* pieces() {
      yield Buffer.from("one ");
      yield Buffer.from("two");
    }

    expect(await blobs.put("media/pieces", pieces())).toBe(7);
    expect(await blobs.put("media/empty", Buffer.alloc(0))).toBe(0);

    expect(String(await blobs.read("media/pieces"))).toBe("one two");
    expect((await blobs.read("media/empty"))?.length).toBe(0);
  });

  it("is replaced at once, while readers of the old one read on", async () => {
    await blobs.put("media/replaced", Buffer.alloc(500_000, "a"));
    const reader = await blobs.open("media/replaced");

    await blobs.put("media/replaced", Buffer.from("b"), { isDurable: false });

    expect((await readAll(reader))?.equals(Buffer.alloc(500_000, "a"))).toBe(true);
    expect(String(await blobs.read("media/replaced"))).toBe("b");
  });

  it("stays as it was when new content fails on the way", async () => {
    await blobs.put("media/kept", Buffer.from("old"));
    async function* failing() {
      yield Buffer.from("new");
      throw new Error("cut");
    }

    await expect(blobs.put("media/kept", failing())).rejects.toThrow("cut");

    expect(String(await blobs.read("media/kept"))).toBe("old");
    expect(await readdir(join(dataDir, "blobs/.drafts"))).toEqual([]);
  });

  it("is gone when it is deleted, and deleting it again is no failure", async () => {
    await blobs.put("media/gone", Buffer.from("x"));

    await blobs.delete("media/gone");
    await blobs.delete("media/gone");

    expect(await blobs.read("media/gone")).toBeNull();
    expect(await blobs.head("media/gone")).toBeNull();
    expect(await blobs.open("media/gone")).toBeNull();
  });

  it("is listed with its folder alone", async () => {
    await blobs.put("lists/a", Buffer.from("1"));
    await blobs.put("lists/b", Buffer.from("22"));

    const all = await listed(blobs, "lists");

    expect(all.map(({ key, sizeBytes }) => `${key} ${sizeBytes}`).sort()).toEqual(["lists/a 1", "lists/b 2"]);
    expect(await listed(blobs, "nothing")).toEqual([]);
  });

  it.each(["", "media", "media/", "/media/a", "media/../secrets.json", "media/a/b", "Media/a", "media/.a", "media/a\0", "../a/b"])(
    "has no key like %j",
    async (key) => {
      await expect(blobs.put(key, Buffer.from("x"))).rejects.toThrow("Not the key of a blob");
      await expect(async () => blobs.read(key)).rejects.toThrow("Not the key of a blob");
    },
  );
});

describe("a store", () => {
  it("keeps its id and its blobs, and drops what was being written", async () => {
    await blobs.put("media/kept", Buffer.from("kept"));
    const again = await openDirectoryBlobs(dataDir);

    expect(again.id).toBe(blobs.id);
    expect(String(await again.read("media/kept"))).toBe("kept");
    expect(await readdir(join(dataDir, "blobs/.drafts"))).toEqual([]);
  });

  it("takes another id when its own is damaged", async () => {
    const other = await createEmptyDir();
    const { id } = await openDirectoryBlobs(other);
    await truncate(join(other, "blobs/id"), 5);

    const reopened = await openDirectoryBlobs(other);

    expect(reopened.id).toMatch(/^[0-9a-f-]{36}$/);
    expect(reopened.id).not.toBe(id);
    expect((await openDirectoryBlobs(other)).id).toBe(reopened.id);
    await rm(other, { recursive: true });
  });

  it("has every blob that it acknowledged, and no half one, after SIGKILL in the middle of writing", { timeout: 60_000 }, async () => {
    const { program, folder } = await compile(fileURLToPath(new URL("../support/programs/blob-writer.ts", import.meta.url)));
    const killed = await createEmptyDir();
    try {
      for (let round = 0; round < 3; round += 1) {
        const child = spawn(process.execPath, [program, killed], { stdio: ["ignore", "pipe", "inherit"] });
        const acknowledged = new Set<string>();
        const lines = createInterface(child.stdout);
        lines.on("line", (key) => {
          acknowledged.add(key);
          if (acknowledged.size === 40) child.kill("SIGKILL");
        });
        await Promise.all([once(child, "exit"), once(lines, "close")]);

        const store = await openDirectoryBlobs(killed);
        const all = await listed(store, "media");
        const names = new Set(all.map(({ key }) => key));
        expect([...acknowledged].filter((key) => !names.has(key))).toEqual([]);
        for (const { key } of all) {
          const bytes = (await store.read(key)) ?? Buffer.alloc(0);
          expect(createHash("sha256").update(bytes.subarray(32)).digest().equals(bytes.subarray(0, 32)), key).toBe(true);
        }
        expect(await readdir(join(killed, "blobs/.drafts"))).toEqual([]);
      }
    } finally {
      await rm(killed, { recursive: true });
      await rm(folder, { recursive: true });
    }
  });
});
