/** Where the media host and the authorization host are: separate hosts, or paths of the gateway's host (docs/spec/http.md#addresses). */
import { isLoopbackHostname, withoutTrailing } from "../lib/urls.js";

export interface Mount {
  /** Null: the gateway's own. */
  readonly host: string | null;
  readonly path: string;
}

export function mediaMountOf(config: { readonly baseUrl: string | null; readonly mediaUrl: string | null }): Mount {
  return config.mediaUrl === null ? { host: null, path: "/media" } : mountOf(config.mediaUrl, config.baseUrl);
}

export function authMountOf(config: { readonly baseUrl: string | null; readonly authUrl: string | null }): Mount {
  return config.authUrl === null ? { host: null, path: "" } : mountOf(config.authUrl, config.baseUrl);
}

function mountOf(url: string, baseUrl: string | null): Mount {
  const own = new URL(url);
  return { host: sharesHost(own, baseUrl) ? null : own.host, path: withoutTrailing(own.pathname, "/") };
}

/**
 * Names and addresses that a gateway on the loopback answers to beside the loopback's own; null: one that others can reach answers to every
 * host.
 */
export function answeredHostnamesOf(config: {
  readonly host: string;
  readonly baseUrl: string | null;
  readonly authUrl: string | null;
  readonly mediaUrl: string | null;
}): ReadonlySet<string> | null {
  if (!isLoopbackHostname(config.host.toLowerCase())) return null;
  const { baseUrl, authUrl, mediaUrl } = config;
  return new Set([baseUrl, authUrl, mediaUrl].flatMap((url) => (url === null ? [] : [withoutTrailing(new URL(url).hostname, ".")])));
}

/** True when the API and the media host would share addresses. */
export function isMediaUrlAmbiguous(mediaUrl: string | undefined, baseUrl: string | undefined): boolean {
  if (mediaUrl === undefined) return false;
  const media = new URL(mediaUrl);
  return media.pathname === "/" && sharesHost(media, baseUrl ?? null);
}

/** True when the media host would be on a separate sign-in host. */
export function isMediaUrlWhereSessionsAre(urls: {
  readonly mediaUrl: string | undefined;
  readonly authUrl: string | undefined;
  readonly baseUrl: string | undefined;
}): boolean {
  const { mediaUrl, authUrl, baseUrl } = urls;
  if (mediaUrl === undefined || authUrl === undefined || sharesHost(new URL(authUrl), baseUrl ?? null)) return false;
  return new URL(mediaUrl).host === new URL(authUrl).host;
}

/** Without a base URL the gateway is at localhost, at a port that is not known yet. */
function sharesHost(url: URL, baseUrl: string | null): boolean {
  return baseUrl === null ? url.hostname === "localhost" : new URL(baseUrl).host === url.host;
}
