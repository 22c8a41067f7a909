/** Uploads that go straight to the blob store, without HTTP: announcements, arriving files, permissions and expiry. */
import { randomBytes, randomUUID } from "node:crypto";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Caller, RequestContext } from "../../../src/context.js";
import { AppError } from "../../../src/errors.js";
import type { Page } from "../../../src/lib/pagination.js";
import { MEDIA_OBJECT_BYTES_MAX, MEDIA_TAGS_MAX } from "../../../src/services/files/limits.js";
import { MEDIA_OBJECT_FOLDER, type MediaObject, MediaObjects } from "../../../src/services/files/media-objects.js";
import { createUploadInput } from "../../../src/services/files/media-objects-input.js";
import { type MediaQuotaSettings, MediaQuotas } from "../../../src/services/files/media-quotas.js";
import { parseInput } from "../../../src/services/requests/input.js";
import { BlobDrafts } from "../../../src/store/blob-drafts.js";
import { BlobUrls } from "../../../src/store/blob-urls.js";
import type { BlobStore } from "../../../src/store/blobs.js";
import { openDirectoryBlobs } from "../../../src/store/directory-blobs.js";
import { openS3Blobs } from "../../../src/store/s3-blobs.js";
import { silentLog, type TestDatabase } from "../../support/database.js";
import { isS3Installed, startS3, type TestS3 } from "../../support/s3.js";
import { createAnyTestDatabase } from "../../support/shared-database.js";

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const PNG = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "base64");

let test: TestDatabase;
let blobs: BlobStore;
let objects: MediaObjects;
let now: Date;
const clock = { now: () => now };
const KEY = randomBytes(32);

beforeAll(async () => {
  test = await createAnyTestDatabase();
  blobs = await openDirectory();
  objects = open();
});
afterAll(() => test.close());
beforeEach(() => {
  now = new Date();
});

function openDirectory(): Promise<BlobStore> {
  const urls = new BlobUrls(
    () => [KEY],
    () => "http://media.test",
    clock,
  );
  return openDirectoryBlobs(test.dataDir, urls);
}

function open(settings: Partial<MediaQuotaSettings> = {}, freeBytes = 1e12, isOnDisk = true): MediaObjects {
  return new MediaObjects({
    database: test.database,
    blobs,
    quotas: quotasOf(settings, freeBytes),
    isOnDisk,
    clock,
    mediaUrl: () => "http://media.test",
  });
}

function quotasOf(settings: Partial<MediaQuotaSettings> = {}, freeBytes = 1e12): MediaQuotas {
  const all = { bytesMax: 1e10, filesMax: 1000, freeBytesMin: 1e9, ...settings };
  return new MediaQuotas(test.database, all, async () => freeBytes, clock);
}

function contextOf(caller: object): RequestContext {
  return { caller: caller as Caller, requestId: "test", clientAddress: "", signal: AbortSignal.any([]), log: silentLog };
}

/** A secret key of an account that has nothing yet. */
function someone(more: object = {}): RequestContext & { readonly caller: { readonly accountId: string } } {
  return contextOf({ kind: "key", accountId: randomUUID(), apiKeyType: "secret", ...more }) as never;
}
const nobody = contextOf({ kind: "anonymous" });

function keyOf(id: string): string {
  return `${MEDIA_OBJECT_FOLDER}/${id}`;
}

function announce(ctx: RequestContext, input: object = {}, service = objects) {
  return service.createUpload(ctx, parseInput(createUploadInput, { contentType: "image/png", size: PNG.length, ...input }));
}

/** As if the bytes had come by the upload's address. */
async function bring(id: string, bytes: Buffer = PNG): Promise<void> {
  await blobs.put(keyOf(id), bytes);
}

async function addFile(ctx: RequestContext, input: object = {}, bytes = PNG): Promise<MediaObject> {
  const { id } = await announce(ctx, { size: bytes.length, ...input });
  await bring(id, bytes);
  return objects.complete(ctx, id);
}

async function codeOf(work: Promise<unknown> | (() => unknown)): Promise<[code: string, param: string | undefined]> {
  try {
    await (typeof work === "function" ? work() : work);
  } catch (error) {
    if (error instanceof AppError) return [error.code, error.param];
    throw error;
  }
  throw new Error("It was not refused.");
}

