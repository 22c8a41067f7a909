/** Generation jobs across failures of their process: concluded once, charged at most once, never left running. */

import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pino } from "pino";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import type { RequestContext } from "../../../../src/context.js";
import { type AppError, serviceUnavailable } from "../../../../src/errors.js";
import { systemClock } from "../../../../src/lib/clock.js";
import { createId } from "../../../../src/lib/ids.js";
import type { LateFailure } from "../../../../src/lib/request-note.js";
import { JOBS_PER_ACCOUNT_MAX, JOBS_PER_PROCESS_MAX } from "../../../../src/limits.js";
import { type GenerationJob, progressOf } from "../../../../src/services/generation/jobs/job.js";
import { JobRows } from "../../../../src/services/generation/jobs/rows.js";
import { JobRecovery } from "../../../../src/services/generation/jobs/runner.js";
import { type ImageJobInput, imageGenerationInput } from "../../../../src/services/generation/media/images-input.js";
import { musicInput } from "../../../../src/services/generation/media/speech.js";
import type { VideoInput } from "../../../../src/services/generation/media/videos-input.js";
import type { BlobStore } from "../../../../src/store/blobs.js";
import { booksWith, CREDIT, createPayer, databaseOf, type Payer, poolOf } from "../../../e2e/money.js";
import { execute, ok } from "../../../graphql/client.js";
import { StartVideoDocument } from "../../../operations/generated/graphql.js";
import { createTestApp, OWNER_KEY, type TestApp, testModels } from "../../../support/app.js";
import { SERVER_PROGRAM } from "../../../support/compile.js";
import { createEmptyDir, createTestDataDir, silentLog } from "../../../support/database.js";
import { eventually } from "../../../support/eventually.js";
import { startFakeUpstream } from "../../../support/fake-upstream.js";
import { createFakeVideos, type FakeVideos, type FakeVideosOptions, readClip } from "../../../support/fake-videos.js";
import { findBrokenInvariants } from "../../../support/invariants.js";
import { imagesObject, picture } from "../../../support/pictures.js";
import { isPostgresInstalled, POSTGRES_ABSENT } from "../../../support/postgres.js";
import { recording } from "../../../support/recordings.js";
import { createPostgresDatabase } from "../../../support/suite-server.js";
import { handler } from "../../../support/upstream-replies.js";

const HERON: VideoInput = { prompt: "A heron", duration: 4 };

let app: TestApp;
let clip: Buffer;
let png: Buffer;
let payer: Payer;

beforeAll(async () => {
  clip = await readClip(3);
  png = await picture();
  app = await createTestApp();
});
afterAll(() => app.close());
beforeEach(async () => {
  payer = await createPayer(app, { pack: 100n * CREDIT });
  fake(app);
});

function fake({ upstream }: Pick<TestApp, "upstream">, options: Partial<FakeVideosOptions> = {}): FakeVideos {
  const made = createFakeVideos({ clip, ...options });
  upstream.replyAlways(made.reply);
  return made;
}

function gated() {
  let open: () => void = () => undefined;
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { gate, open };
}

async function contextOf({ services }: TestApp, key: string, signal = new AbortController().signal): Promise<RequestContext> {
  const caller = await services.apiKeys.authenticate(key);
  return { caller, requestId: "test", clientAddress: "127.0.0.1", signal, log: pino({ level: "silent" }) };
}

async function start(target = app, key = payer.key, input: VideoInput = HERON): Promise<GenerationJob> {
  return target.services.videos.start(await contextOf(target, key), input);
}

interface Kind {
  readonly costNanocredits: bigint;
  start(): Promise<GenerationJob>;
  /** How the upstream answers from now on: at once, or when the gate opens. */
  answer(gate?: Promise<void>): void;
}

const VIDEO: Kind = { costNanocredits: 300_000_000n, start: () => start(), answer: (gate) => void fake(app, gate && { gate }) };

