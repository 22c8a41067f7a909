/** Fixed-rate load: requests leave by the clock, whether or not earlier ones have been answered. */
import { setTimeout as sleep } from "node:timers/promises";
import { Pool } from "undici";
import type { Target } from "./load.js";

/** Rests until shortly before a request is due; Node's timers count whole milliseconds. */
const TIMER_SLACK_MS = 1;

export interface FixedRateResult {
  /** From sending the request to the answer's last byte, of every whole answer. */
  readonly latenciesMs: readonly number[];
  readonly failures: number;
}

export async function runAtFixedRate(target: Target, requestsPerSecond: number, seconds: number): Promise<FixedRateResult> {
  const { origin, pathname } = new URL(target.url);
  const pool = new Pool(origin, { connections: 64 });
  const latenciesMs: number[] = [];
  let failures = 0;

  const send = async (): Promise<void> => {
    const startedAt = performance.now();
    try {
      const { statusCode, body } = await pool.request({ path: pathname, method: "POST", headers: target.headers, body: target.body });
      await body.arrayBuffer();
      if (statusCode === 200) latenciesMs.push(performance.now() - startedAt);
      else failures++;
    } catch {
      failures++;
    }
  };

  const begin = performance.now();
  const inFlight: Promise<void>[] = [];
  for (let index = 0; index < requestsPerSecond * seconds; index++) {
    const waitMs = begin + (index * 1_000) / requestsPerSecond - performance.now();
    if (waitMs > 0) await sleep(Math.max(0, waitMs - TIMER_SLACK_MS));
    inFlight.push(send());
  }
  await Promise.all(inFlight);
  await pool.close();
  return { latenciesMs, failures };
}
