/**
 * One worker, from its primary's side. The primary keeps a connection that it handed over until the worker reports it as taken: nothing was
 * read from it before, so when the worker dies first, another one gets it without the client noticing. The same holds when the worker did
 * not receive it, for want of a descriptor: messages are ordered, so its report of a later message shows that.
 */
import { type ChildProcess, fork } from "node:child_process";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Standing, ToPrimary, ToWorker, WorkerSeat } from "./messages.js";

/** A worker with this many unanswered pings gets no new connections while others answer. */
const BUSY_PINGS = 2;
/** Its event loop hangs. With a ping each second this is half a minute, as container supervisors allow. */
const HUNG_PINGS = 30;
/** Time to read an ended worker's last output, which takes a few turns of the event loop. */
const LAST_WORDS_MS = 1_000;
const LAST_WORDS_LOOK_MS = 1;

export interface WorkerEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Null: never ready. */
  readonly servedMs: number | null;
  /** The system could not start a process. */
  readonly error: Error | null;
}

export interface WorkerEvents {
  onReady(newOwnerKey: string | null): void;
  /** It stopped taking connections, or their number changed. */
  onChange(): void;
  /** It got a signal. */
  onSignalled(): void;
  onRequest(request: Extract<ToPrimary, { kind: "count" | "ask" }>): void;
  /** A connection that it will not serve, for another worker. */
  onReturned(socket: Socket): void;
  onLog(lines: string): void;
  onEnd(end: WorkerEnd): void;
}

export class WorkerProcess {
  /** It takes connections. */
  isServing = false;
  /** The last answer to each question. */
  readonly lastAnswers = new Map<string, unknown>();
  /** Resolves when it has ended and its output was read. */
  readonly closed: Promise<void>;
  private readonly child: ChildProcess;
  private readonly handed = new Map<number, Socket>();
  private readonly pendingQuestions = new Map<number, (answer: unknown) => void>();
  private open = 0;
  private nextId = 1;
  private readyAt: number | null = null;
  private isUnreachable = false;
  private unansweredPings = 0;
  /** It failed to receive a connection sent before the last received message. */
  private hasLost = false;

  constructor(
    program: string,
    readonly seat: WorkerSeat,
    private readonly events: WorkerEvents,
  ) {
    // Standard error has the reason of a failed start or a crash, and is passed through.
    const stdio = ["ignore", "pipe", "inherit", "ipc"] as const;
    this.child = fork(program, [JSON.stringify(seat)], { stdio: [...stdio], serialization: "advanced" });
    this.child.on("message", (message: ToPrimary) => this.receive(message));
    // Also emitted for failed signals and messages; the worker's end then has the reason.
    this.child.on("error", (error) => {
      if (this.child.pid === undefined) this.onEnd(null, null, error);
    });
    this.closed = new Promise((resolve) => this.child.once("close", () => resolve()));
    this.child.once("disconnect", () => this.giveBack());
    this.child.once("exit", (code, signal) => {
      this.onEnd(code, signal);
      void this.hearLastWords();
    });
    this.forwardLog();
  }

  /** It was ready, and can be reached. */
  get isAnswering(): boolean {
    return this.readyAt !== null && !this.isUnreachable;
  }

