/**
 * The outbound guard: the only way to reach addresses that users name, such as reference images, upstreams of community models,
 * repositories and webhooks (docs/spec/outbound.md).
 *
 * 1. The URL is read strictly: https, no credentials, no fragment, a port of web servers, a public address.
 * 2. The name is resolved when connecting, all of its addresses must be public, and the socket dials one of those that were checked,
 *    so that a later DNS answer changes nothing.
 * 3. Redirects are not followed; bytes are counted as they arrive; one deadline covers everything.
 *
 * Hosts that the operator allows are exempt from https and from the public-address rule, and from nothing else.
 */
import { lookup } from "node:dns/promises";
import { isIP, type LookupFunction } from "node:net";
import ipaddr from "ipaddr.js";
import { Agent, buildConnector } from "undici";

export type OutboundProblem =
  /** The URL is not allowed: nothing was sent. */
  | "url"
  /** The host is unknown, not public, refuses connections or breaks them: one message for all, so that networks cannot be explored. */
  | "host"
  /** The answer was an error, a redirect, or an unrequested encoding. */
  | "answer"
  | "size"
  | "time";

/** The message is for the user who named the URL; `cause` is private. */
export class OutboundError extends Error {
  override readonly name = "OutboundError";

  constructor(
    readonly problem: OutboundProblem,
    message: string,
    cause?: unknown,
    /** The status, if the server answered. */
    readonly status?: number,
  ) {
    super(message, { cause });
  }

  /** A failed connection, which may succeed later. A refused host has no cause. */
  get isPassing(): boolean {
    return this.problem === "host" && this.cause !== undefined;
  }
}

export interface ResolvedAddress {
  readonly address: string;
  readonly family: number;
}

/** All addresses of a name; rejects when there are none. */
export type Resolve = (hostname: string) => Promise<readonly ResolvedAddress[]>;

export interface OutboundGuardOptions {
  /** Names and addresses without a port, IPv6 without brackets. */
  readonly allowHosts: readonly string[];
  readonly resolve?: Resolve;
  readonly connectTimeoutMs?: number;
}

export interface GuardedFetchOptions {
  readonly bytesMax: number;
  /** From the call to the last byte. */
  readonly timeoutMs: number;
  readonly accept: string;
  readonly signal: AbortSignal;
  /** For a URL from the operator's own upstream: any host is allowed. The rules about redirects, size and time hold. */
  readonly isTrusted?: boolean;
}

export interface FetchedFile {
  readonly bytes: Uint8Array;
  /** As the server states it, in lower case, without parameters; empty when absent. */
  readonly contentType: string;
}

