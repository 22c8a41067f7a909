/** Variant B of the media host through HTTP: an upload from its announcement to its deletion, and every way to get it wrong. */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readdir } from "node:fs/promises";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { RequestContext } from "../../src/context.js";
import { DISK_LOOK_BYTES, MEDIA_OBJECT_BYTES_MAX } from "../../src/services/files/limits.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { createMovableClock } from "../support/clock.js";
import { imagesObject, picture } from "../support/pictures.js";
import { signedIn, signUp } from "../support/sign-in.js";
import { json } from "../support/upstream-replies.js";
import { type Answer, type Client, createClient, createKey, expectEnvelope } from "./client.js";
import { createStranger } from "./seed.js";

interface Upload {
  readonly id: string;
  readonly uploadUrl: string;
  readonly method: "PUT";
  readonly headers: Record<string, string>;
  readonly expiresAt: string;
}

interface List {
  readonly items: readonly { readonly id: string }[];
  readonly nextCursor: string | null;
  readonly hasMore: boolean;
}

const clock = createMovableClock();
/** Of the disk, what uploads leave alone. */
const FREE_BYTES_MIN = 512 * 2 ** 20;

let app: TestApp;
let client: Client;
let png: Buffer;

beforeAll(async () => {
  app = await createTestApp({ clock, config: { mediaQuota: { bytesMax: 5 * 2 ** 30, filesMax: 10_000, freeBytesMin: FREE_BYTES_MIN } } });
  client = createClient(app.baseUrl, app.key);
  png = await picture();
});
afterAll(() => app.close());

/** As the app's addresses name this machine by a name that may mean another address family. */
function reachable(url: string): string {
  return url.replace("//localhost", "//127.0.0.1");
}

async function announce(input: object = {}, by: Client = client): Promise<Upload> {
  const answer = await by.post("/media/upload", { contentType: "image/png", size: png.length, ...input });
  expect(answer.status).toBe(200);
  return answer.json<Upload>();
}

function send({ uploadUrl, method, headers }: Upload, body: Buffer = png, more: Record<string, string> = {}): Promise<Response> {
  return fetch(reachable(uploadUrl), { method, headers: { ...headers, ...more }, body: new Uint8Array(body) });
}

/** A PUT of that length, to be written by hand. */
function begin({ uploadUrl, method, headers }: Upload, size: number): ClientRequest {
  const sending = request(reachable(uploadUrl), { method, headers: { ...headers, "Content-Length": size } });
  sending.on("error", () => undefined);
  return sending;
}

/** The drafts of uploads under way. */
function drafts(): Promise<string[]> {
  return readdir(join(app.dataDir, "blobs", ".drafts"));
}

async function addFile(input: object = {}, body: Buffer = png, by: Client = client): Promise<{ id: string; url: string }> {
  // The clock stands still: no two files are of the same moment.
  clock.advance(0.001);
  const upload = await announce({ size: body.length, ...input }, by);
  expect((await send(upload, body)).status).toBeLessThan(300);
  const answer = await by.post(`/media/upload/${upload.id}/complete`, {});
  expect(answer.status).toBe(200);
  return answer.json();
}

function tagOf(): string {
  return `t-${randomUUID()}`;
}

