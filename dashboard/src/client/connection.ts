/** Whether the gateway is reached: the banner that says so, and what is asked anew when it is back. */
import { useSyncExternalStore } from "react";

export type Connection = "connecting" | "live" | "away";

let connection: Connection = "connecting";
let wasOpen = false;
const listeners = new Set<() => void>();
const returns = new Set<() => void>();

/** `open`, `closed`: of the socket. `answered`, `unreachable`: of a request. */
export function connectionChanged(event: "open" | "closed" | "answered" | "unreachable"): void {
  const before = connection;
  if (event === "open") connection = "live";
  else if (event === "closed" || event === "unreachable") connection = event === "closed" && !wasOpen ? connection : "away";
  else connection = "live";
  if (event === "open") {
    if (wasOpen && before === "away") for (const listener of returns) listener();
    wasOpen = true;
  }
  if (connection !== before) for (const listener of listeners) listener();
}

export function useConnection(): Connection {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => connection,
  );
}

/** Calls back when the socket is open again after it had been lost: what happened meanwhile has not been told. */
export function onReturn(listener: () => void): () => void {
  returns.add(listener);
  return () => returns.delete(listener);
}
