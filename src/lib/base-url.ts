import { withoutTrailing } from "./trim-end.js";

/** Where the gateway is reached, without a slash at the end. */
export interface Addresses {
  readonly baseUrl: string;
  readonly authUrl: string;
  readonly mediaUrl: string;
}

/**
 * An http or https address that paths are appended to, without a slash at its end. Null for anything else, and for one
 * with credentials, query or fragment.
 */
export function parseBaseUrl(text: string): string | null {
  if (!URL.canParse(text)) return null;
  const url = new URL(text);
  const isPlain = /^https?:$/.test(url.protocol) && !url.username && !url.password && !/[?#\s]/.test(text);
  return isPlain ? withoutTrailing(text, "/") : null;
}
