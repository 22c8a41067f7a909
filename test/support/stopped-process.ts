/** Processes that a test stops where they are and lets go on, as SIGSTOP and SIGCONT do. */
import { readdirSync, readFileSync } from "node:fs";

/** Returns when none of its threads runs any more. */
export function stopProcess(pid: number): void {
  if (signal(pid, "SIGSTOP")) while (!isStopped(pid));
}

/** Lets it go on. */
export function continueProcess(pid: number): void {
  signal(pid, "SIGCONT");
}

/** False when it has ended meanwhile. */
function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}

/** The state stands behind the name, which is in parentheses and may hold anything. */
function isStopped(pid: number): boolean {
  try {
    return readdirSync(`/proc/${pid}/task`).every((thread) => {
      const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, "utf8");
      return "TZX".includes(stat.charAt(stat.lastIndexOf(")") + 2));
    });
  } catch {
    // It has ended.
    return true;
  }
}
