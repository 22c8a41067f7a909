/**
 * Exchanges with one MCP server over Streamable HTTP. A session is what the server knows its client by, and nothing more: each exchange
 * has a transport of its own, which ends with it, so that no connection stays open, and what goes wrong with a call is known to be
 * that call's.
 */

import { randomUUID } from "node:crypto";
import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import type { FetchLike, Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";
import { type RequestInit, Response } from "undici";
import { MCP_FAREWELL_MS } from "./limits.js";

export interface McpServerAddress {
  readonly url: URL;
  readonly fetch: Fetch;
  readonly headers: Readonly<Record<string, string>>;
}

export interface McpSession {
  /** Empty for a server that keeps none. */
  readonly id: string;
  /** What was agreed on; undefined where nobody has asked, for the latest. */
  readonly protocolVersion: string | undefined;
}

export interface McpExchangeOptions {
  readonly bytesMax: number;
  readonly timeoutMs: number;
  /** Its reason is thrown when it is aborted; the server is told. */
  readonly signal: AbortSignal;
}

export type McpRequestOptions = NonNullable<Parameters<Client["request"]>[2]>;
type McpWork<Result> = (client: Client, options: McpRequestOptions) => Promise<Result>;

const CLIENT_INFO = { name: "sluice", version: "1" };
/** The bounds of exchanges are kept here and not by the SDK. */
const SDK_TIMEOUT_MS = 2 ** 31 - 1;
/** Schemas of answers are the servers' own words: nothing is compiled from them. */
const UNCHECKED = { getValidator: () => (input: unknown) => ({ valid: true as const, data: input as never, errorMessage: undefined }) };

/** The greeting that the protocol begins with. */
export async function openSession(address: McpServerAddress, options: McpExchangeOptions): Promise<McpSession> {
  const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
  return exchange(
    address,
    options,
    (fetch) => new StreamableHTTPClientTransport(address.url, { fetch, requestInit: { headers: address.headers } }),
    async (transport) => ({ id: transport.sessionId ?? "", protocolVersion: transport.protocolVersion }),
  );
}

/** One request, or several in a row, within a session. */
export async function inSession<Result>(
  address: McpServerAddress,
  session: McpSession,
  options: McpExchangeOptions,
  work: McpWork<Result>,
): Promise<Result> {
  const [{ StreamableHTTPClientTransport }, { LATEST_PROTOCOL_VERSION }] = await Promise.all([
    import("@modelcontextprotocol/sdk/client/streamableHttp.js"),
    import("@modelcontextprotocol/sdk/types.js"),
  ]);
  const create = (fetch: FetchLike) => {
    // A transport that has a session id, be it the empty one, does not greet again.
    const transport = new StreamableHTTPClientTransport(address.url, {
      fetch,
      requestInit: { headers: address.headers },
      sessionId: session.id,
    });
    transport.setProtocolVersion(session.protocolVersion ?? LATEST_PROTOCOL_VERSION);
    return transport;
  };
  return exchange(address, options, create, (_transport, client, requestOptions) => work(client, requestOptions));
}

/** Tells the server that a session has ended. Never rejects: servers forget by themselves, too. */
export async function endSession(address: McpServerAddress, session: McpSession): Promise<void> {
  if (session.id === "") return;
  const headers: Record<string, string> = { ...address.headers, "mcp-session-id": session.id };
  if (session.protocolVersion !== undefined) headers["mcp-protocol-version"] = session.protocolVersion;
  const signal = AbortSignal.timeout(MCP_FAREWELL_MS);
  await address
    .fetch(address.url, { method: "DELETE", headers, signal, redirect: "manual" })
    .then((response) => response.body?.cancel())
    .catch(() => undefined);
}

async function exchange<Transport extends Parameters<Client["connect"]>[0], Result>(
  address: McpServerAddress,
  { bytesMax, timeoutMs, signal }: McpExchangeOptions,
  createTransport: (fetch: FetchLike) => Transport,
  work: (transport: Transport, client: Client, options: McpRequestOptions) => Promise<Result>,
): Promise<Result> {
  const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
  signal.throwIfAborted();
  const stop = new AbortController();
  const leave = () => stop.abort(signal.reason);
  const timer = setTimeout(() => stop.abort(new Error(`There was no result within ${timeoutMs} ms.`)), timeoutMs);
  signal.addEventListener("abort", leave, { once: true });
  let watched: WatchedFetch | undefined;
  const client = new Client(CLIENT_INFO, { jsonSchemaValidator: UNCHECKED });
  try {
    return await new Promise<Result>((resolve, reject) => {
      stop.signal.addEventListener("abort", () => reject(stop.signal.reason), { once: true });
      // Streams whose events have ids may end early: the SDK then asks for the rest.
      let isResumable = false;
      watched = watchFetch(address.fetch, { bytesMax, isResumable: () => isResumable, onLost: reject });
      const transport = createTransport(watched.fetch as unknown as FetchLike);
      const onresumptiontoken = () => {
        isResumable = true;
      };
      const options = { signal: stop.signal, timeout: SDK_TIMEOUT_MS, onresumptiontoken };
      client
        .connect(withUniqueIds(transport), options)
        .then(() => work(transport, client, options))
        .then(resolve, reject);
    });
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", leave);
    watched?.close();
    if (stop.signal.aborted) void closeAfterFarewell(client, watched);
    else await client.close();
  }
}

/** The SDK tells the server of a call that was given up: that message is still let out. */
async function closeAfterFarewell(client: Client, watched: WatchedFetch | undefined): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, MCP_FAREWELL_MS).unref();
  });
  await Promise.race([watched?.settled(), late]);
  clearTimeout(timer);
  await client.close();
}

