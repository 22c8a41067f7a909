/**
 * What a gateway tells of itself in its metrics (docs/operating.md): what its flushes took, how often it had the database commit, for how
 * long, and how much at once; and how late its event loop was.
 */
import { request } from "undici";

export interface Flushes {
  readonly count: number;
  readonly seconds: number;
  /** All operations of a flush: holds, settlements and others. */
  readonly operations: number;
}

/** Since the gateway started, all its workers together; null when its metrics do not tell. */
export async function readFlushes(port: number): Promise<Flushes | null> {
  const { body } = await request(`http://127.0.0.1:${port}/metrics`);
  return parseFlushes(await body.text());
}

/** How late the event loop was at most since this was last asked, in milliseconds; null when its metrics do not tell. */
export async function readLagMs(port: number): Promise<number | null> {
  const { body } = await request(`http://127.0.0.1:${port}/metrics`);
  const seconds = sampleOf(await body.text(), "nodejs_eventloop_lag_max_seconds");
  return seconds === null ? null : seconds * 1_000;
}

export function parseFlushes(metrics: string): Flushes | null {
  const count = sampleOf(metrics, "sluice_settler_flush_duration_seconds_count");
  const seconds = sampleOf(metrics, "sluice_settler_flush_duration_seconds_sum");
  const operations = sampleOf(metrics, "sluice_settler_flush_operations_sum");
  return count === null || seconds === null || operations === null ? null : { count, seconds, operations };
}

/** The difference between two readings. */
export function flushesBetween(before: Flushes | null, after: Flushes | null): Flushes | null {
  if (before === null || after === null) return null;
  return {
    count: after.count - before.count,
    seconds: after.seconds - before.seconds,
    operations: after.operations - before.operations,
  };
}

/** The value of a sample that has no labels. */
function sampleOf(metrics: string, name: string): number | null {
  const line = metrics.split("\n").find((each) => each.startsWith(`${name} `));
  return line === undefined ? null : Number(line.slice(name.length));
}
