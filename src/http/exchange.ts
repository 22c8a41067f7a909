/**
 * One request and its answer. Sets what every answer has: the request id, headers that let browsers read it but run none of it, and headers
 * that keep a key in the URL out of caches and referrers.
 */
import type { OutgoingHttpHeaders } from "node:http";
import type { Request, Response } from "express";
import type { Logger } from "pino";
import type { Leaving } from "../context.js";
import type { AnswerType } from "../lib/content-types.js";
import { INERT_POLICY, NO_SNIFFING } from "../lib/inert-answer.js";
import { ownValue } from "../lib/own-values.js";
import { noteOf, type RequestNote } from "../lib/request-note.js";
import { type ContextSource, parseQuery, type Query, requestIdOf } from "./context.js";
import { READABLE_BY_ANY_PAGE } from "./cors.js";
import { rateHeaders } from "./rate-headers.js";

/** Node writes up to this size without allocating, less the size of headers. */
const ONE_PIECE_BYTES_MAX = 12 * 1024;

export class Exchange implements ContextSource, Leaving {
  /** The client's own id when it is well-formed, else generated (docs/spec/http.md#request-ids). */
  readonly requestId: string;
  readonly note: RequestNote;
  readonly #log: Logger;
  #query: Query | undefined;
  #idHeader: "request-id" | undefined;
  #headers: OutgoingHttpHeaders | undefined;
  #cookies: string[] | undefined;
  #isHiddenFromScripts = false;
  #signal: AbortSignal | undefined;
  #leavers: (() => void)[] | undefined;

  constructor(
    readonly req: Request,
    readonly res: Response,
    log: Logger,
  ) {
    this.requestId = requestIdOf(req);
    this.#log = log;
    this.note = noteOf(req);
    this.note.requestId = this.requestId;
  }

  /** Created on first use: most requests log nothing. */
  get log(): Logger {
    return this.#log.child({ requestId: this.requestId });
  }

  /** Aborted when the connection closes before the answer is complete. Created on first use. */
  get signal(): AbortSignal {
    this.#signal ??= signalOf(this);
    return this.#signal;
  }

  get leaving(): Leaving {
    return this;
  }

  /** Calls the listener when the connection closes before the answer is complete. */
  onGone(listener: () => void): void {
    if (this.isGone) {
      listener();
      return;
    }
    this.#leavers ??= this.followClose();
    this.#leavers.push(listener);
  }

  get method(): string {
    return this.req.method;
  }

  /** The path without the query. Clients write into it, so log lines have the route's pattern instead. */
  get path(): string {
    const { originalUrl } = this.req;
    const mark = originalUrl.indexOf("?");
    return mark === -1 ? originalUrl : originalUrl.slice(0, mark);
  }

  /** Throws BAD_REQUEST when the query string is malformed. */
  get query(): Query {
    this.#query ??= parseQuery(this.req.originalUrl);
    return this.#query;
  }

  /** True once the connection closed with the answer unfinished. */
  get isGone(): boolean {
    return this.res.closed && !this.res.writableFinished;
  }

  /** A decoded part of the path; for one that includes slashes, the whole. */
  parameter(name: string): string {
    const value = ownValue(this.req.params, name);
    return Array.isArray(value) ? value.join("/") : (value ?? "");
  }

