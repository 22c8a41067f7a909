/** A message port in the shape of a socket. */
import { Duplex } from "node:stream";
import type { MessagePort } from "node:worker_threads";

/** What `pg` uses of a `net.Socket`, over a message port. */
export class ChannelStream extends Duplex {
  readonly #open: () => Promise<MessagePort>;
  #port: MessagePort | null = null;

  constructor(open: () => Promise<MessagePort>) {
    // As a socket's: when the other side ends, this one does too.
    super({ allowHalfOpen: false });
    this.#open = open;
  }

  connect(): this {
    this.#open().then(
      (port) => this.#attach(port),
      (error: Error) => this.destroy(error),
    );
    return this;
  }

  setNoDelay(): this {
    return this;
  }

  setKeepAlive(): this {
    return this;
  }

  ref(): this {
    this.#port?.ref();
    return this;
  }

  unref(): this {
    this.#port?.unref();
    return this;
  }

  #attach(port: MessagePort): void {
    if (this.destroyed) {
      port.close();
      return;
    }
    this.#port = port;
    port.on("message", (answer: Uint8Array) => this.push(Buffer.from(answer.buffer, answer.byteOffset, answer.byteLength)));
    port.on("close", () => this.push(null));
    this.emit("connect");
  }

  override _read(): void {
    // Answers are pushed as they come: each is whole, and its query has asked for it.
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#port?.postMessage(chunk);
    done();
  }

  override _writev(chunks: readonly { readonly chunk: Buffer }[], done: (error?: Error | null) => void): void {
    this.#port?.postMessage(Buffer.concat(chunks.map(({ chunk }) => chunk)));
    done();
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#port?.close();
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#port?.close();
    done(error);
  }
}
