/**
 * Redirect addresses of consent flows: https, or http on a loopback address (docs/spec/authorization.md#redirect-urls).
 *
 * Text that the URL parser would repair, decode or drop is refused, so that the browser goes exactly where the page said.
 */
import * as z from "zod";
import { invalidInput } from "../../errors.js";
import { isLoopbackHostname } from "../../lib/urls.js";
import { REDIRECT_URL_CHARS_MAX, REDIRECT_URLS_MAX } from "./limits.js";

export interface RedirectUrl {
  /** As given; parameters are appended to it. */
  readonly text: string;
  /** For `form-action`. */
  readonly origin: string;
  /** In punycode, with a port that is not the scheme's own. */
  readonly host: string;
  readonly isLoopback: boolean;
}

/** A name, an IPv4 address, or an IPv6 address in brackets. The URL parser takes more, which a content policy would read as its own. */
const HOST = /^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])$/;
const FORM = /^(https?):\/\/([^/?#]+)([/?][^#]*)?$/;
/** Printable ASCII without the space, `"`, `<`, `>`, `\`, `^`, backtick, `{`, `|` and `}`, which RFC 3986 does not allow. */
const CHARACTERS = /^[!#-;=?-[\]_a-z~]*$/;

/** Throws BAD_REQUEST with the fault. */
export function parseRedirectUrl(text: string, param: string): RedirectUrl {
  const url = readRedirectUrl(text);
  if (typeof url === "string") throw invalidInput(`The redirect URL ${url}.`, param);
  return url;
}

/** Port, path and query as browsers write them. */
const REST = "(?::[1-9]\\d{0,4})?(?:[/?][!$-;=?-Z_a-z~]*)?$";
const DESCRIBED = `^https://[a-z0-9][a-z0-9.-]*${REST}|^http://(?:localhost|127\\.0\\.0\\.1)${REST}`;

/** Addresses that an app key's owner registers. */
export const redirectUrls = z
  .array(
    z
      .string()
      .superRefine((text, issues) => {
        const url = readRedirectUrl(text);
        if (typeof url === "string") issues.addIssue(url);
      })
      .meta({ pattern: DESCRIBED, maxLength: REDIRECT_URL_CHARS_MAX }),
  )
  .max(REDIRECT_URLS_MAX)
  .transform((texts) => [...new Set(texts)]);

/** Parses the address; a string is the fault. */
export function readRedirectUrl(text: string): RedirectUrl | string {
  if (text.length > REDIRECT_URL_CHARS_MAX) return `is longer than ${REDIRECT_URL_CHARS_MAX} characters`;
  if (text.includes("#")) return "must not have a fragment";
  if (!CHARACTERS.test(text)) return "holds a character that must be percent-encoded; a host in other letters is written in punycode";
  const [, scheme, authority = ""] = FORM.exec(text) ?? [];
  if (scheme === undefined || !URL.canParse(text)) return "must be a whole https URL, or an http URL on localhost";
  if (authority.includes("@")) return "must not hold a name or password";
  const url = new URL(text);
  const ownPort = scheme === "https" ? ":443" : ":80";
  const written = authority.endsWith(ownPort) ? authority.slice(0, -ownPort.length) : authority;
  if (written !== url.host) return "must have its host written as browsers write it";
  if (!HOST.test(url.hostname)) return "must have a host of letters, digits, dots and hyphens";
  const isLoopback = isLoopbackHostname(url.hostname);
  if (scheme === "http" && !isLoopback) return "must be https; http is for localhost, 127.0.0.1 and [::1] only";
  return { text, origin: url.origin, host: url.host, isLoopback };
}

/** Whether the app registered this address. It must be equal, except for the port on a loopback address (RFC 8252 7.3). */
export function isRegistered(registered: readonly string[], requested: RedirectUrl): boolean {
  const key = requested.isLoopback ? withoutPort : (text: string) => text;
  return registered.some((text) => key(text) === key(requested.text));
}

function withoutPort(text: string): string {
  return text.replace(/^(https?:\/\/(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])):\d{1,5}(?=[/?]|$)/, "$1");
}

export function withQuery(text: string, parameters: string): string {
  const mark = text.indexOf("?");
  // A second question mark is part of the query, and would become part of the added name.
  const glue = mark === -1 ? "?" : mark === text.length - 1 || text.endsWith("&") ? "" : "&";
  return `${text}${glue}${parameters}`;
}

export function withFragment(text: string, parameters: string): string {
  return `${text}#${parameters}`;
}
