/**
 * Node accepts one connection per socket in each turn of its event loop. Under load a turn takes many milliseconds, so a burst of
 * connections would wait for seconds. Several sockets of one port accept as many per turn (docs/decisions/sockets-of-one-port.md).
 */
import { type AddressInfo, createServer, type ListenOptions, type Server, type Socket } from "node:net";
import { hasFastPaths } from "./fast-paths.js";

const SOCKETS = 8;

/** The installed types are those of the oldest supported Node. */
export type Place = ListenOptions & { readonly host: string; readonly port: number; readonly reusePort?: boolean };

export type Listen = (server: Server, place: Place) => Promise<void>;

/** `onClosed`: all connections that the server itself accepted are closed. */
export type StopListening = (onClosed?: () => void) => void;

/** Listens on several sockets of one port where the system supports that, else on one. Rejects as `listen` does. */
export async function listenOnSharedPort(server: Server, host: string, port: number, listen: Listen): Promise<StopListening> {
  if (!hasFastPaths() || !canSharePort()) {
    await listen(server, { host, port });
    return (onClosed) => void server.close(onClosed);
  }
  if (port !== 0) await assertFree(host, port, listen);
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
async function assertFree(host: string, port: number, listen: Listen): Promise<void> {
  const probe = createServer();
  await listen(probe, { host, port });
  await new Promise((resolve) => probe.close(resolve));
}

/** Linux distributes connections evenly, and Node supports shared ports from 22.12 on (23.1 of the odd line). */
function canSharePort(): boolean {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  return process.platform === "linux" && (major > 23 || (major === 23 && minor >= 1) || (major === 22 && minor >= 12));
}
