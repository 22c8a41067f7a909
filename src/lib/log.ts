/** The log of a process: JSON lines on standard output. */
import { type Logger, pino } from "pino";

/** A page: more than that is written at once. */
const LOG_WRITE_BYTES = 4_096;
/** Somebody may be looking on. */
const LOG_FLUSH_MS = 100;

export interface OpenedLog {
  readonly log: Logger;
  /** Whole lines of other processes, as they are. */
  write(lines: string): void;
  /** What is gathered is written before this returns. */
  flush(): void;
}

/**
 * Lines are gathered for a moment and handed to the system together, beside the work: a write for each costs more than the line, and a
 * reader who is slow holds up nobody. What is left when the process ends, however it ends but by SIGKILL, is written then.
 */
export function openLog(level: string): OpenedLog {
  const output = pino.destination({ sync: false, minLength: LOG_WRITE_BYTES, periodicFlush: LOG_FLUSH_MS });
  return { log: pino({ level }, output), write: (lines) => void output.write(lines), flush: () => output.flushSync() };
}
