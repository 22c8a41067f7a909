/**
 * Checks addresses in a request that an upstream would fetch: images, videos, recordings and documents, in any field. The operator's own
 * upstreams may be in a network that callers must not reach, so such an address must pass the outbound guard, whichever upstream serves the
 * model. `data:` URLs and the media host's own links are exempt. An upstream resolves the name again later: against a name that changes in
 * between only its network protects.
 */
import { invalidInput } from "../../errors.js";
import { OutboundError, type OutboundGuard } from "../../lib/outbound-guard.js";
import { ownValue } from "../../lib/own-values.js";
import { NAMED_HOSTS_MAX } from "../../limits.js";
import { SANDBOX_UPSTREAM } from "../catalog/sandbox.js";
import type { Media } from "../files/media.js";
import type { Candidate } from "./routing/candidate.js";

export interface NamedAddress {
  readonly text: string;
  /** Dotted path in the request. */
  readonly param: string;
}

type Fields = Readonly<Record<string, unknown>>;

/** Text with the scheme of an address, leniently matched. */
const ADDRESS = /^\s*(?:[a-z][a-z0-9+.-]{0,30}:[/\\]|(?:https?|ftp|file):)/i;
/** Fields whose strings are read, never fetched. */
const TEXTS: ReadonlySet<string> = new Set([
  ...["content", "text", "refusal", "reasoning", "reasoning_content", "input", "prompt", "negative_prompt", "instructions", "stop"],
  ...["role", "name", "type", "title", "filename", "description", "transcript", "arguments", "output", "model", "user"],
]);
/** Fields that are never fetched: descriptions, labels, results. */
const NEVER_FETCHED: ReadonlySet<string> = new Set([
  ...["functions", "response_format", "tool_choice", "metadata", "logit_bias", "cache_control"],
  ...["tool_calls", "function_call", "reasoning_details", "annotations", "citations", "extra_content"],
]);
/** Fields that declare a tool. A vendor's own tool may have addresses in others. */
const NEVER_FETCHED_OF_TOOLS: ReadonlySet<string> = new Set([
  ...NEVER_FETCHED,
  ...["function", "custom", "parameters", "input_schema", "output_schema", "schema", "json_schema"],
]);

/** All addresses in the fields of a request, a part or an event. */
export function addressesIn(fields: Fields): readonly NamedAddress[] {
  const found: NamedAddress[] = [];
  visitFields(fields, () => "", NEVER_FETCHED, found);
  return found;
}

/** `path` is a function, as most fields have no address. */
function visitFields(fields: Fields, path: () => string, skipped: ReadonlySet<string>, found: NamedAddress[]): void {
  for (const name of Object.keys(fields)) {
    if (skipped.has(name)) continue;
    const own = () => `${path()}${name}`;
    visit(ownValue(fields, name), own, name === "tools" ? NEVER_FETCHED_OF_TOOLS : skipped, TEXTS.has(name), found);
  }
}

function visit(value: unknown, path: () => string, skipped: ReadonlySet<string>, isText: boolean, found: NamedAddress[]): void {
  if (typeof value === "string") {
    if (!isText && ADDRESS.test(value)) found.push({ text: value, param: path() });
  } else if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index += 1) visit(value[index], () => `${path()}.${index}`, skipped, isText, found);
  } else if (typeof value === "object" && value !== null) {
    visitFields(value as Fields, () => `${path()}.`, skipped, found);
  }
}

/** For models that run in the gateway. */
export function fetchesNothing({ route }: Candidate): boolean {
  return route.upstreamId === SANDBOX_UPSTREAM.id;
}

export class NamedAddresses {
  constructor(
    private readonly guard: Pick<OutboundGuard, "parse" | "check">,
    private readonly own: Pick<Media, "idOf">,
  ) {}

  /** Rejects with BAD_REQUEST naming the first forbidden address. Resolves hosts one by one, up to a limit. */
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