// The `fetch` that one exchange with an MCP server is made with. The SDK's transport says neither that an answer is too long nor that
// it ended before the result was there; this says both.

type Fetch = (url: URL, init: RequestInit) => Promise<Response>;

interface WatchedFetch {
  readonly fetch: Fetch;
  /** Resolves when what was sent last has been answered, in whatever way. */
  settled(): Promise<void>;
  /** Nothing more is wanted. */
  close(): void;
}

/**
 * How long the end of a body may take to be understood before it counts as an answer without a result: in steps, because a process that was
 * stopped for longer than that finds one timer due before it has done anything else.
 */
const LATE_RESULT_STEPS = 10;
const LATE_RESULT_STEP_MS = 25;

interface Watch {
  /** Of all bodies together. */
  readonly bytesMax: number;
  /** True when a body that ends early will be asked for again. */
  isResumable(): boolean;
  /** Bodies are too long, one broke, or the last one ended and nothing came of it: neither did another request follow nor was this closed. */
  onLost(error: Error): void;
}

function watchFetch(fetch: Fetch, { bytesMax, isResumable, onLost }: Watch): WatchedFetch {
  let last: Promise<unknown> = Promise.resolve();
  let bytes = 0;
  let timer: NodeJS.Timeout | undefined;
  const watcher: BodyWatcher = {
    count: (size) => {
      bytes += size;
      if (bytes > bytesMax) throw new Error(`The answer is larger than ${bytesMax} bytes.`);
    },
    onBroken: onLost,
    onEnd: () => {
      if (isResumable()) return;
      const wait = (steps: number) => {
        timer = setTimeout(() => {
          if (steps > 1) wait(steps - 1);
          else onLost(new Error("The answer ended without a result."));
        }, LATE_RESULT_STEP_MS);
      };
      wait(LATE_RESULT_STEPS);
    },
  };
  const send = async (url: URL, init: RequestInit): Promise<Response> => {
    const response = await fetch(url, init);
    const { body, status, headers } = response;
    return body === null ? response : new Response(watchBody(body, watcher), { status, headers });
  };
  return {
    fetch: (url, init) => {
      clearTimeout(timer);
      // The SDK would open a stream for whatever the server has to say unasked: nobody listens to it.
      if (init.method === "GET" && !isResumption(init)) return Promise.resolve(new Response(null, { status: 405 }));
      const answered = send(url, init);
      last = answered.catch(() => undefined);
      return answered;
    },
    settled: async () => {
      await last;
    },
    close: () => clearTimeout(timer),
  };
}

/** A stream whose events have ids may end early, to be asked for again. */
function isResumption({ headers }: RequestInit): boolean {
  return headers instanceof Headers && headers.has("last-event-id");
}

interface BodyWatcher {
  count(size: number): void;
  onBroken(error: Error): void;
  onEnd(): void;
}

type Body = NonNullable<Response["body"]>;

function watchBody(body: Body, { count, onBroken, onEnd }: BodyWatcher): Body {
  const reader = body.getReader();
  let isUnwanted = false;
  const watched = new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      try {
        const { value, done } = await reader.read();
        if (isUnwanted) return;
        if (done) {
          controller.close();
          onEnd();
          return;
        }
        count(value.byteLength);
        controller.enqueue(value);
      } catch (error) {
        if (isUnwanted) return;
        controller.error(error);
        onBroken(error as Error);
        await reader.cancel().catch(() => undefined);
      }
    },
    cancel: (reason) => {
      isUnwanted = true;
      return reader.cancel(reason);
    },
  });
  return watched as unknown as Body;
}

// Each client of the SDK counts its requests from 0. Within a session no number may come twice (MCP, "Messages"), and a session outlives
// the client of one exchange here: so requests go out under names of their own.

/** `inner`, for one client. */
function withUniqueIds(inner: Transport): Transport {
  const prefix = `${randomUUID()}:`;
  const outer: Transport = {
    start: () => {
      inner.onmessage = (message, extra) => outer.onmessage?.(toOwn(message, prefix), extra);
      inner.onclose = () => outer.onclose?.();
      inner.onerror = (error) => outer.onerror?.(error);
      return inner.start();
    },
    send: (message, options) => inner.send(toUnique(message, prefix), options),
    close: () => inner.close(),
    setProtocolVersion: (version) => inner.setProtocolVersion?.(version),
  };
  return Object.defineProperty(outer, "sessionId", { get: () => inner.sessionId });
}

function toUnique(message: JSONRPCMessage, prefix: string): JSONRPCMessage {
  if (!("method" in message)) return message;
  if ("id" in message) return { ...message, id: `${prefix}${message.id}` };
  if (message.method !== "notifications/cancelled") return message;
  return { ...message, params: { ...message.params, requestId: `${prefix}${message.params?.requestId}` } };
}

function toOwn(message: JSONRPCMessage, prefix: string): JSONRPCMessage {
  if ("method" in message || typeof message.id !== "string" || !message.id.startsWith(prefix)) return message;
  return { ...message, id: Number(message.id.slice(prefix.length)) };
}
