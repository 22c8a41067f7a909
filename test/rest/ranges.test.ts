/** Ranges of every file that the gateway answers: one table for all places that keep bytes (RFC 9110, 14). */
import { afterAll, beforeAll, expect, it } from "vitest";
import { booksWith, CREDIT, createPayer, type Payer } from "../e2e/money.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { eventually } from "../support/eventually.js";
import { createFakeVideos, readClip } from "../support/fake-videos.js";
import { raw } from "../support/upstream-replies.js";
import { createClient } from "./client.js";

interface Place {
  readonly url: string;
  readonly bytes: Buffer;
  readonly etag: string;
  readonly answersHead: boolean;
}

const TEXT = Buffer.from("123456789");

let app: TestApp;
let payer: Payer;
const places = new Map<string, Place>();

beforeAll(async () => {
  app = await createTestApp();
  payer = await createPayer(app, { pack: 10n * CREDIT });
  const clip = await readClip(1);
  const job = await startVideo(clip);
  await addPlace("an uploaded file", await upload(), TEXT);
  await addPlace("a directly uploaded file", await uploadDirectly(), TEXT, false);
  await addPlace("a video's content", `${app.baseUrl}/v1/videos/${job}/content`, clip);
  await addPlace("a generation's content", `${app.baseUrl}/generations/${job}/content`, clip);
  app.upstream.replyAlways(raw(TEXT, { headers: { "content-type": "audio/mpeg" } }));
  await addPlace("a generated answer", `${app.baseUrl}/audio/nine`, TEXT);
});
afterAll(() => app.close());

function get(url: string, headers: Record<string, string> = {}, method = "GET"): Promise<Response> {
  const { origin } = new URL(app.baseUrl);
  const authorization = url.startsWith(`${origin}/media/blobs`) ? {} : { authorization: `Bearer ${payer.key}` };
  return fetch(url, { method, headers: { ...authorization, ...headers } });
}

async function addPlace(name: string, url: string, bytes: Buffer, answersHead = true): Promise<void> {
  const whole = await get(url);
  expect([whole.status, Buffer.from(await whole.arrayBuffer()).equals(bytes)]).toEqual([200, true]);
  places.set(name, { url, bytes, etag: whole.headers.get("etag") ?? "", answersHead });
}

async function startVideo(clip: Buffer): Promise<string> {
  app.upstream.replyAlways(createFakeVideos({ clip }).reply);
  const client = createClient(app.baseUrl, payer.key);
  const { id } = (await client.post("/v1/videos", { prompt: "A heron", model: "acme/video" })).json<{ id: string }>();
  await eventually(async () => expect((await client.get(`/v1/videos/${id}`)).json<{ status: string }>().status).toBe("completed"));
  return id;
}

async function upload(): Promise<string> {
  const headers = { authorization: `Bearer ${payer.key}`, "content-type": "text/plain" };
  const answer = await fetch(`${app.baseUrl}/media/upload`, { method: "POST", headers, body: new Uint8Array(TEXT) });
  return reachable(((await answer.json()) as { url: string }).url);
}

/** The address that the file's own leads to: of the gateway's own disk. */
async function uploadDirectly(): Promise<string> {
  const client = createClient(app.baseUrl, payer.key);
  const announced = await client.post("/media/upload", { contentType: "text/plain", size: TEXT.length });
  const { id, uploadUrl, headers } = announced.json<{ id: string; uploadUrl: string; headers: Record<string, string> }>();
  await fetch(reachable(uploadUrl), { method: "PUT", headers, body: new Uint8Array(TEXT) });
  await client.request("POST", `/media/upload/${id}/complete`);
  const redirect = await fetch(`${app.baseUrl}/media/${id}`, { redirect: "manual" });
  return reachable(redirect.headers.get("location") ?? "");
}

/** As the app's addresses name this machine by a name that may mean another address family. */
function reachable(url: string): string {
  return url.replace("//localhost", "//127.0.0.1");
}

