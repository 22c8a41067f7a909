/** GET /video/{prompt}: its request to the upstream, its answer, and its cost (docs/spec/video.md). */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import sharp from "sharp";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { booksWith, CREDIT, closeBooks, createPayer, type Payer } from "../e2e/money.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { eventually } from "../support/eventually.js";
import { createFakeVideos, type FakeVideos, type FakeVideosOptions, readClip } from "../support/fake-videos.js";
import { followNextRequest } from "../support/leaving.js";
import { chatCompletion } from "../support/openai-bodies.js";
import { errorReply, handler, json, type Reply, raw } from "../support/upstream-replies.js";
import { createClient, expectEnvelope } from "./client.js";

let app: TestApp;
let payer: Payer;
let clip: Buffer;
let videos: FakeVideos;
let counter = 0;

beforeAll(async () => {
  clip = await readClip(3);
  app = await createTestApp({
    config: { upstreamAllowHosts: ["127.0.0.1"] },
    models: [
      { id: "acme/video-b", modality: "video", upstream: "acme", upstreamModel: "b", title: "b", prices: { completionVideoPrice: "0.5" } },
      {
        id: "acme/video-with-fallback",
        modality: "video",
        upstream: "acme",
        upstreamModel: "a",
        title: "a",
        prices: { completionVideoPrice: "0.2" },
        fallbacks: ["acme/video-b"],
      },
    ],
  });
});
afterAll(() => app.close());
beforeEach(async () => {
  payer = await createPayer(app, { pack: 100n * CREDIT });
  fake();
  counter += 1;
});

function fake(options: Partial<FakeVideosOptions> = {}): FakeVideos {
  videos = createFakeVideos({ clip, ...options });
  app.upstream.replyAlways(videos.reply);
  return videos;
}

/** A prompt that no other test has, so that nothing comes from the cache. */
function path(query = ""): string {
  return `/video/A%20heron%20${counter}${query}`;
}

function get(url: string, key = payer.key): Promise<Response> {
  return fetch(app.baseUrl + url, { headers: { authorization: `Bearer ${key}` } });
}

function ask(url: string, headers: Record<string, string>, method = "GET"): Promise<Response> {
  return fetch(app.baseUrl + url, { method, headers: { authorization: `Bearer ${payer.key}`, ...headers } });
}

function client(key = payer.key) {
  return createClient(app.baseUrl, key);
}