describe("createUpload", () => {
  it("answers an address for one file of that type and length, which has no owner yet", async () => {
    const ctx = someone();

    const upload = await announce(ctx, { name: "a.png", tags: ["Mill"] });

    expect(upload).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      uploadUrl: expect.stringContaining(upload.id),
      method: "PUT",
      headers: expect.objectContaining({ "Content-Type": "image/png" }),
      expiresAt: new Date(now.getTime() + 10 * MINUTE_MS),
    });
    expect(await objects.find(upload.id)).toBeNull();
    await bring(upload.id);
    expect(await objects.find(upload.id)).toBeNull();
    expect((await objects.listTagged("mill", { first: 100 })).items.map(({ id }) => id)).not.toContain(upload.id);
    expect((await objects.listOwn(ctx, { first: 100 })).items).toEqual([]);
  });

  it("takes 100 MiB and not a byte more", async () => {
    expect(await announce(someone(), { size: MEDIA_OBJECT_BYTES_MAX })).toMatchObject({ method: "PUT" });
    expect(await codeOf(announce(someone(), { size: MEDIA_OBJECT_BYTES_MAX + 1 }))).toEqual(["PAYLOAD_TOO_LARGE", "size"]);
    expect(await codeOf(announce(nobody, { size: MEDIA_OBJECT_BYTES_MAX + 1 }))).toEqual(["UNAUTHORIZED", undefined]);
  });

  it.each([
    ["size", { size: 0 }],
    ["size", { size: -1 }],
    ["size", { size: 1.5 }],
    ["size", { size: "5" }],
    ["contentType", { contentType: "" }],
    ["contentType", { contentType: "png" }],
    ["contentType", { contentType: "image/png\r\nX-Evil: 1" }],
    ["contentType", { contentType: `image/${"p".repeat(250)}` }],
    ["name", { name: "" }],
    ["name", { name: "n".repeat(256) }],
    ["name", { name: "a\0b" }],
    ["tags.0", { tags: [""] }],
    ["tags.0", { tags: ["-mill"] }],
    ["tags.0", { tags: ["a b"] }],
    ["tags.0", { tags: ["a/b"] }],
    ["tags.0", { tags: ["ü"] }],
    ["tags.1", { tags: ["a", "b".repeat(129)] }],
    ["tags", { tags: "mill" }],
    ["tags", { tags: Array.from({ length: MEDIA_TAGS_MAX + 1 }, (_, index) => `t${index}`) }],
    ["key", { key: "x" }],
  ])("refuses a wrong %s: %j", async (param, input) => {
    expect(await codeOf(() => announce(someone(), input))).toEqual(["BAD_REQUEST", param]);
  });

  it("lower-cases tags, counts each once, and takes the longest", async () => {
    const tags = ["A", "a", "B_.:-", "9", "c".repeat(128), "d", "e", "f", "g"];

    const { tags: kept } = await addFile(someone(), { tags });

    expect(kept).toEqual(["a", "b_.:-", "9", "c".repeat(128), "d", "e", "f", "g"]);
    expect(kept.length).toBe(MEDIA_TAGS_MAX);
  });

  it.each([
    ["image/PNG; q=1", "image/png"],
    ["image/jpg", "image/jpeg"],
    ["audio/mp3", "audio/mpeg"],
    ["video/mp4", "video/mp4"],
    ["application/pdf", "application/pdf"],
    ["text/markdown", "text/markdown"],
    ["text/html", "application/octet-stream"],
    ["image/svg+xml", "application/octet-stream"],
    ["application/xml", "application/octet-stream"],
    ["text/javascript", "application/octet-stream"],
    ["application/zip", "application/octet-stream"],
    ["image/x-made-up", "application/octet-stream"],
    ["constructor/prototype", "application/octet-stream"],
  ])("stores %s as %s", async (declared, stored) => {
    expect((await announce(someone(), { contentType: declared })).headers["Content-Type"]).toBe(stored);
  });
});

