/**
 * How many connections to the database a process opens at most. Processes of one gateway on one machine share what one process has, as
 * far as that goes, so that their number does not exhaust the server unnoticed.
 */

/** For everything but money. More than this many queries wait in the process. */
const SHARED_CONNECTIONS_MAX = 10;
/** Of them, what each of several processes has at least: reports that hold some leave room for the others. */
const SHARED_CONNECTIONS_MIN = 4;
/** One for the settler's flush, one beside it. Reports that hold every other connection never delay a charge. */
export const MONEY_CONNECTIONS_MAX = 2;
/** On which a process hears the others. */
const LISTENING_CONNECTIONS = 1;

/** On which a database that is slow is asked whether it answers at all; open only then. */
export const WATCH_CONNECTIONS = 1;

export function sharedConnectionsOf(processes: number): number {
  return Math.max(SHARED_CONNECTIONS_MIN, Math.ceil(SHARED_CONNECTIONS_MAX / processes));
}

/** Of so many processes together. */
export function connectionsOf(processes: number): number {
  return processes * (sharedConnectionsOf(processes) + MONEY_CONNECTIONS_MAX + LISTENING_CONNECTIONS + WATCH_CONNECTIONS);
}
