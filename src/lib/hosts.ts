/** Which of the gateway's hosts a request was sent to, by its Host header. */
import type { IncomingHttpHeaders } from "node:http";

/** `host`: in lower case, with its port unless that is the scheme's own; without one, any port is meant. */
export function isAtHost({ host: stated }: Pick<IncomingHttpHeaders, "host">, host: string): boolean {
  const asked = stated?.toLowerCase();
  return asked === host || (!host.includes(":") && asked?.replace(/:\d+$/, "") === host);
}
