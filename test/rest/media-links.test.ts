/** The media host over HTTP (docs/spec/media.md#content-addressed-files). */

import { createHash, randomBytes } from "node:crypto";
import { request } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RequestContext } from "../../src/context.js";
import type { GeneratedType } from "../../src/lib/content-types.js";
import { MEDIA_UPLOAD_BYTES_MAX } from "../../src/services/files/limits.js";
import { execute } from "../graphql/client.js";
import { UploadMediaDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { silentLog } from "../support/database.js";
import { type Client, createClient, createKey, expectEnvelope } from "./client.js";

/** One pixel. */
const PNG = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==", "base64");

let app: TestApp;
let client: Client;
let media: string;

beforeAll(async () => {
  app = await createTestApp();
  client = createClient(app.baseUrl, app.key);
  media = `${app.baseUrl}/media`;
});
afterAll(() => app.close());

const idOf = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex").slice(0, 16);
const databaseOf = () => app.database;
/** A picture that is new to the store: decoders ignore the bytes after an image's end. */
const freshPng = () => Buffer.concat([PNG, randomBytes(8)]);

function upload(body: BodyInit, headers: Record<string, string> = {}, key: string | null = app.key) {
  return fetch(`${media}/upload`, { method: "POST", body, headers: { ...(key && { Authorization: `Bearer ${key}` }), ...headers } });
}

function form(...files: [name: string, type: string, bytes: Uint8Array<ArrayBuffer>][]): FormData {
  const data = new FormData();
  for (const [name, type, bytes] of files) data.append("file", new Blob([bytes], { type }), name);
  return data;
}

describe("POST /media/upload", () => {
  it("takes a form, the bytes themselves, and JSON, and knows the same file again", async () => {
    const png = freshPng();
    const stored = {
      id: idOf(png),
      url: expect.stringMatching(`^http://localhost:\\d+/media/${idOf(png)}$`),
      contentType: "image/png",
      size: png.length,
    };

    const asForm = await upload(form(["a.png", "image/png", png]));
    const raw = await upload(png, { "Content-Type": "image/png" });
    const json = await client.post("/media/upload", { data: png.toString("base64"), contentType: "image/png", name: "a.png" });

    expect(asForm.status).toBe(200);
    expect(await asForm.json()).toEqual({ ...stored, duplicate: false });
    expect(await raw.json()).toEqual({ ...stored, duplicate: true });
    expect(json.json()).toEqual({ ...stored, duplicate: true });
  });

  it("stores one file for fifty uploads of it at once", async () => {
    const png = freshPng();

    const answers = await Promise.all(Array.from({ length: 50 }, () => upload(png)));

    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(Buffer.from(await (await fetch(`${media}/${idOf(png)}`)).arrayBuffer()).equals(png)).toBe(true);
  });

  it("needs a key, of any type", async () => {
    const { key: publishable } = await createKey(app, { type: "publishable" });

    expect((await upload(freshPng(), {}, null)).status).toBe(401);
    expect((await upload(freshPng(), {}, "sk_wrong")).status).toBe(401);
    expect((await upload(freshPng(), {}, publishable)).status).toBe(200);
    expect((await fetch(`${media}/upload?key=${app.key}`, { method: "POST", body: freshPng() })).status).toBe(200);
  });

  it("takes 10 MiB and not a byte more, whichever way they come", async () => {
    const most = randomBytes(MEDIA_UPLOAD_BYTES_MAX);
    const over = randomBytes(MEDIA_UPLOAD_BYTES_MAX + 1);

    expect((await upload(most)).status).toBe(200);
    expect((await upload(form(["most", "", most]))).status).toBe(200);
    expect((await client.post("/media/upload", { data: most.toString("base64") })).status).toBe(200);
    expect((await upload(over)).status).toBe(413);
    expect((await upload(form(["over", "", over]))).status).toBe(413);
    expectEnvelope(await client.post("/media/upload", { data: over.toString("base64") }), 413, "PAYLOAD_TOO_LARGE");
  });

  it.each([
    ["neither data nor a size", {}, "contentType"],
    ["data that is not base64", { data: "a*b=" }, "data"],
    ["base64 without its padding", { data: "YWI" }, "data"],
    ["nothing in it", { data: "" }, "data"],
    ["a number", { data: 5 }, "data"],
    ["an unknown field", { data: "YWI=", file: "x" }, ""],
    ["an empty name", { data: "YWI=", name: "" }, "name"],
    ["a name of 256 characters", { data: "YWI=", name: "n".repeat(256) }, "name"],
    ["a NUL in its name", { data: "YWI=", name: "a\0b" }, "name"],
  ])("answers 400 to JSON with %s", async (_, body, param) => {
    const answer = await client.post("/media/upload", body);

    expectEnvelope(answer, 400, "BAD_REQUEST");
    if (param) expect(answer.json<{ error: { param: string } }>().error.param).toBe(param);
  });

  it("answers 400 to forms without a file, with two, or that are cut", async () => {
    const text = new FormData();
    text.append("file", "text");
    const cut = { "Content-Type": "multipart/form-data; boundary=b" };

    expect((await upload(text)).status).toBe(400);
    expect((await upload(new FormData())).status).toBe(400);
    expect((await upload(form(["a", "", PNG], ["b", "", PNG]))).status).toBe(400);
    expect((await upload('--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nabc', cut)).status).toBe(400);
    expect((await upload("", { "Content-Type": "image/png" })).status).toBe(400);
  });

  it("refuses other bytes with the id of a file, and leaves that as it is", async () => {
    const mine = freshPng();
    const sha256 = createHash("sha256").update(mine).digest();
    // No two such files are known: the one that is there is made to look like the other.
    const other = Buffer.concat([sha256.subarray(0, 8), randomBytes(24)]);
    const row = { id: idOf(mine), sha256: new Uint8Array(other), accountId: crypto.randomUUID(), contentType: "image/png", sizeBytes: 1 };
    await databaseOf().prisma.mediaFile.create({ data: { ...row, expiresAt: new Date(Date.now() + 60_000) } });

    const refused = await upload(mine);

    expect(refused.status).toBe(409);
    expect(((await refused.json()) as { error: { code: string } }).error.code).toBe("CONFLICT");
    const kept = await databaseOf().prisma.mediaFile.findUniqueOrThrow({ where: { id: row.id } });
    expect(Buffer.from(kept.sha256).equals(other)).toBe(true);
  });
});

describe("uploadMedia on GraphQL", () => {
  const send = (file: Blob, key: string | null = app.key) => execute({ ...app, key }, UploadMediaDocument, { input: { file } });

  it("takes and refuses the same as POST /media/upload", async () => {
    const png = freshPng();

    const stored = await send(new Blob([png], { type: "image/png" }));
    const empty = await send(new Blob([]));
    const large = await send(new Blob([randomBytes(MEDIA_UPLOAD_BYTES_MAX + 1)]));
    const nobodys = await send(new Blob([png]), null);

    expect(stored.data?.uploadMedia).toMatchObject({
      mediaFile: { restId: idOf(png), contentType: "image/png", size: png.length },
      isDuplicate: false,
    });
    expect((await fetch(`${media}/${idOf(png)}`)).status).toBe(200);
    expect(empty.errors?.map(({ extensions }) => [extensions.code, extensions.param])).toEqual([["BAD_REQUEST", "file"]]);
    expect(large.errors?.map(({ extensions }) => extensions.code)).toEqual(["PAYLOAD_TOO_LARGE"]);
    expect(nobodys.errors?.map(({ extensions }) => extensions.code)).toEqual(["UNAUTHORIZED"]);
  });
});

describe("a served file", () => {
  const served = async (body: BodyInit, headers: Record<string, string> = {}) => {
    const { id } = (await (await upload(body, headers)).json()) as { id: string };
    return fetch(`${media}/${id}`);
  };

  it("is public for ever", async () => {
    const png = freshPng();

    const answer = await served(png);

    expect(Object.fromEntries(answer.headers)).toMatchObject({
      "content-type": "image/png",
      "content-length": String(png.length),
      "cache-control": "public, max-age=31536000, immutable",
      etag: `"${createHash("sha256").update(png).digest("hex")}"`,
      "x-content-hash": idOf(png),
      "x-content-type-options": "nosniff",
      "content-security-policy": expect.stringContaining("sandbox"),
      "accept-ranges": "bytes",
      "access-control-allow-origin": "*",
      "x-request-id": expect.any(String),
    });
    expect(answer.headers.has("content-disposition")).toBe(false);
    expect(Buffer.from(await answer.arrayBuffer()).equals(png)).toBe(true);
  });

  it.each([
    ["a page that is called a picture", "<!doctype html><script>alert(1)</script>", "image/png", "text/plain; charset=utf-8", false],
    ["a page", "<html><body>hi</body></html>", "text/html", "application/octet-stream", true],
    [
      "a drawing with a script",
      '<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"><script/></svg>',
      "image/svg+xml",
      "application/octet-stream",
      true,
    ],
    ["a script", "alert(1)", "text/javascript", "application/octet-stream", true],
    ["plain text", "Grüße", "text/plain", "text/plain; charset=utf-8", false],
    ["JSON as it is sent raw", "a,b\n1,2\n", "text/csv", "text/csv; charset=utf-8", true],
    ["a PDF", "%PDF-1.7\n%âãÏÓ\n", "application/pdf", "application/pdf", true],
    ["a PDF that is called a picture", "%PDF-1.7\n1", "image/png", "application/pdf", true],
    ["noise that is called a picture", randomBytes(64).fill(0x01, 0, 8), "image/png", "application/octet-stream", true],
  ])("of %s is inert in a browser", async (_, body, declared, type, isAttachment) => {
    const answer = await served(body, { "Content-Type": declared });

    expect(answer.headers.get("content-type")).toBe(type);
    expect(answer.headers.get("content-disposition")?.startsWith("attachment") ?? false).toBe(isAttachment);
    expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
  });

  it("is saved under the name that it came with", async () => {
    const body = Buffer.from(`PK\x05\x06${"\0".repeat(18)}${Math.random()}`);
    const { id } = (await (await upload(form(["../Zürich.zip", "application/zip", body]))).json()) as { id: string };

    const { headers } = await fetch(`${media}/${id}`);

    expect(headers.get("content-disposition")).toBe("attachment; filename=\"Z_rich.zip\"; filename*=UTF-8''Z%C3%BCrich.zip");
  });

  it("is described by HEAD, without a byte of it", async () => {
    const png = freshPng();
    await upload(png);

    const answer = await fetch(`${media}/${idOf(png)}`, { method: "HEAD" });

    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe("image/png");
    expect(answer.headers.get("content-length")).toBe(String(png.length));
    expect(answer.headers.get("x-content-hash")).toBe(idOf(png));
    expect((await answer.arrayBuffer()).byteLength).toBe(0);
  });

  it.each([
    ["bytes=0-3", 206, [0, 4]],
    ["bytes=4-", 206, [4, undefined]],
    ["bytes=-5", 206, [-5, undefined]],
    ["bytes=0-999999", 206, [0, undefined]],
    ["bytes=0-1,4-5", 200, [0, undefined]],
    ["bytes=x", 200, [0, undefined]],
    ["lines=0-1", 200, [0, undefined]],
  ])("is cut to the range %s", async (range, status, [start, end]) => {
    const png = freshPng();
    await upload(png);

    const answer = await fetch(`${media}/${idOf(png)}`, { headers: { Range: range } });
    const part = png.subarray(start, end);

    expect(answer.status).toBe(status);
    expect(Buffer.from(await answer.arrayBuffer()).equals(part)).toBe(true);
    expect(answer.headers.get("content-length")).toBe(String(part.length));
    const from = png.length - png.subarray(start).length;
    if (status === 206) expect(answer.headers.get("content-range")).toBe(`bytes ${from}-${from + part.length - 1}/${png.length}`);
  });

  it("is 416 beyond its end, 304 when it is known, and whole when another version is", async () => {
    const png = freshPng();
    await upload(png);
    const etag = `"${createHash("sha256").update(png).digest("hex")}"`;
    const get = (headers: Record<string, string>) => fetch(`${media}/${idOf(png)}`, { headers });

    const beyond = await get({ Range: `bytes=${png.length}-` });
    const known = await get({ "If-None-Match": etag });
    const part = await get({ Range: "bytes=0-1", "If-Range": etag });
    const whole = await get({ Range: "bytes=0-1", "If-Range": '"old"' });

    expect([beyond.status, beyond.headers.get("content-range")]).toEqual([416, `bytes */${png.length}`]);
    expect(await beyond.json()).toMatchObject({ status: 416, success: false, error: { code: "BAD_REQUEST", param: "Range" } });
    expect([known.status, known.headers.get("etag"), await known.text()]).toEqual([304, etag, ""]);
    expect([part.status, whole.status]).toEqual([206, 200]);
  });

  it.each(["0123456789abcdef", "0123456789ABCDEF", "nothing", "..%2f..%2fsecrets.json", "0123456789abcdef0"])(
    "is 404 in the envelope for %s",
    async (id) => {
      expectEnvelope(await client.get(`/media/${id}`, { key: null }), 404, "NOT_FOUND");
    },
  );

  it("describes the host at its root, and answers 405 to other methods", async () => {
    expect((await client.get("/media/", { key: null })).json()).toEqual({ name: "Sluice media", version: "2.0.0" });
    expect((await client.request("DELETE", "/media/0123456789abcdef")).status).toBe(405);
    expect((await client.request("PUT", "/media/upload")).status).toBe(405);
  });
});

describe("a file that a generation answers", () => {
  it("is reached by its link, which the same bytes have again", async () => {
    const { key } = await createKey(app);
    const ctx = {
      caller: await app.services.apiKeys.authenticate(key),
      requestId: "r",
      clientAddress: "",
      log: silentLog,
      signal: AbortSignal.any([]),
    };
    const png = freshPng();

    const link = await app.services.mediaLinks.publish(ctx as RequestContext, { bytes: png, contentType: "image/png" });
    const again = await app.services.mediaLinks.publish(ctx as RequestContext, { bytes: png, contentType: "image/png" });

    expect(again).toEqual(link);
    expect(link.url.endsWith(`/media/${link.id}`)).toBe(true);
    const answer = await fetch(link.url.replace("localhost", "127.0.0.1"));
    expect(Buffer.from(await answer.arrayBuffer()).equals(png)).toBe(true);
  });

  it("may be sound without a beginning of its own, and never a page", async () => {
    const ctx = {
      caller: await app.services.apiKeys.authenticate(app.key),
      requestId: "r",
      clientAddress: "",
      log: silentLog,
      signal: AbortSignal.any([]),
    };
    const publish = async (bytes: Buffer, said: string) => {
      const file = { bytes, contentType: said as GeneratedType };
      const { id } = await app.services.mediaLinks.publish(ctx as RequestContext, file);
      return (await fetch(`${media}/${id}`)).headers.get("content-type");
    };

    expect(await publish(Buffer.alloc(9, 1), "audio/pcm")).toBe("audio/pcm");
    expect(await publish(Buffer.from("<svg/>"), "image/svg+xml")).toBe("application/octet-stream");
    expect(await publish(Buffer.from("<p>"), "text/html")).toBe("application/octet-stream");
  });
});

describe("expiry", () => {
  it("removes a file 14 days after its last upload", async () => {
    const [old, young] = [freshPng(), freshPng()];
    for (const png of [old, young]) await upload(png);
    const { mediaFile } = databaseOf().prisma;
    const day = 24 * 60 * 60 * 1000;
    for (const png of [old, young]) {
      const row = await mediaFile.findUniqueOrThrow({ where: { id: idOf(png) } });
      expect(Math.abs(row.expiresAt.getTime() - Date.now() - 14 * day)).toBeLessThan(60_000);
      await mediaFile.update({
        where: { id: row.id },
        data: { createdAt: new Date(Date.now() - 15 * day), expiresAt: new Date(Date.now() - day) },
      });
    }
    expect((await fetch(`${media}/${idOf(old)}`)).status).toBe(404);

    await upload(young);
    expect(await app.services.mediaLinks.sweep()).toBeGreaterThanOrEqual(1);

    expect((await fetch(`${media}/${idOf(old)}`)).status).toBe(404);
    expect((await fetch(`${media}/${idOf(young)}`)).status).toBe(200);
    expect(await mediaFile.findUnique({ where: { id: idOf(old) } })).toBeNull();
  });
});

describe("D a separate host for media", () => {
  it("answers by its name alone, and nothing else answers there", async () => {
    const own = await createTestApp({
      config: { baseUrl: "http://api.example", mediaUrl: "http://media.example" },
      upstream: app.upstream,
    });
    const port = new URL(own.baseUrl).port;
    const ask = (path: string, host: string, method = "GET", body?: Buffer) =>
      new Promise<{ status: number; text: string }>((resolve, reject) => {
        const headers = { Host: host, Authorization: `Bearer ${own.key}` };
        const req = request({ host: "127.0.0.1", port, path, method, headers }, async (res) => {
          const chunks: Buffer[] = [];
          for await (const chunk of res) chunks.push(chunk);
          resolve({ status: res.statusCode ?? 0, text: Buffer.concat(chunks).toString() });
        });
        req.on("error", reject);
        req.end(body);
      });
    try {
      const png = freshPng();
      const uploaded = await ask("/upload", "media.example", "POST", png);

      expect(JSON.parse(uploaded.text)).toMatchObject({ url: `http://media.example/${idOf(png)}` });
      expect((await ask(`/${idOf(png)}`, "MEDIA.example:8080")).status).toBe(200);
      expect((await ask(`/${idOf(png)}`, "api.example")).status).toBe(404);
      expect((await ask(`/media/${idOf(png)}`, "api.example")).status).toBe(404);
      expect((await ask("/v1/models", "media.example")).status).toBe(404);
      expect((await ask("/v1/models", "api.example")).status).toBe(200);
      expect((await ask("/graphql?query=%7B__typename%7D", "media.example")).status).toBe(404);
    } finally {
      await own.close();
    }
  });
});