describe("GET /video/{prompt}", () => {
  it("answers the upstream's MP4 and charges for the seconds that it has", async () => {
    const answer = await get(path("?duration=5"));

    expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "video/mp4"]);
    expect(Buffer.from(await answer.arrayBuffer())).toEqual(clip);
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      "x-model-used": "acme/video",
      "x-cost": "0.3",
      "x-held": "0.5",
      "x-usage-output-video-seconds": "3",
      "x-cache": "MISS",
    });
    const { rows, account } = await booksWith(app, payer, 1);
    expect(rows[0]).toMatchObject({
      modality: "video",
      outputVideoMilliseconds: 3_000,
      costNanocredits: 300_000_000n,
      usageSource: "provider",
    });
    expect(account.buckets.pack).toBe(100n * CREDIT - 300_000_000n);
  });

  it("sends the upstream every parameter", async () => {
    await get(
      path("?model=acme/video&duration=8&width=1280&height=720&aspectRatio=16:9&audio=true&seed=7&negative_prompt=rain&safe=false"),
    );
    const square = await get(path("?width=512&quality=high&transparent=1"));

    expect(Object.fromEntries(videos.forms[0] ?? [])).toEqual({
      model: "upstream-video",
      prompt: `A heron ${counter}`,
      seconds: "8",
      size: "1280x720",
    });
    expect(videos.forms[1]?.get("size")).toBe("512x1024");
    expect(square.headers.get("x-warnings")).toMatch(/^quality: .*; transparent: /);
  });

  it("leaves size and length to the upstream when they are not stated, and holds the longest clip", async () => {
    const answer = await get(path());

    expect(Object.fromEntries(videos.forms[0] ?? [])).toEqual({ model: "upstream-video", prompt: `A heron ${counter}` });
    expect([answer.headers.get("x-held"), answer.headers.get("x-cost"), answer.headers.get("x-warnings")]).toEqual(["1", "0.3", null]);
  });

  it("is GET /image with a video model, and the other way round", async () => {
    const image = await sharp({ create: { width: 64, height: 64, channels: 3, background: "teal" } })
      .png()
      .toBuffer();
    const asImage = await get(`/image/x${counter}?model=acme/video&duration=3`);
    app.upstream.replyNext(json({ created: 1, data: [{ b64_json: image.toString("base64") }] }));
    const asVideo = await get(`/video/x${counter}?model=acme/image`);

    expect([asImage.status, asImage.headers.get("content-type"), asImage.headers.get("x-cost")]).toEqual([200, "video/mp4", "0.3"]);
    expect([asVideo.status, asVideo.headers.get("content-type"), asVideo.headers.get("x-cost")]).toEqual([200, "image/jpeg", "0.04"]);
  });

  it("answers the same query from the cache for free, unless it has no-cache", async () => {
    const [first, again, other, fresh] = [
      await get(path("?seed=1")),
      await get(path("?seed=1")),
      await get(path("?seed=2")),
      await get(path("?seed=1&no-cache=true")),
    ];

    const marks = [first, again, other, fresh].map(({ headers }) => [headers.get("x-cache"), headers.get("x-cost")]);
    expect(marks).toEqual([
      ["MISS", "0.3"],
      ["HIT", "0"],
      ["MISS", "0.3"],
      ["MISS", "0.3"],
    ]);
    expect(Buffer.from(await again.arrayBuffer())).toEqual(clip);
    await booksWith(app, payer, 3);
  });

  it("takes 1 and 10 seconds", async () => {
    fake({ clip: await readClip(1) });
    const shortest = await get(path("?duration=1"));
    fake({ clip: await readClip(10) });
    const longest = await get(path("?duration=10"));

    expect([shortest.headers.get("x-cost"), longest.headers.get("x-cost")]).toEqual(["0.1", "1"]);
    expect([shortest.headers.get("x-held"), longest.headers.get("x-held")]).toEqual(["0.1", "1"]);
  });

  it.each([
    ["duration=0", "duration"],
    ["duration=11", "duration"],
    ["duration=2.5", "duration"],
    ["duration=ten", "duration"],
    ["aspectRatio=1:1", "aspectRatio"],
    ["width=1024&height=1024&aspectRatio=16:9", "aspectRatio"],
    ["width=0", "width"],
    ["width=63", "width"],
    ["height=4097", "height"],
    ["width=1024px", "width"],
    ["seed=-2", "seed"],
    ["audio=yes", "audio"],
    ["image=ftp://example.com/a.png", "image"],
    ["image=https://example.com/a.png|http://10.0.0.1/b.png", "image"],
    ["image=data:image/png;base64-AAAA", "image"],
    ["model=acme/chat", "model"],
    ["model=acme/none", "model"],
    ["seconds=3", "seconds"],
  ])("refuses %s", async (query, param) => {
    const requestsBefore = app.upstream.requests.length;

    const answer = await client().get(path(`?${query}`));

    expectEnvelope(answer, 400, "BAD_REQUEST");
    expect(answer.json<{ error: { param: string } }>().error.param?.split(".")[0]).toBe(param);
    expect(app.upstream.requests.length).toBe(requestsBefore);
  });

  it("refuses an empty prompt, a NUL, and an anonymous caller", async () => {
    expectEnvelope(await client().get("/video/%20"), 400, "BAD_REQUEST");
    expectEnvelope(await client().get("/video/a%00b"), 400, "BAD_REQUEST");
    expectEnvelope(await client().get(path(), { key: null }), 401, "UNAUTHORIZED");
  });

  it("refuses a caller who cannot pay for the requested length, and admits one who can", async () => {
    const poor = await createPayer(app, { pack: (3n * CREDIT) / 10n });

    expectEnvelope(await client(poor.key).get(path("?duration=4")), 402, "INSUFFICIENT_BALANCE");
    const answer = await get(path("?duration=3"), poor.key);

    expect([answer.status, answer.headers.get("x-cost")]).toEqual([200, "0.3"]);
    expect((await booksWith(app, poor, 1)).account.buckets.pack).toBe(0n);
  });

  it("answers the ranges that a player requests, of one film that is made and paid for once", async () => {
    const range = (value: string, more: Record<string, string> = {}) => ask(path(), { Range: value, ...more });
    const before = await ask(path(), {}, "HEAD");
    const first = await range("bytes=0-");
    const etag = first.headers.get("etag") ?? "";
    const middle = await range("bytes=100-199", { "If-Range": etag });
    const tail = await range("bytes=-8");
    const other = await range("bytes=0-9", { "If-Range": '"another"' });
    const beyond = await range(`bytes=${clip.length}-`);
    const whole = await ask(path(), {});
    const head = await ask(path(), {}, "HEAD");

    const size = clip.length;
    expect([before.status, before.headers.get("content-length"), before.headers.get("accept-ranges")]).toEqual([200, null, "bytes"]);
    expect(first.headers.get("content-range")).toBe(`bytes 0-${size - 1}/${size}`);
    expect(Buffer.from(await first.arrayBuffer()).equals(clip)).toBe(true);
    expect(middle.headers.get("content-range")).toBe(`bytes 100-199/${size}`);
    expect(Buffer.from(await middle.arrayBuffer()).equals(clip.subarray(100, 200))).toBe(true);
    expect(Buffer.from(await tail.arrayBuffer()).equals(clip.subarray(-8))).toBe(true);
    expect(Buffer.from(await other.arrayBuffer()).equals(clip)).toBe(true);
    expect([beyond.status, beyond.headers.get("content-range")]).toEqual([416, `bytes */${size}`]);
    const marks = [first, middle, tail, other, whole, head].map(({ status, headers }) => [
      status,
      headers.get("x-cache"),
      headers.get("x-cost"),
    ]);
    expect(marks).toEqual([
      [206, "MISS", "0.3"],
      [206, "HIT", "0"],
      [206, "HIT", "0"],
      [200, "HIT", "0"],
      [200, "HIT", "0"],
      [200, "HIT", "0"],
    ]);
    for (const { headers } of [first, middle, whole, head]) {
      expect([headers.get("etag"), headers.get("accept-ranges"), headers.get("content-type")]).toEqual([etag, "bytes", "video/mp4"]);
    }
    expect(head.headers.get("content-length")).toBe(String(size));
    await booksWith(app, payer, 1);
  });

  it("answers whole when a range is requested of an answer that each request makes, and of a new one", async () => {
    const fresh = await ask(path("?no-cache=true"), { Range: "bytes=0-9" });
    const drawn = await ask(path("?seed=-1"), { Range: "bytes=5-" });
    const made = await ask(path("?seed=5"), { Range: "bytes=99999999-", "If-None-Match": "*" });

    const told = await Promise.all(
      [fresh, drawn, made].map(async (answer) => [
        answer.status,
        answer.headers.get("accept-ranges"),
        (await answer.arrayBuffer()).byteLength,
      ]),
    );
    expect(told).toEqual([
      [200, "none", clip.length],
      [200, "none", clip.length],
      [200, "bytes", clip.length],
    ]);
    expect((await ask(path("?seed=-1"), {}, "HEAD")).headers.get("accept-ranges")).toBe("none");
    await booksWith(app, payer, 3);
  });

  it("shares that with GET /image and GET /audio", async () => {
    const image = await sharp({ create: { width: 64, height: 64, channels: 3, background: "teal" } })
      .jpeg()
      .toBuffer();
    const files: [url: string, type: string, file: Buffer, reply: Reply][] = [
      [`/image/z${counter}`, "image/jpeg", image, json({ created: 1, data: [{ b64_json: image.toString("base64") }] })],
      [`/audio/z${counter}`, "audio/mpeg", Buffer.from("0123456789"), raw("0123456789", { headers: { "content-type": "audio/mpeg" } })],
    ];
    for (const [url, type, file, reply] of files) {
      app.upstream.replyNext(reply);
      const [first, second, head] = [
        await ask(url, { Range: "bytes=0-1" }),
        await ask(url, { Range: "bytes=2-" }),
        await ask(url, {}, "HEAD"),
      ];

      expect([first.status, second.status, head.status]).toEqual([206, 206, 200]);
      expect([first.headers.get("x-cache"), second.headers.get("x-cache"), second.headers.get("x-cost")]).toEqual(["MISS", "HIT", "0"]);
      expect(second.headers.get("content-range")).toBe(`bytes 2-${file.length - 1}/${file.length}`);
      expect(Buffer.concat([await first.arrayBuffer(), await second.arrayBuffer()].map((part) => Buffer.from(part))).equals(file)).toBe(
        true,
      );
      expect([head.headers.get("content-length"), head.headers.get("content-type")]).toEqual([String(file.length), type]);
    }
    await booksWith(app, payer, 2);
  });

  it("checks a HEAD and makes nothing", async () => {
    const good = await fetch(app.baseUrl + path("?duration=3"), { method: "HEAD", headers: { authorization: `Bearer ${payer.key}` } });
    const bad = await fetch(app.baseUrl + path("?duration=11"), { method: "HEAD", headers: { authorization: `Bearer ${payer.key}` } });

    expect([good.status, good.headers.get("content-type"), bad.status]).toEqual([200, "video/mp4", 400]);
    expect(videos.forms).toEqual([]);
  });
});

