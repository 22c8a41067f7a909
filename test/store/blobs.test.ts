/** Blobs: whole or absent, through any end of the writing process. The same for both kinds of store. */
import { spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdir, readdir, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { PutObjectCommand } from "@aws-sdk/client-s3";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { S3Settings } from "../../src/lib/settings.js";
import { EXIT_CONFIG } from "../../src/lib/start-error.js";
import { BlobDrafts } from "../../src/store/blob-drafts.js";
import { BlobExists, type BlobInfo, type BlobStore, BlobTooLarge } from "../../src/store/blobs.js";
import { openDirectoryBlobs } from "../../src/store/directory-blobs.js";
import { bucketOrigin } from "../../src/store/open-blobs.js";
import { openS3Blobs } from "../../src/store/s3-blobs.js";
import { createS3Client } from "../../src/store/s3-client.js";
import { compile } from "../support/compile.js";
import { createEmptyDir } from "../support/database.js";
import { eventually } from "../support/eventually.js";
import { isS3Installed, S3_ABSENT, startS3, type TestS3 } from "../support/s3.js";

let dataDir: string;
let s3: TestS3 | null = null;
let bucket: S3Settings | null = null;

beforeAll(async () => {
  dataDir = await createEmptyDir();
  s3 = await startS3();
  bucket = s3 && (await s3.createBucket());
});
afterAll(async () => {
  await s3?.stop();
  await rm(dataDir, { recursive: true });
});

const KINDS = [
  { kind: "directory", isHere: true, drafts: "blobs/.drafts", open: (): Promise<BlobStore> => openDirectoryBlobs(dataDir) },
  { kind: "bucket", isHere: isS3Installed, drafts: "bucket-drafts", open: (): Promise<BlobStore> => openBucket() },
];

async function openBucket(settings: Partial<S3Settings> = {}) {
  if (!bucket) throw new Error(S3_ABSENT);
  return openS3Blobs({ ...bucket, ...settings }, await BlobDrafts.open(join(dataDir, "bucket-drafts")));
}

async function* inPieces(...pieces: (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const piece of pieces) yield Buffer.from(piece);
}

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

describe.each(KINDS.filter(({ isHere }) => isHere))("a blob of a $kind", ({ drafts, open }) => {
  let blobs: BlobStore;
  beforeAll(async () => {
    blobs = await open();
  });
  const draftsLeft = () => readdir(join(dataDir, drafts));

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
    expect(await draftsLeft()).toEqual([]);
  });

  it("has no name until it is received, and is hashed by then", async () => {
    const bytes = randomBytes(300_000);

    const draft = await blobs.receive(inPieces(bytes.subarray(0, 7), bytes.subarray(7)), { sizeBytesMax: bytes.length });

    expect(draft).toMatchObject({ sizeBytes: bytes.length, sha256: createHash("sha256").update(bytes).digest("hex") });
    expect((await readAll(draft.open({ start: 5, end: 9 })))?.equals(bytes.subarray(5, 10))).toBe(true);
    await draft.save("media/received", { contentType: "image/png" });
    expect((await blobs.read("media/received"))?.equals(bytes)).toBe(true);
    expect([null, "image/png"]).toContain((await blobs.head("media/received"))?.contentType);
    expect(await draftsLeft()).toEqual([]);
  });

  it("leaves nothing behind when it is refused, cut, or discarded", async () => {
    async function* cut() {
      yield Buffer.from("abc");
      throw new Error("cut");
    }

    await expect(blobs.receive(inPieces("abc", "d"), { sizeBytesMax: 3 })).rejects.toThrow(BlobTooLarge);
    await expect(blobs.receive(cut(), { sizeBytesMax: 3 })).rejects.toThrow("cut");
    const draft = await blobs.receive(inPieces("abc"), { sizeBytesMax: 3 });
    await draft.discard();
    await draft.discard();

    expect(await draftsLeft()).toEqual([]);
  });

  it("may be required to be the first of its name, among concurrent writes", async () => {
    const received = await Promise.all(["a", "b", "c"].map((text) => blobs.receive(inPieces(text), { sizeBytesMax: 1 })));

    const outcomes = await Promise.allSettled(received.map((draft) => draft.save("media/first", { isNew: true })));

    const refused = outcomes.filter((outcome) => outcome.status === "rejected");
    expect(refused.map(({ reason }) => (reason as Error).name)).toEqual([BlobExists.name, BlobExists.name]);
    expect(outcomes.findIndex(({ status }) => status === "fulfilled")).toBe("abc".indexOf(String(await blobs.read("media/first"))));
    expect(await draftsLeft()).toEqual([]);
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

  it("is in a store that keeps its id", async () => {
    const again = await open();

    expect(again.id).toMatch(/^[0-9a-f-]{36}$/);
    expect(again.id).toBe(blobs.id);
  });

  it.each(["", "media", "media/", "/media/a", "media/../secrets.json", "media/a/b", "Media/a", "media/.a", "media/a\0", "../a/b"])(
    "has no key like %j",
    async (key) => {
      await expect(blobs.put(key, Buffer.from("x"))).rejects.toThrow("Not the key of a blob");
      await expect(async () => blobs.read(key)).rejects.toThrow("Not the key of a blob");
    },
  );
});

describe("a directory", () => {
  let blobs: BlobStore;
  beforeAll(async () => {
    blobs = await openDirectoryBlobs(dataDir);
  });

  it("keeps its id and its blobs, and drops unfinished ones", async () => {
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

  it("has every blob that it acknowledged, and no half one, after SIGKILL in the middle of writing", async () => {
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

describe.skipIf(!isS3Installed)("a bucket", () => {
  // That it is the first of several at once who names it is S3's promise: this server looks, then writes.
  it("has one id for all who open it", async () => {
    const empty = (await s3?.createBucket()) as S3Settings;

    const first = await openBucket({ bucket: empty.bucket });
    const stores = [first, ...(await Promise.all([1, 2, 3].map(() => openBucket({ bucket: empty.bucket }))))];

    expect(new Set(stores.map(({ id }) => id)).size).toBe(1);
    for (const store of stores) store.close();
  });

  it("is listed over more than one page", async () => {
    const store = await openBucket();
    const names = Array.from({ length: 1_050 }, (_, index) => `pages/${String(index).padStart(5, "0")}`);
    const folder = join(s3?.directory ?? "", bucket?.bucket ?? "");
    await mkdir(join(folder, "pages"));
    // The server's own way to hold objects: a thousand requests would take their time.
    for (const name of names) await writeFile(join(folder, name), "x");

    const found = await listed(store, "pages");

    expect(found.map(({ key }) => key)).toEqual(names);
    store.close();
  });

  it.each([
    ["is not there", { bucket: "no-such-bucket" }, /S3_BUCKET: there is no bucket no-such-bucket at http/, EXIT_CONFIG],
    [
      "is not ours",
      { credentials: { accessKeyId: "tests", secretAccessKey: "wrong" } },
      /S3_BUCKET: .* refuses access to tests-1/,
      EXIT_CONFIG,
    ],
    [
      "does not answer",
      { endpoint: "http://127.0.0.1:9" },
      /S3_ENDPOINT: the store at http:\/\/127.0.0.1:9 does not answer \(ECONNREFUSED\)/,
      1,
    ],
  ])("that %s stops the start with words for the operator", async (_, settings, message, exitCode) => {
    await expect(openBucket(settings)).rejects.toThrow(message);
    await expect(openBucket(settings)).rejects.toMatchObject({ exitCode });
  });

  it("that goes away answers callers 503", async () => {
    const other = await startS3();
    const store = await openS3Blobs((await other?.createBucket()) as S3Settings, await BlobDrafts.open(join(dataDir, "other-drafts")));
    await other?.stop();

    const draft = await store.receive(inPieces("abc"), { sizeBytesMax: 3 });
    await expect(store.read("media/a")).rejects.toMatchObject({ code: "SERVICE_UNAVAILABLE" });
    await expect(draft.save("media/a")).rejects.toMatchObject({ code: "SERVICE_UNAVAILABLE" });
    expect(await readdir(join(dataDir, "other-drafts"))).toEqual([]);
    store.close();
  });
});

describe.skipIf(!isS3Installed)("a bucket that hangs", () => {
  /** More than sockets hold on their way. */
  const large = Buffer.alloc(48 * 1024 * 1024, "x");
  let other: TestS3;
  let store: Awaited<ReturnType<typeof openS3Blobs>>;

  beforeAll(async () => {
    other = (await startS3()) as TestS3;
    const drafts = await BlobDrafts.open(join(dataDir, "hanging-drafts"));
    store = await openS3Blobs(await other.createBucket(), drafts, { silenceMs: 1_000 });
    await store.put("media/large", large);
  });
  afterEach(() => other.thaw());
  afterAll(async () => {
    store.close();
    await other.stop();
  });
  const back = () => eventually(async () => expect(await store.head("media/large")).not.toBeNull());
  const openLarge = async () => ((await store.open("media/large")) as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
  const AWAY = { code: "SERVICE_UNAVAILABLE", message: "The file store does not answer." };

  it("fails every operation, and answers again afterwards", async () => {
    await back();
    const draft = await store.receive(inPieces("abc"), { sizeBytesMax: 3 });
    other.freeze();

    const asked = await Promise.allSettled([
      store.head("media/large"),
      store.open("media/large"),
      store.read("media/large"),
      store.put("media/small", Buffer.from("abc")),
      store.put("media/pieces", inPieces("abc")),
      store.delete("media/small"),
      listed(store, "media"),
      draft.save("media/draft"),
    ]);
    const later = await Promise.allSettled([store.head("media/large")]);

    expect([...asked, ...later]).toEqual(Array(9).fill({ status: "rejected", reason: expect.objectContaining(AWAY) }));
    other.thaw();
    await back();
    expect(await readdir(join(dataDir, "hanging-drafts"))).toEqual([]);
  });

  it("fails an upload that it stops receiving, and a download that it stops sending", async () => {
    await back();
    const chunks = await openLarge();
    await chunks.next();
    const pieces = async function* () {
      yield large.subarray(0, 1024);
      other.freeze();
      yield large.subarray(1024);
    };
    const draft = await store.receive(pieces(), { sizeBytesMax: large.length });
    const rest = async () => {
      while (!(await chunks.next()).done);
    };

    await expect(Promise.all([draft.save("media/more"), "saved"])).rejects.toMatchObject(AWAY);
    await expect(rest()).rejects.toThrow("The store");
    other.thaw();
    await back();
    expect(await store.head("media/more")).toBeNull();
  });

  it("is not waited for while a reader takes their time", async () => {
    await back();
    const chunks = await openLarge();
    let size = ((await chunks.next()).value as Buffer).length;
    other.freeze();
    await expect(store.head("media/large")).rejects.toMatchObject(AWAY);
    other.thaw();
    await back();

    for (let next = await chunks.next(); !next.done; next = await chunks.next()) size += next.value.length;

    expect(size).toBe(large.length);
  });
});

describe("the origin of a bucket", () => {
  const credentials = { accessKeyId: "id", secretAccessKey: "secret" };

  it.each([
    ["at AWS", { bucket: "mill", endpoint: null, region: "eu-central-1" }],
    ["at AWS, with a dot in its name", { bucket: "mill.example", endpoint: null, region: "eu-central-1" }],
    ["elsewhere", { bucket: "mill", endpoint: "https://store.example:9000/s3", region: "us-east-1" }],
  ])("is the origin of the addresses that browsers get: %s", async (_, place) => {
    const settings = { ...place, credentials };
    const client = await createS3Client(settings);

    const signed = await getSignedUrl(client, new PutObjectCommand({ Bucket: place.bucket, Key: "media-objects/1" }));

    expect(bucketOrigin(settings)).toBe(new URL(signed).origin);
    client.destroy();
  });
});
