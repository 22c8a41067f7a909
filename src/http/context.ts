/** The request context of whatever comes over HTTP: a request on either face, an operation on a WebSocket, a realtime session. */
import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Logger } from "pino";
import type { Caller, RequestContext } from "../context.js";
import { isRunToken, isWellFormedApiKey } from "../lib/api-key-format.js";
import { HOPS_HEADER, readHops } from "../lib/hops.js";
import { ownValue } from "../lib/own-values.js";
import type { RequestNote } from "../lib/request-note.js";
import { REQUEST_ID_PATTERN } from "../limits.js";
import { MAX_COST_HEADER, readMaxCost } from "../services/credits/max-cost.js";

/** What a context is made of. Its signal and its log are asked for when they are first used. */
export interface ContextSource {
  /** Its headers count; of a WebSocket those of its upgrade. */
  readonly req: Pick<IncomingMessage, "headers">;
  readonly requestId: string;
  readonly note: RequestNote;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/**
 * The one place where a context is made of a request, so that no way in leaves out what another one takes along. Objects may be made
 * with one as their prototype, as Yoga does.
 */
export class HttpRequestContext implements RequestContext {
  readonly requestId: string;
  readonly note: RequestNote;
  readonly maxCost: bigint | undefined;
  reservedId: RequestContext["reservedId"];
  private madeLog: Logger | undefined;

  /** Throws BAD_REQUEST for a bound that is none. */
  constructor(
    readonly caller: Caller,
    private readonly source: ContextSource,
    readonly clientAddress: string,
  ) {
    this.requestId = source.requestId;
    this.note = source.note;
    this.maxCost = readMaxCost(ownValue(source.req.headers, MAX_COST_HEADER.toLowerCase()));
    if (caller.kind === "key") source.note.apiKeyId = caller.apiKeyId;
  }

  get hops(): number | undefined {
    return readHops(this.source.req.headers[HOPS_HEADER]);
  }

  get signal(): AbortSignal {
    return this.source.signal;
  }

  get log(): Logger {
    this.madeLog ??= this.source.log;
    return this.madeLog;
  }
}

/** The id by which a request is found again (docs/spec/http.md#request-ids): the caller's own when it is well-formed, else made. What is a credential is no id: ids are logged. */
export function requestIdOf({ headers }: Pick<IncomingMessage, "headers">): string {
  const asked = headers["x-request-id"];
  if (typeof asked !== "string" || !REQUEST_ID_PATTERN.test(asked)) return randomUUID();
  return isWellFormedApiKey(asked) || isRunToken(asked) ? randomUUID() : asked;
}
