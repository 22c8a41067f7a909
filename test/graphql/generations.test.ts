/** Generation jobs over GraphQL: started, watched over both transports, fetched, cancelled, listed. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { booksWith, CREDIT, closeBooks, createPayer, databaseOf, type Payer } from "../e2e/money.js";
import {
  CancelGenerationDocument,
  GenerationJobAndUsageDocument,
  GenerationJobByIdDocument,
  GenerationProgressDocument,
  MyJobsDocument,
  type MyJobsQueryVariables,
  StartImageDocument,
  type StartImageInput,
  StartMusicDocument,
  StartVideoDocument,
  type StartVideoInput,
  type StartVideoMutation,
} from "../operations/generated/graphql.js";
import { createKey } from "../rest/client.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { eventually } from "../support/eventually.js";
import { createFakeVideos, type FakeVideos, type FakeVideosOptions, readClip } from "../support/fake-videos.js";
import { errorBody } from "../support/openai-bodies.js";
import { imagesObject, picture } from "../support/pictures.js";
import { json, raw } from "../support/upstream-replies.js";
import { type Answer, codes, execute, ok, post, subscribeSse, type Target, TRANSPORTS, textOf } from "./client.js";

let app: TestApp;
let clip: Buffer;
let payer: Payer;
let me: Target;
let videos: FakeVideos;

beforeAll(async () => {
  clip = await readClip(3);
  app = await createTestApp();
});
afterAll(() => app.close());
beforeEach(async () => {
  payer = await createPayer(app, { pack: 10n * CREDIT });
  me = { ...app, key: payer.key };
  fake();
});

function fake(options: Partial<FakeVideosOptions> = {}): FakeVideos {
  videos = createFakeVideos({ clip, ...options });
  app.upstream.replyAlways(videos.reply);
  return videos;
}

/** An upstream that gets no further before it is let. */
function fakeGated(options: Partial<FakeVideosOptions> = {}) {
  let open: () => void = () => undefined;
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  fake({ ...options, gate });
  return { open };
}

async function start(input: Partial<StartVideoInput> = {}, target = me) {
  const answer = await execute(target, StartVideoDocument, { input: { prompt: "A heron", duration: 4, ...input } });
  return ok(answer).startVideo.job;
}

async function find(id: string, target = me) {
  return ok(await execute(target, GenerationJobByIdDocument, { id })).generationJob;
}

async function ended(id: string, target = me) {
  return eventually(async () => {
    const job = await find(id, target);
    expect(job.status).not.toBe("RUNNING");
    return job;
  });
}

async function cancel(id: string) {
  return ok(await execute(me, CancelGenerationDocument, { id })).cancelGeneration.job;
}

/** Of a job's own key, with its usage record. */
async function charged(id: string) {
  return ok(await execute(me, GenerationJobAndUsageDocument, { id })).generationJob;
}

function fetchContent(url: string, key: string | null = payer.key, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url, { headers: { ...(key && { authorization: `Bearer ${key}` }), ...headers } });
}

const here = (url: string | undefined) => `${app.baseUrl}${new URL(url ?? "").pathname}`;

