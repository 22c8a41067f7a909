/**
 * The process of one run: its limits and its output. It ends by itself, at a limit, or when it is killed, always with all of its children.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, readSync, writeFileSync } from "node:fs";
import type { Readable, Writable } from "node:stream";
import { CODE_RUN_LOG_BYTES_MAX, CODE_RUN_NICENESS, CODE_RUN_WATCH_MS } from "../limits.js";
import { GUEST_ENVIRONMENT, type Isolation } from "./isolation.js";

export interface GuestLimits {
  readonly cpuMs: number;
  /** Resident; Deno itself takes about 60 MiB. */
  readonly memoryBytes: number;
  readonly wallMs: number;
  /** Bytes on standard output. */
  readonly outputBytes: number;
  /** Bytes on standard error. */
  readonly printBytes: number;
}

export type GuestLimit = "cpu" | "memory" | "wall" | "output" | "print";

/** How it ended: at a limit, killed by the gateway, or by itself. A signal is 128 plus its number, as in a shell. */
export type GuestEnd =
  | { readonly reason: "limit"; readonly limit: GuestLimit }
  | { readonly reason: "killed" }
  | { readonly reason: "exit"; readonly code: number };

/** Unit of processor time in /proc: Linux reports hundredths of a second. */
const MS_PER_TICK = 10;
/** How long its printed output is read after it was killed. */
const PRINT_END_MS = 1_000;
const SIGNAL_CODES: Readonly<Record<string, number>> = {
  SIGABRT: 134,
  SIGTRAP: 133,
  SIGILL: 132,
  SIGSEGV: 139,
  SIGBUS: 135,
  SIGXCPU: 152,
  SIGKILL: 137,
};

export class GuestProcess {
  /** Resolves when the process and its children are gone and the output has been read. */
  readonly ended: Promise<GuestEnd>;
  private readonly child: ChildProcess;
  private readonly stdin: Writable;
  private readonly stdout: Readable;
  private readonly printed: Buffer[] = [];
  private printedBytes = 0;
  private outputBytes = 0;
  private end: GuestEnd | null = null;
  private guestPid: number | null = null;
  /** Its process id may belong to another process by now. */
  private hasExited = false;
  private readonly timers: NodeJS.Timeout[];
  private readonly usage = new UsageReader();

  /** `onOutput` gets standard output chunk by chunk; it must not throw. */
  constructor(
    isolation: Isolation,
    private readonly limits: GuestLimits,
    onOutput: (chunk: Buffer) => void,
  ) {
    const { file, args, identity } = isolation;
    this.child = spawn(file, args, {
      ...identity,
      cwd: "/",
      env: { ...GUEST_ENVIRONMENT },
      // Its own session and process group: no terminal, and all of it can be killed at once.
      detached: true,
      stdio: ["pipe", "pipe", "pipe", isolation.reportsPid ? "pipe" : "ignore"],
    });
    if (this.child.pid !== undefined) yieldToOthers(this.child.pid);
    const [stdin, stdout, stderr, info] = this.child.stdio;
    this.stdin = stdin as Writable;
    this.stdout = stdout as Readable;
    // A guest that does not read has ended or will; its end reports the reason.
    this.stdin.on("error", () => undefined);
    this.stdout.on("data", (chunk: Buffer) => this.takeOutput(chunk, onOutput));
    (stderr as Readable).on("data", (chunk: Buffer) => this.takePrinted(chunk));
    if (!isolation.reportsPid) this.guestPid = this.child.pid ?? null;
    else this.readPid(info as Readable);
    this.timers = [
      setTimeout(() => this.stop({ reason: "limit", limit: "wall" }), limits.wallMs),
      setInterval(() => this.watch(), CODE_RUN_WATCH_MS),
    ];
    this.ended = new Promise((resolve) => {
      const settle = (end: GuestEnd) => {
        for (const timer of this.timers) clearTimeout(timer);
        this.usage.close();
        this.end ??= end;
        resolve(this.end);
      };
      this.child.once("exit", () => {
        this.hasExited = true;
      });
      this.child.once("error", () => settle({ reason: "exit", code: 127 }));
      this.child.once("close", (code, signal) => settle({ reason: "exit", code: code ?? SIGNAL_CODES[signal ?? ""] ?? 128 }));
    });
  }

