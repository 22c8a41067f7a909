/**
 * A bucket that takes connections and says nothing: requests that need it are refused within the time that `store/limits.ts` states, all
 * others are answered, and nothing is charged that was not delivered.
 */
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CONTENT_CACHE_FIND_MS, CONTENT_CACHE_STORE_MS } from "../../src/services/generation/content-cache/content-cache.js";
import { S3_SILENCE_MS } from "../../src/store/limits.js";
import { executeText } from "../graphql/client.js";
import { type Answer, type Client, createClient, type UsageJson } from "../rest/client.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { eventually } from "../support/eventually.js";
import { followJob, readRestOutcome } from "../support/generation-outcome.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { type Kind, OPERATIONS } from "../support/operations.js";
import { isS3Installed, startS3, type TestS3 } from "../support/s3.js";

/** They work in the process, and have a price. */
const modelOf = (kind: Kind) => (kind === "moderation" ? "sandbox/moderation" : `sandbox/${kind}-paid`);
const paid = (kind: Kind) => ({ model: modelOf(kind), ...(kind === "video" || kind === "music" ? { duration: 1 } : {}) });
const JOB_ROUTE = "POST /v1/videos";
const PICTURE = "/image/mill?model=sandbox/image-paid&width=64&height=64";
const DRAWN = { prompt: "a mill", model: "sandbox/image-paid", size: "64x64" };

/** Milliseconds that a caller may be held (docs/operating.md#s3). */
const HELD_MS_MAX = 6_000;

it("is waited for no longer than a caller may be held", () => {
  expect(S3_SILENCE_MS).toBeLessThan(HELD_MS_MAX);
  // What a generation waits for its cache comes on top of a publication that fails at the last moment.
  expect(CONTENT_CACHE_FIND_MS + S3_SILENCE_MS + CONTENT_CACHE_STORE_MS).toBeLessThanOrEqual(HELD_MS_MAX);
});

