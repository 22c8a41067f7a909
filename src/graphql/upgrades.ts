/** WebSocket paths of one HTTP server: each has a handler of its own, whichever face it belongs to. */
import type { IncomingMessage, Server } from "node:http";
import type { Duplex } from "node:stream";
import { INERT_POLICY, NO_SNIFFING } from "../lib/inert-answer.js";

export type UpgradeHandler = (req: IncomingMessage, socket: Duplex, head: Buffer) => void;

/** Routes upgrade requests by path and refuses the others, and those that `isAnswered` does not want; the returned function ends the routing. */
export function routeUpgrades(
  httpServer: Server,
  handlers: Readonly<Record<string, UpgradeHandler>>,
  isAnswered: (req: IncomingMessage, path: string) => boolean = () => true,
): () => void {
  const byPath = new Map(Object.entries(handlers));
  const onUpgrade: UpgradeHandler = (req, socket, head) => {
    const [path = ""] = (req.url ?? "").split("?", 1);
    const handler = byPath.get(path);
    if (handler && isAnswered(req, path)) handler(req, socket, head);
    else refuseUpgrade(socket, 404, "Not Found");
  };
  httpServer.on("upgrade", onUpgrade);
  return () => {
    httpServer.off("upgrade", onUpgrade);
  };
}

export function refuseUpgrade(socket: Duplex, status: number, reason: string): void {
  // A peer that resets the connection now must not take the process with it.
  socket.on("error", () => socket.destroy());
  const headers = [
    "Connection: close",
    "Content-Length: 0",
    `X-Content-Type-Options: ${NO_SNIFFING}`,
    `Content-Security-Policy: ${INERT_POLICY}`,
  ];
  socket.end(`HTTP/1.1 ${status} ${reason}\r\n${headers.join("\r\n")}\r\n\r\n`);
}