describe("an upload", () => {
  it("is announced, sent, completed, read, listed and deleted", async () => {
    const tag = tagOf();
    const upload = await announce({ name: "mill.png", tags: [tag.toUpperCase()] });
    expect(Object.keys(upload)).toEqual(["id", "uploadUrl", "method", "headers", "expiresAt"]);
    expect(new Date(upload.expiresAt).getTime() - clock.now().getTime()).toBeGreaterThan(500_000);
    expectEnvelope(await client.get(`/media/${upload.id}`), 404, "NOT_FOUND");
    expect((await send(upload)).status).toBeLessThan(300);
    for (const path of [`/media/${upload.id}`, `/media/${upload.id}/metadata`]) {
      expectEnvelope(await client.get(path, { key: null }), 404, "NOT_FOUND");
    }

    const completed = await client.request("POST", `/media/upload/${upload.id}/complete`);

    const { id } = upload;
    expect(completed.json()).toEqual({
      id,
      url: expect.stringMatching(`^http://localhost:\\d+/media/${id}$`),
      contentType: "image/png",
      size: png.length,
      tags: [tag],
      createdAt: expect.stringMatching(/Z$/),
    });
    const again = await client.request("POST", `/media/upload/${id}/complete`);
    expect([again.status, again.text]).toEqual([200, completed.text]);

    const redirect = await fetch(`${app.baseUrl}/media/${id}`, { redirect: "manual" });
    expect([redirect.status, redirect.headers.get("access-control-allow-origin")]).toEqual([302, "*"]);
    const file = await fetch(reachable(redirect.headers.get("location") ?? ""));
    expect(Object.fromEntries(file.headers)).toMatchObject({
      "content-type": "image/png",
      "content-disposition": 'inline; filename="mill.png"',
      "x-content-type-options": "nosniff",
      "content-security-policy": expect.stringContaining("sandbox"),
    });
    expect(Buffer.from(await file.arrayBuffer()).equals(png)).toBe(true);
    const part = await fetch(reachable(redirect.headers.get("location") ?? ""), { headers: { Range: "bytes=0-7" } });
    expect([part.status, (await part.arrayBuffer()).byteLength]).toEqual([206, 8]);

    const head = await fetch(`${app.baseUrl}/media/${id}`, { method: "HEAD", redirect: "manual" });
    expect([head.status, head.headers.get("content-type"), head.headers.get("content-length")]).toEqual([
      200,
      "image/png",
      String(png.length),
    ]);

    const metadata = { ...completed.json(), name: "mill.png", expiresAt: null };
    const { url: _, ...described } = metadata as Record<string, unknown>;
    expect((await client.get(`/media/${id}/metadata`, { key: null })).json()).toEqual(described);
    expect((await client.get(`/media/media?tag=${tag}`, { key: null })).json()).toEqual({
      items: [metadata],
      nextCursor: null,
      hasMore: false,
    });
    expect((await client.get("/media/media?limit=1")).json<List>().items[0]?.id).toBe(id);

    expect((await client.request("DELETE", `/media/media/${id}`)).json()).toEqual({ id, deleted: true });

    expectEnvelope(await client.get(`/media/${id}`), 404, "NOT_FOUND");
    expect((await client.get(`/media/media?tag=${tag}`)).json<List>().items).toEqual([]);
    expectEnvelope(await client.request("DELETE", `/media/media/${id}`), 404, "NOT_FOUND");
  });

  it("may be a session's, from page to file", async () => {
    const cookie = signedIn(await signUp(app));
    const ask = (method: string, path: string, body?: unknown) => client.request(method, path, { key: null, headers: cookie, body });

    const upload = (
      await ask("POST", "/media/upload", { contentType: "image/png", size: png.length, tags: ["mine"] })
    ).json() as never as Upload;
    await send(upload);

    expect((await ask("POST", `/media/upload/${upload.id}/complete`)).status).toBe(200);
    expect((await ask("GET", "/media/media")).json<List>().items.map(({ id }) => id)).toEqual([upload.id]);
    expect((await ask("DELETE", `/media/media/${upload.id}`)).status).toBe(200);
  });

  it("may be of 100 MiB and not of a byte more", async () => {
    expect(await announce({ size: MEDIA_OBJECT_BYTES_MAX })).toMatchObject({ method: "PUT" });

    const over = await client.post("/media/upload", { contentType: "image/png", size: MEDIA_OBJECT_BYTES_MAX + 1 });

    expectEnvelope(over, 413, "PAYLOAD_TOO_LARGE");
    expect(over.json<{ error: { param: string } }>().error.param).toBe("size");
  });

  it.each([
    ["contentType", { size: 1 }],
    ["size", { contentType: "image/png" }],
    ["size", { contentType: "image/png", size: 0 }],
    ["tags.0", { contentType: "image/png", size: 1, tags: ["a b"] }],
    ["tags", { contentType: "image/png", size: 1, tags: ["a", "b", "c", "d", "e", "f", "g", "h", "i"] }],
    ["name", { contentType: "image/png", size: 1, name: "" }],
    ["url", { contentType: "image/png", size: 1, url: "x" }],
  ])("is 400 with a wrong %s", async (param, body) => {
    const answer = await client.post("/media/upload", body);

    expectEnvelope(answer, 400, "BAD_REQUEST");
    expect(answer.json<{ error: { param: string } }>().error.param).toBe(param);
  });

  it("takes the announced file at its address, once, until it has expired", async () => {
    const upload = await announce();

    expect((await send(upload, png, { "Content-Type": "text/html" })).status).toBe(400);
    expect((await send(upload, Buffer.concat([png, Buffer.alloc(1)]))).status).toBe(413);
    expect((await send(upload, png.subarray(1))).status).toBe(400);
    const forged = upload.uploadUrl.replace(/size=\d+/, `size=${png.length + 1}`);
    expect((await send({ ...upload, uploadUrl: forged }, Buffer.concat([png, Buffer.alloc(1)]))).status).toBe(403);
    expectEnvelope(await client.request("POST", `/media/upload/${upload.id}/complete`), 409, "CONFLICT");

    expect((await send(upload)).status).toBeLessThan(300);

    expect((await send(upload)).status).toBe(409);
    const late = await announce();
    clock.advance(601);
    expect((await send(late)).status).toBe(403);
    expectEnvelope(await client.request("POST", `/media/upload/${late.id}/complete`), 409, "CONFLICT");
    expect((await client.request("POST", `/media/upload/${upload.id}/complete`)).status).toBe(200);
    const link = (await fetch(`${app.baseUrl}/media/${upload.id}`, { redirect: "manual" })).headers.get("location") ?? "";
    clock.advance(301);
    expect((await fetch(reachable(link))).status).toBe(403);
  });

  it("arrives once at a time, and leaves its address free when its sender leaves", async () => {
    const upload = await announce();
    const sending = begin(upload, png.length);
    sending.write(png.subarray(0, 10));
    await expect.poll(drafts).toHaveLength(1);

    const others = await Promise.all(Array.from({ length: 8 }, () => send(upload)));

    for (const other of others) {
      expect([other.status, other.headers.get("retry-after")]).toEqual([409, "5"]);
      expect(((await other.json()) as { error: { code: string } }).error.code).toBe("CONFLICT");
    }
    expect(await drafts()).toHaveLength(1);
    sending.destroy();
    await expect.poll(drafts).toEqual([]);
    await expect.poll(async () => (await send(upload)).status).toBe(200);
  });

  it("is given up when the disk fills up meanwhile", async () => {
    const size = 3 * DISK_LOOK_BYTES;
    const upload = await announce({ size });
    const sending = begin(upload, size);
    const answered = once(sending, "response") as Promise<[IncomingMessage]>;
    sending.write(Buffer.alloc(DISK_LOOK_BYTES / 2));
    await expect.poll(drafts).toHaveLength(1);

    const freeBytes = vi.spyOn(app.infrastructure, "freeBytes").mockResolvedValue(0);
    sending.end(Buffer.alloc(size - DISK_LOOK_BYTES / 2));
    const [answer] = await answered;
    freeBytes.mockRestore();

    expect([answer.statusCode, answer.headers["retry-after"]]).toEqual([503, "60"]);
    await expect.poll(drafts).toEqual([]);
    sending.destroy();
  });

  it("has its announced room on the disk, and leaves others only the rest", async () => {
    const freeBytes = vi.spyOn(app.infrastructure, "freeBytes");
    const [one, other] = [await announce(), await announce()];
    const sending = begin(one, png.length);
    sending.write(png.subarray(0, 1));
    await expect.poll(drafts).toHaveLength(1);

    // This leaves out the part of the first that has arrived already.
    freeBytes.mockResolvedValue(FREE_BYTES_MIN + 2 * png.length - 2);
    const refused = await send(other);
    freeBytes.mockResolvedValue(FREE_BYTES_MIN + 2 * png.length - 1);
    await expect.poll(async () => (await send(other)).status).toBe(200);
    sending.end(png.subarray(1));
    const [answer] = (await once(sending, "response")) as [IncomingMessage];
    freeBytes.mockRestore();

    expect([refused.status, answer.statusCode]).toEqual([503, 200]);
  });

  it("that is something else is removed, and may be sent again", async () => {
    const page = Buffer.from("<script>".padEnd(png.length));
    const upload = await announce();
    await send(upload, page);

    const refused = await client.request("POST", `/media/upload/${upload.id}/complete`);

    expectEnvelope(refused, 400, "BAD_REQUEST");
    expect(refused.json<{ error: { param: string } }>().error.param).toBe("contentType");
    expectEnvelope(await client.request("POST", `/media/upload/${upload.id}/complete`), 409, "CONFLICT");
    expect((await send(upload)).status).toBeLessThan(300);
    expect((await client.request("POST", `/media/upload/${upload.id}/complete`)).status).toBe(200);
  });

  const WRITTEN: readonly (readonly [declared: string, text: string])[] = [
    ["text/html", "<!doctype html><script>alert(1)</script>"],
    ["application/xhtml+xml", '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"/>'],
    ["image/svg+xml", '<svg xmlns="http://www.w3.org/2000/svg"><script/></svg>'],
    ["text/xml", '<?xml version="1.0"?><a/>'],
    ["application/xml", '<?xml version="1.0"?><a/>'],
    ["application/javascript", "alert(1)"],
    ["text/javascript", "alert(1)"],
    ["text/css", "a { color: red }"],
    ["text/x-python", "print(1)"],
    ["application/yaml", "a: 1"],
    ["text/plain", "<p>Hello"],
    ["text/csv", "a,b"],
  ];
  it.each(WRITTEN)("of text declared %s is stored as that, and served the same, by both variants", async (declared, text) => {
    // The id of variant A is its content's.
    const bytes = Buffer.from(`${text}\n\n${" ".repeat(WRITTEN.findIndex(([type]) => type === declared))}`);
    const headers = { Authorization: `Bearer ${app.key}`, "Content-Type": declared };
    const small = (await (await fetch(`${app.baseUrl}/media/upload`, { method: "POST", headers, body: new Uint8Array(bytes) })).json()) as {
      readonly id: string;
      readonly contentType: string;
    };
    const { id } = await addFile({ contentType: declared }, bytes);

    const told = await Promise.all(
      [small.id, id].map(async (file) => {
        const { contentType } = (await client.get(`/media/${file}/metadata`)).json();
        const found = await fetch(`${app.baseUrl}/media/${file}`, { redirect: "manual" });
        const answer = found.status === 302 ? await fetch(reachable(found.headers.get("location") ?? "")) : found;
        const head = await fetch(`${app.baseUrl}/media/${file}`, { method: "HEAD", redirect: "manual" });
        expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
        expect(answer.headers.get("content-security-policy")).toContain("sandbox");
        const bare = (from: Response) => from.headers.get("content-type")?.split(";")[0];
        expect(bare(head)).toBe(bare(answer));
        return [contentType, bare(answer), answer.headers.get("content-disposition")?.split(";")[0] ?? "inline"];
      }),
    );

    const isOpen = ["text/plain", "text/csv"].includes(declared);
    const served = [declared, isOpen ? declared : "application/octet-stream", declared === "text/plain" ? "inline" : "attachment"];
    expect(told).toEqual([served, served]);
    expect(small.contentType).toBe(declared);
  });

  it("of a page is served as nothing that a browser runs", async () => {
    const { id } = await addFile({ contentType: "text/html", name: "a.html" }, Buffer.from("<!doctype html><script>alert(1)</script>"));

    const answer = await fetch(
      reachable((await fetch(`${app.baseUrl}/media/${id}`, { redirect: "manual" })).headers.get("location") ?? ""),
    );

    expect(Object.fromEntries(answer.headers)).toMatchObject({
      "content-type": "application/octet-stream",
      "content-disposition": 'attachment; filename="a.html"',
      "x-content-type-options": "nosniff",
    });
  });
});