describe("startVideo", () => {
  it("answers a running job at once, charged when it has been made", async () => {
    const { open } = fakeGated();

    const job = await start();
    const held = await databaseOf(app).prisma.hold.count();
    open();
    await ended(job.restId);
    const done = await charged(job.restId);

    expect(job).toMatchObject({
      modality: "VIDEO",
      modelId: "acme/video",
      model: { restId: "acme/video" },
      usageRecordId: null,
      status: "RUNNING",
      progress: 0,
      result: null,
      receipt: null,
    });
    expect(held).toBe(1);
    expect(done).toMatchObject({
      status: "SUCCEEDED",
      progress: 100,
      error: null,
      result: { contentType: "video/mp4" },
      usageRecordId: job.restId,
      usageRecord: { restId: job.restId, cost: "0.3" },
      receipt: {
        generationId: job.restId,
        cost: "0.3",
        held: "0.4",
        usage: { outputVideoSeconds: 3 },
        usageSource: "PROVIDER",
        status: "OK",
      },
    });
    const { rows, account } = await booksWith(app, payer, 1);
    expect(rows[0]).toMatchObject({ id: job.restId, modality: "video", outputVideoMilliseconds: 3_000, costNanocredits: 300_000_000n });
    expect(account.buckets.pack).toBe(10n * CREDIT - 300_000_000n);
  });

  it("sends the upstream its input", async () => {
    const job = await start({ model: "acme/video", duration: 8, aspectRatio: "PORTRAIT", hasAudio: true, seed: 3, negativePrompt: "rain" });
    await ended(job.restId);

    expect(Object.fromEntries(videos.forms[0] ?? [])).toEqual({
      model: "upstream-video",
      prompt: "A heron",
      seconds: "8",
      size: "720x1280",
    });
  });

  it("gives the file to a key of the account, whole and in ranges", async () => {
    const { restId: id } = await start();
    const { result } = await ended(id);

    const whole = await fetchContent(here(result?.url));
    const part = await fetchContent(here(result?.url), payer.key, { range: "bytes=4-7" });

    expect(result?.url).toMatch(new RegExp(`^http://[^/]+/generations/${id}/content$`));
    expect([whole.status, whole.headers.get("content-type")]).toEqual([200, "video/mp4"]);
    expect(Buffer.from(await whole.arrayBuffer())).toEqual(clip);
    expect([part.status, await part.text()]).toEqual([206, "ftyp"]);
    expect((await fetchContent(here(result?.url), null)).status).toBe(401);
    expect((await fetchContent(here(result?.url), app.key)).status).toBe(404);
    expect((await fetchContent(`${here(result?.url)}?key=${payer.key}`, null)).status).toBe(200);
  });

  const refusals: readonly (readonly [param: string, input: Partial<StartVideoInput>])[] = [
    ["duration", { duration: 0 }],
    ["duration", { duration: 11 }],
    ["aspectRatio", { width: 512, height: 512, aspectRatio: "LANDSCAPE" }],
    ["width", { width: 63 }],
    ["prompt", { prompt: " " }],
    ["prompt", { prompt: "a\0b" }],
    ["images", { images: ["http://169.254.169.254/latest"] }],
    ["images", { images: ["file:///etc/passwd"] }],
    ["model", { model: "acme/chat" }],
    ["seed", { seed: -2 }],
  ];
  it.each(refusals)("refuses a wrong %s at once", async (param, input) => {
    const answer = await execute(me, StartVideoDocument, { input: { prompt: "A heron", ...input } });

    expect(codes(answer)).toEqual(["BAD_REQUEST"]);
    expect(answer.errors?.[0]?.extensions.param?.split(".")[0]).toBe(param);
    expect(videos.forms).toEqual([]);
  });

  it("refuses at once a caller who cannot pay, and an anonymous one", async () => {
    const poor = await createPayer(app, { pack: CREDIT / 10n });

    const broke = await execute({ ...app, key: poor.key }, StartVideoDocument, { input: { prompt: "A heron", duration: 4 } });
    const nobody = await execute({ ...app, key: null }, StartVideoDocument, { input: { prompt: "A heron" } });

    expect([codes(broke), codes(nobody)]).toEqual([["INSUFFICIENT_BALANCE"], ["UNAUTHORIZED"]]);
    expect(await databaseOf(app).prisma.generationJob.count({ where: { accountId: poor.accountId } })).toBe(0);
    await closeBooks(app, poor);
  });

  it("continues after the caller has left", async () => {
    const { open } = fakeGated();
    const leaving = new AbortController();
    const asked = { query: textOf(StartVideoDocument), variables: { input: { prompt: "A heron" } } };
    const answered = await post(me, asked, {}, leaving.signal);
    const { restId: id } = ok((await answered.json()) as Answer<StartVideoMutation>).startVideo.job;
    leaving.abort();
    open();

    expect(await ended(id)).toMatchObject({ status: "SUCCEEDED" });
    await booksWith(app, payer, 1);
  });

  it("reports its failure, and charges nothing", async () => {
    fake({ error: { code: "moderation_blocked", message: "No herons." } });
    const refused = await start();
    const refusal = await ended(refused.restId);
    app.upstream.replyNext(json(errorBody("Later.", { code: "server_overloaded" }), { status: 503, headers: { "retry-after": "9" } }));
    const failure = await ended((await start()).restId);

    expect(refusal).toMatchObject({ status: "FAILED", receipt: null, result: null, error: { code: "BAD_REQUEST" } });
    expect(refusal.error?.message).toContain("No herons.");
    expect(failure).toMatchObject({ status: "FAILED", error: { code: "UPSTREAM_ERROR" } });
    expect(refusal.error?.details).toEqual({ upstreamStatus: 400, upstreamCode: "content_policy_violation" });
    expect(failure.error?.details).toEqual({ upstreamStatus: 503, upstreamCode: "overloaded", retryAfterSeconds: 9 });
    expect((await fetchContent(`${app.baseUrl}/generations/${refused.restId}/content`)).status).toBe(404);
    const { rows, account } = await closeBooks(app, payer);
    expect([rows, account.buckets.pack]).toEqual([[], 10n * CREDIT]);
  });
});

