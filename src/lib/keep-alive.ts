/**
 * Keeps a WebSocket alive, and detects a peer that is gone, which a connection does not notice by itself.
 *
 * A peer answers a ping after it has read everything sent before, so a late answer may also mean a slow reader. How long a peer may be
 * silent depends on unread data, here or in buffers on the way:
 *
 * - Without unread data it is gone when a ping is not answered within an interval.
 * - With unread data it is gone after `stalledMs` without a sign of life.
 */
import type { Socket } from "node:net";
import type { WebSocket } from "ws";

export interface KeepAlive {
  /** Interval of pings. */
  readonly pingMs: number;
  /** How long a peer with unread data may read nothing. */
  readonly stalledMs: number;
}

/** Node's count of bytes of the current write that the system has not taken; the write may be one large message. */
interface WritingSocket extends Socket {
  readonly _handle?: { readonly writeQueueSize?: number } | null;
}

/** `connection` carries the WebSocket. Calls `hangUp` when the peer has gone; the returned function ends the watch. */
export function keepAlive(socket: WebSocket, connection: Socket, { pingMs, stalledMs }: KeepAlive, hangUp: () => void): () => void {
  const peer = new Peer(socket, connection, stalledMs);
  let isOver = false;
  const timer = setInterval(() => {
    if (!peer.hasGone()) return peer.ping();
    // Data that arrived while the process was busy has not been read yet.
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
  /** Bytes sent without pings; of those, bytes before the last ping, and bytes read, as shown by an answered ping. */
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
    // A ping would only wait behind unsent data; and while the socket is paused, its answer is not read.
    if (this.unsent > 0 || this.socket.isPaused) return;
    const before = this.connection.bytesWritten;
    this.sentBeforePing = before - this.pingBytes;
    this.socket.ping();
    this.pingBytes += this.connection.bytesWritten - before;
    this.isPinged = true;
  }

  /** True after a sign of life since the last look, or when none can be expected. */
  private look(): boolean {
    const { connection, read, taken, queued, unsent } = this;
    this.read = connection.bytesRead;
    this.unsent = connection.writableLength;
    this.taken = connection.bytesWritten - this.unsent;
    this.queued = connection._handle?.writeQueueSize ?? 0;
    this.sent = connection.bytesWritten - this.pingBytes;
    // The system takes more only after the peer has taken some.
    const hasTaken = unsent > 0 && (this.taken !== taken || this.queued !== queued);
    return this.read !== read || hasTaken || (this.socket.isPaused && this.unsent === 0);
  }
}
