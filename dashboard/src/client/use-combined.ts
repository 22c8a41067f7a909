import { useEffect, useRef } from "react";

/** Time in which events are combined. */
const PAUSE_MS = 1_000;

/** Returns a function that runs the latest `act` once for all its calls of PAUSE_MS, after the first of them. */
export function useCombined(act: () => void): () => void {
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const latest = useRef(act);
  latest.current = act;
  const schedule = useRef(() => {
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      latest.current();
    }, PAUSE_MS);
  });
  useEffect(
    () => () => {
      clearTimeout(timer.current);
      timer.current = undefined;
    },
    [],
  );
  return schedule.current;
}
