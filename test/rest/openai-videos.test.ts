/** POST /v1/videos and what follows, with OpenAI's own client. */
import OpenAI, { toFile } from "openai";
import sharp from "sharp";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { booksWith, CREDIT, closeBooks, createPayer, type Payer } from "../e2e/money.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { eventually } from "../support/eventually.js";
import { createFakeVideos, type FakeVideos, type FakeVideosOptions, readClip } from "../support/fake-videos.js";
import { createClient, expectEnvelope } from "./client.js";

let app: TestApp;
let clip: Buffer;
let payer: Payer;
let openai: OpenAI;
let videos: FakeVideos;

beforeAll(async () => {
  clip = await readClip(3);
  app = await createTestApp();
});
afterAll(() => app.close());
beforeEach(async () => {
  payer = await createPayer(app, { pack: 10n * CREDIT });
  openai = new OpenAI({ apiKey: payer.key, baseURL: `${app.baseUrl}/v1`, maxRetries: 0 });
  fake();
});

function fake(options: Partial<FakeVideosOptions> = {}): void {
  videos = createFakeVideos({ clip, ...options });
  app.upstream.replyAlways(videos.reply);
}

function ended(id: string) {
  return eventually(async () => {
    const video = await openai.videos.retrieve(id);
    expect(video.status).not.toBe("in_progress");
    return video;
  });
}

describe("the official client", () => {
  it("creates a video, follows it and downloads it", async () => {
    const video = await openai.videos.create({ prompt: "A heron", model: "acme/video", seconds: "4", size: "1280x720" });
    const done = await ended(video.id);
    const content = await openai.videos.downloadContent(video.id);

    expect(video).toMatchObject({ object: "video", model: "acme/video", prompt: "A heron", seconds: "4", size: "1280x720", error: null });
    expect(done).toMatchObject({ id: video.id, status: "completed", progress: 100, completed_at: expect.any(Number) });
    expect(content.headers.get("content-type")).toBe("video/mp4");
    expect(Buffer.from(await content.arrayBuffer())).toEqual(clip);
    expect(Object.fromEntries(videos.forms[0] ?? [])).toEqual({
      model: "upstream-video",
      prompt: "A heron",
      seconds: "4",
      size: "1280x720",
    });
    expect((await booksWith(app, payer, 1)).rows[0]).toMatchObject({ id: video.id, costNanocredits: 300_000_000n });
  });

  it("sends a reference image", async () => {
    const png = await sharp({ create: { width: 32, height: 32, channels: 3, background: "red" } })
      .png()
      .toBuffer();

    const { id } = await openai.videos.create({ prompt: "A heron", input_reference: await toFile(png, "ref.png", { type: "image/png" }) });
    await ended(id);

    const file = videos.forms[0]?.get("input_reference") as File;
    expect([file.type, Buffer.from(await file.arrayBuffer())]).toEqual(["image/png", png]);
  });

  it("reads why a video failed, and pays nothing", async () => {
    fake({ error: { code: "moderation_blocked", message: "No herons." } });

    const { id } = await openai.videos.create({ prompt: "A heron" });

    expect(await ended(id)).toMatchObject({
      status: "failed",
      error: {
        code: "BAD_REQUEST",
        message: expect.stringContaining("No herons."),
        details: { upstreamStatus: 400, upstreamCode: "content_policy_violation" },
      },
    });
    expect((await closeBooks(app, payer)).rows).toEqual([]);
  });

  it("deletes a finished one, and gives a running one up by deleting it", async () => {
    const finished = await openai.videos.create({ prompt: "A heron" });
    await ended(finished.id);
    let open: () => void = () => undefined;
    fake({
      gate: new Promise<void>((resolve) => {
        open = resolve;
      }),
    });
    const running = await openai.videos.create({ prompt: "A heron" });
    await eventually(() => expect(videos.forms.length).toBe(1));

    expect(await openai.videos.delete(finished.id)).toEqual({ id: finished.id, object: "video.deleted", deleted: true });
    expect(await openai.videos.delete(running.id)).toMatchObject({ deleted: true });

    await expect(openai.videos.retrieve(finished.id)).rejects.toMatchObject({ status: 404 });
    await expect(openai.videos.downloadContent(finished.id)).rejects.toMatchObject({ status: 404 });
    await expect(openai.videos.retrieve(running.id)).rejects.toMatchObject({ status: 404 });
    open();
    expect((await booksWith(app, payer, 2)).rows.map(({ status }) => status)).toEqual(["ok", "cancelled"]);
  });
});

describe("POST /v1/videos", () => {
  const post = (body: unknown, key: string | null = payer.key) => createClient(app.baseUrl, null).post("/v1/videos", body, { key });

  it("takes JSON, with unknown fields for the upstream", async () => {
    const { id } = (await post({ prompt: "A heron", seconds: 10, aspectRatio: "9:16", style: "noir" })).json<{ id: string }>();
    await ended(id);

    const form = Object.fromEntries(videos.forms[0] ?? []);
    expect(form).toEqual({ model: "upstream-video", prompt: "A heron", seconds: "10", size: "720x1280", style: "noir" });
  });

  it.each([
    ["seconds", { seconds: "0" }],
    ["seconds", { seconds: "11" }],
    ["seconds", { seconds: 2.5 }],
    ["size", { size: "1280" }],
    ["size", { size: "0x0" }],
    ["model", { model: "acme/image" }],
    ["image", { input_reference: { image_url: "http://127.0.0.1/a.png" } }],
  ])("refuses a wrong %s", async (param, body) => {
    const answer = await post({ prompt: "A heron", ...body });

    expectEnvelope(answer, 400, "BAD_REQUEST");
    expect(answer.json<{ error: { param: string } }>().error.param.split(".")[0]).toBe(param);
    expect(videos.forms).toEqual([]);
  });

  it("refuses a file that is no picture, another account, an anonymous caller, and a thumbnail", async () => {
    const text = await toFile(Buffer.from("hello"), "a.png", { type: "image/png" });
    await expect(openai.videos.create({ prompt: "A heron", input_reference: text })).rejects.toMatchObject({
      status: 400,
      param: "input_reference",
    });
    const { id } = await openai.videos.create({ prompt: "A heron" });
    await ended(id);

    const other = createClient(app.baseUrl, app.key);
    expectEnvelope(await other.get(`/v1/videos/${id}`), 404, "NOT_FOUND");
    expectEnvelope(await other.request("DELETE", `/v1/videos/${id}`), 404, "NOT_FOUND");
    expectEnvelope(await post({ prompt: "A heron" }, null), 401, "UNAUTHORIZED");
    await expect(openai.videos.downloadContent(id, { variant: "thumbnail" })).rejects.toMatchObject({ status: 400, param: "variant" });
  });
});
