/**
 * A server-rendered page: plain HTML forms that need no script, work on phones and by keyboard, cannot be framed, and send no referrer to
 * linked sites (docs/spec/sessions.md#pages).
 */
import { createHash } from "node:crypto";
import type { OutgoingHttpHeaders } from "node:http";
import { raw } from "hono/html";
import { sendRefusal } from "../../http/errors.js";
import type { Exchange } from "../../http/exchange.js";
import { gzipFor } from "../../http/gzip.js";
import { MARK_STYLE, MARK_URL, SYSTEM_TOKENS } from "../../lib/design-tokens.js";
import { type Html, html } from "./html.js";

/** The style sheet, inline in each page: a page is one request, and its policy allows exactly this text. */
const PAGE_STYLE = `
${SYSTEM_TOKENS}
* { box-sizing: border-box; }
[hidden] { display: none !important; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 0.9375rem/1.55 var(--font); font-variant-numeric: tabular-nums; }
header { display: flex; align-items: center; min-height: 3.25rem; padding: 0 1rem; background: var(--card); border-bottom: 1px solid var(--line); font-size: 1rem; font-weight: 650; }
header a { display: inline-flex; align-items: center; min-height: 2.25rem; gap: 0.5rem; color: inherit; text-decoration: none; }
${MARK_STYLE}
main { max-width: 34rem; margin: 2rem auto; padding: 1.5rem; background: var(--card); border: 1px solid var(--line); border-radius: var(--radius-card); }
@media (max-width: 35.9rem) { main { margin: 1rem; padding: 1.125rem; } }
h1 { margin: 0 0 0.75rem; font-size: 1.625rem; font-weight: 650; line-height: 1.3; overflow-wrap: anywhere; }
h2 { margin: 1.75rem 0 0.5rem; font-size: 1rem; font-weight: 650; }
p { margin: 0 0 0.75rem; overflow-wrap: anywhere; }
.soft, small { color: var(--soft); font-size: 0.875rem; font-weight: 400; }
.error, .note { margin: 0 0 0.75rem; border-radius: var(--radius); padding: 0.75rem 1rem; }
.error { background: color-mix(in srgb, var(--bad) 11%, transparent); color: var(--bad); }
.note { background: color-mix(in srgb, var(--warn) 11%, transparent); }
form { margin: 0; }
fieldset { margin: 1.25rem 0; padding: 0; border: 0; min-width: 0; }
legend { padding: 0; margin-bottom: 0.4rem; font-size: 0.875rem; font-weight: 600; }
label { display: block; margin: 1rem 0 0.25rem; font-size: 0.875rem; font-weight: 600; }
legend + label { margin-top: 0; }
label.choice { display: flex; gap: 0.75rem; align-items: flex-start; font-weight: 400; margin: 0.4rem 0; overflow-wrap: anywhere; min-width: 0; }
input[type="text"], input[type="email"], input[type="password"], input[type="number"], select { width: 100%; min-height: 2.25rem; padding: 0.35rem 0.75rem; font: inherit; font-size: 0.875rem; color: inherit; background: var(--field); border: 1px solid var(--edge); border-radius: var(--radius); }
input:hover, select:hover { border-color: var(--soft); }
input[type="checkbox"], input[type="radio"] { width: 1.25rem; height: 1.25rem; margin: 0.05rem 0 0; flex: none; accent-color: var(--strong); }
input.code[type="text"] { font: 600 1.5rem/1.2 var(--mono); letter-spacing: 0.12em; text-align: center; text-transform: uppercase; }
input + small { display: block; margin-top: 0.35rem; font-size: 0.8125rem; }
.code-shown { font: 600 1.6rem/1.2 var(--mono); letter-spacing: 0.12em; text-align: center; padding: 0.6rem; border: 1px dashed var(--edge); border-radius: var(--radius); }
.buttons { display: flex; flex-wrap: wrap; gap: 0.75rem; margin-top: 1.25rem; }
.buttons + p { margin-top: 1rem; }
.buttons > * { flex: 1 1 9rem; }
.buttons > p:last-child { margin-bottom: 0; }
button, .button { min-height: 2.25rem; padding: 0.35rem 1.125rem; font: inherit; font-size: 0.875rem; font-weight: 600; line-height: 1.4; display: inline-flex; align-items: center; justify-content: center; text-align: center; text-decoration: none; cursor: pointer; color: var(--ink); background: var(--card); border: 1px solid var(--line); border-radius: var(--radius); }
form > button { width: 100%; }
.who form > button { width: auto; }
button:hover, .button:hover { background: var(--hover); }
button.primary, .button.primary { color: var(--on-strong); background: var(--strong); border-color: transparent; }
button.primary:hover, .button.primary:hover { background: color-mix(in srgb, var(--strong) 88%, var(--ink)); }
button.small { min-height: 1.875rem; padding: 0.15rem 0.75rem; }
@media (pointer: coarse) { button, .button, button.small, input[type="text"], input[type="email"], input[type="password"], input[type="number"], select { min-height: 2.75rem; font-size: 1rem; } }
:focus-visible { outline: 3px solid var(--focus); outline-offset: 2px; }
a { color: var(--strong); }
dl { display: grid; grid-template-columns: minmax(6rem, auto) 1fr; gap: 0.3rem 1rem; margin: 0 0 0.75rem; font-size: 0.875rem; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; min-width: 0; }
ul { margin: 0 0 0.75rem; padding-left: 1.2rem; }
li { margin: 0.2rem 0; overflow-wrap: anywhere; }
pre code { font-size: inherit; }
pre { margin: 0 0 0.75rem; padding: 0.65rem 0.8rem; background: var(--paper); border: 1px solid var(--line); border-radius: var(--radius); font: 0.8125rem/1.5 var(--mono); white-space: pre-wrap; overflow-wrap: anywhere; user-select: all; }
.purpose { border-bottom: 1px solid var(--line); padding-bottom: 0.25rem; margin-bottom: 1rem; }
code { font: 0.9em var(--mono); }
input[aria-invalid="true"], input[aria-invalid="true"]:hover { border-color: var(--bad); color: var(--bad); }
.error a { color: inherit; }
.error > :last-child, .note > :last-child { margin-bottom: 0; }
ul.plain { list-style: none; margin: 0; padding: 0; }
ul.plain > li { padding: 0.75rem 0; border-top: 1px solid var(--line); }
.who { display: flex; flex-wrap: wrap; gap: 0.5rem 1rem; align-items: center; justify-content: space-between; border-bottom: 1px solid var(--line); padding-bottom: 0.75rem; margin-bottom: 1rem; }
.models:has(input[value="all"]:checked) .list { display: none; }
.scroll { max-height: 14rem; overflow: auto; }
`;