describe("the charged length", () => {
  it("is the upstream's when the file has none, else the requested one", async () => {
    const fragment = await readClip("without-length");
    fake({ clip: fragment, seconds: "4" });
    const stated = await get(path("?duration=6&seed=1"));
    fake({ clip: fragment });
    const asked = await get(path("?duration=6&seed=2"));

    expect([stated.headers.get("x-cost"), asked.headers.get("x-cost")]).toEqual(["0.4", "0.6"]);
    const { rows } = await booksWith(app, payer, 2);
    expect(rows.map((row) => row.usageSource)).toEqual(["provider", "estimated"]);
  });

  it("is the fallback's at the price of the requested model", async () => {
    app.upstream.replyNext(errorReply(503));

    const answer = await get(path("?model=acme/video-with-fallback&duration=3"));

    expect([answer.headers.get("x-fallback"), answer.headers.get("x-cost")]).toEqual(["acme/video-b", "0.6"]);
    expect(videos.forms.map((form) => form.get("model"))).toEqual(["b"]);
  });
});

describe("reference images", () => {
  let images: Server;
  let url: string;

  beforeAll(async () => {
    const png = await sharp({ create: { width: 32, height: 32, channels: 3, background: "red" } })
      .png()
      .toBuffer();
    images = createServer((request, response) => {
      const isPicture = request.url === "/ref.png";
      response.writeHead(200, { "content-type": "image/png" }).end(isPicture ? png : "<html>");
    });
    await new Promise<void>((resolve) => images.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(images.address() as AddressInfo).port}`;
  });
  afterAll(() => new Promise((resolve) => images.close(resolve)));

  it("are fetched and go upstream", async () => {
    const answer = await get(path(`?image=${url}/ref.png`));

    const file = videos.forms[0]?.get("input_reference") as File;
    expect([answer.status, file.type, file.size > 50]).toEqual([200, "image/png", true]);
  });

  it("that are no pictures cost nothing", async () => {
    const answer = await client().get(path(`?image=${url}/page.png`));

    expectEnvelope(answer, 400, "BAD_REQUEST");
    expect(answer.json()).toMatchObject({ error: { param: "image" } });
    expect(videos.forms).toEqual([]);
    expect((await closeBooks(app, payer)).rows).toEqual([]);
  });
});

describe("enhance", () => {
  it("has the default text model rewrite the prompt, which is charged as a chat", async () => {
    const reply = videos.reply;
    app.upstream.replyAlways(
      handler((request, response) => {
        if (reply.kind === "handler" && !request.path.endsWith("/chat/completions")) return reply.handle(request, response);
        const body = JSON.stringify(chatCompletion({ content: "A heron in fog" }));
        response.writeHead(200, { "content-type": "application/json" }).end(body);
      }),
    );

    const answer = await get(path("?enhance=true"));

    expect([answer.status, videos.forms[0]?.get("prompt")]).toEqual([200, "A heron in fog"]);
    const { rows } = await booksWith(app, payer, 2);
    expect(rows.map(({ modality }) => modality).sort()).toEqual(["text", "video"]);
  });
});

describe("D a job with an unknown status", () => {
  it("is polled again, is charged, and its status is logged once and counted", async () => {
    const job = (body: object) => json({ id: "v1", ...body }, { headers: { "openai-poll-after-ms": "20" } });
    const unknown = job({ status: "unknown", progress: 10, error: {} });
    const done = job({ status: "completed", progress: 100, seconds: "1", error: { code: "", message: "" } });
    const film = raw(await readClip(1), { headers: { "content-type": "video/mp4" } });
    const before = app.upstream.requests.length;
    app.upstream.replyNext(job({ status: "queued", progress: 0 }), unknown, unknown, done, errorReply(404), film);

    const answer = await get(path("?duration=1"));

    expect([answer.status, answer.headers.get("x-cost")]).toEqual([200, "0.1"]);
    expect((await booksWith(app, payer, 1)).rows[0]).toMatchObject({ costNanocredits: 100_000_000n });
    expect(app.upstream.requests.slice(before).map(({ method }) => method)).toEqual(["POST", "GET", "GET", "GET", "GET", "GET"]);
    const lines = app.logs.filter(({ event }) => event === "unknown-word");
    expect(lines).toMatchObject([{ kind: "job-status", source: "acme", word: "unknown" }]);
    const metrics = await app.infrastructure.metrics.read();
    expect(metrics).toContain('sluice_unknown_words_total{kind="job-status"} 2');
  });
});

describe("an upstream that fails", () => {
  it.each([
    ["with an error", errorReply(500), 502, "UPSTREAM_ERROR"],
    ["with a refusal", errorReply(400, "No herons."), 400, "BAD_REQUEST"],
    ["with no job", json({ hello: 1 }), 502, "UPSTREAM_ERROR"],
  ])("%s costs nothing", async (_name, reply, status, code) => {
    app.upstream.replyNext(reply);

    expectEnvelope(await client().get(path()), status, code);

    const { rows, account } = await closeBooks(app, payer);
    expect([rows, account.buckets.pack]).toEqual([[], 100n * CREDIT]);
  });

  it("in the middle of its job costs nothing, and a page is not a video", async () => {
    fake({ error: { code: "moderation_blocked", message: "No herons." } });
    expectEnvelope(await client().get(path("?seed=1")), 400, "BAD_REQUEST");
    fake({ clip: Buffer.from("<html>".repeat(100)) });
    expectEnvelope(await client().get(path("?seed=2")), 502, "UPSTREAM_ERROR");
    fake({ clip: clip.subarray(0, 400) });
    expectEnvelope(await client().get(path("?seed=3")), 502, "UPSTREAM_ERROR");

    expect((await closeBooks(app, payer)).rows).toEqual([]);
  });

  it("is finished when the caller leaves, who pays for it", async () => {
    let open: () => void = () => undefined;
    fake({
      gate: new Promise<void>((resolve) => {
        open = resolve;
      }),
    });
    const leaving = new AbortController();
    const caller = followNextRequest(app.baseUrl);
    const answered = fetch(app.baseUrl + path(), { headers: { authorization: `Bearer ${payer.key}` }, signal: leaving.signal });
    await eventually(() => expect(videos.forms.length).toBe(1));
    leaving.abort();

    await expect(answered).rejects.toThrow();
    await caller.hasLeft();
    open();
    expect((await booksWith(app, payer, 1)).rows).toMatchObject([{ status: "cancelled", outputVideoMilliseconds: 3_000 }]);
  });
});
