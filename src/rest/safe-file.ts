/** What a stranger's file is served with beside what every answer carries, so that a browser runs nothing of it (docs/spec/media.md#reading). */
import type { OutgoingHttpHeaders } from "node:http";
import { INERT_FILE_POLICY } from "../lib/inert-answer.js";

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
    "Content-Security-Policy": INERT_FILE_POLICY,
    "Cross-Origin-Resource-Policy": "cross-origin",
  };
}
