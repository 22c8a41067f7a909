/** A worker thread that measures how the time of patterns and readers grows. Its parent ends it when a run takes too long. */
import { parentPort, workerData } from "node:worker_threads";
import { READERS, SAFETY_READERS, SAFETY_UNITS, UNITS } from "../../contract/support/readers.js";
import { EXCESS_MAX, findExcess, processorMs, STEP } from "../growth.js";
import type { GrowthReport, GrowthSubject } from "../growth-watch.js";
import { worstCases } from "../pattern-attacks.js";

const LEAST_CHARS = 16;
/** Up to 65,536 characters: quadratic work of that size takes a second on any processor. */
const STEPS = 6;
/** A size that no step of a pattern's subjects is below, so that a reader's fixed costs do not count. */
const READER_LEAST_CHARS = 64;
const READER_STEPS = 5;

/** The count of runs that were begun; the parent sees by it that a run has ended. */
const runs = workerData as Int32Array;

function post(report: GrowthReport): void {
  parentPort?.postMessage(report);
}

function timed(work: () => void): number {
  Atomics.add(runs, 0, 1);
  return processorMs(work);
}

/** Replaces everywhere in the text, as a search and a test do too. Null when the time is linear. */
function slownessOfPattern(pattern: RegExp): string | null {
  const everywhere = pattern.sticky ? pattern : new RegExp(pattern.source, `${pattern.flags.replace("g", "")}g`);
  for (const { unit, text } of worstCases(pattern)) {
    const shown = `${JSON.stringify(text(40))} …`;
    post({ kind: "begun", shown });
    // A long unit is repeated less often, and quadratic work is that of the repetitions times the characters.
    const scale = Math.sqrt(unit.length);
    const run = (size: number) => {
      const input = text(Math.ceil(size * scale));
      return timed(() => input.replace(everywhere, ""));
    };
    const excess = findExcess(run, { least: LEAST_CHARS, steps: STEPS });
    if (excess > EXCESS_MAX) return slowness(shown, excess);
  }
  return null;
}

function slownessOfReader(read: (text: string) => unknown, units: readonly string[]): string | null {
  const slow = units.flatMap((unit) => {
    const shown = JSON.stringify(unit);
    post({ kind: "begun", shown });
    const run = (chars: number) => {
      const text = `${unit.repeat(Math.ceil(chars / unit.length))}\u0001`;
      return timed(() => {
        try {
          read(text);
        } catch {
          // A refusal.
        }
      });
    };
    const excess = findExcess(run, { least: READER_LEAST_CHARS, steps: READER_STEPS });
    return excess > EXCESS_MAX ? [slowness(shown, excess)] : [];
  });
  return slow.length > 0 ? slow.join("; ") : null;
}

const slowness = (shown: string, excess: number) => `${shown} grows ${excess.toFixed(1)} of ${STEP} times too fast`;

parentPort?.on("message", (subject: GrowthSubject) => {
  const reader = subject.kind === "reader" ? READERS.get(subject.name) : undefined;
  if (subject.kind === "pattern") post({ kind: "ended", slowness: slownessOfPattern(new RegExp(subject.source, subject.flags)) });
  else if (reader)
    post({ kind: "ended", slowness: slownessOfReader(reader, SAFETY_READERS.has(subject.name) ? [...UNITS, ...SAFETY_UNITS] : UNITS) });
  else throw new Error(`There is no reader "${subject.name}".`);
});
post({ kind: "ready" });
