/**
 * A server-rendered page: plain HTML forms that need no script, work at a phone's width and by keyboard, cannot be framed and leak
 * nothing to where their links lead (docs/spec/sessions.md#pages).
 */
import { createHash } from "node:crypto";
import type { OutgoingHttpHeaders } from "node:http";
import { raw } from "hono/html";
import { sendRefusal } from "../../http/errors.js";
import type { Exchange } from "../../http/exchange.js";
import { type Html, html } from "./html.js";
import { PAGE_STYLE } from "./style.js";

export interface Page {
  readonly title: string;
  /** What stands inside `<main>`; it begins with the page's `<h1>`. */
  readonly body: Html;
  readonly status?: number;
  /** What an answer to one of its forms may redirect to, as sources of `form-action`, to which browsers hold every redirect that follows. */
  readonly formTargets?: readonly string[];
  readonly headers?: OutgoingHttpHeaders;
  /** Where the mark at the top leads; the start of this host unless said. */
  readonly home?: string;
}

export interface Redirect {
  /** Absolute, or a path of this host. */
  readonly redirectTo: string;
  readonly headers?: OutgoingHttpHeaders;
}

export type PageAnswer = Page | Redirect;

const STYLE_HASH = createHash("sha256").update(PAGE_STYLE).digest("base64");

/** Also what a redirect carries: the address that it comes from may hold a state, the one that it goes to a key. */
const PRIVATE_HEADERS: OutgoingHttpHeaders = {
  "Cache-Control": "no-store",
  // Not `no-referrer`, with which browsers send `Origin: null` along with our own forms.
  "Referrer-Policy": "same-origin",
  "X-Frame-Options": "DENY",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
};

export async function sendPageAnswer(exchange: Exchange, answer: PageAnswer): Promise<void> {
  exchange.hideFromScripts();
  if ("redirectTo" in answer) {
    // 303, never 307 or 308: what a form holds must not be sent on (RFC 9700 4.12).
    const headers = { ...PRIVATE_HEADERS, "Referrer-Policy": "no-referrer", ...answer.headers, Location: answer.redirectTo };
    sendRefusal(exchange, 303, headers, Buffer.alloc(0));
    return;
  }
  const bytes = Buffer.from(String(await layOut(answer)));
  const headers = {
    ...PRIVATE_HEADERS,
    "Content-Security-Policy": policyOf(answer.formTargets ?? []),
    ...answer.headers,
    "Content-Type": "text/html; charset=utf-8",
  };
  sendRefusal(exchange, answer.status ?? 200, headers, bytes);
}

function policyOf(formTargets: readonly string[]): string {
  const targets = formTargets.map((target) => ` ${target}`).join("");
  return [
    "default-src 'none'",
    `style-src 'sha256-${STYLE_HASH}'`,
    `form-action 'self'${targets}`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}

function layOut({ title, body, home = "/" }: Page): Html {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · Sluice</title>
<style>${raw(PAGE_STYLE)}</style>
</head>
<body>
<header><a href="${home}"><span class="mark" aria-hidden="true"></span>Sluice</a></header>
<main>
${body}
</main>
</body>
</html>
`;
}
