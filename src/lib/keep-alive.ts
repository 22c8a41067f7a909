/**
 * Keeps a WebSocket alive, and tells a peer that has gone, which a connection by itself does not notice.
 *
 * A peer answers a ping once it has read all that was sent before it, so a late answer may mean a slow reader as well as a lost one.
 * How long a peer may be silent depends on whether it has something left to read, here or in the buffers on the way:
 *
 * - It has nothing: it has gone when a ping is not answered within an interval.
 * - It has something: it has gone when it gives no sign of life for `stalledMs`.
 */
import type { Socket } from "node:net";
import type { WebSocket } from "ws";

export interface KeepAlive {
  /** How often a peer is pinged. */
  readonly pingMs: number;
  /** How long a peer that has something left to read may take nothing of it. */
  readonly stalledMs: number;
}

/** Node's own record of what the system has not taken yet of the write under way, which may be one large message. */
interface WritingSocket extends Socket {
  readonly _handle?: { readonly writeQueueSize?: number } | null;
}

/** `connection` carries the WebSocket. Calls `hangUp` when the peer has gone; the returned function ends the watch. */
export function keepAlive(socket: WebSocket, connection: Socket, { pingMs, stalledMs }: KeepAlive, hangUp: () => void): () => void {
  const peer = new Peer(socket, connection, stalledMs);
  let isOver = false;
  const timer = setInterval(() => {
    if (!peer.hasGone()) return peer.ping();
    // What came while the process was busy with other things has not been read yet.
    setImmediate(() => {
      if (isOver || !peer.hasGone()) return;
      end();
      hangUp();
    });
  }, pingMs);
  const end = () => {
    isOver = true;
    clearInterval(timer);
  };
  return end;
}

class Peer {
  private read = 0;
  private taken = 0;
  private queued = 0;
  private unsent = 0;
  /** Bytes that were sent, pings aside; those before the last ping, and those of them that were read, since a ping behind them was answered. */
  private sent = 0;
  private sentBeforePing = 0;
  private sentAndRead = 0;
  private pingBytes = 0;
  private signAt = performance.now();
  private isPinged = false;

  constructor(
    private readonly socket: WebSocket,
    private readonly connection: WritingSocket,
    private readonly stalledMs: number,
  ) {
    this.look();
    socket.on("pong", () => {
      this.sentAndRead = this.sentBeforePing;
    });
  }

  hasGone(): boolean {
    if (this.look()) {
      this.signAt = performance.now();
      this.isPinged = false;
    }
    const hasSomethingToRead = this.sent > this.sentAndRead;
    return hasSomethingToRead ? performance.now() - this.signAt >= this.stalledMs : this.isPinged;
  }

  ping(): void {
    // It would only wait behind what is not taken; and while the peer is not read from, its answer is not seen.
    if (this.unsent > 0 || this.socket.isPaused) return;
    const before = this.connection.bytesWritten;
    this.sentBeforePing = before - this.pingBytes;
    this.socket.ping();
    this.pingBytes += this.connection.bytesWritten - before;
    this.isPinged = true;
  }

  /** True when there was a sign of life since the last look, or there could be none. */
  private look(): boolean {
    const { connection, read, taken, queued, unsent } = this;
    this.read = connection.bytesRead;
    this.unsent = connection.writableLength;
    this.taken = connection.bytesWritten - this.unsent;
    this.queued = connection._handle?.writeQueueSize ?? 0;
    this.sent = connection.bytesWritten - this.pingBytes;
    // The system takes nothing more until the peer has taken something.
    const hasTaken = unsent > 0 && (this.taken !== taken || this.queued !== queued);
    return this.read !== read || hasTaken || (this.socket.isPaused && this.unsent === 0);
  }
}
