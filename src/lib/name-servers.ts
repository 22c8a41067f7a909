import { Resolver } from "node:dns/promises";
import type { ResolvedAddress } from "./outbound-guard.js";

/** Milliseconds for one question to a name server, and questions. */
const ASK_MS = 1_000;
const TRIES = 2;

/**
 * Asks name servers for a name's addresses; rejects when there are none. The system's own lookup takes one of the process's few threads
 * until its servers answer, so a stranger's slow servers could keep all other names from being looked up. This one takes none.
 */
export async function askNameServers(hostname: string): Promise<readonly ResolvedAddress[]> {
  const resolver = new Resolver({ timeout: ASK_MS, tries: TRIES });
  const [four, six] = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
  const found = [
    ...(four.status === "fulfilled" ? four.value.map((address) => ({ address, family: 4 })) : []),
    ...(six.status === "fulfilled" ? six.value.map((address) => ({ address, family: 6 })) : []),
  ];
  if (found.length === 0) throw four.status === "rejected" ? four.reason : new Error("The name has no address.");
  return found;
}
