/** Where the media host and the authorization host are mounted: a separate host, a path, or both (docs/spec/http.md#addresses). */
import type { IncomingMessage } from "node:http";
import { Router } from "express";
import type { Logger } from "pino";
import { isAtHost } from "../lib/urls.js";
import { toRequestHandler } from "./route.js";

export interface HostMount {
  /** In lower case, with its port unless it is the scheme's default; null when it shares the gateway's host. */
  readonly host: string | null;
  /** Without a trailing slash; empty for the whole host. */
  readonly path: string;
}

/**
 * Adds a host's routes to `router`; call it before other routes are added. A separate host serves nothing else, because uploads and sign-in
 * must not share an origin with outputs of models. `root` has routes of the host outside of its path, and `home` is linked from error
 * pages.
 */
export function mountHost(router: Router, hosted: Router, { host, path }: HostMount, log: Logger, home: () => string, root?: Router): void {
  if (host === null) {
    if (root) router.use(root);
    router.use(path === "" ? "/" : path, hosted);
    return;
  }
  const own = Router({ caseSensitive: true });
  if (root) own.use(root);
  own.use(path === "" ? "/" : path, hosted);
  const handle = toRequestHandler(own, log, home);
  router.use((req, res, next) => (isAtHost(req.headers, host) ? handle(req, res, next) : next()));
}

/** True for requests to a separate host. */
export function isOwnHost({ headers }: IncomingMessage, { host }: HostMount): boolean {
  return host !== null && isAtHost(headers, host);
}