describe.each(TRANSPORTS)("generationProgress over %s", (_name, subscribe) => {
  it("reports the job's present state and then each step to its end", async () => {
    const { open } = fakeGated({ progress: [10, 40, 40, 90] });
    const { restId: id } = await start();
    const live = subscribe(me, GenerationProgressDocument, { id });
    const first = ok(await live.next()).generationProgress;
    open();

    const rest = (await live.rest()).map((answer) => ok(answer).generationProgress);

    expect(first).toMatchObject({ restId: id, status: "RUNNING", progress: 0 });
    const steps = rest.map(({ progress }) => progress);
    expect(steps).toEqual([...steps].sort((a, b) => a - b));
    expect(new Set(steps).size).toBe(steps.length);
    expect(steps.length).toBeGreaterThan(1);
    expect(rest.at(-1)).toMatchObject({ status: "SUCCEEDED", progress: 100, receipt: { cost: "0.3" } });
  });

  it("reports a finished one once, and does not stop one that it leaves", async () => {
    const { open } = fakeGated();
    const { restId: id } = await start();
    const left = subscribe(me, GenerationProgressDocument, { id });
    await left.next();
    left.leave();
    open();
    await ended(id);

    const answers = await subscribe(me, GenerationProgressDocument, { id }).rest();

    expect(answers.map((answer) => ok(answer).generationProgress.status)).toEqual(["SUCCEEDED"]);
  });

  it("answers NOT_FOUND for another account's", async () => {
    const { restId: id } = await start();

    const answers = await subscribe(app, GenerationProgressDocument, { id }).rest();

    expect(answers.flatMap(codes)).toEqual(["NOT_FOUND"]);
    await ended(id);
  });
});

describe("cancelGeneration", () => {
  it("gives the job up, which is finished without its caller and charged", async () => {
    const { open } = fakeGated();
    const { restId: id } = await start();
    await eventually(() => expect(videos.forms.length).toBe(1));

    const cancelled = await cancel(id);

    expect(cancelled).toMatchObject({ status: "CANCELLED", error: null, receipt: null });
    open();
    const { rows } = await booksWith(app, payer, 1);
    expect(rows).toMatchObject([{ id, status: "cancelled", costNanocredits: (3n * CREDIT) / 10n }]);
    await expect.poll(() => ended(id)).toMatchObject({ status: "CANCELLED", result: null, receipt: { cost: "0.3" } });
  });

  it("leaves a finished one as it is", async () => {
    const { restId: id } = await start();
    await ended(id);

    expect(await cancel(id)).toMatchObject({ status: "SUCCEEDED", receipt: { cost: "0.3" } });
  });
});

describe("the permission to see a job", () => {
  it("is its account alone", async () => {
    const { restId: id } = await start();
    await ended(id);

    const asked = [
      (target: Target, id: string) => execute(target, GenerationJobByIdDocument, { id }),
      (target: Target, id: string) => execute(target, CancelGenerationDocument, { id }),
    ];
    for (const ask of asked) {
      expect(codes(await ask(app, id))).toEqual(["NOT_FOUND"]);
      expect(codes(await ask({ ...app, key: null }, id))).toEqual(["UNAUTHORIZED"]);
      expect(codes(await ask(me, "00000000-0000-7000-8000-000000000000"))).toEqual(["NOT_FOUND"]);
      expect(codes(await ask(me, "nonsense"))).toEqual(["NOT_FOUND"]);
    }
  });

  it("is, of publishable keys, the one that it was started with", async () => {
    const own = { ...app, key: (await createKey(app, { type: "publishable" })).key };
    const other = { ...app, key: (await createKey(app, { type: "publishable" })).key };
    const { restId: id } = await start({}, own);
    await ended(id, own);

    expect((await find(id, own)).status).toBe("SUCCEEDED");
    expect(codes(await execute(other, GenerationJobByIdDocument, { id }))).toEqual(["NOT_FOUND"]);
    expect(codes(await execute(own, MyJobsDocument))).toEqual(["FORBIDDEN"]);
    expect((await find(id, app)).status).toBe("SUCCEEDED");
  });

  it("finds those of the account in pages, newest first", async () => {
    const ids: string[] = [];
    for (let job = 0; job < 3; job += 1) ids.unshift((await start()).restId);
    await Promise.all(ids.map((id) => ended(id)));
    const list = async (variables: MyJobsQueryVariables) => {
      const { jobs } = ok(await execute(me, MyJobsDocument, variables)).me;
      return { ids: jobs?.nodes.map(({ restId }) => restId), pageInfo: jobs?.pageInfo };
    };

    const first = await list({ first: 2 });
    const second = await list({ first: 2, after: first.pageInfo?.endCursor ?? null });

    expect([first.ids, second.ids]).toEqual([ids.slice(0, 2), ids.slice(2)]);
    expect([first.pageInfo?.hasNextPage, second.pageInfo?.hasNextPage]).toEqual([true, false]);
  });
});

