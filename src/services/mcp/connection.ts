/**
 * Exchanges with one MCP server over Streamable HTTP. A session is only the server's id of its client: each exchange has its own requests,
 * which end with it, so that no connection stays open and an error belongs to one call.
 *
 * Unknown events, notifications, requests, fields and protocol versions of a server do not end an exchange.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { RequestInit, Response } from "undici";
import { bareMediaType } from "../../lib/content-types.js";
import { isHeaderToken } from "../../lib/header-text.js";
import { isRecord } from "../../lib/json.js";
import { createSseScanner, type SseEvent, type SseScanner } from "../../lib/sse.js";
import { SseSilence } from "../../lib/sse-silence.js";
import { SSE_SILENT_BYTES_MAX } from "../../limits.js";
import {
  MCP_FAREWELL_MS,
  MCP_REDIRECTS_MAX,
  MCP_RESUMPTIONS_MAX,
  MCP_RETRY_MS_DEFAULT,
  MCP_RETRY_MS_MAX,
  MCP_RETRY_MS_MIN,
  MCP_SERVER_REQUESTS_MAX,
} from "./limits.js";
import { METHOD_NOT_FOUND, RpcError, type RpcFields, type RpcId, type RpcMessage, readMessages } from "./rpc.js";
import { MCP_STATELESS_REVISION, statelessHeaders, withStatelessMeta } from "./stateless.js";

export interface McpServerAddress {
  readonly url: URL;
  readonly fetch: Fetch;
  readonly headers: Readonly<Record<string, string>>;
}

type Fetch = (url: URL, init: RequestInit) => Promise<Response>;

export interface McpSession {
  /** Empty for a server without sessions. */
  readonly id: string;
  /** The negotiated version; undefined where none was, for the newest that the gateway knows. */
  readonly protocolVersion: string | undefined;
}

export interface McpExchangeOptions {
  /** Of all answers of the exchange together. */
  readonly bytesMax: number;
  readonly timeoutMs: number;
  /** Aborting it throws its reason and sends the server a cancellation. */
  readonly signal: AbortSignal;
}

export interface McpRequests {
  /** Rejects with an RpcError when the server refuses it, an McpStatusError for a status other than success. */
  request(method: string, params: RpcFields): Promise<RpcFields>;
}

/** An HTTP error of the server. Its text is not passed on. */
export class McpStatusError extends Error {
  override readonly name = "McpStatusError";

  constructor(readonly status: number) {
    super(`The server answered the status ${status}.`);
  }
}

const CLIENT_INFO = { name: "sluice", version: "1" };
/** The newest protocol revision with sessions. */
export const MCP_PROTOCOL_VERSION = "2025-11-25";
/** Of a server's identifiers that are sent back in headers. */
const IDENTIFIER_CHARS_MAX = 256;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 307, 308]);
/** Bytes that may follow a result in its stream. */
const DRAINED_BYTES_MAX = 64 * 1024;
const NEW_SESSION: McpSession = { id: "", protocolVersion: undefined };

/** Statuses of a server that does not know the handshake. */
const HANDSHAKE_REFUSED: ReadonlySet<number> = new Set([400, 404, 405]);

/** Initializes a session, or finds that the server has none. An unknown protocol version is accepted. */
export async function openSession(address: McpServerAddress, options: McpExchangeOptions): Promise<McpSession> {
  try {
    return await initialize(address, options);
  } catch (error) {
    const isRefusal = error instanceof RpcError || (error instanceof McpStatusError && HANDSHAKE_REFUSED.has(error.status));
    const session = isRefusal ? await discover(address, options).catch(() => null) : null;
    if (session === null) throw error;
    return session;
  }
}

/** Rejects for a server without the stateless revision. */
function discover(address: McpServerAddress, options: McpExchangeOptions): Promise<McpSession> {
  return exchange(address, { id: "", protocolVersion: MCP_STATELESS_REVISION }, options, async (connection) => {
    const { supportedVersions } = await connection.request("server/discover", {});
    if (!Array.isArray(supportedVersions) || !supportedVersions.includes(MCP_STATELESS_REVISION)) {
      throw new Error("The server and the gateway have no revision of the protocol in common.");
    }
    return { id: "", protocolVersion: MCP_STATELESS_REVISION };
  });
}

