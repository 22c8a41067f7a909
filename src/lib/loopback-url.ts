/** Where a server that listens at an address of this machine is reached from this machine. */
import { isIPv6 } from "node:net";

/** Without a slash at the end. Node's servers at `::` take IPv4 too, whatever the system's default is. */
export function loopbackUrl(address: string, port: number): string {
  if (address === "0.0.0.0" || address === "::") return `http://127.0.0.1:${port}`;
  return `http://${isIPv6(address) ? `[${address}]` : address}:${port}`;
}
