import type { AppError } from "../../errors.js";
import { BodyAborted } from "../../http/body.js";
import { explain, headersOf, sendError, statusOf } from "../../http/errors.js";
import type { Exchange } from "../../http/exchange.js";
import { html } from "./html.js";
import { sendPageAnswer } from "./page.js";
import { returnToInput } from "./return-to.js";

/** True for navigation in a browser. Clients that accept anything, such as programs and scripts, get JSON. */
export function prefersHtml({ req }: Exchange): boolean {
  const { accept } = req.headers;
  return accept !== undefined && /html/i.test(accept) && req.accepts(["json", "html"]) === "html";
}

/** For requests refused before an endpoint: unknown paths and methods. `home` is the link of the page. */
export function sendNegotiatedError(exchange: Exchange, error: unknown, home: string): void | Promise<void> {
  exchange.res.setHeader("Vary", "Accept");
  return prefersHtml(exchange) ? sendErrorPage(exchange, error, home) : sendError(exchange, error);
}

export async function sendErrorPage(exchange: Exchange, error: unknown, home = "/"): Promise<void> {
  if (error instanceof BodyAborted || exchange.isGone) return;
  const reported = explain(error, exchange);
  if (exchange.res.headersSent) {
    exchange.res.destroy();
    return;
  }
  const status = statusOf(reported.code);
  const title = titleOf(reported, status);
  const again = pageBefore(exchange);
  const body = html`<h1>${title}</h1>
<p class="error" role="alert">${reported.message}</p>
<div class="buttons">
${again === null ? "" : html`<a class="button" href="${again}">Back to the form</a>`}
<a class="button" href="${home}">Go to the home page</a>
</div>
<p class="soft">Error ${status} · request ${exchange.requestId}</p>`;
  exchange.clearHeaders();
  await sendPageAnswer(exchange, { title, body, home, status, headers: headersOfPage(reported) });
}

/** Pages send no challenge for a bearer token. */
export function headersOfPage(error: AppError): Record<string, string> {
  const { "WWW-Authenticate": _, ...headers } = headersOf(error);
  return headers;
}

function titleOf({ code }: AppError, status: number): string {
  if (status >= 500) return "Something went wrong";
  if (code === "NOT_FOUND") return "Not found";
  if (code === "RATE_LIMITED") return "Too many requests";
  return "Request failed";
}

/** Our page that a form was sent from, to show it again. Only our own pages send a referrer here. */
function pageBefore({ req }: Exchange): string | null {
  const { referer, host } = req.headers;
  if (req.method !== "POST" || referer === undefined || !URL.canParse(referer)) return null;
  const url = new URL(referer);
  return url.host === host ? (returnToInput.parse(url.pathname + url.search) ?? null) : null;
}