function initialize(address: McpServerAddress, options: McpExchangeOptions): Promise<McpSession> {
  return exchange(address, NEW_SESSION, options, async (connection) => {
    const params = { protocolVersion: MCP_PROTOCOL_VERSION, capabilities: {}, clientInfo: CLIENT_INFO };
    const { protocolVersion } = await connection.request("initialize", params);
    const version =
      typeof protocolVersion === "string" && isHeaderToken(protocolVersion, IDENTIFIER_CHARS_MAX) ? protocolVersion : undefined;
    connection.protocolVersion = version ?? MCP_PROTOCOL_VERSION;
    await connection.notify("notifications/initialized");
    return { id: connection.sessionId, protocolVersion: version };
  });
}

/** Runs one or several requests within a session. */
export function inSession<Result>(
  address: McpServerAddress,
  session: McpSession,
  options: McpExchangeOptions,
  work: (requests: McpRequests) => Promise<Result>,
): Promise<Result> {
  return exchange(address, session, options, (connection) => {
    connection.protocolVersion ??= MCP_PROTOCOL_VERSION;
    return work(connection);
  });
}

/** Tells the server that a session has ended. Never rejects: servers also expire sessions. */
export async function endSession(address: McpServerAddress, session: McpSession): Promise<void> {
  if (session.id === "") return;
  const headers: Record<string, string> = { ...address.headers, "mcp-session-id": session.id };
  if (session.protocolVersion !== undefined) headers["mcp-protocol-version"] = session.protocolVersion;
  const signal = AbortSignal.timeout(MCP_FAREWELL_MS);
  await address
    .fetch(address.url, { method: "DELETE", headers, signal, redirect: "manual" })
    .then((response) => response.body?.cancel())
    .catch(ignore);
}

async function exchange<Result>(
  address: McpServerAddress,
  session: McpSession,
  { bytesMax, timeoutMs, signal }: McpExchangeOptions,
  work: (connection: Connection) => Promise<Result>,
): Promise<Result> {
  signal.throwIfAborted();
  const connection = new Connection(address, session, bytesMax);
  let stop: (reason: unknown) => void = ignore;
  const stopped = new Promise<never>((_resolve, reject) => {
    stop = reject;
  });
  const leave = () => stop(signal.reason);
  const timer = setTimeout(() => stop(new Error(`There was no result within ${timeoutMs} ms.`)), timeoutMs);
  signal.addEventListener("abort", leave, { once: true });
  try {
    const result = await Promise.race([work(connection), stopped]);
    void connection.finish();
    return result;
  } catch (error) {
    void connection.giveUp();
    throw error;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", leave);
  }
}

class Connection implements McpRequests {
  sessionId: string;
  protocolVersion: string | undefined;
  /** Ids must be unique within a session (MCP, "Messages"), which outlives its exchanges. */
  private readonly idPrefix = `${randomUUID()}:`;
  private lastId = 0;
  /** The request under way, unless it cannot be cancelled. */
  private pending: RpcId | null = null;
  private bytes = 0;
  private drained: Promise<void> | undefined;
  private served = 0;
  /** Aborts requests under way. */
  private readonly cut = new AbortController();

  constructor(
    private readonly address: McpServerAddress,
    session: McpSession,
    private readonly bytesMax: number,
  ) {
    this.sessionId = session.id;
    this.protocolVersion = session.protocolVersion;
  }

  /** A request is cancelled by the end of its connection. */
  private get isStateless(): boolean {
    return this.protocolVersion === MCP_STATELESS_REVISION;
  }

