/** A worker's end of the channel to its primary. */
import type { Socket } from "node:net";
import type { WorkerLink } from "../services/composition/worker-link.js";
import type { Counters } from "../store/counters.js";
import type { CounterRequest, Standing, ToPrimary, ToWorker, WorkerSeat } from "./messages.js";

/** Delay that gathers reports of closed connections. */
const OPEN_TOLD_MS = 25;
/** A primary that does not answer in this time is blocked. */
const SIGNALLED_ANSWER_MS = 2_000;

export interface PrimaryOrders {
  /** From now on readiness is refused. */
  onLeaving(): void;
  /** Take no more connections and end. May come more than once. */
  onDrain(): void;
  /** The primary has ended. */
  onLost(): void;
}

export class PrimaryLink implements WorkerLink {
  readonly number: number;
  readonly isPrimaryReporter: boolean;
  readonly workers: number;
  readonly counters: Counters;
  private standing: Standing = { ready: 0, restarts: 0, isLeaving: false };
  private accept: ((socket: Socket) => void) | null = null;
  private readonly givers = new Map<string, (body: unknown) => Promise<unknown>>();
  private readonly counting = new Map<number, (waitMs: number) => void>();
  private readonly pendingQuestions = new Map<number, (answers: readonly unknown[]) => void>();
  private nextId = 1;
  private open = 0;
  private openTimer: NodeJS.Timeout | null = null;

  constructor(
    { number, isPrimaryReporter, workers }: WorkerSeat,
    private readonly orders: PrimaryOrders,
  ) {
    this.number = number;
    this.isPrimaryReporter = isPrimaryReporter;
    this.workers = workers;
    this.counters = {
      count: (rule, name) => this.count({ method: "count", rule, name }),
      take: (rule, name, units, needed) => this.count({ method: "take", rule, name, units, needed }),
      close: () => undefined,
    };
    process.on("message", (message: ToWorker, socket?: Socket) => this.receive(message, socket));
    process.once("disconnect", () => {
      // Counters may forget, so pending calls are let through.
      for (const resolve of this.counting.values()) resolve(0);
      for (const resolve of this.pendingQuestions.values()) resolve([]);
      orders.onLost();
    });
  }

  get ready(): number {
    return this.standing.ready;
  }

  get restarts(): number {
    return this.standing.restarts;
  }

  get isLeaving(): boolean {
    return this.standing.isLeaving;
  }

  /** This process got a signal. A supervisor may have signalled the whole gateway, which decides when its workers drain. */
  askToDrain(): void {
    if (process.connected) this.send({ kind: "signalled" });
    const answerMs = process.connected ? SIGNALLED_ANSWER_MS : 0;
    setTimeout(() => {
      if (!this.isLeaving) this.orders.onDrain();
    }, answerMs).unref();
  }

  /** Starts taking connections, which go to `accept`. */
  serve(newOwnerKey: string | null, accept: (socket: Socket) => void): void {
    this.accept = accept;
    this.send({ kind: "ready", newOwnerKey });
  }

  /** Stops taking connections. */
  stopServing(): void {
    this.accept = null;
    this.send({ kind: "stopping" });
  }

  answer(question: string, give: (body: unknown) => Promise<unknown>): void {
    this.givers.set(question, give);
  }

  askAll(question: string, body: unknown, timeoutMs: number): Promise<readonly unknown[]> {
    return this.request(this.pendingQuestions, [], (id) => ({ kind: "ask", id, question, body, timeoutMs }));
  }

  private count(request: CounterRequest): Promise<number> {
    return this.request(this.counting, 0, (id) => ({ kind: "count", id, request }));
  }

  private request<Result>(
    waiting: Map<number, (result: Result) => void>,
    lost: Result,
    toMessage: (id: number) => ToPrimary,
  ): Promise<Result> {
    if (!process.connected) return Promise.resolve(lost);
    const id = this.nextId++;
    return new Promise((resolve) => {
      waiting.set(id, (result) => {
        waiting.delete(id);
        resolve(result);
      });
      this.send(toMessage(id));
    });
  }

  private receive(message: ToWorker, socket: Socket | undefined): void {
    switch (message.kind) {
      case "connection":
        this.take(message.id, socket);
        break;
      case "ping":
        this.send({ kind: "pong", id: message.id });
        break;
      case "standing": {
        const wasLeaving = this.isLeaving;
        this.standing = message.standing;
        if (this.isLeaving && !wasLeaving) this.orders.onLeaving();
        break;
      }
      case "drain":
        this.orders.onDrain();
        break;
      case "counted":
        this.counting.get(message.id)?.(message.waitMs);
        break;
      case "answers":
        this.pendingQuestions.get(message.id)?.(message.answers);
        break;
      case "question":
        void this.reply(message.id, message.question, message.body);
        break;
    }
  }

  private take(id: number, socket: Socket | undefined): void {
    const { accept } = this;
    if (!accept) {
      // The primary keeps its own descriptor for another worker, so closing this one does not affect the client.
      socket?.destroy();
      this.send({ kind: "refused", id });
      return;
    }
    if (socket) this.open += 1;
    // A connection that the primary has no report of is given to another worker when this process dies, so nothing is read before the
    // report.
    this.send({ kind: "taken", id, open: this.open }, () => socket && accept(socket));
    if (!socket) return;
    socket.on("close", () => this.reportOpen());
    // As for an HTTP server's own connections: a client may close its side after its request.
    socket.allowHalfOpen = true;
  }

  private reportOpen(): void {
    this.open -= 1;
    this.openTimer ??= setTimeout(() => {
      this.openTimer = null;
      this.send({ kind: "open", open: this.open });
    }, OPEN_TOLD_MS).unref();
  }

  private async reply(id: number, question: string, body: unknown): Promise<void> {
    const answer = await this.givers
      .get(question)?.(body)
      .catch(() => undefined);
    this.send(answer === undefined ? { kind: "answer", id } : { kind: "answer", id, answer });
  }

  /** `onSent` runs when the message was sent, or the primary is gone. */
  private send(message: ToPrimary, onSent: () => void = () => undefined): void {
    if (process.connected) process.send?.(message, undefined, undefined, onSent);
    else onSent();
  }
}
