/** Listens on a port, and explains failures to the operator. */
import { type AddressInfo, createServer, type ListenOptions, type Server, type Socket } from "node:net";
import { PassingStartError, StartError } from "../lib/start-error.js";

/**
 * Node accepts one connection per socket in each turn of its event loop. Under load a turn takes many milliseconds, so a burst of
 * connections would wait for seconds (docs/decisions/sockets-of-one-port.md).
 */
const SOCKETS = 8;

/** `onClosed`: all connections that the server itself accepted are closed. */
export type StopListening = (onClosed?: () => void) => void;

/** Resolves when connections are accepted. Rejects with a StartError that states the remedy. */
export async function listenAt(server: Server, host: string, port: number): Promise<void> {
  await listen(server, { host, port });
}

/**
 * As `listenAt`, on several sockets of one port where the system supports that: a busy process then accepts as many connections per turn.
 */
export async function listenOnSharedPort(server: Server, host: string, port: number): Promise<StopListening> {
  if (!canSharePort()) {
    await listenAt(server, host, port);
    return (onClosed) => void server.close(onClosed);
  }
  if (port !== 0) await assertFree(host, port);
  await listen(server, { host, port, reusePort: true });
  const shared = { host, port: (server.address() as AddressInfo).port, reusePort: true };
  const others = Array.from({ length: SOCKETS - 1 }, () =>
    createServer({ noDelay: true, allowHalfOpen: true }, (socket: Socket) => void server.emit("connection", socket)),
  );
  const stop: StopListening = (onClosed) => {
    for (const other of others) other.close();
    server.close(onClosed);
  };
  try {
    for (const other of others) await listen(other, shared);
  } catch (error) {
    stop();
    throw error;
  }
  return stop;
}

/** Rejects when another gateway uses the port, which sockets that share a port would not notice. */
async function assertFree(host: string, port: number): Promise<void> {
  const probe = createServer();
  await listen(probe, { host, port });
  await new Promise((resolve) => probe.close(resolve));
}

/** Linux distributes connections evenly, and Node supports shared ports from 22.12 on (23.1 of the odd line). */
function canSharePort(): boolean {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  return process.platform === "linux" && (major > 23 || (major === 23 && minor >= 1) || (major === 22 && minor >= 12));
}

/** The installed types are those of the oldest supported Node. */
type Place = ListenOptions & { readonly host: string; readonly port: number; readonly reusePort?: boolean };

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