  async request(method: string, params: RpcFields): Promise<RpcFields> {
    this.lastId += 1;
    const id = this.idPrefix + this.lastId;
    // MCP, "Cancellation": initialization cannot be cancelled.
    this.pending = method === "initialize" || this.isStateless ? null : id;
    const response = this.isStateless
      ? await this.post({ id, method, params: withStatelessMeta(params, CLIENT_INFO) }, this.cut.signal, statelessHeaders(method, params))
      : await this.post({ id, method, params }, this.cut.signal);
    const sessionId = response.headers.get("mcp-session-id");
    if (sessionId !== null && !this.isStateless && isHeaderToken(sessionId, IDENTIFIER_CHARS_MAX)) this.sessionId = sessionId;
    const result = await this.read(response, id);
    this.pending = null;
    if (!isRecord(result)) throw new Error("The result is not an object.");
    return result;
  }

  async notify(method: string, params?: RpcFields, signal = this.cut.signal): Promise<void> {
    const response = await this.post({ method, ...(params && { params }) }, signal);
    await response.body?.cancel();
  }

  /** Waits a moment for the last answer to end, so that its connection can be reused. */
  async finish(): Promise<void> {
    await this.drained;
    this.close();
  }

  /** Cancels the request under way at the server, then closes its connection. */
  async giveUp(): Promise<void> {
    const { pending } = this;
    if (pending !== null)
      await this.notify("notifications/cancelled", { requestId: pending }, AbortSignal.timeout(MCP_FAREWELL_MS)).catch(ignore);
    this.close();
  }

  private close(): void {
    this.cut.abort(new Error("The exchange is over."));
  }

  /** Resolves with a successful answer. Follows redirects within the server's origin: many servers add a slash. */
  private async post(message: RpcFields, signal: AbortSignal, more: Readonly<Record<string, string>> = {}): Promise<Response> {
    const body = JSON.stringify({ jsonrpc: "2.0", ...message });
    const headers = { ...this.headers(), ...more, "content-type": "application/json", accept: "application/json, text/event-stream" };
    let { url } = this.address;
    for (let hop = 0; ; hop += 1) {
      const response = await this.address.fetch(url, { method: "POST", headers, body, signal, redirect: "manual" });
      // Without sessions, the statuses of errors stand beside the protocol's own.
      if (response.ok || (this.isStateless && response.status >= 400 && response.status < 500 && isJson(response))) return response;
      await response.body?.cancel();
      const location = REDIRECTS.has(response.status) ? response.headers.get("location") : null;
      const next = location !== null && URL.canParse(location, url) ? new URL(location, url) : null;
      if (next === null || next.origin !== this.address.url.origin || hop === MCP_REDIRECTS_MAX) throw new McpStatusError(response.status);
      url = next;
    }
  }

  private headers(): Record<string, string> {
    const { sessionId, protocolVersion } = this;
    return {
      ...this.address.headers,
      ...(sessionId !== "" && { "mcp-session-id": sessionId }),
      ...(protocolVersion !== undefined && { "mcp-protocol-version": protocolVersion }),
    };
  }

  private async read(response: Response, id: RpcId): Promise<unknown> {
    if (typeOf(response) === "text/event-stream") return this.readStream(response, id);
    if (!isJson(response)) {
      await response.body?.cancel();
      throw new Error("The answer is neither JSON nor a stream of events.");
    }
    const parts: Uint8Array[] = [];
    for await (const part of response.body ?? []) parts.push(this.count(part));
    const bytes = Buffer.concat(parts);
    const found = this.take(readMessages(bytes, bytes.toString()), id);
    if (found === null) throw new Error("The answer holds no result.");
    return found.result;
  }

  /** Resumes a stream that ended early if its events have ids (MCP, "Resumability and Redelivery"). */
  private async readStream(first: Response, id: RpcId): Promise<unknown> {
    let response = first;
    let lastEventId: string | null = null;
    let retryMs = MCP_RETRY_MS_DEFAULT;
    for (let resumed = 0; ; resumed += 1) {
      const scanner = createSseScanner({ eventBytesMax: this.bytesMax });
      let failure: unknown = new Error("The answer ended without a result.");
      try {
        const found = await this.readEvents(response, scanner, id);
        if (found !== null) return found.result;
      } catch (error) {
        if (!isBroken(error)) throw error;
        failure = error;
      }
      lastEventId = scanner.lastEventId ?? lastEventId;
      retryMs = Math.min(scanner.retryMs ?? retryMs, MCP_RETRY_MS_MAX);
      if (lastEventId === null || !isHeaderToken(lastEventId, IDENTIFIER_CHARS_MAX) || resumed === MCP_RESUMPTIONS_MAX) throw failure;
      await sleep(Math.max(retryMs, MCP_RETRY_MS_MIN), undefined, { signal: this.cut.signal });
      response = await this.resume(lastEventId);
    }
  }