  get print(): string {
    return Buffer.concat(this.printed).toString();
  }

  /** Resolves when the bytes were accepted, or never will be. */
  send(bytes: Uint8Array): Promise<void> {
    return new Promise((resolve) => {
      if (this.stdin.writable) this.stdin.write(bytes, () => resolve());
      else resolve();
    });
  }

  /** Ends the guest's program, unless the script keeps it alive. */
  endInput(): void {
    this.stdin.end();
  }

  pause(): void {
    this.stdout.pause();
  }

  resume(): void {
    this.stdout.resume();
  }

  kill(): void {
    this.stop({ reason: "killed" });
  }

  private stop(end: GuestEnd): void {
    if (this.end !== null) return;
    this.end = end;
    for (const timer of this.timers) clearTimeout(timer);
    const { pid } = this.child;
    if (!this.hasExited) {
      // The guest's own process first: it is the first of its namespace, and all others end with it.
      if (this.guestPid !== null) killIfThere(this.guestPid);
      if (pid !== undefined) killIfThere(-pid);
    }
    // Printed output is read to its end, which comes when the process is gone.
    const [stdin, stdout, stderr, info] = this.child.stdio;
    for (const stream of [stdin, stdout, info]) stream?.destroy();
    setTimeout(() => stderr?.destroy(), PRINT_END_MS).unref();
  }

  private takeOutput(chunk: Buffer, onOutput: (chunk: Buffer) => void): void {
    this.outputBytes += chunk.length;
    if (this.outputBytes > this.limits.outputBytes) this.stop({ reason: "limit", limit: "output" });
    else onOutput(chunk);
  }

  private takePrinted(chunk: Buffer): void {
    if (this.printedBytes < CODE_RUN_LOG_BYTES_MAX) this.printed.push(chunk.subarray(0, CODE_RUN_LOG_BYTES_MAX - this.printedBytes));
    this.printedBytes += chunk.length;
    if (this.printedBytes > this.limits.printBytes) this.stop({ reason: "limit", limit: "print" });
  }

  private readPid(info: Readable): void {
    let text = "";
    info.on("error", () => undefined);
    info.on("data", (chunk: Buffer) => {
      text += chunk.toString();
      const [, pid] = /"child-pid": (\d+)/.exec(text) ?? [];
      if (pid !== undefined) this.guestPid = Number(pid);
    });
  }

  private watch(): void {
    if (this.guestPid === null || this.hasExited) return;
    const { cpuMs, memoryBytes } = this.usage.read(this.guestPid);
    if (cpuMs > this.limits.cpuMs) this.stop({ reason: "limit", limit: "cpu" });
    else if (memoryBytes > this.limits.memoryBytes) this.stop({ reason: "limit", limit: "memory" });
  }
}

/** Reads a process's usage from files that stay open, so that another process with a reused id is not mistaken for it. */
class UsageReader {
  private readonly buffer = Buffer.alloc(4096);
  private files: { readonly stat: number; readonly status: number } | null = null;

  /** Zero once it has ended. */
  read(pid: number): { cpuMs: number; memoryBytes: number } {
    try {
      this.files ??= { stat: openSync(`/proc/${pid}/stat`, "r"), status: openSync(`/proc/${pid}/status`, "r") };
      // After the name in parentheses, which may hold anything: state is the first field, utime and stime the 12th and 13th.
      const stat = this.text(this.files.stat);
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      const [, kibibytes = "0"] = /^VmRSS:\s+(\d+) kB$/m.exec(this.text(this.files.status)) ?? [];
      return { cpuMs: (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK, memoryBytes: Number(kibibytes) * 1024 };
    } catch {
      return { cpuMs: 0, memoryBytes: 0 };
    }
  }

  close(): void {
    if (this.files === null) return;
    closeSync(this.files.stat);
    closeSync(this.files.status);
    this.files = null;
  }

  private text(file: number): string {
    return this.buffer.toString("latin1", 0, readSync(file, this.buffer, 0, this.buffer.length, 0));
  }
}

/** Lowers the session's own priority: with autogroups, niceness counts only within a session (sched(7), "The autogroup feature"). */
function yieldToOthers(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/autogroup`, `${CODE_RUN_NICENESS}`);
  } catch {
    // No autogroups here.
  }
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}