describe("the gallery", () => {
  const idsOf = ({ items }: Page<MediaObject>) => items.map(({ id }) => id);

  it("lists everybody's files with a tag, newest first, and each account's own", async () => {
    const tag = `t-${randomUUID()}`;
    const [anna, ben] = [someone(), someone()];
    const files: MediaObject[] = [];
    for (const owner of [anna, ben, anna]) {
      now = new Date(now.getTime() + 1);
      files.unshift(await addFile(owner, { tags: [tag.toUpperCase(), "other"] }));
    }
    await addFile(anna);

    expect(idsOf(await objects.listTagged(tag, { first: 10 }))).toEqual(files.map(({ id }) => id));
    expect(idsOf(await objects.listTagged(tag.toUpperCase(), { first: 10 }))).toHaveLength(3);
    expect(idsOf(await objects.listOwn(anna, { first: 10 }))).toEqual([files[0]?.id, files[2]?.id]);
    expect(await objects.listTagged(`${tag}x`, { first: 10 })).toMatchObject({ items: [], hasNextPage: false });
    expect(await codeOf(objects.listTagged("a b", { first: 10 }))).toEqual(["BAD_REQUEST", "tag"]);
    expect(await codeOf(objects.listOwn(nobody, { first: 10 }))).toEqual(["UNAUTHORIZED", undefined]);
  });

  it("pages through all of them once, of the same moment too, while new ones come", async () => {
    const tag = `t-${randomUUID()}`;
    const owner = someone();
    const old: string[] = [];
    for (let index = 0; index < 7; index += 1) {
      if (index === 4) now = new Date(now.getTime() + 1);
      old.push((await addFile(owner, { tags: [tag] })).id);
    }

    for (const list of [
      (page: object) => objects.listTagged(tag, page as never),
      (page: object) => objects.listOwn(owner, page as never),
    ]) {
      const seen: string[] = [];
      let after: object | undefined;
      for (let page: Page<MediaObject> | null = null; page?.hasNextPage !== false; ) {
        page = await list({ first: 2, after });
        seen.push(...idsOf(page));
        const last = page.items.at(-1);
        after = last && { timestamp: last.createdAt, id: last.id };
        now = new Date(now.getTime() + 1);
        await addFile(owner, { tags: [tag] });
      }

      expect(seen.filter((id) => old.includes(id)).sort()).toEqual([...old].sort());
      expect(new Set(seen).size).toBe(seen.length);
    }
  });
});

describe("the quota", () => {
  it("counts uploads from their announcement on, and files of variant A that the account brought first", async () => {
    const owner = someone();
    const { accountId } = owner.caller;
    const sha256 = randomBytes(32);
    const file = { id: sha256.toString("hex").slice(0, 16), sha256: new Uint8Array(sha256), accountId, contentType: "image/png" };
    const { prisma } = test.database;
    await prisma.mediaFile.create({ data: { ...file, sizeBytes: 100, expiresAt: new Date(now.getTime() + DAY_MS) } });
    await announce(owner, { size: 7 });
    await addFile(owner);

    const quota = await quotasOf({ bytesMax: 6e9, filesMax: 9 }).get(owner);

    expect(quota).toEqual({ usedBytes: 107 + PNG.length, limitBytes: 6e9, files: 3, limitFiles: 9 });
    now = new Date(now.getTime() + DAY_MS);
    await objects.sweep();
    expect(await quotasOf().get(owner)).toMatchObject({ usedBytes: PNG.length, files: 1 });
    expect(await codeOf(quotasOf().get(nobody))).toEqual(["UNAUTHORIZED", undefined]);
  });

  it("lets in what fits to the byte, and not a byte or a file more", async () => {
    const bytes = open({ bytesMax: 100 });
    const files = open({ filesMax: 2 });
    const [anna, ben] = [someone(), someone()];

    await announce(anna, { size: 60 }, bytes);
    await announce(ben, { size: 1 }, files);

    expect(await codeOf(announce(anna, { size: 41 }, bytes))).toEqual(["PAYLOAD_TOO_LARGE", undefined]);
    await announce(anna, { size: 40 }, bytes);
    expect(await codeOf(announce(anna, { size: 1 }, bytes))).toEqual(["PAYLOAD_TOO_LARGE", undefined]);
    await announce(ben, { size: 1 }, files);
    expect(await codeOf(announce(ben, { size: 1 }, files))).toEqual(["PAYLOAD_TOO_LARGE", undefined]);
    await announce(someone(), { size: 100 }, bytes);
  });

  it("is not overdrawn by twenty announcements at once", async () => {
    const owner = someone();
    const small = open({ bytesMax: 50 });

    const all = await Promise.allSettled(Array.from({ length: 20 }, () => announce(owner, { size: 10 }, small)));

    expect(all.filter(({ status }) => status === "fulfilled")).toHaveLength(5);
    expect((await quotasOf().get(owner)).usedBytes).toBe(50);
  });

  it("keeps counting a refused or deleted upload as long as its address may still be used", async () => {
    const owner = someone();
    const { id } = await addFile(owner, { tags: ["gone"] });

    await objects.delete(owner, id);

    expect(await quotasOf().get(owner)).toMatchObject({ usedBytes: PNG.length, files: 1 });
    expect(await objects.find(id)).toBeNull();
    expect((await objects.listOwn(owner, { first: 1 })).items).toEqual([]);
    await bring(id);
    now = new Date(now.getTime() + 10 * MINUTE_MS);
    expect(await objects.sweep()).toBeGreaterThanOrEqual(1);
    expect(await quotasOf().get(owner)).toMatchObject({ usedBytes: 0, files: 0 });
    expect(await blobs.head(keyOf(id))).toBeNull();
  });

  it("leaves the disk its free space, where files come to the disk", async () => {
    const room = { freeBytesMin: 1000 };

    await announce(someone(), { size: 24 }, open(room, 1024));
    expect(await codeOf(announce(someone(), { size: 25 }, open(room, 1024)))).toEqual(["SERVICE_UNAVAILABLE", undefined]);
    await announce(someone(), { size: 25 }, open(room, 0, false));
  });
});

