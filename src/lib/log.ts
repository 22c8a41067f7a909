/** The log of a process: JSON lines on standard output. */
import { setTimeout as sleep } from "node:timers/promises";
import { type Logger, pino } from "pino";

/** Buffered bytes that are written at once: some thirty lines of the access log. */
const LOG_WRITE_BYTES = 12 * 1_024;
/** A short delay, for people who follow the log. */
const LOG_FLUSH_MS = 100;
const LOG_END_MS = 1_000;

/**
 * Returns a writer of info lines with these fields (`,"name":value` each) and this message: the bytes are the logger's own, at a third of
 * the time, for lines that are written constantly. The logger gives the line's start once, by pino's symbols.
 */
export function infoWriterOf(log: Logger, message: string): (fields: string) => void {
  const { lsCacheSym, timeSym, chindingsSym, streamSym } = pino.symbols;
  const parts = log as unknown as Readonly<Record<symbol, unknown>>;
  const level = (parts[lsCacheSym] as Readonly<Record<number, string>>)[log.levels.values.info ?? 0] ?? "";
  const time = parts[timeSym] as () => string;
  const bindings = parts[chindingsSym] as string;
  const stream = parts[streamSym] as { write(line: string): void };
  const end = `,"msg":${JSON.stringify(message)}}\n`;
  return (fields) => {
    if (log.isLevelEnabled("info")) stream.write(level + time() + bindings + fields + end);
  };
}

export interface OpenedLog {
  readonly log: Logger;
  /** Writes whole lines of other processes unchanged. */
  write(lines: string): void;
  /** Writes all gathered lines before it returns. */
  flush(): void;
  /**
   * Writes the gathered lines for a bounded time. Wait for it before the process exits: lines left then are written synchronously, which
   * never ends when the log is not read.
   */
  end(): Promise<void>;
}

/**
 * Gathers lines for a moment and writes them together, asynchronously: a write per line costs more than the line, and a slow reader must
 * not block. Lines left at exit are written then, except after SIGKILL.
 */
export function openLog(level: string): OpenedLog {
  const output = pino.destination({ sync: false, minLength: LOG_WRITE_BYTES, periodicFlush: LOG_FLUSH_MS });
  const end = async () => {
    const written = new Promise<void>((resolve) => output.flush(() => resolve()));
    await Promise.race([written, sleep(LOG_END_MS, undefined, { ref: false })]);
  };
  return { log: pino({ level }, output), write: (lines) => void output.write(lines), flush: () => output.flushSync(), end };
}
