/** GET /audio/{text} with a music model: priced by the seconds that come. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { recording, streamedRecording } from "../support/recordings.js";
import { errorReply, json, type Reply, raw } from "../support/upstream-replies.js";
import { type Client, createClient, createKey, expectEnvelope, type UsageJson, waitForUsage } from "./client.js";

let app: TestApp;
let client: Client;

beforeAll(async () => {
  app = await createTestApp();
  client = createClient(app.baseUrl, app.key);
});
afterEach(async () => {
  const { pool } = app.database;
  expect(await findBrokenInvariants(pool, { isIdle: true })).toEqual({});
});
afterAll(() => app.close());

function played(bytes: Uint8Array, contentType = "audio/x-wav"): Reply {
  return raw(bytes, { headers: { "content-type": contentType } });
}

let pieces = 0;
/** A prompt that nothing is remembered of. */
function play(query: Readonly<Record<string, string>> = {}, key?: string) {
  pieces += 1;
  const parameters = new URLSearchParams({ model: "acme/music", ...query });
  return client.get(`/audio/piece%20${pieces}?${parameters}`, key === undefined ? {} : { key });
}

function lastAsked(): Record<string, unknown> {
  return app.upstream.requests.at(-1)?.json as Record<string, unknown>;
}

describe("GET /audio/{text} with a music model", () => {
  it("holds for the requested length, and charges the delivered one", async () => {
    const tune = recording(2.25);
    app.upstream.replyNext(played(tune));

    const answer = await play({ duration: "10", seed: "7" });

    expect(lastAsked()).toEqual({ model: "upstream-music", input: `piece ${pieces}`, response_format: "mp3", duration: 10, seed: 7 });
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      "content-type": "audio/wav",
      "content-length": String(tune.length),
      // 2.25 of 10 seconds x 0.01
      "x-cost": "0.0225",
      "x-held": "0.1",
      "x-usage-output-audio-seconds": "2.25",
      "x-cache": "MISS",
    });
    const row = await waitForUsage(client, ({ request_id }) => request_id === answer.headers.get("x-generation-id"));
    expect(row).toMatchObject({ type: "generate.music", output_audio_seconds: 2.25, cost_usd: 0.0225, status: "ok" });
  });

  it("charges the delivered length when it exceeds the request, and when its header has none", async () => {
    app.upstream.replyNext(played(recording(3)), played(streamedRecording(4)));

    expect((await play({ duration: "1" })).headers.get("x-cost")).toBe("0.03");
    expect((await play()).headers.get("x-cost")).toBe("0.04");
    expect(lastAsked()).not.toHaveProperty("duration");
  });

  it("measures raw samples, which carry no header", async () => {
    app.upstream.replyNext(played(Buffer.alloc(72_000), "audio/pcm"));

    expect((await play({ response_format: "pcm" })).headers.get("x-usage-output-audio-seconds")).toBe("1.5");
  });

  it("answers the same query for nothing the next time", async () => {
    app.upstream.replyNext(played(recording(1)));

    const first = await client.get("/audio/the%20same?model=acme/music&duration=1");
    const second = await client.get("/audio/the%20same?model=acme/music&duration=1");

    expect([first.headers.get("x-cache"), second.headers.get("x-cache"), second.headers.get("x-cost")]).toEqual(["MISS", "HIT", "0"]);
    expect(second.text).toBe(first.text);
  });

  it("draws a seed for -1", async () => {
    app.upstream.replyNext(played(recording(1)), played(recording(1)));

    await play({ seed: "-1" });
    const first = lastAsked().seed;
    await play({ seed: "-1" });

    expect(first).toBeGreaterThanOrEqual(0);
    expect(lastAsked().seed).not.toBe(first);
  });

  it("takes a duration at its bounds, and refuses one past them", async () => {
    for (const duration of ["1", "300", "2.5"]) {
      app.upstream.replyNext(played(recording(1)));
      expect((await play({ duration })).status).toBe(200);
    }
    for (const duration of ["0.9", "300.5", "0", "-1", "long", ""]) {
      const answer = await play({ duration });
      expectEnvelope(answer, 400, "BAD_REQUEST");
      expect(answer.json<{ error: { param: string } }>().error.param).toBe("duration");
    }
  });

  it("warns of parameters without an effect", async () => {
    app.upstream.replyNext(played(recording(1)));

    expect((await play({ voice: "alloy" })).headers.get("x-warnings")).toContain("voice");
  });

  it("refuses a caller who cannot pay for the requested length", async () => {
    const { key } = await createKey(app, { creditBudget: 0.1 });
    const asked = app.upstream.requests.length;

    expectEnvelope(await play({ duration: "10.1" }, key), 402, "KEY_BUDGET_EXHAUSTED");

    expect(app.upstream.requests.length).toBe(asked);
  });

  const failures: readonly (readonly [what: string, reply: Reply, status: number])[] = [
    ["400", errorReply(400), 400],
    ["500", errorReply(500), 502],
    ["JSON", json({}), 502],
    ["something that is not sound", played(Buffer.from("la la la"), "audio/mpeg"), 502],
    ["nothing", played(Buffer.alloc(0)), 502],
  ];
  it.each(failures)("charges nothing when the upstream answers %s", async (_what, reply, status) => {
    const count = async () => (await client.get("/account/usage?limit=1000")).json<UsageJson>().count;
    const before = await count();
    app.upstream.replyNext(reply);

    expect((await play()).status).toBe(status);

    expect(await count()).toBe(before);
  });
});
