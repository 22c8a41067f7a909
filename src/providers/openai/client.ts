/** The common part of calls over OpenAI's wire format: address, headers, pool and errors. No header of the client is sent upstream. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { ChatDialect } from "../../formats/openai-chat/dialect.js";
import { hasChoices, hasErrorContent, redactSecrets, toEmbeddedError, toStatusError } from "../../formats/openai-chat/errors.js";
import { dialectOf } from "../../formats/openai-chat/known-dialects.js";
import type { OnUnknownNames } from "../../formats/openai-chat/usage.js";
import { ProviderError } from "../../formats/upstream-error.js";
import { parseObject } from "../../formats/upstream-json.js";
import { append } from "../../lib/collections.js";
import { writeJson } from "../../lib/json-writer.js";
import { setOwnValue } from "../../lib/own-values.js";
import type { OnUnknownWord } from "../../lib/unknown-words.js";
import { withoutTrailing } from "../../lib/urls.js";
import { UPSTREAM_BODY_BYTES_MAX, UPSTREAM_JSON_BOUNDS, UPSTREAM_STREAM_BYTES_MAX } from "../../limits.js";
import { type Connect, createUpstreamPool, type PoolBounds, type UpstreamPool } from "../http.js";
import type { CallEnd, UpstreamTimeouts } from "../provider.js";
import type { UpstreamResponse } from "../upstream-response.js";
import { LearnedFields, type UpstreamFields } from "./learned-fields.js";

export interface OpenAiUpstream {
  /** Everything before `/chat/completions`; a query is kept and goes with every request. */
  readonly baseUrl: string;
  /** The base URL is the complete address, unchanged, with any trailing slashes: requests add no path. */
  readonly isExact?: boolean;
  /** Null: none. */
  readonly apiKey: string | null;
  /** The header that holds the key; absent: a bearer token in `authorization`. */
  readonly keyHeader?: string | undefined;
  /** Further headers for every request; they override ours. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly timeouts: UpstreamTimeouts;
  /** Absent: that of its host. */
  readonly dialect?: ChatDialect | undefined;
  /** What the upstream has refused; absent: remembered by the client alone. */
  readonly learned?: UpstreamFields | undefined;
  /** Makes connections; absent: to the base URL's host. */
  readonly connect?: Connect;
  /** Absent: the bounds of an operator's upstream. */
  readonly bounds?: UpstreamBounds;
  /** Receives unknown values, which are ignored. */
  readonly onUnknownWord?: OnUnknownWord | undefined;
  /** Fetches files that an answer names by URL; absent: such answers are refused. */
  readonly fetchFile?: FetchFile;
}

export interface UpstreamBounds {
  readonly pool: PoolBounds;
  /** Of a whole chat answer, and of a streamed one. */
  readonly answerBytesMax: number;
  readonly streamBytesMax: number;
}

/** Rejects with the signal's reason when that is aborted, with another error when the file cannot be fetched. */
export type FetchFile = (
  url: string,
  options: { readonly bytesMax: number; readonly accept: string; readonly signal: AbortSignal },
) => Promise<{ readonly bytes: Uint8Array; readonly contentType: string }>;

export interface OpenAiRequest {
  /** GET unless there is a body. */
  readonly method?: "GET" | "POST" | "DELETE";
  /** Appended to the base URL, such as `/images/generations`; empty for an exact address. */
  readonly path: string;
  readonly accept: string;
  /** A body of JSON. */
  readonly json?: object;
  /** Any other body, with its content type. */
  readonly body?: Uint8Array;
  readonly contentType?: string;
  readonly signal: CallEnd;
  /** Whether silence for the idle timeout is an error. */
  readonly isStreamed: boolean;
  /** See UpstreamRequest. */
  readonly readAheadBytes?: number;
}

/** Accepts JSON by default. */
type WholeRequest = Omit<OpenAiRequest, "accept" | "isStreamed"> &
  Partial<Pick<OpenAiRequest, "accept">> & {
    /** The answer may be a stream all the same. */
    readonly takesStream?: boolean;
  };

/** Bodies of this length take so long to serialize that the event loop turns before they are sent. */
const TURN_BODY_LENGTH = 64 * 1024;
/** Bytes read of an error's body. */
const ERROR_BODY_BYTES_MAX = 64 * 1024;

export class OpenAiClient {
  /** Texts hidden from callers: the key, and the query values of a registered address. */
  readonly secrets: readonly string[];
  readonly answerBytesMax: number;
  readonly streamBytesMax: number;
  readonly dialect: ChatDialect;
  readonly learned: UpstreamFields;
  /** Receives unknown names in usage reports. */
  readonly onUnknownUsage: OnUnknownNames;
  private readonly pool: UpstreamPool;
  private readonly pathname: string;
  private readonly search: string;
  /** Header lists by content type and accepted type, made once. */
  private readonly headerLists = new Map<string, readonly string[]>();

