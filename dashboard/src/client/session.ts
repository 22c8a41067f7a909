/** Whether the session is still there. Who types into a form when it ends keeps what is typed and signs in beside it. */
import { useSyncExternalStore } from "react";

let isEnded = false;
const listeners = new Set<() => void>();

function set(ended: boolean): void {
  if (isEnded === ended) return;
  isEnded = ended;
  for (const listener of listeners) listener();
}

export const noteSessionEnded = () => set(true);
export const noteSessionAlive = () => set(false);

export function useIsSessionEnded(): boolean {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => isEnded,
  );
}
