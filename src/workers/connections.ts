/**
 * The port of a gateway with several workers. The primary accepts each connection and hands it, unread, to the least loaded worker that is
 * not busy. While no worker serves, it answers that the gateway is starting.
 */
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { listenAt } from "../http/listening.js";
import { answerWhileStarting } from "../http/starting.js";

export interface Taker {
  /** It may take a connection late or never. */
  readonly isBusy: boolean;
  readonly load: number;
  hand(socket: Socket): void;
}

export class Connections {
  private readonly starting = createHttpServer(answerWhileStarting);
  private readonly server = createServer({ pauseOnConnect: true, allowHalfOpen: true, noDelay: true }, (socket) => this.give(socket));
  private isStopped = false;

  /** `takers`: the workers that serve now. */
  constructor(private readonly takers: () => readonly Taker[]) {}

  /** Resolves with the port. Rejects with a StartError that states the remedy. */
  async listen(host: string, port: number): Promise<number> {
    await listenAt(this.server, host, port);
    return (this.server.address() as AddressInfo).port;
  }

  give(socket: Socket): void {
    if (socket.destroyed) return;
    let chosen: Taker | undefined;
    for (const taker of this.takers()) if (chosen === undefined || isBetter(taker, chosen)) chosen = taker;
    if (chosen) {
      chosen.hand(socket);
    } else if (this.isStopped) {
      socket.destroy();
    } else {
      this.starting.emit("connection", socket);
      socket.resume();
    }
  }

  /** Stops accepting connections. */
  stop(): void {
    this.isStopped = true;
    this.server.close();
    this.starting.closeAllConnections();
  }
}

function isBetter(one: Taker, other: Taker): boolean {
  return one.isBusy === other.isBusy ? one.load < other.load : other.isBusy;
}
