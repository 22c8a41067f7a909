/**
 * What every call over OpenAI's wire format has in common: the address, the headers, the pool, and errors in our terms. Nothing
 * of the caller's headers goes upstream.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { append } from "../../lib/collections.js";
import { setOwnValue } from "../../lib/own-values.js";
import type { NoteUnknownWord } from "../../lib/unknown-words.js";
import { withoutTrailing } from "../../lib/urls.js";
import { UPSTREAM_BODY_BYTES_MAX, UPSTREAM_JSON_BOUNDS, UPSTREAM_STREAM_BYTES_MAX } from "../../limits.js";
import { type Connect, createUpstreamPool, type PoolBounds, type UpstreamPool, type UpstreamResponse } from "../http.js";
import { type CallEnd, type OutputCapField, ProviderError, type UpstreamTimeouts } from "../provider.js";
import { hasChoices, hasErrorContent, redactSecrets, toEmbeddedError, toStatusError } from "./errors.js";
import { parseObject } from "./json.js";
import type { NoteUnknown } from "./usage.js";

export interface OpenAiUpstream {
  /** Everything before `/chat/completions`; a query is kept and goes with every request. */
  readonly baseUrl: string;
  /** The base URL is the whole address of what is called: requests name no path, and it is left as it is, slashes at its end included. */
  readonly isExact?: boolean;
  /** Sent as a bearer token; null sends none. */
  readonly apiKey: string | null;
  /** Further headers for every request; they win over ours. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly timeouts: UpstreamTimeouts;
  readonly quirks?: OpenAiQuirks;
  /** How connections are made; absent: to wherever the base URL says. */
  readonly connect?: Connect;
  /** Absent: what an operator's upstream may take. */
  readonly bounds?: UpstreamBounds;
  /** Told of words that the adapter does not know and reads past. */
  readonly noteUnknown?: NoteUnknownWord | undefined;
  /** How a file is fetched that an answer names by its URL; absent: such answers are refused. */
  readonly fetchFile?: FetchFile;
}

/** What an upstream may cost the gateway. */
export interface UpstreamBounds {
  readonly pool: PoolBounds;
  /** Of a chat that is answered whole, and of one that is streamed. */
  readonly answerBytesMax: number;
  readonly streamBytesMax: number;
}

/** Rejects with the signal's reason when that is aborted, with any other error for a file that cannot be had. */
export type FetchFile = (
  url: string,
  options: { readonly bytesMax: number; readonly accept: string; readonly signal: AbortSignal },
) => Promise<{ readonly bytes: Uint8Array; readonly contentType: string }>;

/** Where an upstream departs from the format. */
export interface OpenAiQuirks {
  /** It refuses `stream_options`: its streams are not asked for usage. */
  readonly refusesStreamOptions?: boolean;
  /** What it calls the bound to an answer's length, where its host does not tell. */
  readonly outputCapField?: OutputCapField;
}

export interface OpenAiRequest {
  /** GET unless there is a body. */
  readonly method?: "GET" | "POST" | "DELETE";
  /** What follows the base URL, such as `/images/generations`; empty where that is exact. */
  readonly path: string;
  /** With it, the content type of the body, unless it is JSON. */
  readonly contentType?: string;
  readonly accept: string;
  readonly body?: string | Uint8Array;
  readonly signal: CallEnd;
  /** Whether silence of the idle time-out means trouble. */
  readonly isStreamed: boolean;
  /** See UpstreamRequest. */
  readonly readAheadBytes?: number;
}

/** JSON is accepted unless it says otherwise. */
type WholeRequest = Omit<OpenAiRequest, "accept" | "isStreamed"> & Partial<Pick<OpenAiRequest, "accept">>;

/** Hosts some of whose models refuse `max_tokens`. */
const NEWER_CAP_HOSTS = ["openai.com", "openai.azure.com", "cognitiveservices.azure.com", "services.ai.azure.com"];
/** From here on a body takes so long to write that others have their turn before it is sent. */
const TURN_BODY_LENGTH = 64 * 1024;
/** As much of an error's body as is read. */
const ERROR_BODY_BYTES_MAX = 64 * 1024;

export class OpenAiClient {
  /** What no caller may be told: the key, and in an address that somebody registered what its query says. */
  readonly secrets: readonly string[];
  readonly answerBytesMax: number;
  readonly streamBytesMax: number;
  /** What the host is known to call the bound to an answer's length. */
  readonly outputCapField: OutputCapField;
  /** Told of names in its usage reports that are not known. */
  readonly noteUnknownUsage: NoteUnknown;
  private readonly pool: UpstreamPool;
  private readonly pathname: string;
  private readonly search: string;
  /** By content type and accepted type: made once, sent with every request. */
  private readonly headerLists = new Map<string, readonly string[]>();

  /** `pool` belongs to another client of the same upstream. */
  constructor(
    readonly upstream: OpenAiUpstream,
    pool?: UpstreamPool,
  ) {
    const { baseUrl, apiKey, isExact, bounds } = upstream;
    const url = new URL(baseUrl);
    this.secrets = [...(apiKey === null ? [] : [apiKey]), ...(bounds ? queryValues(url) : [])];
    this.answerBytesMax = bounds?.answerBytesMax ?? UPSTREAM_BODY_BYTES_MAX;
    this.streamBytesMax = bounds?.streamBytesMax ?? UPSTREAM_STREAM_BYTES_MAX;
    this.noteUnknownUsage = (names) => {
      for (const name of names) upstream.noteUnknown?.("usage-name", redactSecrets(name, this.secrets));
    };
    this.pool = pool ?? createUpstreamPool(baseUrl, upstream.timeouts, upstream.connect, bounds?.pool);
    this.pathname = isExact ? url.pathname : withoutTrailing(url.pathname, "/");
    this.search = url.search;
    this.outputCapField = NEWER_CAP_HOSTS.some((host) => url.hostname === host || url.hostname.endsWith(`.${host}`))
      ? "max_completion_tokens"
      : "max_tokens";
  }

