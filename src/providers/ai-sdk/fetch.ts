/**
 * The `fetch` for vendors' packages, which controls addresses, timeouts and credentials: requests to a vendor's address go to the
 * upstream's base URL, silence ends them, and only the vendor gets the key.
 */
import { Agent, type Dispatcher, fetch as undiciFetch } from "undici";
import { ProviderError } from "../../formats/upstream-error.js";
import { RawSseSilence, SseSilenceError } from "../../lib/sse-silence.js";
import { FREE_STEP_ATTEMPTS_MAX, SSE_SILENT_BYTES_MAX, UPSTREAM_CONNECTIONS_MAX } from "../../limits.js";
import { isPassingStatus, repeatFreeStep } from "../free-steps.js";
import { type Stage, stageOf, tookTooLong, toProviderError, unreachable } from "../http.js";
import type { FetchFile } from "../openai/client.js";
import type { UpstreamTimeouts } from "../provider.js";

type Fetch = typeof globalThis.fetch;

const REDIRECTS_MAX = 5;

export interface FetchSettings {
  /** Target of requests. */
  readonly baseUrl: string;
  /** Base addresses of the package, which are replaced by `baseUrl`. */
  readonly vendorUrls: readonly string[];
  readonly timeouts: UpstreamTimeouts;
  /** Fetches other addresses than the vendor's: public ones only. */
  readonly fetchFile: FetchFile;
}

export class UpstreamFetch {
  private readonly whole: Agent;
  private readonly streamed: Agent;

  constructor(private readonly settings: FetchSettings) {
    const { connectMs, idleMs, totalMs } = settings.timeouts;
    const common = { connections: UPSTREAM_CONNECTIONS_MAX, pipelining: 1, keepAliveTimeout: 4_000, connect: { timeout: connectMs } };
    this.whole = new Agent({ ...common, headersTimeout: totalMs, bodyTimeout: totalMs });
    this.streamed = new Agent({ ...common, headersTimeout: idleMs, bodyTimeout: idleMs });
  }

  /** Everything that one call sends. `isStreamed`: silence is an error. `bytesMax` bounds each answer. */
  begin(signal: AbortSignal, { isStreamed, bytesMax }: { readonly isStreamed: boolean; readonly bytesMax: number }): FetchSession {
    return new FetchSession(this.settings, isStreamed ? this.streamed : this.whole, signal, bytesMax);
  }

  async close(): Promise<void> {
    await Promise.all([this.whole.close(), this.streamed.close()]);
  }
}

export class FetchSession {
  /** Whether anything was sent; an earlier failure is a refusal. */
  hasSent = false;
  /** Part of an answer has arrived. */
  private hasBegun = false;
  private readonly controller = new AbortController();
  private readonly timer: NodeJS.Timeout;
  private readonly onAbort = () => this.controller.abort(this.callerSignal.reason);

  constructor(
    private readonly settings: FetchSettings,
    private readonly dispatcher: Dispatcher,
    private readonly callerSignal: AbortSignal,
    private readonly bytesMax: number,
  ) {
    this.timer = setTimeout(() => this.controller.abort(tookTooLong(this.stage)), settings.timeouts.totalMs);
    if (callerSignal.aborted) this.onAbort();
    else callerSignal.addEventListener("abort", this.onAbort, { once: true });
  }

  /** Aborted with the call, and when the session ends. */
  get signal(): AbortSignal {
    return this.controller.signal;
  }

  private get stage(): Stage {
    if (this.hasBegun) return "answering";
    return this.hasSent ? "asked" : "connecting";
  }

  /** Closes all connections with unfinished answers. */
  end(): void {
    clearTimeout(this.timer);
    this.callerSignal.removeEventListener("abort", this.onAbort);
    this.controller.abort(new ProviderError("network", "The answer was not wanted any more."));
  }

  readonly fetch: Fetch = async (input, init = {}) => {
    const method = init.method ?? "GET";
    const headers = new Headers(init.headers);
    headers.set("user-agent", "sluice");
    headers.set("accept-encoding", "identity");
    const body = await toBytes(init.body, headers);
    const url = this.toUpstreamUrl(input instanceof Request ? input.url : String(input));
    // Packages pay with a POST. A GET polls a job or fetches its result.
    if (method === "GET") return this.repeat(() => this.follow(url, method, headers, body));
    return this.follow(url, method, headers, body);
  };

  /** Passes on the answer of the last attempt, of any status, for the package to interpret. */
  private repeat(attempt: () => Promise<Response>): Promise<Response> {
    let attempts = 0;
    return repeatFreeStep(this.signal, async () => {
      attempts += 1;
      const response = await attempt();
      if (attempts < FREE_STEP_ATTEMPTS_MAX && isPassingStatus(response.status)) {
        await response.body?.cancel();
        throw new ProviderError("status", `The upstream answered ${response.status}.`, { status: response.status });
      }
      // Read whole, so that a broken body is also retried.
      const whole = response.body === null ? null : await response.arrayBuffer();
      return new Response(whole, { status: response.status, headers: response.headers });
    });
  }

