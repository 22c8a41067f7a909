/** Where the media host and the authorization host are reached: a host of its own, a path, or both (docs/spec/http.md#addresses). */
import type { IncomingMessage } from "node:http";
import { Router } from "express";
import type { Logger } from "pino";
import { isAtHost } from "../lib/urls.js";
import { toRequestHandler } from "./route.js";

export interface HostMount {
  /** In lower case, with its port unless that is the scheme's own; null when it is the host of everything else. */
  readonly host: string | null;
  /** Without a slash at its end; empty for the host as a whole. */
  readonly path: string;
}

/**
 * Adds a host's routes to `router`; call it before other routes are added. A host of its own answers nothing else: what strangers
 * upload, and where people sign in, must not share an origin with what models make. `root` is what the host answers beside its path,
 * and `home` where a browser that is lost there is led.
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

/** True for requests to a host that answers nothing else. */
export function isOwnHost({ headers }: IncomingMessage, { host }: HostMount): boolean {
  return host !== null && isAtHost(headers, host);
}
