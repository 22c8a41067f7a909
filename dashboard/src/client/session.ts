/** Whether the session has ended. The page then keeps its forms and offers to sign in in another window. */
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