  private async follow(first: URL, method: string, headers: Headers, body: Uint8Array | string | null): Promise<Response> {
    let url = first;
    for (let hop = 0; hop <= REDIRECTS_MAX; hop += 1) {
      if (!this.isOwn(url)) return this.readFile(url, method);
      const response = await this.send(url, method, headers, body);
      const location = response.status >= 300 && response.status < 400 ? response.headers.get("location") : null;
      if (location === null) return response;
      await response.body?.cancel();
      if (method !== "GET") throw new ProviderError("invalid-response", "The upstream answered a redirect, which is not followed.");
      url = this.toUpstreamUrl(new URL(location, url).href);
    }
    throw new ProviderError("invalid-response", "The upstream's answer was redirected too often.");
  }

  private toUpstreamUrl(address: string): URL {
    const { baseUrl, vendorUrls } = this.settings;
    const own = vendorUrls.find((vendorUrl) => address === vendorUrl || address.startsWith(`${vendorUrl}/`));
    if (own === undefined || vendorUrls.includes(baseUrl)) return new URL(address);
    return new URL(baseUrl + address.slice(own.length));
  }

  private isOwn(url: URL): boolean {
    const { baseUrl, vendorUrls } = this.settings;
    return [baseUrl, ...vendorUrls].some((own) => new URL(own).origin === url.origin);
  }

  /** A file in an answer may be on any public host, which does not get the key. */
  private async readFile(url: URL, method: string): Promise<Response> {
    if (method !== "GET") throw new ProviderError("invalid-response", "The upstream's package asks a host that is not the vendor's.");
    const { signal, bytesMax } = this;
    try {
      const { bytes, contentType } = await this.settings.fetchFile(url.href, { bytesMax, accept: "*/*", signal });
      return new Response(bytes as Uint8Array<ArrayBuffer>, { headers: contentType === "" ? {} : { "content-type": contentType } });
    } catch (error) {
      signal.throwIfAborted();
      throw new ProviderError("invalid-response", "What the upstream's answer names cannot be fetched.", { cause: error });
    }
  }

  private async send(url: URL, method: string, headers: Headers, body: Uint8Array | string | null): Promise<Response> {
    this.signal.throwIfAborted();
    this.hasSent = true;
    const { dispatcher, signal } = this;
    const options = { method, headers: [...headers], body, dispatcher, signal, redirect: "manual" as const };
    const response = await undiciFetch(url, options).catch((error: unknown) => {
      throw this.toFailure(error, stageOf);
    });
    this.hasBegun = true;
    const bare = [204, 205, 304].includes(response.status) || response.body === null;
    const isEvents = response.headers.get("content-type")?.toLowerCase().startsWith("text/event-stream") ?? false;
    const read = bare
      ? null
      : this.read(response.body as ReadableStream<Uint8Array>, isEvents ? new RawSseSilence(SSE_SILENT_BYTES_MAX) : null);
    return new Response(read, { status: response.status, headers: [...response.headers] });
  }

  /** Reads the body within its bounds, and translates errors. */
  private read(body: ReadableStream<Uint8Array>, silence: RawSseSilence | null): ReadableStream<Uint8Array> {
    const reader = body.getReader();
    let bytes = 0;
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          const next = await reader.read().catch((error: unknown) => {
            throw this.toFailure(error, () => "answering");
          });
          if (next.done) return controller.close();
          bytes += next.value.length;
          const excess =
            bytes > this.bytesMax ? `The upstream's answer is larger than ${this.bytesMax} bytes.` : excessOf(silence, next.value);
          if (excess !== null) {
            const failure = new ProviderError("invalid-response", excess);
            await reader.cancel(failure);
            throw failure;
          }
          controller.enqueue(next.value);
        },
        cancel: (reason) => reader.cancel(reason),
      },
      { highWaterMark: 0 },
    );
  }

  private toFailure(error: unknown, stage: (cause: Error) => Stage): unknown {
    if (this.signal.aborted) return this.signal.reason;
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    return cause instanceof Error ? toProviderError(cause, stage(cause)) : unreachable(error);
  }
}

/** The exceeded bound of a stream; null for none. */
function excessOf(silence: RawSseSilence | null, bytes: Uint8Array): string | null {
  try {
    silence?.push(bytes);
    return null;
  } catch (error) {
    if (error instanceof SseSilenceError) return error.message;
    throw error;
  }
}

/** undici's `fetch` only accepts its own `FormData`, so forms are sent as bytes. */
async function toBytes(body: RequestInit["body"], headers: Headers): Promise<Uint8Array | string | null> {
  if (body === undefined || body === null) return null;
  if (typeof body === "string" || body instanceof Uint8Array) return body;
  const encoded = new Response(body);
  const type = encoded.headers.get("content-type");
  if (type !== null && !headers.has("content-type")) headers.set("content-type", type);
  return new Uint8Array(await encoded.arrayBuffer());
}