  /**
   * Whether the client already has the content of this ETag. Express would resend it to clients that send `Cache-Control: no-cache`,
   * although tagged content never changes.
   */
  isKept(etag: string): boolean {
    const kept = this.req.headers["if-none-match"]?.split(",").map((tag) => tag.trim().replace(/^W\//, "")) ?? [];
    return kept.includes(etag) || kept.includes("*");
  }

  /** Sets headers of the answer; the last value of each counts. */
  setHeaders(headers: OutgoingHttpHeaders): void {
    this.#headers = this.#headers === undefined ? headers : { ...this.#headers, ...headers };
  }

  /** Adds a `Set-Cookie` line to the answer, also to an error. */
  addCookie(line: string): void {
    this.#cookies = [...(this.#cookies ?? []), line];
  }

  /** The answer, also an error, has the request's id under this name, too. */
  repeatRequestId(header: "request-id"): void {
    this.#idHeader = header;
  }

  /** Hides an answer for a signed-in person from pages of other sites. */
  hideFromScripts(): void {
    this.#isHiddenFromScripts = true;
  }

  /** Clears the headers of a success, for an error instead. */
  clearHeaders(): void {
    this.#headers = undefined;
  }

  sendJson(value: unknown, status = 200): void {
    this.sendBytes(Buffer.from(JSON.stringify(value)), "application/json; charset=utf-8", status);
  }

  /** Sends 204. */
  sendNothing(): void {
    this.writeHead(204, {});
    this.res.end();
  }

  sendText(text: string): void {
    this.sendBytes(Buffer.from(text), "text/plain; charset=utf-8");
  }

  sendBytes(bytes: Uint8Array, contentType: AnswerType, status = 200): void {
    this.writeHead(status, { "Content-Type": contentType, "Content-Length": bytes.byteLength });
    // Node sends a small body in one piece with the headers if it is a string with a character per byte.
    if (bytes.byteLength <= ONE_PIECE_BYTES_MAX && Buffer.isBuffer(bytes)) this.res.end(bytes.toString("latin1"), "latin1");
    else this.res.end(bytes);
  }

  /** As `sendBytes`, for bodies too large to copy into one piece. `onSent`: the system has taken all bytes. */
  sendPieces(pieces: readonly Uint8Array[], contentType: AnswerType, onSent: () => void): void {
    this.res.once("finish", onSent);
    this.writeHead(200, { "Content-Type": contentType, "Content-Length": pieces.reduce((sum, { byteLength }) => sum + byteLength, 0) });
    this.res.cork();
    for (const piece of pieces) this.res.write(piece);
    this.res.end();
    this.res.uncork();
  }

  /** One listener per answer, for any number of generations. */
  private followClose(): (() => void)[] {
    const leavers: (() => void)[] = [];
    this.res.on("close", () => {
      if (!this.res.writableFinished) for (const leave of leavers) leave();
    });
    return leavers;
  }

  /** Passes all headers in one call, which Node writes in a single pass. Our pages set their own policy. */
  writeHead(status: number, headers: OutgoingHttpHeaders): void {
    const all = this.#isHiddenFromScripts ? headersOfAll(this.requestId) : headersOfReadable(this.requestId);
    if (this.#cookies) all["Set-Cookie"] = this.#cookies;
    if (this.#idHeader !== undefined) all[this.#idHeader] = this.requestId;
    if (mentionsKey(this.req.originalUrl)) {
      all["Referrer-Policy"] = "no-referrer";
      all["Cache-Control"] = "private, no-store";
    }
    if (this.note.rates !== null) Object.assign(all, rateHeaders(this.note.rates));
    this.res.writeHead(status, Object.assign(all, this.#headers, headers));
  }
}

/** Object literals, because adding properties one by one is slow. */
function headersOfAll(requestId: string): OutgoingHttpHeaders {
  return { "X-Request-Id": requestId, "X-Content-Type-Options": NO_SNIFFING, "Content-Security-Policy": INERT_POLICY };
}

function headersOfReadable(requestId: string): OutgoingHttpHeaders {
  return {
    "X-Request-Id": requestId,
    "X-Content-Type-Options": NO_SNIFFING,
    "Content-Security-Policy": INERT_POLICY,
    "Access-Control-Allow-Origin": READABLE_BY_ANY_PAGE["Access-Control-Allow-Origin"],
    "Access-Control-Expose-Headers": READABLE_BY_ANY_PAGE["Access-Control-Expose-Headers"],
  };
}

/** Searches the text, so that it also works for a malformed query string. */
function mentionsKey(url: string): boolean {
  return url.includes("?") && /[?&]key=/.test(url);
}

function signalOf(exchange: Exchange): AbortSignal {
  const controller = new AbortController();
  exchange.onGone(() => controller.abort());
  return controller.signal;
}
