/** How the processor time of work grows with the size of what it is given. */

/** Below this nothing is told apart from the machine's own noise, and quadratic work of the sizes tested here takes many times as long. */
export const NOISE_MS = 5;
const RUNS = 3;
/** What looks worse than this is measured again: a busy machine's caches make linear work look slow now and then, and quadratic work never fast. */
const DOUBTFUL = 2;

/**
 * By how much more the time grows than the size does: 1 is linear, `factor` is quadratic. 0 when even the larger size takes next to
 * nothing. `run` tells the processor time of a size; the best of several runs counts, so that what else the machine does matters little.
 */
export function measureExcess(run: (size: number) => number, size: number, factor: number): number {
  let least = Number.POSITIVE_INFINITY;
  for (let left = RUNS; left > 0 && least > DOUBTFUL; left -= 1) least = Math.min(least, measureOnce(run, size, factor));
  return least;
}

function measureOnce(run: (size: number) => number, size: number, factor: number): number {
  const best = (measured: number) => {
    let least = Number.POSITIVE_INFINITY;
    for (let left = RUNS; left > 0 && least > NOISE_MS; left -= 1) least = Math.min(least, run(measured));
    return least;
  };
  const large = best(size * factor);
  if (large <= NOISE_MS) return 0;
  // A linear reader's share is the least that counts: dividing by less would make noise of it.
  return large / Math.max(Math.min(run(size), run(size), run(size)), NOISE_MS / factor) / factor;
}

export function processorMs(run: () => void): number {
  const before = processorMsSoFar();
  run();
  return processorMsSoFar() - before;
}

/** Of this process, since it began. */
export function processorMsSoFar(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