const URL_CHARS_MAX = 2_048;
const HOST_CHARS_MAX = 253;
const CONNECT_TIMEOUT_MS = 3_000;
/** Connections to one origin, few enough for neither a port scan nor a flood. */
const CONNECTIONS_PER_ORIGIN = 16;
const WEB_URL = /^https?:\/\/[^/]/i;
/** White space, control characters and backslashes, which parsers interpret differently. */
const AMBIGUOUS = /[\s\\\p{Cc}]/u;
const AUTHORITY_WITH_USER = /^[a-z]+:\/\/[^/?#]*@/i;
/** Ports above 1023 that browsers refuse because other services listen there (Fetch standard, "bad ports"). */
const OTHER_SERVICES_PORTS = new Set([
  1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
]);
/** A public address that reaches a cloud's own service (Azure's WireServer). */
const CLOUD_SERVICES = new Set(["168.63.129.16"]);
/** The IPv6 range assigned for public use. */
const GLOBAL_IPV6 = ipaddr.IPv6.parseCIDR("2000::/3");

const HOST_MESSAGE = "The host of this URL is unknown, is not public, or does not answer.";

/** True for a globally routed address; special-purpose ranges are not. */
export function isPublicAddress(text: string): boolean {
  if (!ipaddr.isValid(text)) return false;
  const address = ipaddr.process(text);
  if (address.range() !== "unicast" || CLOUD_SERVICES.has(address.toString())) return false;
  return address.kind() === "ipv4" || (address as ipaddr.IPv6).match(GLOBAL_IPV6);
}

export class OutboundGuard {
  /** `connect` for undici's pools and agents: a connection to an address that is not public fails with an OutboundError. */
  readonly connect: buildConnector.connector;
  private readonly allowHosts: ReadonlySet<string>;
  private readonly resolve: Resolve;
  private readonly agent: Agent;
  private readonly trustedAgent: Agent;

  constructor(options: OutboundGuardOptions) {
    this.allowHosts = new Set(options.allowHosts.map(normalizeHost));
    this.resolve = options.resolve ?? ((hostname) => lookup(hostname, { all: true }));
    const timeout = options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS;
    this.connect = this.createConnector(timeout);
    const agentOptions = { connections: CONNECTIONS_PER_ORIGIN, pipelining: 1, keepAliveTimeout: 1_000 };
    this.agent = new Agent({ ...agentOptions, connect: this.connect });
    this.trustedAgent = new Agent({ ...agentOptions, connect: { timeout } });
  }

  /** A guard with the same rules that resolves names in another way. */
  withResolve(resolve: Resolve): OutboundGuard {
    return new OutboundGuard({ allowHosts: [...this.allowHosts], resolve });
  }

  /** Checks a URL without resolving its name. Throws an OutboundError with the fault. */
  parse(text: string): URL {
    if (text.length > URL_CHARS_MAX) throw new OutboundError("url", `A URL may have at most ${URL_CHARS_MAX} characters.`);
    const url = parseWebUrl(text);
    if (AUTHORITY_WITH_USER.test(text)) throw new OutboundError("url", "A URL may not hold credentials.");
    if (text.includes("#")) throw new OutboundError("url", "A URL may not hold a fragment.");
    if (this.isAllowed(url.hostname)) return url;
    if (url.protocol !== "https:") throw new OutboundError("url", "The URL must be https.");
    const port = Number(url.port || 443);
    if (port !== 443 && (port < 1024 || OTHER_SERVICES_PORTS.has(port)))
      throw new OutboundError("url", "Web servers do not use this port.");
    assertHost(bareHost(url.hostname));
    return url;
  }

  /** As `parse`, and requires that every address of its host is public at this moment. */
  async check(text: string): Promise<URL> {
    const url = this.parse(text);
    const host = bareHost(url.hostname);
    if (!this.isAllowed(host) && isIP(host) === 0) await this.resolvePublic(host);
    return url;
  }

  /** Sends a GET without the client's headers. Rejects with an OutboundError, or with the signal's reason when that is aborted. */
  async fetchGuarded(text: string, options: GuardedFetchOptions): Promise<FetchedFile> {
    const url = options.isTrusted ? parseWebUrl(text) : this.parse(text);
    options.signal.throwIfAborted();
    const deadline = new AbortController();
    const timer = setTimeout(
      () => deadline.abort(new OutboundError("time", `The URL did not give its content within ${options.timeoutMs} ms.`)),
      options.timeoutMs,
    );
    const leave = () => deadline.abort(options.signal.reason);
    options.signal.addEventListener("abort", leave, { once: true });
    try {
      return await this.read(url, options, deadline.signal);
    } catch (error) {
      if (deadline.signal.aborted) throw deadline.signal.reason;
      throw error instanceof OutboundError ? error : (findRefusal(error) ?? new OutboundError("host", HOST_MESSAGE, error));
    } finally {
      clearTimeout(timer);
      options.signal.removeEventListener("abort", leave);
    }
  }

  /** True for a host that the operator allows. */
  isExempt({ hostname }: URL): boolean {
    return this.isAllowed(hostname);
  }

  async close(): Promise<void> {
    await Promise.all([this.agent.close(), this.trustedAgent.close()]);
  }

  private async read(url: URL, { accept, bytesMax, isTrusted }: GuardedFetchOptions, signal: AbortSignal): Promise<FetchedFile> {
    const agent = isTrusted ? this.trustedAgent : this.agent;
    const { statusCode, headers, body } = await agent.request({
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      method: "GET",
      headers: { accept, "accept-encoding": "identity", "user-agent": "sluice" },
      signal,
    });
    // The stream reports an unread body as an error, which does not matter here.
    body.on("error", () => undefined);
    try {
      assertPlain(statusCode, headers["content-encoding"]);
      if (Number(headers["content-length"] ?? 0) > bytesMax) throw tooLarge(bytesMax);
      const parts: Buffer[] = [];
      let size = 0;
      for await (const part of body as AsyncIterable<Buffer>) {
        size += part.length;
        if (size > bytesMax) throw tooLarge(bytesMax);
        parts.push(part);
      }
      return { bytes: Buffer.concat(parts, size), contentType: mediaTypeOf(headers["content-type"]) };
    } finally {
      body.destroy();
    }
  }

  private createConnector(timeout: number): buildConnector.connector {
    const free = buildConnector({ timeout });
    const guarded = buildConnector({ timeout, lookup: this.createLookup() });
    return (target, done) => {
      const host = bareHost(target.hostname);
      if (this.isAllowed(host)) return free(target, done);
      // Addresses are not looked up, so they are checked here.
      const isRefused = target.protocol !== "https:" || (isIP(host) !== 0 && !isPublicAddress(host));
      if (isRefused) return done(new OutboundError("host", HOST_MESSAGE), null);
      return guarded(target, done);
    };
  }

  /** Returns the address that the socket dials: there is no second resolution. */
  private createLookup(): LookupFunction {
    return (hostname, { all }, done) => {
      this.resolvePublic(hostname).then(
        (addresses) => {
          const [first] = addresses;
          if (all) done(null, [...addresses]);
          else done(null, first.address, first.family);
        },
        (error: NodeJS.ErrnoException) => done(error, "", 0),
      );
    };
  }

  /** Refuses the name if any of its addresses is private. */
  private async resolvePublic(hostname: string): Promise<readonly [ResolvedAddress, ...ResolvedAddress[]]> {
    const resolved = await this.resolve(hostname).catch((error: unknown) => {
      throw new OutboundError("host", HOST_MESSAGE, error);
    });
    const [first, ...others] = resolved;
    if (first === undefined || !resolved.every(({ address }) => isPublicAddress(address))) throw new OutboundError("host", HOST_MESSAGE);
    return [first, ...others];
  }

  private isAllowed(hostname: string): boolean {
    return this.allowHosts.has(bareHost(hostname));
  }
}

function parseWebUrl(text: string): URL {
  if (!WEB_URL.test(text) || AMBIGUOUS.test(text) || !URL.canParse(text)) throw new OutboundError("url", "This is not an https URL.");
  return new URL(text);
}

/** URLs write IPv6 in brackets. */
function bareHost(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, "");
}

