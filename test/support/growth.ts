/**
 * How the processor time of work grows with the size of its input. No figure depends on the speed of the machine: the size grows until
 * the work is measurable, and only times of the same run are compared.
 */

/** Work below this cannot be told from noise. Tests of this file's users pass with a tenth and with ten times of it. */
export const MEASURABLE_MS = Number(process.env.TEST_MEASURABLE_MS ?? 20);
/** Factor between two sizes. */
export const STEP = 4;
/** Linear work has an excess of 1, quadratic work one of `STEP`; this is between. */
export const EXCESS_MAX = 2;
/** Other work on the machine can only add to a time, so doubtful figures are measured again, and the least time of each size counts. */
const DOUBTFUL = 1.5;
const TRIES = 5;

export interface Sizes {
  readonly least: number;
  /** How many times the least size may be multiplied by `STEP`. */
  readonly steps: number;
}

/**
 * By how much more the time grows than the size does, from one size to the next. 0 when even the largest size is not measurable.
 * `run` answers the processor time of a size in milliseconds.
 */
export function findExcess(run: (size: number) => number, sizes: Sizes): number {
  const size = findMeasurable(run, sizes);
  if (size === null) return 0;
  let [large, middle, small] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  let excess = Number.POSITIVE_INFINITY;
  for (let tries = TRIES; tries > 0 && excess > DOUBTFUL; tries -= 1) {
    large = Math.min(large, run(size));
    middle = Math.min(middle, meanOf(run, size / STEP));
    small = Math.min(small, meanOf(run, size / STEP ** 2));
    // Garbage collection makes one step dearer than the others, now and then; work that is not linear makes each of them so.
    excess = Math.min(large / middle, middle / small) / STEP;
  }
  return excess;
}

/** The first size whose work is measurable; null when even the largest is not. */
function findMeasurable(run: (size: number) => number, { least, steps }: Sizes): number | null {
  // Lets V8 compile before the measurement.
  run(least);
  let size = least;
  for (let step = 0; step < steps; step += 1) {
    size *= STEP;
    if (run(size) >= MEASURABLE_MS) return size;
  }
  return null;
}

/** Clocks of processor time tick as seldom as every ten milliseconds on some systems, so one short run says nothing. */
function meanOf(run: (size: number) => number, size: number): number {
  let sum = 0;
  let times = 0;
  while (times < STEP || (sum < MEASURABLE_MS / 2 && times < STEP ** 3)) {
    sum += run(size);
    times += 1;
  }
  return sum / times;
}

/** Milliseconds of processor time that `work` takes in this process. */
export function processorMs(work: () => void): number {
  const before = processorMsSoFar();
  work();
  return processorMsSoFar() - before;
}

/** Milliseconds of processor time of this process since its start. */
export function processorMsSoFar(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
