/**
 * How long the event loop is held at most, in processor time of this thread, so that it matters little what else the machine does. The
 * time is compared with reference work that is measured in the same run: no figure here is one of a machine's.
 */
import { openSync, readSync } from "node:fs";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { JSON_BRACKETS_MAX, JSON_KEYS_MAX, JSON_VALUES_MAX } from "../../src/limits.js";

/** Garbage is collected and code is compiled in some turn or other: the best of so many runs counts. */
const RUNS = 6;
/** `SHOW_HOLDS=1`: every measurement is run as often as that, and its best is printed. */
const SHOWS_HOLDS = process.env.SHOW_HOLDS === "1";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** A body at the limits of its structure. */
const LARGEST = JSON.stringify({
  keys: Object.fromEntries(Array.from({ length: JSON_KEYS_MAX - 2 }, (_, index) => [`k${index}`, 1])),
  objects: Array.from({ length: JSON_BRACKETS_MAX - 4 }, () => ({})),
  numbers: Array.from({ length: JSON_VALUES_MAX - JSON_BRACKETS_MAX - JSON_KEYS_MAX - 4 }, () => 1.5),
});

/**
 * How much longer than the reference a turn may take. Engines differ by more than twice in how fast they parse and write JSON, beside how
 * fast they run the gateway's code; work that grows faster than its input takes a hundred times as long.
 */
const REFERENCES = 2;

/**
 * Bound of a turn, in milliseconds: from parsing a body at the limits and writing it again, 30 to 60 ms on a processor of 2026. It is
 * measured beside each case, because the same work takes longer on a processor that others use too.
 */
export function longestHoldMs(): number {
  const runs = Array.from({ length: 2 }, () => {
    const before = threadMs();
    JSON.stringify(JSON.parse(LARGEST));
    return threadMs() - before;
  });
  return REFERENCES * Math.min(...runs);
}

/** Prints a line for each measurement. */
export function showHold(longestMs: number, mostMs: number, what: string): void {
  if (SHOWS_HOLDS) console.log(`${longestMs.toFixed(0).padStart(4)} of ${mostMs.toFixed(0)} ms ${what.slice(0, 200)}`);
}

export interface Held<Result> {
  /** The longest turn of the loop, in milliseconds of processor time. */
  readonly longestMs: number;
  readonly result: Result;
}

/** Does the work again as long as its longest turn takes longer than `enoughMs`, a few times at most, and answers the best. */
export async function bestHold<Result>(work: () => Promise<Result>, enoughMs: number): Promise<Held<Result>> {
  let best = await longestHold(work);
  for (let run = 1; run < RUNS && (best.longestMs > enoughMs || SHOWS_HOLDS); run += 1) {
    // What others have left is not collected in the turns that are measured.
    collectGarbage();
    const next = await longestHold(work);
    if (next.longestMs < best.longestMs) best = next;
  }
  return best;
}

async function longestHold<Result>(work: () => Promise<Result>): Promise<Held<Result>> {
  // The runner's own maps each stack trace to sources, 0.3 ms for every error that is thrown.
  const restore = useEnginesStackTraces();
  let longestMs = 0;
  let isOver = false;
  let last = threadMs();
  const look = () => {
    const now = threadMs();
    longestMs = Math.max(longestMs, now - last);
    last = now;
    if (!isOver) setImmediate(look);
  };
  setImmediate(look);
  try {
    const result = await work();
    return { result, longestMs: Math.max(longestMs, threadMs() - last) };
  } finally {
    isOver = true;
    restore();
  }
}

function useEnginesStackTraces(): () => void {
  const settings: { prepareStackTrace?: unknown } = Error;
  const { prepareStackTrace } = settings;
  settings.prepareStackTrace = undefined;
  return () => {
    settings.prepareStackTrace = prepareStackTrace;
  };
}

/** Of the main thread alone, where the system tells that; else of the whole process. */
const schedule = (() => {
  try {
    return openSync(`/proc/self/task/${process.pid}/schedstat`, "r");
  } catch {
    return null;
  }
})();
const buffer = Buffer.alloc(128);

function threadMs(): number {
  if (schedule === null) {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000;
  }
  const length = readSync(schedule, buffer, 0, buffer.length, 0);
  return Number(buffer.toString("latin1", 0, length).split(" ", 1)[0]) / 1e6;
}