/** The form of the URL parser: `127.1` is 127.0.0.1, names are in lower case. */
function normalizeHost(host: string): string {
  const url = `http://${isIP(host) === 6 ? `[${host}]` : host}`;
  return bareHost(URL.canParse(url) ? new URL(url).hostname : host);
}

function assertHost(host: string): void {
  if (isIP(host) !== 0) {
    if (!isPublicAddress(host)) throw new OutboundError("url", HOST_MESSAGE);
    return;
  }
  const isName = host.length <= HOST_CHARS_MAX && host.includes(".") && !host.endsWith(".");
  if (!isName) throw new OutboundError("url", "The host of this URL is not a full domain name.");
}

function assertPlain(status: number, encoding: string | string[] | undefined): void {
  if (status >= 300 && status < 400) throw new OutboundError("answer", `The URL answers a redirect (${status}), which is not followed.`);
  if (status !== 200) throw new OutboundError("answer", `The URL answers with the status ${status}.`, undefined, status);
  if (encoding !== undefined && encoding !== "identity")
    throw new OutboundError("answer", "The URL answers with an encoding that was not asked for.");
}

function tooLarge(bytesMax: number): OutboundError {
  return new OutboundError("size", `The URL gives more than ${bytesMax} bytes.`);
}

function mediaTypeOf(header: string | string[] | undefined): string {
  return (typeof header === "string" ? header : "").split(";", 1)[0]?.trim().toLowerCase() ?? "";
}

/** A refusal may be wrapped: several failed addresses are one error. */
function findRefusal(error: unknown): OutboundError | null {
  if (error instanceof OutboundError) return error;
  if (error instanceof AggregateError) return error.errors.map(findRefusal).find((found) => found !== null) ?? null;
  return error instanceof Error && error.cause !== undefined ? findRefusal(error.cause) : null;
}
