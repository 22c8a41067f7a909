/**
 * Calls this gateway over its own HTTP server for agents, so that the rules for callers hold for them too. Connects to this process's own
 * address, with BASE_URL's host in the Host header, because that header may distinguish the media and authorization hosts on one port
 * (docs/spec/mcp.md#gateway).
 */
import { Agent, buildConnector, fetch, type RequestInit, type Response } from "undici";
import { GENERATION_TIMEOUT_MS } from "../../limits.js";

/** Unspecified: connections to the gateway itself, of all agents; further requests wait. */
const CONNECTIONS_MAX = 256;
/** Unspecified: this process answers itself, so a late answer means that it is busy, not away. */
const CONNECT_TIMEOUT_MS = 30_000;
/** Above the gateway's own timeout, which gives the better error. */
const SILENCE_MS = GENERATION_TIMEOUT_MS + 30_000;

export class LoopbackClient {
  private readonly agent: Agent;

  /**
   * `ownUrl`: this process's address on this machine, without a trailing slash. Both are functions, because a port chosen by the system is
   * known only later.
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

  /** `path` as an address of this gateway, for `fetch` only. Throws for a path that leads elsewhere. */
  urlOf(path: string): URL {
    const origin = `http://${new URL(this.addresses().baseUrl).host}`;
    const url = new URL(path, `${origin}/`);
    if (url.origin !== new URL(origin).origin || url.username !== "" || url.password !== "") {
      throw new TypeError("The path must be one of this gateway's.");
    }
    return url;
  }

  /** Redirects are returned like any other answer. */
  fetch(url: URL, init: RequestInit = {}): Promise<Response> {
    return fetch(this.urlOf(url.href), { redirect: "manual", ...init, dispatcher: this.agent });
  }

  /** Closes all connections: call when nothing is generated any more. */
  close(): Promise<void> {
    return this.agent.destroy();
  }
}
