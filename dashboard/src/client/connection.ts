/** Whether the gateway is reached: the banner that says so, and what is asked anew when it is back. */
import { useSyncExternalStore } from "react";

export type Connection = "connecting" | "live" | "away";

let wasReached = false;
/** The socket was open and is not: what happens is not told. */
let isSocketLost = false;
let wasSocketOpen = false;
/** The last request was not answered. */
let isUnreachable = false;
let connection: Connection = "connecting";
const listeners = new Set<() => void>();
const returns = new Set<() => void>();
/** Those who wait for a moment at which trying again is worth while. */
const waiting = new Set<() => void>();

/** `open`, `closed`: of the socket. `answered`, `unreachable`: of a request. */
export function connectionChanged(event: "open" | "closed" | "answered" | "unreachable"): void {
  const wasAway = isSocketLost || isUnreachable;
  if (event === "open") {
    wasSocketOpen = true;
    isSocketLost = false;
  }
  if (event === "closed") isSocketLost = wasSocketOpen;
  else isUnreachable = event === "unreachable";
  wasReached ||= event === "open" || event === "answered";
  if (event === "answered") tryNow();
  const isAway = isSocketLost || isUnreachable;
  const before = connection;
  connection = isAway ? "away" : wasReached ? "live" : "connecting";
  if (connection !== before) for (const listener of listeners) listener();
  if (wasAway && !isAway) for (const listener of returns) listener();
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

/** Calls back when the gateway is reached again after it was not: what happened meanwhile has not been told. */
export function onReturn(listener: () => void): () => void {
  returns.add(listener);
  return () => returns.delete(listener);
}

/** Resolves after so long, or as soon as something says that the gateway may be back. */
export function untilWorthTrying(waitMs: number): Promise<void> {
  return new Promise((resolve) => {
    const finish = () => {
      clearTimeout(timer);
      waiting.delete(finish);
      resolve();
    };
    const timer = setTimeout(finish, waitMs);
    waiting.add(finish);
  });
}

function tryNow(): void {
  for (const finish of [...waiting]) finish();
}
window.addEventListener("online", tryNow);