  /** Its event loop is blocked, or it has no descriptors. */
  get isBusy(): boolean {
    return this.unansweredPings > BUSY_PINGS || this.hasLost;
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  /** Connections that it has or will get. */
  get load(): number {
    return this.open + this.handed.size;
  }

  hand(socket: Socket): void {
    const id = this.nextId++;
    this.handed.set(id, socket);
    this.send({ kind: "connection", id }, socket);
  }

  announce(standing: Standing): void {
    this.send({ kind: "standing", standing });
  }

  answer(message: Extract<ToWorker, { kind: "counted" | "answers" }>): void {
    this.send(message);
  }

  /** Undefined without an answer in time. */
  ask(question: string, body: unknown, timeoutMs: number): Promise<unknown> {
    const id = this.nextId++;
    return new Promise((resolve) => {
      const settle = (answer: unknown) => {
        clearTimeout(timer);
        this.pendingQuestions.delete(id);
        if (answer !== undefined) this.lastAnswers.set(question, answer);
        resolve(answer);
      };
      const timer = setTimeout(settle, timeoutMs, undefined);
      this.pendingQuestions.set(id, settle);
      this.send({ kind: "question", id, question, body });
    });
  }

  /** Tells it to take no more connections, and to end when requests under way are done. */
  drain(): void {
    this.send({ kind: "drain" });
    // A starting worker may not receive messages yet.
    if (this.readyAt === null) this.child.kill("SIGTERM");
  }

  kill(): void {
    this.child.kill("SIGKILL");
  }

  /**
   * Call once a second of the primary's own time, so that a suspended machine counts one ping. False: the worker's event loop hangs, and it
   * must be killed.
   */
  ping(): boolean {
    if (!this.isAnswering) return true;
    this.unansweredPings += 1;
    if (this.unansweredPings > HUNG_PINGS) return false;
    this.send({ kind: "ping", id: this.nextId++ });
    return true;
  }

  private send(message: ToWorker, socket?: Socket): void {
    if (this.isUnreachable) {
      this.giveBack();
      return;
    }
    // A failed send means that the worker is ending, which is reported elsewhere.
    if (socket) this.child.send(message, socket, { keepOpen: true }, () => undefined);
    else this.child.send(message, () => undefined);
  }

  private receive(message: ToPrimary): void {
    switch (message.kind) {
      case "ready":
        this.readyAt = performance.now();
        this.isServing = true;
        this.events.onReady(message.newOwnerKey);
        break;
      case "signalled":
        this.events.onSignalled();
        break;
      case "stopping":
        this.isServing = false;
        this.events.onChange();
        break;
      case "taken":
        this.open = message.open;
        this.takeHanded(message.id)?.destroy();
        this.returnLost(message.id);
        break;
      case "refused":
        this.returnHanded(message.id);
        this.returnLost(message.id);
        break;
      case "pong":
        this.unansweredPings = 0;
        this.returnLost(message.id);
        break;
      case "open":
        this.open = message.open;
        break;
      case "answer":
        this.pendingQuestions.get(message.id)?.(message.answer);
        break;
      default:
        this.events.onRequest(message);
    }
  }

  private onEnd(code: number | null, signal: NodeJS.Signals | null, error: Error | null = null): void {
    this.isServing = false;
    this.events.onEnd({ code, signal, error, servedMs: this.readyAt === null ? null : performance.now() - this.readyAt });
  }

  private returnHanded(id: number): void {
    const socket = this.takeHanded(id);
    if (socket) this.events.onReturned(socket);
  }

  /** Returns connections sent before a message that it received, and that it did not report. */
  private returnLost(receivedId: number): void {
    const lost = [...this.handed.keys()].filter((id) => id < receivedId);
    this.hasLost = lost.length > 0;
    for (const id of lost) this.returnHanded(id);
  }

  private takeHanded(id: number): Socket | undefined {
    const socket = this.handed.get(id);
    this.handed.delete(id);
    return socket;
  }

  /**
   * Detects the channel's end, which Node reports only when no connection was in transit. First reads the remaining reports: a connection
   * that was read from cannot be handed to another worker.
   */
  private async hearLastWords(): Promise<void> {
    for (let ms = 0; this.child.connected && ms < LAST_WORDS_MS; ms += LAST_WORDS_LOOK_MS) await sleep(LAST_WORDS_LOOK_MS);
    if (this.child.connected) {
      for (const socket of this.handed.values()) socket.destroy();
      this.handed.clear();
    }
    this.giveBack();
  }

  /** Returns all connections that it did not take. */
  private giveBack(): void {
    this.isUnreachable = true;
    this.isServing = false;
    const sockets = [...this.handed.values()];
    this.handed.clear();
    for (const socket of sockets) this.events.onReturned(socket);
    for (const settle of [...this.pendingQuestions.values()]) settle(undefined);
  }

  /** A line cut off by the worker's death is dropped. */
  private forwardLog(): void {
    let rest = "";
    this.child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      const end = text.lastIndexOf("\n") + 1;
      if (end > 0) this.events.onLog(rest + text.slice(0, end));
      rest = end > 0 ? text.slice(end) : rest + text;
    });
  }
}