describe("permissions", () => {
  it("let everyone read and list by tag, keys of any type upload, secret keys of the owner delete", async () => {
    const tag = tagOf();
    const publishable = createClient(app.baseUrl, (await createKey(app, { type: "publishable" })).key);
    const stranger = createClient(app.baseUrl, (await createStranger(app)).key);
    const { id } = await addFile({ tags: [tag] }, png, publishable);
    const untagged = await addFile();
    const pending = await announce({ tags: [tag] });
    await send(pending);

    expect((await client.get("/media/media?limit=100", { key: null })).status).toBe(401);
    expect((await client.get(`/media/media?tag=${tag}`, { key: "sk_wrong" })).status).toBe(401);
    expect((await publishable.get("/media/media?limit=1")).json<List>().items[0]?.id).toBe(id);
    expect((await stranger.get("/media/media")).json<List>().items).toEqual([]);
    for (const nobody of [
      await client.post("/media/upload", { contentType: "image/png", size: 1 }, { key: null }),
      await client.request("POST", `/media/upload/${pending.id}/complete`, { key: null }),
      await client.request("DELETE", `/media/media/${id}`, { key: null }),
    ]) {
      expectEnvelope(nobody, 401, "UNAUTHORIZED");
    }
    expectEnvelope(await stranger.request("POST", `/media/upload/${pending.id}/complete`), 404, "NOT_FOUND");
    expectEnvelope(await publishable.request("DELETE", `/media/media/${id}`), 403, "FORBIDDEN");
    expectEnvelope(await stranger.request("DELETE", `/media/media/${id}`), 403, "FORBIDDEN");
    expectEnvelope(await stranger.request("DELETE", `/media/media/${untagged.id}`), 404, "NOT_FOUND");
    expectEnvelope(await client.request("DELETE", `/media/media/${untagged.id}`), 404, "NOT_FOUND");
    expectEnvelope(await client.request("DELETE", `/media/media/${pending.id}`), 404, "NOT_FOUND");
    expect((await client.get(`/media/media?tag=${tag}`)).json<List>().items.map((item) => item.id)).toEqual([id]);
    expect((await client.request("DELETE", `/media/media/${id}`)).status).toBe(200);
  });

  it.each([
    "..%2f..%2fsecrets.json",
    "0123456789abcdef",
    "0123456789ABCDEF",
    "00000000-0000-4000-8000-000000000000",
    "media-objects%2fx",
    "~",
  ])("answer 404 for the made-up id %s everywhere", async (id) => {
    for (const [method, path] of [
      ["GET", `/media/${id}`],
      ["GET", `/media/${id}/metadata`],
      ["POST", `/media/upload/${id}/complete`],
      ["DELETE", `/media/media/${id}`],
    ] as const) {
      expectEnvelope(await client.request(method, path), 404, "NOT_FOUND");
    }
    expect((await fetch(`${app.baseUrl}/media/${id}`, { method: "HEAD" })).status).toBe(404);
  });
});