describe("linkTo", () => {
  it("shows pictures, saves what a browser should not show, and names both", async () => {
    const picture = await addFile(someone(), { name: 'Mühle "1".png' });
    const page = await addFile(someone(), { contentType: "text/html", name: "a.html" }, Buffer.from("<p>"));

    const [shown, saved] = [new URL(await objects.linkTo(picture)), new URL(await objects.linkTo(page))];

    expect(shown.searchParams.get("disposition")).toBe("inline; filename=\"M_hle _1_.png\"; filename*=UTF-8''M%C3%BChle%20%221%22.png");
    expect(shown.searchParams.get("type")).toBe("image/png");
    expect(saved.searchParams.get("disposition")).toBe('attachment; filename="a.html"');
    expect(saved.searchParams.get("type")).toBe("application/octet-stream");
    expect(Number(shown.searchParams.get("expires"))).toBe(Math.floor(now.getTime() / 1000) + 300);
  });
});

/** The transfer of bytes, on every kind of store. */
function storeTests(): void {
  describe("complete", () => {
    it("answers the file, and the same when it is repeated", async () => {
      const ctx = someone();
      const { id } = await announce(ctx, { name: "a.png", tags: ["one", "two"] });
      await bring(id);
      now = new Date(now.getTime() + MINUTE_MS);

      const first = await objects.complete(ctx, id);
      now = new Date(now.getTime() + MINUTE_MS);
      const again = await Promise.all([objects.complete(ctx, id), objects.complete(ctx, id)]);

      expect(first).toEqual({
        id,
        url: `http://media.test/${id}`,
        contentType: "image/png",
        size: PNG.length,
        name: "a.png",
        tags: ["one", "two"],
        createdAt: new Date(now.getTime() - MINUTE_MS),
        expiresAt: null,
      });
      expect(again).toEqual([first, first]);
      expect(await objects.find(id)).toEqual(first);
    });

    it("is done once by ten at the same time", async () => {
      const ctx = someone();
      const { id } = await announce(ctx, { tags: ["race"] });
      await bring(id);

      const all = await Promise.all(Array.from({ length: 10 }, () => objects.complete(ctx, id)));

      expect(new Set(all.map(({ createdAt }) => createdAt.getTime())).size).toBe(1);
      expect(await test.database.prisma.mediaTag.count({ where: { mediaId: id } })).toBe(1);
    });

    it("is a conflict before anything has arrived, and works afterwards", async () => {
      const ctx = someone();
      const { id } = await announce(ctx);

      expect(await codeOf(objects.complete(ctx, id))).toEqual(["CONFLICT", undefined]);

      await bring(id);
      expect(await objects.complete(ctx, id)).toMatchObject({ id });
    });

    it("removes a file of another length, and takes the right one after it", async () => {
      const ctx = someone();
      const { id } = await announce(ctx);
      for (const wrong of [PNG.subarray(0, -1), Buffer.concat([PNG, Buffer.alloc(1)])]) {
        await bring(id, wrong);

        expect(await codeOf(objects.complete(ctx, id))).toEqual(["BAD_REQUEST", "size"]);

        expect(await blobs.head(keyOf(id))).toBeNull();
        expect(await objects.find(id)).toBeNull();
      }
      await bring(id);
      expect(await objects.complete(ctx, id)).toMatchObject({ id });
    });

    it.each<[string, string, Buffer | string]>([
      ["a page that is called a picture", "image/png", "<!doctype html><script>alert(1)</script>"],
      ["a JPEG that is called a PNG", "image/png", Buffer.from("ffd8ffe000104a46494600010100000100010000", "hex")],
      ["noise that is called a video", "video/mp4", randomBytes(64).fill(1, 0, 8)],
      ["a picture that is called a text", "text/plain", PNG],
      ["noise that is called a text", "text/plain", Buffer.from([0, 1, 2, 3])],
      ["a PDF that is called a text", "text/plain", "%PDF-1.7\n1"],
      ["text that is called a PDF", "application/pdf", "PDF"],
    ])("removes %s", async (_, contentType, content) => {
      const ctx = someone();
      const bytes = Buffer.from(content);
      const { id } = await announce(ctx, { contentType, size: bytes.length });
      await bring(id, bytes);

      expect(await codeOf(objects.complete(ctx, id))).toEqual(["BAD_REQUEST", "contentType"]);

      expect(await blobs.head(keyOf(id))).toBeNull();
    });

    it.each<[string, string, Buffer | string, string]>([
      ["a page that is called one", "text/html", "<!doctype html><script>alert(1)</script>", "text/html"],
      ["a drawing", "image/svg+xml", "<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>", "image/svg+xml"],
      ["a page in another encoding", "text/html", Buffer.from("<p>Gr\xfc\xdfe", "latin1"), "application/octet-stream"],
      ["the source of a page", "text/plain", "<?xml version='1.0'?><svg/>", "text/plain"],
      ["a table", "text/csv", "a,ü\n1,2\n", "text/csv"],
      ["text whose head ends within a character", "text/plain", `${"a".repeat(64 * 1024 - 1)}ü`, "text/plain"],
      [
        "sound in a container of films",
        "audio/webm",
        Buffer.from("1a45dfa39f4286810142f7810142f2810442f381084282847765626d", "hex"),
        "audio/webm",
      ],
    ])("keeps %s", async (_, contentType, content, stored) => {
      const file = await addFile(someone(), { contentType }, Buffer.from(content));

      expect(file.contentType).toBe(stored);
    });

    it("is 404 for another account, for made-up ids, and when the upload's time is over", async () => {
      const ctx = someone();
      const { id } = await announce(ctx);
      await bring(id);

      for (const made of [randomUUID(), id.toUpperCase(), "../secrets.json", "", "0123456789abcdef", `${id}\n`]) {
        expect(await codeOf(objects.complete(ctx, made))).toEqual(["NOT_FOUND", undefined]);
      }
      expect(await codeOf(objects.complete(someone(), id))).toEqual(["NOT_FOUND", undefined]);
      expect(await codeOf(objects.complete(nobody, id))).toEqual(["UNAUTHORIZED", undefined]);
      now = new Date(now.getTime() + 60 * MINUTE_MS);
      expect(await codeOf(objects.complete(ctx, id))).toEqual(["NOT_FOUND", undefined]);
    });
  });

  describe("delete", () => {
    it("takes the owner's tagged file away, from every list", async () => {
      const owner = someone();
      const tag = `t-${randomUUID()}`;
      const { id } = await addFile(owner, { tags: [tag] });
      now = new Date(now.getTime() + 60 * MINUTE_MS);

      expect(await objects.delete(owner, id)).toEqual({ id });

      expect(await objects.find(id)).toBeNull();
      expect((await objects.listTagged(tag, { first: 1 })).items).toEqual([]);
      expect(await blobs.head(keyOf(id))).toBeNull();
      expect(await test.database.prisma.mediaObject.count({ where: { id } })).toBe(0);
      expect(await codeOf(objects.delete(owner, id))).toEqual(["NOT_FOUND", undefined]);
    });

    it("is refused to publishable keys, other accounts and anonymous callers, and answers 404 without a tag", async () => {
      const owner = someone();
      const { id } = await addFile(owner, { tags: ["mine"] });
      const untagged = await addFile(owner);
      const pending = await announce(owner, { tags: ["mine"] });
      const publishable = contextOf({ ...owner.caller, apiKeyType: "publishable" });

      expect(await codeOf(objects.delete(publishable, id))).toEqual(["FORBIDDEN", undefined]);
      expect(await codeOf(objects.delete(someone(), id))).toEqual(["FORBIDDEN", undefined]);
      expect(await codeOf(objects.delete(nobody, id))).toEqual(["UNAUTHORIZED", undefined]);
      for (const other of [untagged.id, pending.id, randomUUID(), "0123456789abcdef", "..%2fid"]) {
        expect(await codeOf(objects.delete(owner, other))).toEqual(["NOT_FOUND", undefined]);
      }
      expect(await objects.find(id)).not.toBeNull();
      const session = contextOf({ kind: "session", accountId: owner.caller.accountId });
      expect(await objects.delete(session, id)).toEqual({ id });
    });
  });

  describe("expiry", () => {
    it("removes uploads that were not completed within the hour, rows and bytes, and no others", async () => {
      const owner = someone();
      const [brought, empty, tagged] = [await announce(owner), await announce(owner), await addFile(owner, { tags: ["kept"] })];
      await bring(brought.id);
      now = new Date(now.getTime() + 60 * MINUTE_MS - 1);
      await objects.sweep();
      expect(await blobs.head(keyOf(brought.id))).not.toBeNull();

      now = new Date(now.getTime() + 1);
      await objects.sweep();

      expect(await blobs.head(keyOf(brought.id))).toBeNull();
      const { prisma } = test.database;
      expect(await prisma.mediaObject.count({ where: { id: { in: [brought.id, empty.id] } } })).toBe(0);
      now = new Date(now.getTime() + 400 * DAY_MS);
      await objects.sweep();
      expect(await objects.find(tagged.id)).toMatchObject({ expiresAt: null });
      expect(await objects.findNamed([keyOf(tagged.id), keyOf(brought.id)])).toEqual(new Set([keyOf(tagged.id)]));
    });

    it("removes an untagged file after 14 days, because no other caller can", async () => {
      const { id, expiresAt, createdAt } = await addFile(someone());

      expect(expiresAt?.getTime()).toBe(createdAt.getTime() + 14 * DAY_MS);
      now = new Date((expiresAt?.getTime() ?? 0) - 1);
      expect(await objects.find(id)).toMatchObject({ id });
      now = new Date(now.getTime() + 1);
      expect(await objects.find(id)).toBeNull();
      await objects.sweep();
      expect(await blobs.head(keyOf(id))).toBeNull();
    });
  });
}

