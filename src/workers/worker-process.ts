/**
 * One worker, as its primary sees it. A connection that is handed to it stays the primary's too until the worker has said that it is the
 * worker's: before that nothing of it has been read, so when the worker dies first, another gets it and its client notices nothing.
 * So does another when the worker has not received it (it has no descriptor free): messages come and go in order, so what the worker
 * says of a later message shows that.
 */
import { type ChildProcess, fork } from "node:child_process";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Standing, ToPrimary, ToWorker, WorkerSeat } from "./messages.js";

/** A worker that leaves so many pings without an answer is asked by nobody new, if others answer. */
const BUSY_PINGS = 2;
/** Its event loop hangs. With a ping each second that is half a minute, as supervisors of containers allow. */
const HUNG_PINGS = 30;
/** What a worker has written can be read when it has ended; it takes a turn of the event loop, or a few. */
const LAST_WORDS_MS = 1_000;
const LAST_WORDS_LOOK_MS = 1;

export interface WorkerEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Null: it has never been ready. */
  readonly servedMs: number | null;
  /** The system had no process to give. */
  readonly error: Error | null;
}

export interface WorkerEvents {
  onReady(newOwnerKey: string | null): void;
  /** It takes no more connections, or has more or fewer to its name. */
  onChange(): void;
  /** It was sent a signal. */
  onSignalled(): void;
  /** What it asks of the primary. */
  onRequest(request: Extract<ToPrimary, { kind: "count" | "ask" }>): void;
  /** A connection that it will not serve, and that is anybody's. */
  onReturned(socket: Socket): void;
  /** Whole lines of its log. */
  onLog(lines: string): void;
  onEnd(end: WorkerEnd): void;
}

export class WorkerProcess {
  /** It takes connections. */
  isServing = false;
  /** What was learned from the last answer to each question. */
  readonly lastAnswers = new Map<string, unknown>();
  /** Resolves when it has ended and all that it wrote has been read. */
  readonly closed: Promise<void>;
  private readonly child: ChildProcess;
  private readonly handed = new Map<number, Socket>();
  private readonly asked = new Map<number, (answer: unknown) => void>();
  private open = 0;
  private nextId = 1;
  private readyAt: number | null = null;
  private isUnreachable = false;
  /** Since it was last heard to answer one. */
  private unansweredPings = 0;
  /** It did not receive a connection that came before the last message that it did receive. */
  private hasLost = false;

  constructor(
    program: string,
    readonly seat: WorkerSeat,
    private readonly events: WorkerEvents,
  ) {
    // What it writes to standard error is why it cannot start, or why it died: that goes out as it is.
    const stdio = ["ignore", "pipe", "inherit", "ipc"] as const;
    this.child = fork(program, [JSON.stringify(seat)], { stdio: [...stdio], serialization: "advanced" });
    this.child.on("message", (message: ToPrimary) => this.receive(message));
    // Said on failed signals and messages, too: what has become of the worker its end says.
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

  /** It has been ready, and is heard. */
  get isAnswering(): boolean {
    return this.readyAt !== null && !this.isUnreachable;
  }

  /** Its event loop is held up, or it has no descriptors, as far as is known. */
  get isBusy(): boolean {
    return this.unansweredPings > BUSY_PINGS || this.hasLost;
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  /** Connections that it has or is to have. */
  get load(): number {
    return this.open + this.handed.size;
  }

  hand(socket: Socket): void {
    const id = this.nextId++;
    this.handed.set(id, socket);
    this.send({ kind: "connection", id }, socket);
  }

  tell(standing: Standing): void {
    this.send({ kind: "standing", standing });
  }

  answer(message: Extract<ToWorker, { kind: "counted" | "answers" }>): void {
    this.send(message);
  }

  /** Undefined when it gives no answer, or not in time. */
  ask(question: string, body: unknown, timeoutMs: number): Promise<unknown> {
    const id = this.nextId++;
    return new Promise((resolve) => {
      const settle = (answer: unknown) => {
        clearTimeout(timer);
        this.asked.delete(id);
        if (answer !== undefined) this.lastAnswers.set(question, answer);
        resolve(answer);
      };
      const timer = setTimeout(settle, timeoutMs, undefined);
      this.asked.set(id, settle);
      this.send({ kind: "question", id, question, body });
    });
  }

  /** Has it take no more connections, and end when what is under way is over. */
  drain(): void {
    this.send({ kind: "drain" });
    // One that is still starting may hear no message yet.
    if (this.readyAt === null) this.child.kill("SIGTERM");
  }

  kill(): void {
    this.child.kill("SIGKILL");
  }

  /**
   * To be called each second of the primary's: a machine that stood still for an hour has counted one. False: the worker's event loop hangs,
   * and it has to be ended.
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
    // When that fails the worker is ending, which is heard of otherwise.
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
        this.asked.get(message.id)?.(message.answer);
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

  /** What was handed before a message that it has received, and that it has said nothing of. */
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
   * Node tells of a channel's end only when no connection was on its way through it, so it is looked for. What the worker has said of
   * connections is to be heard first: one that it has read from is nobody else's.
   */
  private async hearLastWords(): Promise<void> {
    for (let ms = 0; this.child.connected && ms < LAST_WORDS_MS; ms += LAST_WORDS_LOOK_MS) await sleep(LAST_WORDS_LOOK_MS);
    if (this.child.connected) {
      for (const socket of this.handed.values()) socket.destroy();
      this.handed.clear();
    }
    this.giveBack();
  }

  /** Nothing more is heard of it: what it has not taken, it never will. */
  private giveBack(): void {
    this.isUnreachable = true;
    this.isServing = false;
    const sockets = [...this.handed.values()];
    this.handed.clear();
    for (const socket of sockets) this.events.onReturned(socket);
    for (const settle of [...this.asked.values()]) settle(undefined);
  }

  /** A line that a worker was killed in is nobody's. */
  private forwardLog(): void {
    let rest = "";
    this.child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      const end = text.lastIndexOf("\n") + 1;
      if (end > 0) this.events.onLog(rest + text.slice(0, end));
      rest = end > 0 ? text.slice(end) : rest + text;
    });
  }
}