describe("the gallery", () => {
  it("is paged by its cursors, each file once, while new ones come", async () => {
    const tag = tagOf();
    const old: string[] = [];
    for (let index = 0; index < 5; index += 1) old.unshift((await addFile({ tags: [tag] })).id);
    const seen: string[] = [];
    let cursor: string | null = "";
    while (cursor !== null) {
      const answer: Answer = await client.get(`/media/media?tag=${tag}&limit=2${cursor && `&cursor=${cursor}`}`, { key: null });
      const { items, nextCursor, hasMore } = answer.json<List>();
      expect(hasMore).toBe(nextCursor !== null);
      seen.push(...items.map(({ id }) => id));
      cursor = nextCursor;
      await addFile({ tags: [tag] });
    }

    expect(seen).toEqual(old);
  });

  it.each([
    "limit=0",
    "limit=101",
    "limit=x",
    "limit=1.0",
    "tag=a%20b",
    "tag=",
    `tag=${"t".repeat(129)}`,
    "cursor=",
    "cursor=made-up",
    "limit=1&limit=2",
  ])("is 400 with %s", async (query) => {
    expectEnvelope(await client.get(`/media/media?${query.startsWith("tag") ? query : `tag=a&${query}`}`), 400, "BAD_REQUEST");
  });

  it("takes no cursor but its own, and any limit from 1 to 100", async () => {
    const made = (text: string, list = "media") => Buffer.from(`${list}.${text}`).toString("base64url");
    const id = randomUUID();
    for (const cursor of [
      made(`1.${id}' OR 1=1`),
      made(`99999999999999999.${id}`),
      made(`8640000000000000.${id}`),
      `${made(`1.${id}`)}=`,
      made(`1.${id}`, "usage"),
    ]) {
      expectEnvelope(await client.get(`/media/media?cursor=${cursor}`), 400, "BAD_REQUEST");
    }
    expect((await client.get(`/media/media?cursor=${made(`1.${id}`)}`)).json()).toEqual({ items: [], nextCursor: null, hasMore: false });
    expect((await client.get("/media/media?limit=1")).status).toBe(200);
    expect((await client.get("/media/media?limit=100")).status).toBe(200);
  });
});

