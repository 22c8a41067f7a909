/** The log of a process: JSON lines on standard output. */
import { setTimeout as sleep } from "node:timers/promises";
import { type Logger, pino } from "pino";

/** More than that is written at once: some thirty lines of the access log. */
const LOG_WRITE_BYTES = 12 * 1_024;
/** Somebody may be looking on. */
const LOG_FLUSH_MS = 100;
const LOG_END_MS = 1_000;

/**
 * Writes a line of the level info that holds these fields (`,"name":value` for each) and this message: byte for byte the logger's own, for
 * what is written at every turn, by whoever can put its fields together in a third of the time. What a line begins with is asked of the
 * logger once, by pino's symbols for it.
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
  /** Whole lines of other processes, as they are. */
  write(lines: string): void;
  /** What is gathered is written before this returns. */
  flush(): void;
  /**
   * What is gathered is written, for a bounded time. To be waited for before the process ends by itself: whatever is left then is written
   * until somebody takes it, and when nobody reads the log any more, that is never.
   */
  end(): Promise<void>;
}

/**
 * Lines are gathered for a moment and handed to the system together, beside the work: a write for each costs more than the line, and a
 * reader who is slow holds up nobody. What is left when the process ends, however it ends but by SIGKILL, is written then.
 */
export function openLog(level: string): OpenedLog {
  const output = pino.destination({ sync: false, minLength: LOG_WRITE_BYTES, periodicFlush: LOG_FLUSH_MS });
  const end = async () => {
    const written = new Promise<void>((resolve) => output.flush(() => resolve()));
    await Promise.race([written, sleep(LOG_END_MS, undefined, { ref: false })]);
  };
  return { log: pino({ level }, output), write: (lines) => void output.write(lines), flush: () => output.flushSync(), end };
}
