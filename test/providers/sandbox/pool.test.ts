import { describe, expect, it, onTestFinished } from "vitest";
import { SANDBOX_JOBS_MAX } from "../../../src/providers/sandbox/limits.js";
import type { SpeechJob } from "../../../src/providers/sandbox/media/jobs.js";
import { MediaPool, Place, Places } from "../../../src/providers/sandbox/media/pool.js";

const never = new AbortController().signal;
const SPEECH: SpeechJob = { kind: "speech", text: "One. Two. Three.", voice: "alloy", speed: 1, format: "pcm" };

function openPool(): MediaPool {
  const pool = new MediaPool();
  onTestFinished(() => pool.close());
  return pool;
}

async function drain(steps: AsyncIterable<unknown>): Promise<number> {
  let count = 0;
  for await (const _step of steps) count += 1;
  return count;
}

describe("the pool", () => {
  it("lets other jobs pass streams without a reader", async () => {
    const pool = openPool();
    const unread = Array.from({ length: 20 }, () => pool.open<"speech">(SPEECH, never));
    for (const steps of unread) await steps.next();

    expect(await drain(pool.open<"speech">(SPEECH, never))).toBeGreaterThan(2);

    await Promise.all(unread.map((steps) => steps.return(null)));
  });

  it("refuses one job more than its maximum, and takes others when those have gone", async () => {
    const pool = openPool();
    const open = Array.from({ length: SANDBOX_JOBS_MAX }, () => pool.open<"speech">({ ...SPEECH, text: "Hi." }, never));
    const first = Promise.all(open.map((steps) => steps.next()));

    await expect(pool.open<"speech">(SPEECH, never).next()).rejects.toMatchObject({ kind: "status", status: 503 });

    await first;
    await Promise.all(open.map((steps) => steps.return(null)));
    expect(await drain(pool.open<"speech">(SPEECH, never))).toBeGreaterThan(2);
  });

  it("continues after a job that broke a library", async () => {
    const pool = openPool();
    // No service lets this through: it is what a failure of a library looks like.
    const broken = { ...SPEECH, format: "tape" as SpeechJob["format"] };

    await expect(drain(pool.open<"speech">(broken, never))).rejects.toMatchObject({ name: "ProviderError", kind: "network" });
    expect(await drain(pool.open<"speech">(SPEECH, never))).toBeGreaterThan(2);
  });

  it("finishes the work under way when it is closed, and takes no more", async () => {
    const pool = new MediaPool();
    const running = drain(pool.open<"speech">(SPEECH, never));
    await pool.close();

    expect(await running).toBeGreaterThan(2);
    await expect(pool.open<"speech">(SPEECH, never).next()).rejects.toMatchObject({ kind: "network" });
  });
});

describe("places", () => {
  it("are given in the order of waiting, skipping jobs that left", async () => {
    const places = new Places(1);
    const [holder, leaver, first, second] = [new Place(places), new Place(places), new Place(places), new Place(places)];
    const order: string[] = [];
    const leaving = new AbortController();
    await holder.take(never);
    const left = leaver.take(leaving.signal).catch((error: unknown) => order.push(String(error)));
    const waits = [first.take(never).then(() => order.push("first")), second.take(never).then(() => order.push("second"))];

    leaving.abort("left");
    await left;
    holder.give();
    holder.give();
    await waits[0];
    expect(order).toEqual(["left", "first"]);

    first.give();
    await waits[1];
    expect(order).toEqual(["left", "first", "second"]);
  });
});
