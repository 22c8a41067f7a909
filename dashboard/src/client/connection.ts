/** State of the connection to the gateway: shown in a banner, and used to refetch data after a reconnect. */
import { useSyncExternalStore } from "react";
import { Listeners } from "./listeners.js";

export type Connection = "connecting" | "live" | "away";

let wasReached = false;
/** The WebSocket was open and is closed now: live events are missing. */
let isSocketLost = false;
let wasSocketOpen = false;
/** No request was answered since the WebSocket was lost, or the last request got no response. */
let isAway = false;
let connection: Connection = "connecting";
const listeners = new Listeners();
const returns = new Listeners();
/** Retries that wait in `waitForRetry`. */
const waiting = new Listeners();

/** `open` and `closed` report the WebSocket, `answered` and `unreachable` report a request. */
export function connectionChanged(event: "open" | "closed" | "answered" | "unreachable"): void {
  const before = { isAway, isSocketLost, connection };
  if (event === "open") {
    wasSocketOpen = true;
    isSocketLost = false;
    isAway = false;
  } else if (event === "answered") {
    isAway = false;
  } else if (event === "unreachable") {
    isAway = true;
  } else if (wasSocketOpen) {
    // Later attempts to connect that fail say no more than the loss did.
    isAway ||= !isSocketLost;
    isSocketLost = true;
  }
  wasReached ||= event === "open" || event === "answered";
  connection = isAway ? "away" : wasReached ? "live" : "connecting";
  if (connection !== before.connection || isSocketLost !== before.isSocketLost) listeners.notify();
  if (event === "answered") waiting.notify();
  if ((before.isAway && !isAway) || (before.isSocketLost && !isSocketLost)) returns.notify();
}

export function useConnection(): Connection {
  return useSyncExternalStore(listeners.add, () => connection);
}

/** Whether data on the page may be out of date: requests are not answered, or live events are missing. */
export function useIsBehind(): boolean {
  return useSyncExternalStore(listeners.add, () => isAway || isSocketLost);
}

/** Calls back when the gateway is reachable again. Live events of the time between were missed. */
export const onReconnect = returns.add;

/** A live subscription was interrupted while the connection lasted. */
export const noteMissedEvents = () => returns.notify();

/** Resolves after `waitMs`, or earlier when a request is answered or the browser goes online. */
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
