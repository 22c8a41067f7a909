/** The media host on each kind of blob store: the same answers, and refused uploads leave nothing behind. */
import { createHash, randomBytes } from "node:crypto";
import { readdir } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import sharp from "sharp";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { BlobGc } from "../../src/services/files/blob-gc.js";
import { MEDIA_UPLOAD_BYTES_MAX } from "../../src/services/files/limits.js";
import { MediaLinks } from "../../src/services/files/media-links.js";
import type { BlobStore, PresignedUpload } from "../../src/store/blobs.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { silentLog } from "../support/database.js";
import { isS3Installed, S3_ABSENT, startS3, type TestS3 } from "../support/s3.js";

const PNG = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==", "base64");
const KINDS = ["directory", ...(isS3Installed ? (["bucket"] as const) : [])] as const;
if (!isS3Installed) console.warn(`skipped, the media host on S3: ${S3_ABSENT}`);

const DAY_MS = 24 * 60 * 60 * 1000;
const freshPng = () => Buffer.concat([PNG, randomBytes(8)]);
const idOf = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex").slice(0, 16);

describe.each(KINDS)("on a %s", (kind) => {
  let s3: TestS3 | null = null;
  let app: TestApp;
  let media: string;
  let blobs: BlobStore;

  beforeAll(async () => {
    s3 = kind === "bucket" ? await startS3() : null;
    app = await createTestApp({ config: s3 ? { s3: await s3.createBucket() } : {} });
    media = `${app.baseUrl}/media`;
    blobs = app.infrastructure.blobs;
  });
  afterAll(async () => {
    await app.close();
    await s3?.stop();
  });

  const authorization = () => ({ Authorization: `Bearer ${app.key}` });
  const upload = (body: BodyInit, headers: Record<string, string> = {}, query = "") =>
    fetch(`${media}/upload${query}`, { method: "POST", body, headers: { ...authorization(), ...headers } });
  const formOf = (...files: Uint8Array<ArrayBuffer>[]) => {
    const form = new FormData();
    for (const bytes of files) form.append("file", new Blob([bytes]), "a.bin");
    return form;
  };
  const stored = async () => {
    const keys: string[] = [];
    for await (const { key } of blobs.list("media")) keys.push(key);
    return keys.sort();
  };
  const drafts = () => readdir(join(app.dataDir, "blobs", ".drafts"));
  const local = (url: string) => url.replace("localhost", "127.0.0.1");

  describe("an upload", () => {
    it("is served as it came, whole and in part, whichever form it had", async () => {
      for (const send of [
        (png: Buffer<ArrayBuffer>) => upload(png),
        (png: Buffer<ArrayBuffer>) => upload(formOf(png)),
        (png: Buffer<ArrayBuffer>) => upload(JSON.stringify({ data: png.toString("base64") }), { "Content-Type": "application/json" }),
      ]) {
        const png = freshPng();
        const answer = await send(png);

        expect(await answer.json()).toMatchObject({ id: idOf(png), contentType: "image/png", size: png.length, duplicate: false });
        const whole = await fetch(`${media}/${idOf(png)}`);
        expect(Buffer.from(await whole.arrayBuffer()).equals(png)).toBe(true);
        const part = await fetch(`${media}/${idOf(png)}`, { headers: { Range: "bytes=-8" } });
        expect([part.status, Buffer.from(await part.arrayBuffer()).equals(png.subarray(-8))]).toEqual([206, true]);
      }
      expect(await drafts()).toEqual([]);
    });

    it("takes 10 MiB and not a byte more, with and without a length", async () => {
      const most = randomBytes(MEDIA_UPLOAD_BYTES_MAX);
      const over = Buffer.concat([most, Buffer.of(1)]);
      const before = await stored();
      const chunked = (bytes: Buffer, headers: Record<string, string> = {}) =>
        fetch(`${media}/upload`, {
          method: "POST",
          headers: { ...authorization(), ...headers },
          body: new Blob([new Uint8Array(bytes)]).stream(),
          duplex: "half",
        } as RequestInit);
      const json = (bytes: Buffer) => Buffer.from(JSON.stringify({ data: bytes.toString("base64") }));
      const type = { "Content-Type": "application/json" };

      expect([(await upload(over)).status, (await chunked(over)).status]).toEqual([413, 413]);
      expect([(await upload(json(over), type)).status, (await chunked(json(over), type)).status]).toEqual([413, 413]);
      expect((await upload(formOf(over))).status).toBe(413);
      expect(await stored()).toEqual(before);
      expect((await chunked(most)).status).toBe(200);
      expect(await (await upload(json(most), type)).json()).toMatchObject({ duplicate: true, size: MEDIA_UPLOAD_BYTES_MAX });
      expect(await (await upload(formOf(most))).json()).toMatchObject({ duplicate: true });
      expect(await drafts()).toEqual([]);
    });

    it("loses its metadata before it is stored, on request", async () => {
      const source = sharp({ create: { width: 12, height: 8, channels: 3, background: "olive" } });
      const photograph = new Uint8Array(
        await source
          .withExif({ IFD0: { Copyright: "Bletchley Park" } })
          .jpeg()
          .toBuffer(),
      );

      const answers = [
        await upload(photograph),
        await upload(photograph, {}, "?strip=true"),
        await upload(formOf(photograph), {}, "?strip=true"),
      ];

      const [kept, stripped, again] = await Promise.all(answers.map((answer) => answer.json() as Promise<{ id: string; size: number }>));
      expect(kept).toMatchObject({ id: idOf(photograph), size: photograph.length });
      const bytes = Buffer.from(await (await fetch(`${media}/${stripped?.id}`)).arrayBuffer());
      expect(stripped).toMatchObject({ id: idOf(bytes), contentType: "image/jpeg", size: bytes.length, duplicate: false });
      expect(again).toMatchObject({ id: idOf(bytes), duplicate: true });
      expect(bytes.includes("Bletchley")).toBe(false);
      expect((await sharp(bytes).raw().toBuffer()).equals(await sharp(photograph).raw().toBuffer())).toBe(true);
    });

    it("leaves nothing behind when it is refused", async () => {
      const before = await stored();
      const rows = await rowCount();
      const cut = { "Content-Type": "multipart/form-data; boundary=b" };
      const json = { "Content-Type": "application/json" };
      const beginning = '--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nabc';
      const data = "QUJD".repeat(20_000);

      const refused = [
        await upload(beginning, cut),
        await upload(`${beginning}\r\n--b\r\nContent-Disposition: form-data; name="file"; filename="b"\r\n\r\nd\r\n--b--`, cut),
        await upload(formOf(PNG, PNG)),
        await upload(`{"data":"${data}*"}`, json),
        await upload(`{"data":"${data}A==="}`, json),
        await upload(`{"data":"${data}","data":"QUJD"}`, json),
        await upload(`{"data":"${data}`, json),
        await upload(`{"data":"${data}"} x`, json),
        await upload(`{"data":"${data}","name":""}`, json),
        await upload(`{"data":"QUI"}`, json),
        await upload(`{"data":"QUJ="}`, json),
        await upload("no picture", {}, "?strip=true"),
        await upload("anything", {}, "?strip=yes"),
        await upload(""),
      ];

      expect(refused.map(({ status }) => status)).toEqual(refused.map(() => 400));
      expect(await stored()).toEqual(before);
      expect(await rowCount()).toBe(rows);
      expect(await drafts()).toEqual([]);
    });

    it("leaves nothing behind when its sender leaves", async () => {
      const before = await stored();
      const { port } = new URL(app.baseUrl);
      const req = request({
        port,
        host: "127.0.0.1",
        path: "/media/upload",
        method: "POST",
        headers: { ...authorization(), "Content-Length": 1000 },
      });
      req.on("error", () => undefined);
      req.write("some of it");
      await expect.poll(drafts, { timeout: 10_000 }).toHaveLength(1);

      req.destroy();

      await expect.poll(drafts, { timeout: 10_000 }).toEqual([]);
      expect(await stored()).toEqual(before);
    });

    it("may escape characters as JSON allows", async () => {
      const bytes = Buffer.from("fb".repeat(3_000), "hex");
      const data = bytes.toString("base64").replaceAll("+", "\\u002b").replaceAll("/", "\\/");

      const answer = await upload(`{ "name" : "a\\"b", "data" : "${data}" }`, { "Content-Type": "application/json" });

      expect(await answer.json()).toMatchObject({ id: idOf(bytes), size: bytes.length });
    });

    it("is gone from the store 14 days after it was last brought", async () => {
      const png = freshPng();
      await upload(png);
      const key = `media/${createHash("sha256").update(png).digest("hex")}`;
      const row = await databaseOf().prisma.mediaFile.findUniqueOrThrow({ where: { id: idOf(png) } });
      const sweepAt = (now: Date) => {
        const quotas = app.services.mediaQuotas;
        const files = new MediaLinks({ database: app.database, blobs, quotas, clock: { now: () => now }, mediaUrl: () => media });
        const owner = { folder: "media", findNamed: (keys: readonly string[]) => files.findNamed(keys), sweep: () => files.sweep() };
        return new BlobGc(blobs, [owner], { now: () => now }, silentLog).sweepExpired();
      };

      await sweepAt(new Date(row.expiresAt.getTime() - 1));
      expect(await blobs.head(key)).not.toBeNull();
      await sweepAt(row.expiresAt);

      expect(Math.abs(row.expiresAt.getTime() - Date.now() - 14 * DAY_MS)).toBeLessThan(60_000);
      expect(await blobs.head(key)).toBeNull();
      expect((await fetch(`${media}/${idOf(png)}`)).status).toBe(404);
    });
  });

  describe("a signed address", () => {
    const put = (key: string, { expiresInSeconds = 60, sizeBytes = PNG.length } = {}) =>
      blobs.presignPut(key, { contentType: "image/png", sizeBytes, expiresInSeconds });
    const send = async ({ url, headers }: PresignedUpload, body: BodyInit, more: Record<string, string> = {}) =>
      (await fetch(local(url), { method: "PUT", body, headers: { ...headers, ...more }, duplex: "half" } as RequestInit)).status;
    const get = (key: string, expiresInSeconds = 60) =>
      blobs.presignGet(key, {
        contentType: "image/png",
        disposition: 'attachment; filename="a"',
        cacheControl: "max-age=5",
        expiresInSeconds,
      });

    it("takes the one file that it was signed for, once", async () => {
      const address = await put("addresses/once");
      const refusals = [403, 400, 413];

      expect(refusals).toContain(await send(address, PNG, { "Content-Type": "text/html" }));
      expect(refusals).toContain(await send(address, Buffer.concat([PNG, Buffer.of(0)])));
      expect(refusals).toContain(await send(address, PNG.subarray(1)));
      expect(await blobs.head("addresses/once")).toBeNull();
      expect(await send(address, PNG)).toBe(200);
      expect([409, 412]).toContain(await send(address, Buffer.alloc(PNG.length)));
      expect((await blobs.read("addresses/once"))?.equals(PNG)).toBe(true);
      expect(await drafts()).toEqual([]);
    });

    it("is for nothing else", async () => {
      const address = await put("addresses/mine");
      await blobs.put("addresses/read", PNG);
      const download = await get("addresses/read");
      const status = async (url: string, method = "GET") => (await fetch(local(url), { method })).status;

      expect(await send({ ...address, url: address.url.replace("mine", "other") }, PNG)).toBe(403);
      expect(await status(address.url)).toBe(403);
      expect(await status(download.replace("read", "mine"))).toBe(403);
      expect(await status(download.replace("image%2Fpng", "text%2Fhtml"))).toBe(403);
      expect(await status(download.replace(/([Ss]ignature=)./, "$1~"))).toBe(403);
      expect(await send({ ...address, url: download }, PNG)).toBe(403);
      expect(await blobs.head("addresses/other")).toBeNull();
    });

    it("gives the file as it was signed, whole and in part", async () => {
      await blobs.put("addresses/given", PNG);

      const answer = await fetch(local(await get("addresses/given")), { headers: { Range: "bytes=1-3" } });

      expect([answer.status, await answer.text()]).toEqual([206, "PNG"]);
      expect(Object.fromEntries(answer.headers)).toMatchObject({
        "content-type": "image/png",
        "content-disposition": 'attachment; filename="a"',
        "cache-control": "max-age=5",
        "content-range": `bytes 1-3/${PNG.length}`,
      });
    });

    it("ends", async () => {
      const address = await put("addresses/late", { expiresInSeconds: 1 });
      const download = await get("addresses/given", 1);

      await expect.poll(async () => (await fetch(local(download))).status, { timeout: 10_000 }).toBe(403);
      await expect.poll(() => send(address, PNG.subarray(1)), { timeout: 10_000 }).toBe(403);
      expect(await send(address, PNG)).toBe(403);
    });

    it("supports all of variant B", async () => {
      const png = freshPng();
      const announced = await upload(JSON.stringify({ contentType: "image/png", size: png.length, tags: ["cats"] }), {
        "Content-Type": "application/json",
      });
      const { id, uploadUrl: url, method, headers } = (await announced.json()) as { id: string; uploadUrl: string } & PresignedUpload;

      expect(await send({ url, method, headers }, png)).toBe(200);
      const complete = await fetch(`${media}/upload/${id}/complete`, { method: "POST", headers: authorization() });

      expect(await complete.json()).toMatchObject({ id, size: png.length, contentType: "image/png", tags: ["cats"] });
      const redirect = await fetch(`${media}/${id}`, { redirect: "manual" });
      expect(redirect.status).toBe(302);
      const file = await fetch(local(redirect.headers.get("location") ?? ""));
      expect(Buffer.from(await file.arrayBuffer()).equals(png)).toBe(true);
    });
  });

  const databaseOf = () => app.database;
  const rowCount = () => databaseOf().prisma.mediaFile.count();
});
