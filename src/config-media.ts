/** Where requests to the media host arrive: at a host of its own, or below a path of the gateway's (decisions "Addresses"). */

export function mediaMountOf(config: { readonly baseUrl: string | null; readonly mediaUrl: string | null }): {
  readonly host: string | null;
  readonly path: string;
} {
  if (config.mediaUrl === null) return { host: null, path: "/media" };
  const media = new URL(config.mediaUrl);
  return { host: sharesHost(media, config.baseUrl) ? null : media.host, path: media.pathname.replace(/\/+$/, "") };
}

/** True when the API and the media host would have to answer the same addresses. */
export function isMediaUrlAmbiguous(mediaUrl: string | undefined, baseUrl: string | undefined): boolean {
  if (mediaUrl === undefined) return false;
  const media = new URL(mediaUrl);
  return media.pathname === "/" && sharesHost(media, baseUrl ?? null);
}

/** Without a base URL the gateway is at localhost, at a port that is not known yet. */
function sharesHost(url: URL, baseUrl: string | null): boolean {
  return baseUrl === null ? url.hostname === "localhost" : new URL(baseUrl).host === url.host;
}