const PICTURE: Kind = {
  costNanocredits: 40_000_000n,
  start: async () => {
    const input = imageGenerationInput.parse({ prompt: "A heron" }) as ImageJobInput;
    return app.services.images.start(await contextOf(app, payer.key), input);
  },
  answer: (gate) => {
    const body = JSON.stringify(imagesObject([png]));
    const reply = handler(async (_request, response) => {
      await gate;
      response.writeHead(200, { "content-type": "application/json" }).end(body);
    });
    app.upstream.replyAlways(reply);
  },
};

const MUSIC: Kind = {
  costNanocredits: 10_000_000n,
  start: async () => app.services.music.start(await contextOf(app, payer.key), musicInput.parse({ prompt: "A waltz", duration: 2 })),
  answer: (gate) => {
    const reply = handler(async (_request, response) => {
      await gate;
      response.writeHead(200, { "content-type": "audio/wav" }).end(recording(1));
    });
    app.upstream.replyAlways(reply);
  },
};

const KINDS: readonly (readonly [what: string, kind: Kind])[] = [
  ["a video", VIDEO],
  ["a picture", PICTURE],
  ["a piece of music", MUSIC],
];

async function ended(id: string, target = app, key = payer.key): Promise<GenerationJob> {
  const ctx = await contextOf(target, key);
  return eventually(async () => {
    const job = await target.services.jobs.get(ctx, id);
    expect(job.status).not.toBe("running");
    return job;
  });
}

async function codeOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => "none",
    (error: AppError) => error.code,
  );
}

function blobsOf({ infrastructure }: TestApp): BlobStore {
  return infrastructure.blobs;
}

const failures: LateFailure[] = [];

/** As another process does that works on none of these jobs. */
async function sweepElsewhere(): Promise<void> {
  const { database, blobs, events } = app.infrastructure;
  const processId = randomUUID();
  const rows = new JobRows(database, systemClock, processId);
  await new JobRecovery({
    database,
    rows,
    blobs,
    events,
    processId,
    clock: systemClock,
    log: silentLog,
    running: () => [],
    failures: { failedLate: (failure) => void failures.push(failure) },
  }).sweep();
}

/** As if its process had been killed before it wrote down how the job ended. */
async function abandon(id: string): Promise<void> {
  await poolOf(app).query(
    `UPDATE generation_job SET status = 'running', process_id = gen_random_uuid(), result_key = NULL, result_content_type = NULL,
       receipt = NULL, error_code = NULL, error_message = NULL, finished_at = NULL WHERE id = $1`,
    [id],
  );
}

describe.each(KINDS)("the recovery of %s", (_what, { costNanocredits, start, answer }) => {
  beforeEach(() => answer());

  it("marks a charged job as succeeded, and charges nothing again", async () => {
    const before = await ended((await start()).id);
    await abandon(before.id);

    await app.services.jobs.sweep();

    const after = await app.services.jobs.get(await contextOf(app, payer.key), before.id);
    expect(after).toMatchObject({ status: "succeeded", progress: 100, result: before.result });
    expect(after.receipt).toMatchObject({ generationId: before.id, costNanocredits, usage: before.receipt?.usage, meterSource: "pack" });
    await booksWith(app, payer, 1);
  });

  it("marks an uncharged job as failed, and deletes its result", async () => {
    const { id } = await ended((await start()).id);
    await abandon(id);
    const lost = createId();
    await poolOf(app).query("UPDATE generation_job SET id = $2 WHERE id = $1", [id, lost]);
    const blobs = blobsOf(app);
    await blobs.put(`generations/${lost}`, clip);

    failures.length = 0;
    await sweepElsewhere();

    const job = await app.services.jobs.get(await contextOf(app, payer.key), lost);
    expect(failures).toMatchObject([
      { generationId: lost, code: "SERVICE_UNAVAILABLE", model: job.model, caller: { apiKeyId: job.apiKeyId } },
    ]);
    expect(job).toMatchObject({ status: "failed", error: { code: "SERVICE_UNAVAILABLE" }, result: null, receipt: null });
    expect(await blobs.head(`generations/${lost}`)).toBeNull();
  });

  it("leaves alone the jobs of this process, and jobs with a hold", async () => {
    const { gate, open } = gated();
    answer(gate);
    const { id } = await start();
    await app.services.jobs.sweep();
    const own = await app.services.jobs.get(await contextOf(app, payer.key), id);
    await poolOf(app).query("UPDATE generation_job SET process_id = gen_random_uuid() WHERE id = $1", [id]);
    await sweepElsewhere();
    const held = await app.services.jobs.get(await contextOf(app, payer.key), id);
    open();

    expect([own.status, held.status]).toEqual(["running", "running"]);
    expect((await ended(id)).status).toBe("succeeded");
    await booksWith(app, payer, 1);
  });
});