describe.skipIf(!isS3Installed)("a bucket that hangs", () => {
  let s3: TestS3;
  let app: TestApp;
  let client: Client;
  let link: string;
  let kept: Answer;

  beforeAll(async () => {
    s3 = (await startS3()) as TestS3;
    app = await createTestApp({ config: { s3: await s3.createBucket(), contentCacheTimes: {} } });
    client = createClient(app.baseUrl, app.key);
    link = `/media/${(await upload()).json<{ id: string }>().id}`;
    kept = await client.get(`${PICTURE}&seed=1`);
    expect((await client.get(`${PICTURE}&seed=1`)).headers.get("x-cache")).toBe("HIT");
    s3.freeze();
  });
  afterAll(async () => {
    s3.thaw();
    await app.close();
    await s3.stop();
  });

  const asking = () => ({ baseUrl: app.baseUrl, wsUrl: app.wsUrl, key: app.key });
  const upload = (): Promise<Answer> =>
    client.post("/media/upload", { data: randomBytes(9).toString("base64"), contentType: "application/octet-stream" });
  const usage = async () => (await client.get("/account/usage?limit=1000")).json<UsageJson>().usage;
  const mutate = async (query: string, variables: object = {}) =>
    (await executeText(asking(), { query, variables: { ...variables } })).errors?.map(({ extensions }) => extensions.code);
  const callTool = async (name: string, input: object) => {
    const message = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: input } };
    const answer = await client.post("/mcp", message, { headers: { accept: "application/json, text/event-stream" } });
    return answer.text.includes('"code":"SERVICE_UNAVAILABLE"') ? "SERVICE_UNAVAILABLE" : answer.text;
  };

  it("is in the way of no generation, and each is charged once", async () => {
    const before = (await usage()).length;
    const waited = OPERATIONS.filter(({ delivery }) => delivery !== "job");

    const outcomes = await Promise.all(
      waited.map(({ kind, face, ask }) => ask(asking(), face === "REST" && kind === "video" ? { ...paid(kind) } : paid(kind))),
    );

    expect(outcomes.flatMap(({ code, message }, index) => (code === null ? [] : [`${waited[index]?.name}: ${code} ${message}`]))).toEqual(
      [],
    );
    const charged = await eventually(async () => {
      const ids = (await usage()).map(({ id }) => id);
      expect(outcomes.filter(({ generationId }) => !ids.includes(String(generationId)))).toEqual([]);
      return ids;
    });
    expect(charged.length - before).toBe(outcomes.length);
  });

  it("does not keep back pictures that were kept there: they are made again", async () => {
    const asked = await Promise.all([
      client.get(`${PICTURE}&seed=1`),
      client.get(`${PICTURE}&seed=1`, { headers: { Range: "bytes=0-9" } }),
      client.request("HEAD", `${PICTURE}&seed=1`),
    ]);

    expect(kept.status).toBe(200);
    expect(asked.map(({ status }) => status)).toEqual([200, 200, 200]);
  });

  it("refuses requests that need it, at no cost", async () => {
    const rows = (await usage()).length;

    const refused = await Promise.all([
      upload(),
      client.get(link),
      client.request("HEAD", link),
      client.get(`${link}/metadata`),
      client.post("/v1/images/generations", { ...DRAWN, response_format: "url" }),
    ]);
    const drawn = "mutation ($input: GenerateImageInput!) { generateImage(input: $input) { images { url } } }";
    const codes = await Promise.all([
      mutate(drawn, { input: { ...DRAWN, responseFormat: "URL" } }),
      mutate("mutation ($input: UploadMediaInput!) { uploadMedia(input: $input) { isDuplicate } }", {
        input: { file: new Blob(["Hello"]) },
      }),
      callTool("generate_image", { prompt: "a mill", model: "sandbox/image-paid", delivery: "url" }),
      callTool("generate_speech", { input: "a mill", model: "sandbox/speech-paid", delivery: "url" }),
      callTool("generate_video", { prompt: "a mill", model: "sandbox/video-paid", duration: 1 }),
    ]);

    expect(refused.map(({ status }) => status)).toEqual([503, 503, 503, 503, 503]);
    expect(refused[0]?.json()).toMatchObject({ success: false, error: { code: "SERVICE_UNAVAILABLE" } });
    expect(refused[0]?.headers.get("retry-after")).toBe("5");
    expect(codes).toEqual([["SERVICE_UNAVAILABLE"], ["SERVICE_UNAVAILABLE"], ...Array(3).fill("SERVICE_UNAVAILABLE")]);
    expect((await usage()).length).toBe(rows);
  });

  it("does not count as a failure of the models whose pictures it did not take", async () => {
    // Its upstream has no pictures. It is stored after the earlier notes.
    expect((await client.post("/v1/images/generations", { ...DRAWN, model: "acme/image" })).status).toBe(502);

    const failed = await eventually(async () => {
      const { rows } = await app.database.pool.query<{ model: string }>(
        "SELECT DISTINCT model FROM usage_hour_rollup WHERE outcome = 'failed' AND model <> ''",
      );
      expect(rows).not.toEqual([]);
      return rows;
    });

    expect(failed).toEqual([{ model: "acme/image" }]);
  });

  it("leaves the gateway ready", async () => {
    expect((await client.get("/readyz")).status).toBe(200);
  });

  it("is used again when it answers, and has the results of jobs that waited for it", async () => {
    const route = OPERATIONS.find(({ name }) => name === JOB_ROUTE);
    const started = await readRestOutcome((await route?.send(asking(), { model: modelOf("video"), seconds: "1" })) as Response);
    expect(started.status).toBe(200);

    s3.thaw();

    expect(await followJob(asking(), started)).toMatchObject({ code: null });
    expect((await client.get(`/v1/videos/${started.generationId}/content`)).status).toBe(200);
    await eventually(async () => expect((await upload()).status).toBe(200));
    expect((await client.get(link)).status).toBe(200);
    expect(app.logs.filter(({ msg }) => /^the bucket /.test(String(msg))).map(({ msg }) => msg)).toEqual([
      "the bucket does not answer: what needs it is refused",
      "the bucket answers again",
    ]);
    expect(await findBrokenInvariants(app.database.pool)).toEqual({});
  });
});
