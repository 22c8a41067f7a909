/** State of the connection to the gateway: shown in a banner, and used to refetch data after a reconnect. */
import { useSyncExternalStore } from "react";
import { Listeners } from "./listeners.js";

export type Connection = "connecting" | "live" | "away";

let wasReached = false;
/** The WebSocket was open and is closed now: live events are missing. */
let isSocketLost = false;
let wasSocketOpen = false;
/** The last request got no response. */
let isUnreachable = false;
let connection: Connection = "connecting";
const listeners = new Listeners();
const returns = new Listeners();
/** Retries that wait in `waitForRetry`. */
const waiting = new Listeners();

/** `open` and `closed` report the WebSocket, `answered` and `unreachable` report a request. */
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

/** Calls back when the gateway is reachable again. Live events of the time between were missed. */
export const onReconnect = returns.add;

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