  /** `pool` may belong to another client of the same upstream. */
  constructor(
    readonly upstream: OpenAiUpstream,
    pool?: UpstreamPool,
  ) {
    const { baseUrl, apiKey, isExact, bounds } = upstream;
    const url = new URL(baseUrl);
    this.secrets = [...(apiKey === null ? [] : [apiKey]), ...(bounds ? queryValues(url) : [])];
    this.answerBytesMax = bounds?.answerBytesMax ?? UPSTREAM_BODY_BYTES_MAX;
    this.streamBytesMax = bounds?.streamBytesMax ?? UPSTREAM_STREAM_BYTES_MAX;
    this.onUnknownUsage = (names) => {
      for (const name of names) upstream.onUnknownWord?.("usage-name", redactSecrets(name, this.secrets));
    };
    this.pool = pool ?? createUpstreamPool(baseUrl, upstream.timeouts, upstream.connect, bounds?.pool);
    this.pathname = isExact ? url.pathname : withoutTrailing(url.pathname, "/");
    this.search = url.search;
    this.dialect = upstream.dialect ?? dialectOf(url.hostname);
    this.learned = upstream.learned ?? new LearnedFields().at({ id: "", isRegistered: false });
  }

  /** A client of the same upstream and pool with additional headers. */
  withHeaders(headers: Readonly<Record<string, string>>): OpenAiClient {
    const { upstream, learned, pool } = this;
    return new OpenAiClient({ ...upstream, learned, headers: { ...upstream.headers, ...headers } }, pool);
  }

  /** Resolves with a 2xx answer; rejects with the error of another status. */
  async send(request: OpenAiRequest): Promise<UpstreamResponse> {
    const response = await this.dispatch(request, request.accept, request.isStreamed);
    if (response.status >= 200 && response.status < 300) return response;
    throw await this.toError(response, request.signal);
  }

  /** As `send`, for an answer that is not streamed. */
  async sendWhole(request: WholeRequest): Promise<UpstreamResponse> {
    const response = await this.dispatch(request, request.accept ?? "application/json", false);
    if (response.status < 200 || response.status >= 300) throw await this.toError(response, request.signal);
    if (!request.takesStream && isEventStream(response)) throw refuse(response, "The upstream sent a stream for a request without one.");
    return response;
  }

  /** Parses the answer's JSON object. Throws an error that is in it, regardless of its status, and `otherwise` when it is no object. */
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
    const body = request.json ? writeJson(request.json) : (request.body ?? null);
    if (body instanceof Promise) return body.then((written) => this.dispatchBody(request, written, accept, isStreamed));
    // Writing such a body took a turn of the event loop, and so does sending it.
    if (body !== null && body.length >= TURN_BODY_LENGTH) {
      return nextTurn().then(() => this.dispatchBody(request, body, accept, isStreamed));
    }
    return this.dispatchBody(request, body, accept, isStreamed);
  }

  private dispatchBody(request: WholeRequest, body: string | Uint8Array | null, accept: string, isStreamed: boolean) {
    const { contentType = "application/json", signal, readAheadBytes } = request;
    return this.pool.request({
      method: request.method ?? (body === null ? "GET" : "POST"),
      path: `${this.pathname}${request.path}${this.search}`,
      headers: contentType.startsWith("multipart/") ? this.toHeaders(contentType, accept) : this.headersOf(contentType, accept),
      body,
      signal,
      isStreamed,
      readAheadBytes,
    });
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
    const { apiKey, keyHeader } = this.upstream;
    if (apiKey !== null && keyHeader === undefined) headers.authorization = `Bearer ${apiKey}`;
    else if (apiKey !== null && keyHeader !== undefined) setOwnValue(headers, keyHeader, apiKey);
    for (const [name, value] of Object.entries(this.upstream.headers ?? {})) setOwnValue(headers, name.toLowerCase(), value);
    return Object.entries(headers).flat();
  }
}

/** Decoded, and as written. */
function queryValues({ search, searchParams }: URL): string[] {
  const pairs = search.slice(1).split("&");
  return [...searchParams.values(), ...pairs.map((pair) => pair.slice(pair.indexOf("=") + 1))];
}

/** Closes the answer, and returns the error. */
export function refuse(response: UpstreamResponse, message: string): ProviderError {
  response.destroy();
  return new ProviderError("invalid-response", message);
}

export function contentTypeOf(response: UpstreamResponse): string {
  // A list where a server states it twice.
  const stated: string | readonly string[] | undefined = response.headers["content-type"];
  return [stated].flat()[0]?.trim().toLowerCase() ?? "";
}

export function isEventStream(response: UpstreamResponse): boolean {
  return contentTypeOf(response).startsWith("text/event-stream");
}

export function isJson(response: UpstreamResponse): boolean {
  const type = contentTypeOf(response).split(";")[0] ?? "";
  return type === "application/json" || type.endsWith("+json");
}

/** The body of an error, or its start: the status counts even without a body. */
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