  /** The same upstream over the same connections, every request with these headers too. */
  withHeaders(headers: Readonly<Record<string, string>>): OpenAiClient {
    return new OpenAiClient({ ...this.upstream, headers: { ...this.upstream.headers, ...headers } }, this.pool);
  }

  /** Resolves with an answer of a 2xx status; rejects with what any other status says. */
  async send(request: OpenAiRequest): Promise<UpstreamResponse> {
    const response = await this.dispatch(request, request.accept, request.isStreamed);
    if (response.status >= 200 && response.status < 300) return response;
    throw await this.toError(response, request.signal);
  }

  /** As `send`, for an answer that comes as a whole. */
  async sendWhole(request: WholeRequest): Promise<UpstreamResponse> {
    const response = await this.dispatch(request, request.accept ?? "application/json", false);
    if (response.status < 200 || response.status >= 300) throw await this.toError(response, request.signal);
    if (isEventStream(response)) throw refuse(response, "The upstream answered a stream although none was asked for.");
    return response;
  }

  /** The JSON object that an answer is. Throws the error that stands in it, whatever its status was, and `otherwise` when it is none. */
  readObject(
    bytes: Buffer,
    otherwise = "The upstream's answer is not a JSON object.",
    bounds = UPSTREAM_JSON_BOUNDS,
  ): Readonly<Record<string, unknown>> {
    const answer = parseObject(bytes, undefined, bounds);
    if (answer === null) throw new ProviderError("invalid-response", otherwise);
    if (hasErrorContent(answer.error)) throw toEmbeddedError(answer.error, this.secrets, hasChoices(answer));
    return answer;
  }

  close(): Promise<void> {
    return this.pool.close();
  }

  private dispatch(request: WholeRequest, accept: string, isStreamed: boolean): Promise<UpstreamResponse> {
    const { body = null, contentType = "application/json", signal, readAheadBytes } = request;
    const sent = {
      method: request.method ?? (body === null ? "GET" : "POST"),
      path: `${this.pathname}${request.path}${this.search}`,
      headers: contentType.startsWith("multipart/") ? this.toHeaders(contentType, accept) : this.headersOf(contentType, accept),
      body,
      signal,
      isStreamed,
      readAheadBytes,
    };
    // To write such a body took a turn of its own, and so does to send it.
    if (body !== null && body.length >= TURN_BODY_LENGTH) return nextTurn().then(() => this.pool.request(sent));
    return this.pool.request(sent);
  }

  private async toError(response: UpstreamResponse, signal: CallEnd): Promise<ProviderError> {
    const said = await readError(response, signal);
    return toStatusError(response.status, response.headers, said, this.secrets);
  }

  private headersOf(contentType: string, accept: string): readonly string[] {
    const name = `${contentType} ${accept}`;
    let headers = this.headerLists.get(name);
    if (!headers) {
      headers = this.toHeaders(contentType, accept);
      this.headerLists.set(name, headers);
    }
    return headers;
  }

  private toHeaders(contentType: string, accept: string): readonly string[] {
    const headers: Record<string, string> = {
      "content-type": contentType,
      accept,
      "accept-encoding": "identity",
      "user-agent": "sluice",
    };
    const { apiKey } = this.upstream;
    if (apiKey !== null) headers.authorization = `Bearer ${apiKey}`;
    for (const [name, value] of Object.entries(this.upstream.headers ?? {})) setOwnValue(headers, name.toLowerCase(), value);
    return Object.entries(headers).flat();
  }
}

/** As they are, and as they are written. */
function queryValues({ search, searchParams }: URL): string[] {
  const pairs = search.slice(1).split("&");
  return [...searchParams.values(), ...pairs.map((pair) => pair.slice(pair.indexOf("=") + 1))];
}

/** Closes the answer, and says why it is not one. */
export function refuse(response: UpstreamResponse, message: string): ProviderError {
  response.destroy();
  return new ProviderError("invalid-response", message);
}

export function contentTypeOf(response: UpstreamResponse): string {
  return response.headers["content-type"]?.trim().toLowerCase() ?? "";
}

export function isEventStream(response: UpstreamResponse): boolean {
  return contentTypeOf(response).startsWith("text/event-stream");
}

export function isJson(response: UpstreamResponse): boolean {
  const type = contentTypeOf(response).split(";")[0] ?? "";
  return type === "application/json" || type.endsWith("+json");
}

/** An error's body, or the beginning of it: the status counts even when the body never comes. */
async function readError(response: UpstreamResponse, signal: CallEnd): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  try {
    for (let read = await response.read(); read !== null && bytes < ERROR_BODY_BYTES_MAX; read = await response.read()) {
      append(parts, read);
      bytes += read.reduce((sum, part) => sum + part.length, 0);
    }
  } catch {
    if (signal.aborted) throw signal.reason;
  }
  response.destroy();
  return Buffer.concat(parts).toString("utf8", 0, ERROR_BODY_BYTES_MAX);
}
