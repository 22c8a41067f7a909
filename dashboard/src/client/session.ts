/** Whether the session is still there. Who types into a form when it ends keeps what is typed and signs in beside it. */
import { useSyncExternalStore } from "react";
import { Listeners } from "./listeners.js";

let isEnded = false;
const listeners = new Listeners();

function set(ended: boolean): void {
  if (isEnded === ended) return;
  isEnded = ended;
  listeners.notify();
}

export const noteSessionEnded = () => set(true);
export const noteSessionAlive = () => set(false);

export function useIsSessionEnded(): boolean {
  return useSyncExternalStore(listeners.add, () => isEnded);
}