describe("the host", () => {
  it("describes itself, answers other methods with 405, and lets any page ask", async () => {
    expect((await client.get("/media/", { key: null })).json()).toMatchObject({ version: "2.0.0" });
    for (const [method, path, allow] of [
      ["PUT", "/media/upload", "POST, OPTIONS"],
      ["GET", "/media/upload/x/complete", "POST, OPTIONS"],
      ["POST", "/media/media", "GET, HEAD, OPTIONS"],
      ["GET", "/media/media/x", "DELETE, OPTIONS"],
      ["POST", "/media/x/metadata", "GET, HEAD, OPTIONS"],
      ["DELETE", "/media/x", "GET, HEAD, OPTIONS"],
    ] as const) {
      const answer = await client.request(method, path);
      expectEnvelope(answer, 405, "METHOD_NOT_ALLOWED");
      expect([path, answer.headers.get("allow")]).toEqual([path, allow]);
    }
    const preflight = { method: "OPTIONS", headers: { Origin: "https://app.example", "Access-Control-Request-Method": "DELETE" } };
    const allowed = await fetch(`${app.baseUrl}/media/media/x`, preflight);
    expect([allowed.status, allowed.headers.get("access-control-allow-origin")]).toEqual([204, "*"]);
    expect(allowed.headers.get("access-control-allow-methods")).toContain("DELETE");
  });

  it("describes files that are known by their content, too", async () => {
    const answer = await fetch(`${app.baseUrl}/media/upload`, {
      method: "POST",
      body: new Uint8Array(png),
      headers: { Authorization: `Bearer ${app.key}` },
    });
    const { id } = (await answer.json()) as { id: string };

    expect((await client.get(`/media/${id}/metadata`, { key: null })).json()).toEqual({
      id,
      contentType: "image/png",
      size: png.length,
      name: null,
      tags: [],
      createdAt: expect.stringMatching(/Z$/),
      expiresAt: expect.stringMatching(/Z$/),
    });
  });

  it("gives pictures of both kinds to the models that are shown their addresses", async () => {
    const { url, id } = await addFile();
    const stored = await fetch(`${app.baseUrl}/media/upload`, {
      method: "POST",
      body: new Uint8Array(png),
      headers: { Authorization: `Bearer ${app.key}` },
    });
    const file = (await stored.json()) as { url: string };
    const edit = (image: string) => client.post("/v1/images/edits", { model: "acme/image", prompt: "At night", image });

    for (const image of [url, file.url]) {
      app.upstream.replyNext(json(imagesObject([png])));
      expect((await edit(image)).status).toBe(200);
    }
    expectEnvelope(await edit(url.replace(id, randomUUID())), 400, "BAD_REQUEST");
    expectEnvelope(await edit(url.replace(id, (await announce()).id)), 400, "BAD_REQUEST");
  });
});

