/** Listens on a port, and explains failures to the operator. */
import type { Server } from "node:net";
import { listenOnSharedPort, type Place, type StopListening } from "../fast/shared-port.js";
import { PassingStartError, StartError } from "../lib/start-error.js";

/** Resolves when connections are accepted. Rejects with a StartError that states the remedy. */
export async function listenAt(server: Server, host: string, port: number): Promise<void> {
  await listen(server, { host, port });
}

/** As `listenAt`, accepting bursts of connections (fast/shared-port.ts). */
export function listenWithBursts(server: Server, host: string, port: number): Promise<StopListening> {
  return listenOnSharedPort(server, host, port, listen);
}

function listen(server: Server, place: Place): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (error: NodeJS.ErrnoException) => {
      const Failure = OPERATORS_CODES.has(error.code ?? "") ? StartError : PassingStartError;
      reject(new Failure(sentenceOf(error, place), { cause: error }));
    };
    server.once("error", onError);
    server.listen(place, () => {
      server.off("error", onError);
      resolve();
    });
  });
}

/** Other errors may pass: another process ends, a network comes up. */
const OPERATORS_CODES: ReadonlySet<string> = new Set(["EACCES", "ENOTFOUND"]);

function sentenceOf({ code, message }: NodeJS.ErrnoException, { host, port }: Place): string {
  switch (code) {
    case "EADDRINUSE":
      return `Port ${port} is in use: stop what listens there, or set PORT to another one.`;
    case "EACCES":
      return `Port ${port} may not be listened on by this user: set PORT to one from 1024 on, or allow it (on Linux: CAP_NET_BIND_SERVICE).`;
    case "EADDRNOTAVAIL":
      return `HOST ${host} is no address of this machine: set it to 127.0.0.1, to 0.0.0.0 for every network, or to an address that it has.`;
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `HOST ${host} is no address, and no name that this machine can resolve: set it to 127.0.0.1, or to 0.0.0.0 for every network.`;
    default:
      return `Cannot listen on port ${port} of ${host}: ${message}. Set PORT and HOST to an address that can be listened on.`;
  }
}
