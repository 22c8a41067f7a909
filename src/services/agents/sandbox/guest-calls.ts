/**
 * Calls of a guest to the gateway while it runs: requests, whose answers it reads piece by piece, and tools. It learns why a call failed,
 * and nothing about its caller.
 */
import { AppError } from "../../../errors.js";
import { CODE_RUN_CALLS_MAX, CODE_RUN_REPLY_BYTES_MAX } from "../limits.js";
import { FrameError } from "./frames.js";
import type { FromGuest, HeaderList, ToGuest } from "./messages.js";

export interface GuestRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: HeaderList;
  readonly body: Uint8Array;
}

export interface GuestReply {
  readonly status: number;
  readonly headers: HeaderList;
  readonly body: AsyncIterator<Uint8Array>;
}

/** The services that a run may use. A thrown AppError or GuestCallError is reported to the guest. */
export interface GuestHost {
  fetch(request: GuestRequest, signal: AbortSignal): Promise<GuestReply>;
  callTool(server: string, tool: string, args: unknown, signal: AbortSignal): Promise<unknown>;
}

/** Its message is for the guest. */
export class GuestCallError extends Error {
  override readonly name = "GuestCallError";
}

type CallMessage = Extract<FromGuest, { readonly id: number }>;
type StartMessage = Extract<CallMessage, { readonly type: "fetch" | "tool" }>;
type Send = (message: ToGuest, bytes?: Uint8Array) => Promise<void>;

interface OpenCall {
  readonly controller: AbortController;
  body: AsyncIterator<Uint8Array> | null;
  isPulling: boolean;
  bytes: number;
}

export class GuestCalls {
  private readonly open = new Map<number, OpenCall>();
  private made = 0;

  constructor(
    private readonly host: GuestHost,
    private readonly send: Send,
  ) {}

  /** Throws FrameError for a message that the guest's program never sends. */
  receive(message: CallMessage, bytes: Uint8Array): void {
    if (message.type === "cancel") this.close(message.id);
    else if (message.type === "pull") this.pull(message.id);
    else this.start(message, bytes);
  }

  /** Aborts calls under way when the run is over. */
  end(): void {
    for (const id of [...this.open.keys()]) this.close(id);
  }

  private start(message: StartMessage, bytes: Uint8Array): void {
    if (this.open.has(message.id)) throw new FrameError("A guest used the number of a call twice.");
    this.made += 1;
    const call: OpenCall = { controller: new AbortController(), body: null, isPulling: false, bytes: 0 };
    this.open.set(message.id, call);
    this.begin(message, bytes, call).catch((error: unknown) => this.fail(message.id, call, error));
  }

  private async begin(message: StartMessage, bytes: Uint8Array, call: OpenCall): Promise<void> {
    const { id } = message;
    const { signal } = call.controller;
    if (this.made > CODE_RUN_CALLS_MAX) throw new GuestCallError(`An agent may make ${CODE_RUN_CALLS_MAX} calls in one run.`);
    if (message.type === "tool") {
      const result = await this.host.callTool(message.server, message.tool, message.args, signal);
      if (this.open.delete(id)) await this.send({ type: "result", id, result });
      return;
    }
    const { method, path, headers } = message;
    const reply = await this.host.fetch({ method, path, headers, body: bytes }, signal);
    call.body = reply.body;
    if (signal.aborted) {
      await reply.body.return?.();
      return;
    }
    await this.send({ type: "head", id, status: reply.status, headers: reply.headers });
  }

  /** A pull may cross with the end of its call. */
  private pull(id: number): void {
    const call = this.open.get(id);
    if (!call) return;
    if (call.isPulling || call.body === null) throw new FrameError("A guest read what was not there to be read.");
    call.isPulling = true;
    this.sendNext(id, call, call.body).catch((error: unknown) => this.fail(id, call, error));
  }

  private async sendNext(id: number, call: OpenCall, body: AsyncIterator<Uint8Array>): Promise<void> {
    const next = await body.next();
    if (!this.open.has(id)) return;
    if (next.done) {
      this.open.delete(id);
      return this.send({ type: "end", id });
    }
    call.bytes += next.value.length;
    if (call.bytes > CODE_RUN_REPLY_BYTES_MAX) throw new GuestCallError(`The answer is larger than ${CODE_RUN_REPLY_BYTES_MAX} bytes.`);
    await this.send({ type: "data", id }, next.value);
    call.isPulling = false;
  }

  private fail(id: number, call: OpenCall, error: unknown): void {
    if (!this.open.has(id)) return;
    this.close(id);
    const isForGuest = error instanceof AppError || error instanceof GuestCallError;
    void this.send({ type: "error", id, message: isForGuest ? error.message : "The call failed." });
    call.controller.abort();
  }

  private close(id: number): void {
    const call = this.open.get(id);
    if (!call) return;
    this.open.delete(id);
    call.controller.abort();
    call.body?.return?.()?.then(undefined, () => undefined);
  }
}
