/**
 * Child processes of the benchmarks: start, wait until they answer, stop, and their resources according to /proc
 * (Linux).
 */
import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { closeSync, openSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { request } from "undici";

const POLL_MS = 20;
const LOG_TAIL_CHARS = 3_000;
/** Linux reports process times in hundredths of a second on every architecture that Node runs on. */
const MICROSECONDS_PER_TICK = 10_000;

export interface Started {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly logFile: string;
}

/** Starts a program with both outputs in `logFile`. */
export function startProcess(command: string, args: readonly string[], logFile: string, options: SpawnOptions = {}): Started {
  const log = openSync(logFile, "a");
  try {
    const child = spawn(command, args, { ...options, stdio: ["ignore", log, log] });
    child.on("error", () => undefined);
    if (child.pid === undefined) throw new Error(`${command} could not be started.`);
    return { child, pid: child.pid, logFile };
  } finally {
    closeSync(log);
  }
}

/** Polls `probe` until it answers something. When the process ends first or time is up, nothing is left running and the end of the log is thrown. */
export async function waitUntil<T>(
  started: Started,
  what: string,
  timeoutMs: number,
  probe: () => Promise<T | undefined> | T | undefined,
): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  while (Date.now() < deadline && !hasEnded(started.child)) {
    const found = await probe();
    if (found !== undefined) return found;
    await sleep(POLL_MS);
  }
  const ending = hasEnded(started.child) ? "ended" : `was not ready within ${timeoutMs} ms`;
  if (!hasEnded(started.child)) killTree(started.pid);
  throw new Error(`${what} ${ending}. The end of its log:\n${readFileSync(started.logFile, "utf8").slice(-LOG_TAIL_CHARS)}`);
}

/** Waits for a 200 from `url`. */
export async function waitForHttp(started: Started, what: string, url: string, timeoutMs = 120_000): Promise<void> {
  await waitUntil(started, what, timeoutMs, async () => {
    try {
      const { statusCode, body } = await request(url, { headersTimeout: 5_000 });
      await body.dump();
      return statusCode === 200 ? true : undefined;
    } catch {
      return undefined;
    }
  });
}

/** Waits for the line `{"port":n}` that the benchmarks' own servers print. */
export function waitForPort(started: Started, what: string): Promise<number> {
  return waitUntil(started, what, 20_000, () => {
    const match = /\{"port":(\d+)\}/.exec(readFileSync(started.logFile, "utf8"));
    return match ? Number(match[1]) : undefined;
  });
}

/** Asks the process to stop and waits; kills it with its children when it does not within `timeoutMs`. */
export async function stopProcess(started: Started, signal: NodeJS.Signals = "SIGTERM", timeoutMs = 40_000): Promise<void> {
  if (hasEnded(started.child)) return;
  const ended = new Promise<true>((resolve) => started.child.once("exit", () => resolve(true)));
  started.child.kill(signal);
  const timer = new AbortController();
  const stopped = await Promise.race([ended, sleep(timeoutMs, false, { signal: timer.signal }).catch(() => false)]);
  timer.abort();
  if (stopped) return;
  killTree(started.pid);
  await ended;
}

/** SIGKILL to the process and everything that it started. */
export function killTree(pid: number): void {
  for (const each of processTree(pid)) {
    try {
      process.kill(each, "SIGKILL");
    } catch {
      // It has ended by itself in the meantime.
    }
  }
}

export function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

/** A port that was free a moment ago, for servers that must be told theirs. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string") throw new Error("No port is free.");
  return address.port;
}

/** The process and all its descendants. */
export function processTree(root: number): readonly number[] {
  const children = new Map<number, number[]>();
  for (const entry of processIds()) {
    const parent = readStat(entry)?.parent;
    if (parent !== undefined) children.set(parent, [...(children.get(parent) ?? []), entry]);
  }
  const tree: number[] = [];
  for (const queue = [root]; queue.length > 0; ) {
    const pid = queue.shift();
    if (pid === undefined) break;
    tree.push(pid);
    queue.push(...(children.get(pid) ?? []));
  }
  return tree;
}

/** What the process has started itself. */
export function childrenOf(pid: number): readonly number[] {
  return processIds().filter((each) => readStat(each)?.parent === pid);
}

/** CPU time that the tree has used so far, its ended children included, in microseconds; null where there is no /proc. */
export function cpuMicroseconds(root: number): number | null {
  let ticks = 0;
  for (const pid of processTree(root)) ticks += readStat(pid)?.ticks ?? 0;
  return readStat(root) === null ? null : ticks * MICROSECONDS_PER_TICK;
}

export interface Memory {
  /** Resident now. */
  readonly residentMb: number;
  /** Resident at most since each process began. */
  readonly peakMb: number;
}

/** Memory of the tree in MB of 10^6 bytes; null where there is no /proc. */
export function memory(root: number): Memory | null {
  let resident = 0;
  let peak = 0;
  for (const pid of processTree(root)) {
    const status = readProc(pid, "status");
    if (status === null) continue;
    resident += kilobytes(status, "VmRSS");
    peak += kilobytes(status, "VmHWM");
  }
  return peak === 0 ? null : { residentMb: (resident * 1_024) / 1e6, peakMb: (peak * 1_024) / 1e6 };
}

/** Resets the peak memory, so that the start is not part of the measurement. Needs Linux and the permission. */
export function resetPeakMemory(root: number): void {
  for (const pid of processTree(root)) {
    try {
      writeFileSync(join("/proc", String(pid), "clear_refs"), "5");
    } catch {
      // Then the peak includes the start, which only makes it larger.
    }
  }
}

function kilobytes(status: string, field: string): number {
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(status)?.[1] ?? 0);
}

function processIds(): readonly number[] {
  try {
    return readdirSync("/proc").map(Number).filter(Number.isInteger);
  } catch {
    return [];
  }
}

/** Fields 4 and 14 to 17 of /proc/<pid>/stat (proc(5)); they are counted from behind the name, which may hold spaces. */
function readStat(pid: number): { readonly parent: number; readonly ticks: number } | null {
  const stat = readProc(pid, "stat");
  if (stat === null) return null;
  const fields = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .map(Number);
  const [parent = 0] = fields.slice(1, 2);
  return { parent, ticks: fields.slice(11, 15).reduce((sum, value) => sum + value, 0) };
}

function readProc(pid: number, file: string): string | null {
  try {
    return readFileSync(join("/proc", String(pid), file), "utf8");
  } catch {
    return null;
  }
}