  private async readEvents(response: Response, scanner: SseScanner, id: RpcId): Promise<{ readonly result: unknown } | null> {
    const reader = response.body?.getReader();
    if (!reader) return null;
    const silence = new SseSilence(SSE_SILENT_BYTES_MAX);
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      const events = scanner.push(Buffer.from(this.count(read.value)));
      silence.add(scanner.takeSilentBytes());
      if (events.length > 0) silence.end();
      const found = this.takeEvents(events, id);
      if (found === null) continue;
      this.drained = drain(reader);
      return found;
    }
    return this.takeEvents(scanner.end(), id);
  }

  private async resume(lastEventId: string): Promise<Response> {
    const headers = { ...this.headers(), accept: "text/event-stream", "last-event-id": lastEventId };
    const response = await this.address.fetch(this.address.url, { method: "GET", headers, signal: this.cut.signal, redirect: "manual" });
    if (response.ok) return response;
    await response.body?.cancel();
    throw new McpStatusError(response.status);
  }

  /** Events with other names are not part of the protocol. */
  private takeEvents(events: readonly SseEvent[], id: RpcId): { readonly result: unknown } | null {
    for (const { event, data, bytes } of events) {
      if (data === "" || (event !== null && event !== "message")) continue;
      const found = this.take(readMessages(bytes, data), id);
      if (found !== null) return found;
    }
    return null;
  }

  /** The result of the request; throws the server's error. Answers the server's own requests. */
  private take(messages: readonly RpcMessage[], id: RpcId): { readonly result: unknown } | null {
    for (const message of messages) {
      if (message.kind === "result" && message.id === id) return message;
      if (message.kind === "error" && (message.id === id || message.id === null)) throw message.error;
      if (message.kind === "request") void this.serve(message);
    }
    return null;
  }

  /** Answers pings, and refuses other requests: no roots, no sampling, no elicitation. */
  private async serve({ id, method }: RpcMessage & { readonly kind: "request" }): Promise<void> {
    this.served += 1;
    if (this.served > MCP_SERVER_REQUESTS_MAX) return;
    const answer = method === "ping" ? { result: {} } : { error: { code: METHOD_NOT_FOUND, message: "Method not found" } };
    await this.post({ id, ...answer }, this.cut.signal)
      .then((response) => response.body?.cancel())
      .catch(ignore);
  }

  private count(part: Uint8Array): Uint8Array {
    this.bytes += part.byteLength;
    if (this.bytes > this.bytesMax) throw new AnswerTooLarge(`The answer is larger than ${this.bytesMax} bytes.`);
    return part;
  }
}

function typeOf({ headers }: Response): string {
  return bareMediaType(headers.get("content-type") ?? "");
}

function isJson(response: Response): boolean {
  const type = typeOf(response);
  return type === "application/json" || type.endsWith("+json");
}

/** Reads the rest of an answer after its result, for a bounded time. */
async function drain(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  const cancel = () => reader.cancel().catch(ignore);
  const timer = setTimeout(cancel, MCP_FAREWELL_MS);
  let bytes = 0;
  try {
    for (let read = await reader.read(); !read.done && bytes <= DRAINED_BYTES_MAX; read = await reader.read())
      bytes += read.value.byteLength;
  } catch {
    // It broke after the result.
  }
  clearTimeout(timer);
  await cancel();
}

class AnswerTooLarge extends Error {
  override readonly name = "AnswerTooLarge";
}

function isBroken(error: unknown): boolean {
  return error instanceof TypeError;
}

function ignore(): void {}
