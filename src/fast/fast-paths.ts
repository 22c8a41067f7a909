/**
 * The switch of this folder, `FAST_PATHS`. It belongs to the process, as V8's flags and the pool of memory do, so it is set once, before the
 * gateway is made.
 */
let areOn = true;

export function setFastPaths(isOn: boolean): void {
  areOn = isOn;
}

export function hasFastPaths(): boolean {
  return areOn;
}
