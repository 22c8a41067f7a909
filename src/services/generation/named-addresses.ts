/**
 * What a caller names by its address for an upstream to fetch: pictures, films, recordings and documents of a chat. An upstream of the
 * operator's own stands in a network where an address may lead to what no caller can reach, so nobody is asked to fetch one that the
 * gateway itself would not: it passes the outbound guard first, whoever serves the model. `data:` URLs and the media host's own
 * links name nothing elsewhere.
 *
 * What an upstream resolves a moment later is its own affair: an address whose name changes in between is held up by its network alone.
 */

import { invalidInput } from "../../errors.js";
import { OutboundError, type OutboundGuard } from "../../lib/outbound-guard.js";
import { ownValue } from "../../lib/own-values.js";
import { NAMED_HOSTS_MAX } from "../../limits.js";
import type { Model } from "../catalog/model.js";
import { SANDBOX_UPSTREAM } from "../catalog/sandbox.js";
import type { Media } from "../files/media.js";

export interface NamedAddress {
  readonly text: string;
  /** Where it stands in the request, dotted. */
  readonly param: string;
}

/** With a scheme that leads somewhere, however carelessly it is written. */
const ADDRESS = /^\s*(?:[a-z][a-z0-9+.-]{0,30}:[/\\]|(?:https?|ftp|file):)/i;
/** Fields that are read by the model, and fetched by nobody. */
const TEXTS: ReadonlySet<string> = new Set([
  ...["text", "refusal", "reasoning", "reasoning_content", "reasoning_details", "tool_calls", "function_call"],
  ...["role", "name", "type", "title", "filename"],
  // Of realtime events.
  ...["instructions", "transcript", "arguments", "output", "description", "prompt"],
]);

/** Every address in the parts of messages, or in the fields of another input; texts are not searched for any. */
export function addressesIn(value: unknown, param: string): readonly NamedAddress[] {
  const found: NamedAddress[] = [];
  const visit = (inner: unknown, path: string, isMessage: boolean) => {
    if (typeof inner === "string") {
      if (ADDRESS.test(inner)) found.push({ text: inner, param: path });
      return;
    }
    if (typeof inner !== "object" || inner === null) return;
    for (const [name, part] of Object.entries(inner)) {
      const isText = TEXTS.has(name) || (isMessage && name === "content" && typeof part === "string");
      if (!isText) visit(part, `${path}.${name}`, false);
    }
  };
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) if (typeof item === "object") visit(item, `${param}.${index}`, true);
  } else if (typeof value === "object") visit(value, param, false);
  return found;
}

/** Those of an event that a caller sends in a realtime session. */
export function addressesInEvent(event: Readonly<Record<string, unknown>>): readonly NamedAddress[] {
  return ["item", "response", "session"].flatMap((name) => addressesIn(ownValue(event, name), name));
}

/** What runs in the gateway itself. */
export function fetchesNothing({ upstreamId }: Model): boolean {
  return upstreamId === SANDBOX_UPSTREAM.id;
}

export class NamedAddresses {
  constructor(
    private readonly guard: Pick<OutboundGuard, "parse" | "check">,
    /** The media host's files. */
    private readonly own: Pick<Media, "idOf">,
  ) {}

  /** Rejects with BAD_REQUEST naming the first that may not be fetched. One look-up at a time, of a bounded number of hosts. */
  async check(addresses: readonly NamedAddress[], signal: AbortSignal): Promise<void> {
    const elsewhere = addresses.filter(({ text }) => this.own.idOf(text) === null);
    const hosts = new Map<string, NamedAddress>();
    for (const address of elsewhere) {
      const { host } = await refusing(address, async () => this.guard.parse(address.text));
      if (!hosts.has(host)) hosts.set(host, address);
    }
    if (hosts.size > NAMED_HOSTS_MAX) {
      throw invalidInput(`At most ${NAMED_HOSTS_MAX} hosts may be named in one request: send the rest as data: URLs.`, elsewhere[0]?.param);
    }
    for (const address of hosts.values()) {
      signal.throwIfAborted();
      await refusing(address, () => this.guard.check(address.text));
    }
  }
}

async function refusing<Result>({ param }: NamedAddress, check: () => Promise<Result>): Promise<Result> {
  try {
    return await check();
  } catch (error) {
    throw error instanceof OutboundError ? invalidInput(`${error.message} Send it as a data: URL instead.`, param) : error;
  }
}