describe("a full account", () => {
  it("may upload only known files, and is refused before a picture is made for it", async () => {
    const mediaQuota = { bytesMax: png.length + 10, filesMax: 10, freeBytesMin: 0 };
    const tight = await createTestApp({ upstream: app.upstream, config: { mediaQuota } });
    const owner = createClient(tight.baseUrl, tight.key);
    const bring = (bytes: Buffer) => owner.post("/media/upload", { data: bytes.toString("base64") });
    try {
      expect((await bring(png)).status).toBe(200);
      expect((await owner.post("/media/upload", { contentType: "image/png", size: 10 })).status).toBe(200);
      const calls = app.upstream.requests.length;

      const announced = await owner.post("/media/upload", { contentType: "image/png", size: 1 });
      const brought = await bring(Buffer.from("a"));
      const drawn = await owner.post("/v1/images/generations", { model: "acme/image", prompt: "A mill", response_format: "url" });

      for (const refused of [announced, brought, drawn]) expectEnvelope(refused, 413, "PAYLOAD_TOO_LARGE");
      expect(app.upstream.requests.length).toBe(calls);
      expect((await bring(png)).json()).toMatchObject({ duplicate: true });
    } finally {
      await tight.close();
    }
  });

  it("is no matter when the disk is: that is 503, both ways", async () => {
    const mediaQuota = { bytesMax: 1e9, filesMax: 10, freeBytesMin: Number.MAX_SAFE_INTEGER };
    const crowded = await createTestApp({ upstream: app.upstream, config: { mediaQuota } });
    const owner = createClient(crowded.baseUrl, crowded.key);
    try {
      for (const body of [{ contentType: "image/png", size: 1 }, { data: "YQ==" }]) {
        const answer = await owner.post("/media/upload", body);
        expectEnvelope(answer, 503, "SERVICE_UNAVAILABLE");
        expect(answer.headers.get("retry-after")).toBe("60");
      }
    } finally {
      await crowded.close();
    }
  });

  it("is the caller, when a model's picture is stored", async () => {
    const made = await picture(63, 65);
    const stranger = await createStranger(app);
    const [before, strangersBefore] = await Promise.all([quotaOf(app.key), quotaOf(stranger.key)]);
    app.upstream.replyNext(json(imagesObject([made])));

    const answer = await client.post("/v1/images/generations", { model: "acme/image", prompt: "A mill", response_format: "url" });

    expect(answer.status).toBe(200);
    const after = await quotaOf(app.key);
    expect([after.usedBytes - before.usedBytes, after.files - before.files]).toEqual([made.length, 1]);
    expect(await quotaOf(stranger.key)).toEqual(strangersBefore);
  });

  async function quotaOf(key: string) {
    const caller = await app.services.apiKeys.authenticate(key);
    return app.services.mediaQuotas.get({ caller } as RequestContext);
  }
});
