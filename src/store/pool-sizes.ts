/**
 * Bounds on a process's database connections. Processes of one gateway on one machine share the bound of one as far as possible, so that
 * they do not exhaust the server.
 */

/** For everything but money. Further queries wait in the process. */
const SHARED_CONNECTIONS_MAX = 10;
/** The least for each of several processes: reports on some leave room for others. */
const SHARED_CONNECTIONS_MIN = 4;
/** One for the settler's flush, one more. Reports on all other connections never delay a charge. */
export const MONEY_CONNECTIONS_MAX = 2;
/** For receiving events of other processes. */
const LISTENING_CONNECTIONS = 1;

/** For pinging a slow database; opened only then. */
export const WATCH_CONNECTIONS = 1;

export function sharedConnectionsOf(processes: number): number {
  return Math.max(SHARED_CONNECTIONS_MIN, Math.ceil(SHARED_CONNECTIONS_MAX / processes));
}

/** Of that many processes together. */
export function connectionsOf(processes: number): number {
  return processes * (sharedConnectionsOf(processes) + MONEY_CONNECTIONS_MAX + LISTENING_CONNECTIONS + WATCH_CONNECTIONS);
}
