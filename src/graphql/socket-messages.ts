/**
 * The messages of one WebSocket, in order. A large one is scanned, decoded and parsed in turns of the event loop, while its socket is
 * not read.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { WebSocket } from "ws";
import { AppError } from "../errors.js";
import { decodeInTurns, TURN_BYTES } from "../http/body.js";
import { jsonExcess } from "../lib/json-bounds.js";
import { GRAPHQL_JSON_BOUNDS } from "../limits.js";

export interface MessageReader {
  readonly onText: (text: string) => void;
  /** Called for a message that exceeds a structural limit. */
  readonly onRefused: (reason: string) => void;
}

const NOUN = "The message";

export class SocketMessages {
  /** Large messages in progress, and those behind them: a paused socket may already have read some. */
  #waiting = 0;
  /** Paused here. A socket whose answers are not read is paused and resumed elsewhere. */
  #isPausing = false;
  #last: Promise<void> = Promise.resolve();

  constructor(
    private readonly socket: WebSocket,
    private readonly reader: MessageReader,
  ) {}

  take(message: Buffer): void {
    if (this.#waiting === 0 && message.length <= TURN_BYTES) {
      this.#read(message);
      return;
    }
    this.#waiting += 1;
    if (!this.socket.isPaused) {
      this.#isPausing = true;
      this.socket.pause();
    }
    this.#last = this.#last.then(() => this.#readInTurns(message));
  }

  #read(message: Buffer): void {
    const excess = jsonExcess(message, GRAPHQL_JSON_BOUNDS);
    if (excess === null) this.reader.onText(message.toString());
    else this.reader.onRefused(`${NOUN} ${excess}.`);
  }

  async #readInTurns(message: Buffer): Promise<void> {
    try {
      const { text } = await decodeInTurns(message, GRAPHQL_JSON_BOUNDS, NOUN);
      await nextTurn();
      if (this.socket.readyState === this.socket.OPEN) this.reader.onText(text);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      this.reader.onRefused(error.message);
    } finally {
      this.#waiting -= 1;
      if (this.#waiting === 0 && this.#isPausing) {
        this.#isPausing = false;
        this.socket.resume();
      }
    }
  }
}