describe("the recovery", () => {
  it("deletes a job and its result when its time is up", async () => {
    const { id } = await ended((await start()).id);
    await poolOf(app).query(
      "UPDATE generation_job SET created_at = created_at - interval '2 days', expires_at = now() - interval '1 s' WHERE id = $1",
      [id],
    );

    expect(await codeOf(app.services.jobs.get(await contextOf(app, payer.key), id))).toBe("NOT_FOUND");
    await app.services.jobs.sweep();

    expect(await databaseOf(app).prisma.generationJob.count({ where: { id } })).toBe(0);
    expect(await blobsOf(app).head(`generations/${id}`)).toBeNull();
    await booksWith(app, payer, 1);
  });
});

describe.each(KINDS)("%s that is cancelled", (_what, { costNanocredits, start, answer }) => {
  it("after its upstream has begun is finished and charged, and keeps no answer", async () => {
    const { gate, open } = gated();
    const asked = app.upstream.requests.length;
    answer(gate);
    const { id } = await start();
    await expect.poll(() => app.upstream.requests.length).toBeGreaterThan(asked);
    // As another process does that this one has not heard yet.
    await poolOf(app).query("UPDATE generation_job SET status = 'cancelled', finished_at = now() WHERE id = $1", [id]);
    open();

    await eventually(async () => expect((await app.services.jobs.get(await contextOf(app, payer.key), id)).receipt).not.toBeNull());
    expect((await ended(id)).status).toBe("cancelled");
    expect(await blobsOf(app).head(`generations/${id}`)).toBeNull();
    expect((await booksWith(app, payer, 1)).rows).toMatchObject([{ id, status: "cancelled", costNanocredits }]);
    const told = await app.services.jobs.get(await contextOf(app, payer.key), id);
    expect(told).toMatchObject({ status: "cancelled", result: null, receipt: { costNanocredits } });
  });

  it("by its caller ends at once, and its upstream's answer is charged when it comes", async () => {
    const { gate, open } = gated();
    const asked = app.upstream.requests.length;
    answer(gate);
    const { id } = await start();
    await expect.poll(() => app.upstream.requests.length).toBeGreaterThan(asked);

    const cancelled = await app.services.jobs.cancel(await contextOf(app, payer.key), id);
    open();

    expect(cancelled).toMatchObject({ status: "cancelled", result: null, receipt: null });
    expect((await booksWith(app, payer, 1)).rows).toMatchObject([{ id, status: "cancelled", costNanocredits }]);
    expect(await blobsOf(app).head(`generations/${id}`)).toBeNull();
  });
});

describe("a finished answer", () => {
  it("waits for a file store that is briefly away, and is charged when it is stored", async () => {
    const { blobs } = app.infrastructure;
    const away = serviceUnavailable("The file store does not answer.");
    const put = vi.spyOn(blobs, "put").mockRejectedValueOnce(away);
    onTestFinished(() => put.mockRestore());

    const { id } = await start();

    expect((await booksWith(app, payer, 1)).rows[0]).toMatchObject({ id, costNanocredits: 300_000_000n, status: "ok" });
    expect(await ended(id)).toMatchObject({ status: "succeeded" });
    expect(await blobs.read(`generations/${id}`)).toEqual(clip);
    expect(put).toHaveBeenCalledTimes(2);
  });
});

