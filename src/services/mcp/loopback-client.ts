/**
 * This gateway as its agents reach it: over its own HTTP server, so that the rules for callers hold for agents too. The
 * connection goes to where this process listens; the Host header says BASE_URL's host, for the media host and the authorization host
 * may be told apart by that header and share the port (docs/spec/mcp.md#gateway).
 */
import { Agent, buildConnector, fetch, type RequestInit, type Response } from "undici";
import { GENERATION_TIMEOUT_MS } from "../../limits.js";

/** Unspecified: connections to the gateway itself, of all agents together; more requests wait. */
const CONNECTIONS_MAX = 256;
/** Unspecified: it is this process that answers, as soon as it gets to it: one that is busy is not away. */
const CONNECT_TIMEOUT_MS = 30_000;
/** Above the gateway's own time-out, which is the one that should be told. */
const SILENCE_MS = GENERATION_TIMEOUT_MS + 30_000;

export class LoopbackClient {
  private readonly agent: Agent;

  /**
   * `ownUrl`: where this process listens, reached from this machine, without a slash at the end. Both are asked for each request:
   * a port that the system chooses is known by then.
   */
  constructor(
    readonly ownUrl: () => string,
    private readonly addresses: () => { readonly baseUrl: string },
  ) {
    const connect = buildConnector({ timeout: CONNECT_TIMEOUT_MS });
    this.agent = new Agent({
      connections: CONNECTIONS_MAX,
      headersTimeout: SILENCE_MS,
      bodyTimeout: SILENCE_MS,
      connect: ({ servername: _public, ...options }, callback) => {
        const { hostname, host, port } = new URL(this.ownUrl());
        connect({ ...options, protocol: "http:", hostname: hostname.replace(/^\[(.*)\]$/, "$1"), host, port }, callback);
      },
    });
  }

  /** `path` as an address of this gateway's; it can be asked for through `fetch` alone. Throws for a path that leads elsewhere. */
  urlOf(path: string): URL {
    const origin = `http://${new URL(this.addresses().baseUrl).host}`;
    const url = new URL(path, `${origin}/`);
    if (url.origin !== new URL(origin).origin || url.username !== "" || url.password !== "") {
      throw new TypeError("The path must be one of this gateway's.");
    }
    return url;
  }

  /** A redirect is an answer like any other. */
  fetch(url: URL, init: RequestInit = {}): Promise<Response> {
    return fetch(this.urlOf(url.href), { redirect: "manual", ...init, dispatcher: this.agent });
  }

  /** Closes all connections: call when nothing is generated any more. */
  close(): Promise<void> {
    return this.agent.destroy();
  }
}
