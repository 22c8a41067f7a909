/** A clock that stands still until a test moves it, so that bounds in time are exact. */
import type { Clock } from "../../src/lib/clock.js";

export interface MovableClock extends Clock {
  advance(seconds: number): void;
}

export function createMovableClock(start = new Date()): MovableClock {
  let ms = start.getTime();
  return {
    now: () => new Date(ms),
    advance: (seconds) => {
      ms += seconds * 1000;
    },
  };
}
