/**
 * Exchanges with one MCP server over Streamable HTTP. A session is what the server knows its client by, and nothing more: each exchange
 * has a transport of its own, which ends with it, so that no connection stays open, and what goes wrong with a call is known to be
 * that call's.
 */
import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import type { FetchLike } from "@modelcontextprotocol/sdk/shared/transport.js";
import { MCP_FAREWELL_MS } from "./limits.js";
import { withUniqueIds } from "./unique-ids.js";
import { type Fetch, type WatchedFetch, watchFetch } from "./watched-fetch.js";

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