describe("limits", () => {
  it(`run ${JOBS_PER_ACCOUNT_MAX} jobs of an account at once and ${JOBS_PER_PROCESS_MAX} of a process, and hold nothing for one more`, async () => {
    const { gate, open } = gated();
    fake(app, { gate });
    const payers = await Promise.all(
      Array.from({ length: JOBS_PER_PROCESS_MAX / JOBS_PER_ACCOUNT_MAX }, () => createPayer(app, { pack: 10n * CREDIT })),
    );
    const [first = payer, ...others] = payers;
    const fill = ({ key }: Payer, count: number) => Promise.allSettled(Array.from({ length: count }, () => start(app, key)));

    const refusalsOf = (results: readonly PromiseSettledResult<unknown>[]) =>
      results.flatMap((result) => (result.status === "rejected" ? [(result.reason as AppError).code] : []));
    const ofFirst = await fill(first, JOBS_PER_ACCOUNT_MAX + 2);
    const held = await databaseOf(app).prisma.hold.count({ where: { accountId: first.accountId } });
    for (const other of others) expect(refusalsOf(await fill(other, JOBS_PER_ACCOUNT_MAX))).toEqual([]);
    const ofProcess = await codeOf(start());

    expect(refusalsOf(ofFirst)).toEqual(["RATE_LIMITED", "RATE_LIMITED"]);
    expect([held, ofProcess]).toEqual([JOBS_PER_ACCOUNT_MAX, "SERVICE_UNAVAILABLE"]);
    const jobs = await databaseOf(app).prisma.generationJob.findMany({ where: { status: "running" } });
    expect(jobs.length).toBe(JOBS_PER_PROCESS_MAX);
    for (const { key } of others) {
      const ctx = await contextOf(app, key);
      const { items } = await app.services.jobs.listSelected(ctx, { first: JOBS_PER_ACCOUNT_MAX }, {});
      await Promise.all(items.map(({ id }) => app.services.jobs.cancel(ctx, id)));
    }
    open();
    expect((await booksWith(app, first, JOBS_PER_ACCOUNT_MAX)).account.buckets.pack).toBe(7n * CREDIT);
  });
});

describe("a gateway that stops", () => {
  it("waits for a job that is nearly done", async () => {
    const second = await createTestApp({ isEmbedded: true });
    const { gate, open } = gated();
    fake(second, { gate });
    const { id } = await start(second, OWNER_KEY);
    setTimeout(open, 200);
    const { dataDir, upstream } = second;
    await second.app.close();

    const again = await createTestApp({ dataDir, upstream });
    onTestFinished(async () => {
      await again.close();
      await second.close();
    });

    expect(await again.services.jobs.get(await contextOf(again, OWNER_KEY), id)).toMatchObject({ status: "succeeded" });
    expect(await findBrokenInvariants(poolOf(again), { isIdle: true })).toEqual({});
  });

  it("is killed in the middle of a job: the next process reports the job as failed, and charges nothing", async () => {
    const upstream = await startFakeUpstream();
    const { gate, open } = gated();
    fake({ upstream }, { gate });
    const { dataDir, remove } = await createTestDataDir();
    const acme = { id: "acme", wireFormat: "openai", baseUrl: upstream.baseUrl, apiKey: "env:ACME_KEY" };
    await writeFile(join(dataDir, "models.json"), JSON.stringify({ upstreams: [acme], models: testModels() }));
    const gateway = await startProgram(SERVER_PROGRAM, dataDir);
    const owner = { baseUrl: gateway.baseUrl, key: OWNER_KEY };
    const started = ok(await execute(owner, StartVideoDocument, { input: { prompt: "A heron", duration: 4 } })).startVideo.job;
    await gateway.kill();
    open();

    const again = await createTestApp({ dataDir, upstream });
    onTestFinished(async () => {
      await again.close();
      await upstream.close();
      await remove();
    });

    expect(started.status).toBe("RUNNING");
    const job = await ended(started.restId, again, OWNER_KEY);
    expect(job).toMatchObject({ status: "failed", error: { code: "SERVICE_UNAVAILABLE" }, receipt: null });
    expect(await databaseOf(again).prisma.usageRecord.count()).toBe(0);
    expect(await findBrokenInvariants(poolOf(again), { isIdle: true })).toEqual({});
  });
});

