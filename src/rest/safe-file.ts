/** What a stranger's file is served with, so that a browser runs nothing of it (reliability 9). */
import type { OutgoingHttpHeaders } from "node:http";

export interface ServedFile {
  /** Without a charset. */
  readonly contentType: string;
  /** The whole header; null when a browser may show it. */
  readonly disposition: string | null;
  /** The whole header; null when nothing is said. */
  readonly cacheControl: string | null;
}

export function safeFileHeaders({ contentType, disposition, cacheControl }: ServedFile): OutgoingHttpHeaders {
  return {
    "Content-Type": /^text\/[^;]+$/.test(contentType) ? `${contentType}; charset=utf-8` : contentType,
    ...(cacheControl !== null && { "Cache-Control": cacheControl }),
    ...(disposition !== null && { "Content-Disposition": disposition }),
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "cross-origin",
  };
}
