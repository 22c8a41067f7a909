/**
 * A TCP proxy that breaks connections on command, in front of a database or an upstream:
 *
 *     const proxy = await startFaultProxy({ host: "127.0.0.1", port: 5432 });
 *     proxy.blackHole();        // bytes stop in both directions, new connections stand but say nothing; none is lost
 *     proxy.holdAnswers();      // what clients say still arrives, and what the server answers does not; none is lost
 *     proxy.resetAll();         // RST on every connection that stands
 *     proxy.refuse();           // RST on every new connection
 *     proxy.delayBy(500);       // every read is passed on that many milliseconds later
 *     proxy.cutAfter(100);      // each connection breaks when that many more bytes have come back from the server
 *     proxy.heal();             // all of it ends; what the black hole kept flows on
 *     await proxy.close();
 */
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

export interface FaultProxy {
  readonly port: number;
  /** Connections that stand at the moment. */
  readonly connectionCount: () => number;
  blackHole(): void;
  holdAnswers(): void;
  resetAll(): void;
  refuse(): void;
  delayBy(milliseconds: number): void;
  cutAfter(bytes: number): void;
  heal(): void;
  close(): Promise<void>;
}

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
  /** Bytes that may still come back from the server before the connection is cut. */
  bytesLeft: number;
}

/** What stands behind the proxy: a TCP port, or a Unix socket. */
export type FaultProxyTarget = { readonly host?: string; readonly port: number } | { readonly path: string };

export async function startFaultProxy(target: FaultProxyTarget): Promise<FaultProxy> {
  const pairs = new Set<Pair>();
  let isBlackHole = false;
  let isHoldingAnswers = false;
  let isRefusing = false;
  let delayMs = 0;
  let bytesLeft = Number.POSITIVE_INFINITY;

  function reset(pair: Pair): void {
    pairs.delete(pair);
    pair.client.resetAndDestroy();
    // A Unix socket knows no RST.
    if ("path" in target) pair.server.destroy();
    else pair.server.resetAndDestroy();
  }

  function pass(pair: Pair, from: Socket, to: Socket, bytes: Buffer): void {
    const isAnswer = from === pair.server;
    const passed = isAnswer ? bytes.subarray(0, pair.bytesLeft) : bytes;
    if (isAnswer) pair.bytesLeft -= passed.length;
    const write = (): void => {
      if (!to.destroyed && !to.write(passed)) from.pause();
      if (pair.bytesLeft <= 0) to.end(() => reset(pair));
    };
    if (delayMs > 0) setTimeout(write, delayMs);
    else write();
  }

  const listener = createServer({ noDelay: true }, (client) => {
    if (isRefusing) return client.resetAndDestroy();
    const server = connect("path" in target ? target : { host: "127.0.0.1", noDelay: true, ...target });
    const pair: Pair = { client, server, bytesLeft };
    pairs.add(pair);
    for (const [from, to] of [[client, server] as const, [server, client] as const]) {
      from.on("data", (bytes) => pass(pair, from, to, bytes));
      const isHeld = () => isBlackHole || (isHoldingAnswers && from === server);
      to.on("drain", () => !isHeld() && from.resume());
      from.on("error", () => reset(pair));
      from.on("end", () => to.end());
      from.on("close", () => pairs.delete(pair));
      if (isHeld()) from.pause();
    }
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const address = listener.address();
  if (address === null || typeof address === "string") throw new Error("The proxy has no port.");

  const everySocket = (): Socket[] => [...pairs].flatMap(({ client, server }) => [client, server]);
  return {
    port: address.port,
    connectionCount: () => pairs.size,
    blackHole: () => {
      isBlackHole = true;
      for (const socket of everySocket()) socket.pause();
    },
    holdAnswers: () => {
      isHoldingAnswers = true;
      for (const { server } of pairs) server.pause();
    },
    resetAll: () => {
      for (const pair of [...pairs]) reset(pair);
    },
    refuse: () => {
      isRefusing = true;
    },
    delayBy: (milliseconds) => {
      delayMs = milliseconds;
    },
    cutAfter: (bytes) => {
      bytesLeft = bytes;
      for (const pair of pairs) pair.bytesLeft = bytes;
    },
    heal: () => {
      isBlackHole = false;
      isHoldingAnswers = false;
      isRefusing = false;
      delayMs = 0;
      bytesLeft = Number.POSITIVE_INFINITY;
      for (const pair of pairs) pair.bytesLeft = bytesLeft;
      for (const socket of everySocket()) socket.resume();
    },
    close: async () => {
      for (const pair of [...pairs]) reset(pair);
      listener.close();
      await once(listener, "close");
    },
  };
}