describe("startMusic", () => {
  /** A second of silence: 16-bit mono at 8 kHz. */
  const wav = Buffer.concat([
    Buffer.from(
      "RIFF\xa4\x3e\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x10\x00data\x80\x3e\x00\x00",
      "latin1",
    ),
    Buffer.alloc(16_000),
  ]);

  it("is a job too, charged by the delivered seconds", async () => {
    app.upstream.replyAlways(raw(wav, { headers: { "content-type": "audio/wav" } }));

    const input = { prompt: "A slow waltz", duration: 5, responseFormat: "WAV" } as const;
    const { job } = ok(await execute(me, StartMusicDocument, { input })).startMusic;
    const done = await ended(job.restId);

    expect(done).toMatchObject({
      modality: "MUSIC",
      status: "SUCCEEDED",
      result: { contentType: "audio/wav" },
      receipt: { cost: "0.01", held: "0.05" },
    });
    expect(Buffer.from(await (await fetchContent(here(done.result?.url))).arrayBuffer())).toEqual(wav);
    expect((await booksWith(app, payer, 1)).rows[0]).toMatchObject({ id: job.restId, modality: "music", outputAudioMilliseconds: 1_000 });
  });

  it("is refused at once when it asks for unavailable options", async () => {
    const answer = await execute(me, StartMusicDocument, { input: { prompt: " ", extra: [1] } });

    expect(codes(answer)).toEqual(["BAD_REQUEST"]);
  });
});

describe("startImage", () => {
  it("is a job too, whose picture is served with its result", async () => {
    const png = await picture();
    app.upstream.replyAlways(json(imagesObject([png])));
    const images = [`data:image/png;base64,${png.toString("base64")}`];

    const input = { prompt: "A fox", images, outputFormat: "JPEG" } as const;
    const { job } = ok(await execute(me, StartImageDocument, { input })).startImage;
    await ended(job.id);
    const done = await charged(job.id);
    const steps = await subscribeSse(me, GenerationProgressDocument, { id: job.id }).rest();

    expect(done).toMatchObject({
      ...{ restId: job.restId, modality: "IMAGE", status: "SUCCEEDED", progress: 100, result: { contentType: "image/jpeg" } },
      ...{ receipt: { cost: "0.04" }, usageRecord: { cost: "0.04" } },
    });
    expect(steps.map((step) => ok(step).generationProgress.status)).toEqual(["SUCCEEDED"]);
    const fetched = await fetchContent(here(done.result?.url));
    expect([fetched.status, fetched.headers.get("content-type")]).toEqual([200, "image/jpeg"]);
    expect((await booksWith(app, payer, 1)).rows[0]).toMatchObject({ id: job.restId, modality: "image" });
    // The picture that came along is not written down.
    const row = await databaseOf(app).prisma.generationJob.findUnique({ where: { id: job.restId } });
    expect(row?.request).toMatchObject({ input: { prompt: "A fox", image: [] } });
    expect((await fetch(`${app.baseUrl}/v1/videos/${job.restId}`, { headers: { authorization: `Bearer ${payer.key}` } })).status).toBe(404);
  });

  it("makes one picture, and refuses other fields in its own words", async () => {
    const refused = async (input: Partial<StartImageInput>) => {
      const { errors } = await execute(me, StartImageDocument, { input: { prompt: "A fox", ...input } });
      return errors?.map(({ extensions: { code, param } }) => [code, param]);
    };

    expect(await refused({ extra: { n: 2 } })).toEqual([["BAD_REQUEST", "extra.n"]]);
    expect(await refused({ extra: { response_format: "url" } })).toEqual([["BAD_REQUEST", "extra.response_format"]]);
    expect(await refused({ isTransparent: true, outputFormat: "JPEG" })).toEqual([["BAD_REQUEST", "outputFormat"]]);
    expect(await refused({ images: ["ftp://a.example/"] })).toEqual([["BAD_REQUEST", "images"]]);
    expect(app.upstream.requests.length).toBe(before);
  });

  let before = 0;
  beforeEach(() => {
    before = app.upstream.requests.length;
  });
});

describe("an Idempotency-Key", () => {
  it("answers the same job again, started and charged once", async () => {
    const send = async () => {
      const variables = { input: { prompt: "A heron", duration: 4 } };
      const asking = { ...me, headers: { "idempotency-key": `job-of-${payer.accountId}` } };
      return ok(await execute(asking, StartVideoDocument, variables)).startVideo.job;
    };

    const [first, again] = [await send(), await send()];
    await ended(first.restId);

    expect(again.restId).toBe(first.restId);
    expect(videos.forms.length).toBe(1);
    await booksWith(app, payer, 1);
  });
});
