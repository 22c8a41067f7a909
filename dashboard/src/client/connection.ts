/** Whether the gateway is reached: the banner that says so, and what is asked anew when it is back. */
import { useSyncExternalStore } from "react";
import { Listeners } from "./listeners.js";

export type Connection = "connecting" | "live" | "away";

let wasReached = false;
/** The socket was open and is not: what happens is not told. */
let isSocketLost = false;
let wasSocketOpen = false;
/** The last request was not answered. */
let isUnreachable = false;
let connection: Connection = "connecting";
const listeners = new Listeners();
const returns = new Listeners();
/** Those who wait for a moment at which trying again is worth while. */
const waiting = new Listeners();

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
  if (event === "answered") waiting.notify();
  const isAway = isSocketLost || isUnreachable;
  const before = connection;
  connection = isAway ? "away" : wasReached ? "live" : "connecting";
  if (connection !== before) listeners.notify();
  if (wasAway && !isAway) returns.notify();
}

export function useConnection(): Connection {
  return useSyncExternalStore(listeners.add, () => connection);
}

/** Calls back when the gateway is reached again after it was not: what happened meanwhile has not been told. */
export const onReconnect = returns.add;

/** Resolves after so long, or as soon as something says that the gateway may be back. */
export function waitForRetry(waitMs: number): Promise<void> {
  return new Promise((resolve) => {
    const finish = () => {
      clearTimeout(timer);
      forget();
      resolve();
    };
    const timer = setTimeout(finish, waitMs);
    const forget = waiting.add(finish);
  });
}

window.addEventListener("online", () => waiting.notify());