export interface Page {
  readonly title: string;
  /** The content of `<main>`, starting with `<h1>`. */
  readonly body: Html;
  readonly status?: number;
  /** Sources for `form-action`: targets of redirects after a form, which browsers check for every redirect. */
  readonly formTargets?: readonly string[];
  readonly headers?: OutgoingHttpHeaders;
  /** Target of the logo; default: the start of this host. */
  readonly home?: string;
}

export interface Redirect {
  /** Absolute, or a path of this host. */
  readonly redirectTo: string;
  readonly headers?: OutgoingHttpHeaders;
}

/** A page with a layout of its own. */
export interface WholePage {
  readonly document: Html;
  readonly policy: string;
}

export type PageAnswer = Page | Redirect | WholePage;

const STYLE_HASH = createHash("sha256").update(PAGE_STYLE).digest("base64");

/** Also for redirects: the source address may hold a state, the target a key. */
const PRIVATE_HEADERS: OutgoingHttpHeaders = {
  "Cache-Control": "no-store",
  // Not `no-referrer`, with which browsers send `Origin: null` with our own forms.
  "Referrer-Policy": "same-origin",
  "X-Frame-Options": "DENY",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
};

export async function sendPageAnswer(exchange: Exchange, answer: PageAnswer): Promise<void> {
  exchange.hideFromScripts();
  if ("redirectTo" in answer) {
    // 303, never 307 or 308, which would forward the form's fields (RFC 9700 4.12).
    const headers = { ...PRIVATE_HEADERS, "Referrer-Policy": "no-referrer", ...answer.headers, Location: answer.redirectTo };
    sendRefusal(exchange, 303, headers, Buffer.alloc(0));
    return;
  }
  const {
    document,
    policy,
    status = 200,
    headers,
  }: WholePage & Pick<Page, "status" | "headers"> = "document" in answer
    ? answer
    : { ...answer, document: layOut(answer), policy: policyOf(answer.formTargets ?? []) };
  const whole = Buffer.from(String(await document));
  // Pages with forms have a secret token beside what a visitor's address says, and a compressed length would tell of both.
  const sent = "document" in answer ? await gzipFor(exchange.req, whole) : { body: whole, headers: {} };
  const ownHeaders = { ...PRIVATE_HEADERS, "Content-Security-Policy": policy, ...headers, "Content-Type": "text/html; charset=utf-8" };
  sendRefusal(exchange, status, { ...ownHeaders, ...sent.headers }, sent.body);
}

function policyOf(formTargets: readonly string[]): string {
  const targets = formTargets.map((target) => ` ${target}`).join("");
  return [
    "default-src 'none'",
    "img-src data:",
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
<link rel="icon" href="${MARK_URL}">
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