describe.skipIf(!isPostgresInstalled)(`two processes on one database${isPostgresInstalled ? "" : ` (skipped: ${POSTGRES_ABSENT})`}`, () => {
  it("watch and cancel each other's jobs, and only the one that has a file serves it", async () => {
    const shared = await createPostgresDatabase();
    const upstream = await startFakeUpstream();
    const dirs = [await createEmptyDir(), await createEmptyDir()];
    const config = { databaseUrl: shared.url, encryptionKey: "the same for both processes of this test" };
    const one = await createTestApp({ upstream, dataDir: dirs[0] as string, config });
    const other = await createTestApp({ upstream, dataDir: dirs[1] as string, config });
    onTestFinished(async () => {
      await Promise.all([one.close(), other.close()]);
      await upstream.close();
      await shared.drop();
      await Promise.all(dirs.map((dir) => rm(dir, { recursive: true })));
    });
    const { gate, open } = gated();
    const made = fake({ upstream }, { gate, progress: [10, 50] });
    const there = await contextOf(other, OWNER_KEY);

    const watched = await start(one, OWNER_KEY);
    const states: string[] = [];
    for await (const job of other.services.jobs.watch(there, watched.id, {})) {
      if (states.length === 0) open();
      states.push(`${job.status} ${progressOf(job)}`);
    }
    const whole = await other.services.jobs.content(there, watched.id).catch((error: AppError) => error.code);
    const second = gated();
    made.options.gate = second.gate;
    const stopped = await start(one, OWNER_KEY);
    await other.services.jobs.cancel(there, stopped.id);
    second.open();

    expect([states[0], states.at(-1)]).toEqual(["running 0", "succeeded 100"]);
    expect(whole).toBe("SERVICE_UNAVAILABLE");
    expect((await one.services.jobs.content(await contextOf(one, OWNER_KEY), watched.id)).sizeBytes).toBe(clip.length);
    expect((await ended(stopped.id, one, OWNER_KEY)).status).toBe("cancelled");
    await eventually(async () => expect(await findBrokenInvariants(poolOf(one), { isIdle: true })).toEqual({}));
    expect(await databaseOf(one).prisma.usageRecord.count()).toBe(2);
  });
});

/** The server as `npm start` runs it, in a process of its own. */
async function startProgram(program: string, dataDir: string): Promise<{ readonly baseUrl: string; kill(): Promise<void> }> {
  const env = {
    PORT: "0",
    DATA_DIR: dataDir,
    MODELS_FILE: join(dataDir, "models.json"),
    OWNER_API_KEY: OWNER_KEY,
    ACME_KEY: "acme-secret-key",
  };
  const child = spawn(process.execPath, [program], {
    env: { PATH: process.env.PATH, LOG_LEVEL: "error", ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const baseUrl = await new Promise<string>((resolve, reject) => {
    createInterface(child.stdout).on("line", (line) => {
      const [, url] = /ready at\s+(\S+)/.exec(line) ?? [];
      if (url) resolve(url);
    });
    child.once("exit", (code) => reject(new Error(`the gateway ended with code ${code} before it was ready`)));
  });
  return {
    baseUrl,
    kill: async () => {
      const exited = once(child, "exit");
      child.kill("SIGKILL");
      await exited;
    },
  };
}