/** Of a file of `n` bytes: the header, and the first and last byte that it gets; null is the whole, "none" 416. */
const EDGES: readonly [name: string, header: (n: number) => string, selected: (n: number) => [number, number] | "none" | null][] = [
  ["the first byte", () => "bytes=0-0", () => [0, 0]],
  ["an open end", () => "bytes=1-", (n) => [1, n - 1]],
  ["the last byte", (n) => `bytes=${n - 1}-`, (n) => [n - 1, n - 1]],
  ["an end past the last byte", (n) => `bytes=2-${n + 5}`, (n) => [2, n - 1]],
  ["a suffix", () => "bytes=-4", (n) => [n - 4, n - 1]],
  ["a suffix of the file's length", (n) => `bytes=-${n}`, (n) => [0, n - 1]],
  ["a suffix longer than the file", () => "bytes=-99999", (n) => (n > 99_999 ? [n - 99_999, n - 1] : [0, n - 1])],
  ["a suffix longer than any file", () => "bytes=-99999999999999999999", (n) => [0, n - 1]],
  ["a list of which one is satisfiable", (n) => `bytes=0-1, ${n}-`, () => [0, 1]],
  ["a start at the end", (n) => `bytes=${n}-`, () => "none"],
  ["a start past the end", (n) => `bytes=${n + 100}-${n + 200}`, () => "none"],
  ["an empty suffix", () => "bytes=-0", () => "none"],
  ["several ranges", () => "bytes=0-1, 4-5", () => null],
  ["another unit", () => "lines=0-1", () => null],
  ["an end before its start", () => "bytes=5-4", () => null],
  ["a malformed range", () => "bytes=a-b", () => null],
];

const NAMES = ["an uploaded file", "a directly uploaded file", "a video's content", "a generation's content", "a generated answer"];

it.each(NAMES)("%s is answered by every edge of a range as HTTP says", async (name) => {
  const { url, bytes } = places.get(name) as Place;
  const size = bytes.length;
  for (const [edge, header, selected] of EDGES) {
    const answer = await get(url, { range: header(size) });
    const expected = selected(size);
    const received = Buffer.from(await answer.arrayBuffer());

    const head = [answer.status, answer.headers.get("content-range")];
    if (expected === "none") {
      expect(head, edge).toEqual([416, `bytes */${size}`]);
      expect(JSON.parse(received.toString()), edge).toMatchObject({ status: 416, error: { param: "Range" } });
      continue;
    }
    const [first, last] = expected ?? [0, size - 1];
    expect(head, edge).toEqual(expected ? [206, `bytes ${first}-${last}/${size}`] : [200, null]);
    expect(received.equals(bytes.subarray(first, last + 1)), edge).toBe(true);
    expect([answer.headers.get("content-length"), answer.headers.get("accept-ranges")], edge).toEqual([String(last - first + 1), "bytes"]);
  }
});

it.each(NAMES)("%s is answered whole under a condition that does not hold", async (name) => {
  const { url, bytes, etag } = places.get(name) as Place;
  const conditions = { [etag]: 206, '"other"': 200, [`W/${etag}`]: 200, [new Date().toUTCString()]: 200 };
  for (const [condition, status] of Object.entries(conditions)) {
    const answer = await get(url, { range: "bytes=0-0", "if-range": condition });
    const beyond = await get(url, { range: `bytes=${bytes.length}-`, "if-range": condition });
    await Promise.all([answer.arrayBuffer(), beyond.arrayBuffer()]);

    expect([answer.status, beyond.status], condition).toEqual([status, status === 206 ? 416 : 200]);
  }
});

it("charges a file once, however many ranges of it are read", async () => {
  const { rows } = await booksWith(app, payer, 2);

  expect(rows.map(({ status }) => status)).toEqual(["ok", "ok"]);
});

it.each(NAMES)("%s knows no range of a HEAD", async (name) => {
  const { url, bytes, answersHead } = places.get(name) as Place;
  if (!answersHead) return;
  for (const range of ["bytes=0-0", `bytes=${bytes.length}-`]) {
    const { status, headers } = await get(url, { range }, "HEAD");

    expect([status, headers.get("content-range"), headers.get("content-length")]).toEqual([200, null, String(bytes.length)]);
  }
});
