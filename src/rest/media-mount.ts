/** Where the media host is reached: MEDIA_URL may name a host of its own, a path, or both (decisions "Addresses"). */
import type { IncomingMessage } from "node:http";
import { Router } from "express";
import type { Logger } from "pino";
import { toRequestHandler } from "./route.js";

export interface MediaMount {
  /** In lower case, with its port unless that is the scheme's own; null when it is the host of everything else. */
  readonly host: string | null;
  /** Without a slash at its end; not empty when the host is shared. */
  readonly path: string;
}

/**
 * Adds the media host's routes to `router`; call it before other routes are added. A host of its own answers nothing else: what
 * strangers upload must not share an origin with the API.
 */
export function mountMedia(router: Router, media: Router, { host, path }: MediaMount, log: Logger): void {
  if (host === null) {
    router.use(path, media);
    return;
  }
  const own = Router({ caseSensitive: true });
  own.use(path === "" ? "/" : path, media);
  const handle = toRequestHandler(own, log);
  router.use((req, res, next) => (isHost(req, host) ? handle(req, res, next) : next()));
}

/** True for requests to a media host that is no other host, too. */
export function isMediaHost(req: IncomingMessage, { host }: MediaMount): boolean {
  return host !== null && isHost(req, host);
}

function isHost({ headers }: IncomingMessage, host: string): boolean {
  const asked = headers.host?.toLowerCase();
  return asked === host || (!host.includes(":") && asked?.replace(/:\d+$/, "") === host);
}
