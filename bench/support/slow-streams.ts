/** Many slow SSE streams at once: what a gateway costs while models think. */
import { setTimeout as sleep } from "node:timers/promises";
import { Pool } from "undici";
import type { Target } from "./load.js";

const DONE = "data: [DONE]";
const TAIL_CHARS = 64;

export interface SlowStreamsResult {
  /** Streams that ended with `[DONE]`. */
  readonly completed: number;
  readonly failures: number;
  /** From sending the request to the first byte of the stream's body. */
  readonly firstByteMs: readonly number[];
}

/** Opens `count` streams over `rampMs` milliseconds and reads each to its end. */
export async function runSlowStreams(target: Target, count: number, rampMs: number): Promise<SlowStreamsResult> {
  const { origin, pathname } = new URL(target.url);
  const pool = new Pool(origin, { connections: count, bodyTimeout: 120_000, headersTimeout: 120_000 });
  const firstByteMs: number[] = [];

  const readOne = async (index: number): Promise<boolean> => {
    await sleep((index * rampMs) / count);
    const startedAt = performance.now();
    try {
      const { statusCode, body } = await pool.request({ path: pathname, method: "POST", headers: target.headers, body: target.body });
      let tail = "";
      let isFirst = true;
      for await (const bytes of body) {
        if (isFirst) firstByteMs.push(performance.now() - startedAt);
        isFirst = false;
        tail = (tail + String(bytes)).slice(-TAIL_CHARS);
      }
      return statusCode === 200 && tail.includes(DONE);
    } catch {
      return false;
    }
  };

  const ended = await Promise.all(Array.from({ length: count }, (_, index) => readOne(index)));
  await pool.close();
  const completed = ended.filter(Boolean).length;
  return { completed, failures: count - completed, firstByteMs };
}