describe("on a directory", storeTests);

describe.skipIf(!isS3Installed)("on a bucket", () => {
  let server: TestS3 | null;
  let bucket: BlobStore & { close(): void };
  beforeAll(async () => {
    server = await startS3();
    if (!server) throw new Error("The S3 server did not start.");
    bucket = await openS3Blobs(await server.createBucket(), await BlobDrafts.open(join(test.dataDir, "s3-drafts")));
    blobs = bucket;
    objects = open();
  }, 60_000);
  afterAll(async () => {
    bucket.close();
    await server?.stop();
    blobs = await openDirectory();
    objects = open();
  });

  storeTests();

  it("lets an upload's address take one file of its type and length, and shows it as the row says", async () => {
    const owner = someone();
    const upload = await announce(owner, { name: "mill.png", tags: ["s3"] });
    const send = (body: Buffer, headers: Record<string, string>) =>
      fetch(upload.uploadUrl, { method: upload.method, headers, body: new Uint8Array(body) });

    expect((await send(PNG, { ...upload.headers, "Content-Type": "text/html" })).status).toBe(403);
    expect((await send(PNG.subarray(1), upload.headers)).status).toBe(403);
    expect(await codeOf(objects.complete(owner, upload.id))).toEqual(["CONFLICT", undefined]);
    expect((await send(PNG, upload.headers)).status).toBe(200);
    expect((await send(PNG, upload.headers)).status).toBe(412);
    const file = await objects.complete(owner, upload.id);

    const link = await objects.linkTo(file);
    const [shown, part] = [await fetch(link), await fetch(link, { headers: { Range: "bytes=0-7" } })];
    expect(Object.fromEntries(shown.headers)).toMatchObject({
      "content-type": "image/png",
      "content-disposition": 'inline; filename="mill.png"',
    });
    expect(Buffer.from(await shown.arrayBuffer()).equals(PNG)).toBe(true);
    expect([part.status, (await part.arrayBuffer()).byteLength]).toEqual([206, 8]);
    await objects.delete(owner, upload.id);
    expect((await fetch(link)).status).toBe(404);
  });
});
