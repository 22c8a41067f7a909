/**
 * One request and its answer. Everything that each answer carries is decided here once: the request id, the headers
 * that let a browser read it and run nothing of it, and what keeps a key that came in the URL out of caches and referrers.
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

/** What Node writes to the system without asking for room of its own, less what headers take. */
const ONE_PIECE_BYTES_MAX = 12 * 1024;

export class Exchange implements ContextSource, Leaving {
  /** The caller's own id when it is well-formed, else made (docs/spec/http.md#request-ids). */
  readonly requestId: string;
  /** What is told of it when it is over. */
  readonly note: RequestNote;
  readonly #log: Logger;
  #query: Query | undefined;
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

  /** Made when first used: most requests log nothing. */
  get log(): Logger {
    return this.#log.child({ requestId: this.requestId });
  }

  /** Aborted when the connection closes before the answer has been written in full. Made when first used, too. */
  get signal(): AbortSignal {
    this.#signal ??= signalOf(this);
    return this.#signal;
  }

  get leaving(): Leaving {
    return this;
  }

  /** Calls the listener when the connection closes before the answer has been written in full. */
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

  /** The path alone, without the query. Callers write into it, so no log line holds it: those name the route, by its pattern. */
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

  /** True once the connection is closed with the answer unfinished: nobody is left to be told anything. */
  get isGone(): boolean {
    return this.res.closed && !this.res.writableFinished;
  }

  /** A part of the path, decoded; of one that takes in slashes, the whole. */
  parameter(name: string): string {
    const value = ownValue(this.req.params, name);
    return Array.isArray(value) ? value.join("/") : (value ?? "");
  }

  /**
   * Whether the caller already has what this ETag is of. Express would have it sent again to whoever sends `Cache-Control: no-cache`; what
   * it is the tag of cannot have changed.
   */
  isKept(etag: string): boolean {
    const kept = this.req.headers["if-none-match"]?.split(",").map((tag) => tag.trim().replace(/^W\//, "")) ?? [];
    return kept.includes(etag) || kept.includes("*");
  }

  /** Headers of the answer to come; of each the last one set wins. */
  setHeaders(headers: OutgoingHttpHeaders): void {
    this.#headers = this.#headers === undefined ? headers : { ...this.#headers, ...headers };
  }

  /** A `Set-Cookie` line of the answer to come, be it an error. */
  addCookie(line: string): void {
    this.#cookies = [...(this.#cookies ?? []), line];
  }

  /** Pages of other sites may not read the answer: it is for whoever is signed in. */
  hideFromScripts(): void {
    this.#isHiddenFromScripts = true;
  }

  /** An error is not answered with the headers of the success that it prevented. */
  clearHeaders(): void {
    this.#headers = undefined;
  }

  sendJson(value: unknown, status = 200): void {
    this.sendBytes(Buffer.from(JSON.stringify(value)), "application/json; charset=utf-8", status);
  }

  /** It is done, and there is nothing to say. */
  sendNothing(): void {
    this.writeHead(204, {});
    this.res.end();
  }

  sendText(text: string): void {
    this.sendBytes(Buffer.from(text), "text/plain; charset=utf-8");
  }

  sendBytes(bytes: Uint8Array, contentType: AnswerType, status = 200): void {
    this.writeHead(status, { "Content-Type": contentType, "Content-Length": bytes.byteLength });
    // Of a small body as text, a character a byte, Node makes one piece with the headers.
    if (bytes.byteLength <= ONE_PIECE_BYTES_MAX && Buffer.isBuffer(bytes)) this.res.end(bytes.toString("latin1"), "latin1");
    else this.res.end(bytes);
  }

  /** As `sendBytes`, for what is too large to be copied into one piece. `onSent`: the system has taken all of it. */
  sendPieces(pieces: readonly Uint8Array[], contentType: AnswerType, onSent: () => void): void {
    this.res.once("finish", onSent);
    this.writeHead(200, { "Content-Type": contentType, "Content-Length": pieces.reduce((sum, { byteLength }) => sum + byteLength, 0) });
    this.res.cork();
    for (const piece of pieces) this.res.write(piece);
    this.res.end();
    this.res.uncork();
  }

  /** One listener of the answer's, whatever number of generations it is of. */
  private followClose(): (() => void)[] {
    const leavers: (() => void)[] = [];
    this.res.on("close", () => {
      if (!this.res.writableFinished) for (const leave of leavers) leave();
    });
    return leavers;
  }

  /** One call with every header: Node then writes them in a single pass. A page of ours states its own policy. */
  writeHead(status: number, headers: OutgoingHttpHeaders): void {
    const all = this.#isHiddenFromScripts ? headersOfAll(this.requestId) : headersOfReadable(this.requestId);
    if (this.#cookies) all["Set-Cookie"] = this.#cookies;
    if (mentionsKey(this.req.originalUrl)) {
      all["Referrer-Policy"] = "no-referrer";
      all["Cache-Control"] = "private, no-store";
    }
    this.res.writeHead(status, Object.assign(all, this.#headers, headers));
  }
}

/** Each is one literal: an object that grows by name after name costs every answer. */
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

/** Looks at the text only, so that it also holds for a query string that cannot be parsed. */
function mentionsKey(url: string): boolean {
  return url.includes("?") && /[?&]key=/.test(url);
}

function signalOf(exchange: Exchange): AbortSignal {
  const controller = new AbortController();
  exchange.onGone(() => controller.abort());
  return controller.signal;
}
