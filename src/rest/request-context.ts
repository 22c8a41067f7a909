/** The request context of a REST request. Its signal and its log are made when first used: many requests need neither. */
import type { Logger } from "pino";
import type { Caller, RequestContext } from "../context.js";
import { HOPS_HEADER, readHops } from "../lib/hops.js";
import { ownValue } from "../lib/own-values.js";
import type { RequestNote } from "../lib/request-note.js";
import { MAX_COST_HEADER, readMaxCost } from "../services/credits/max-cost.js";
import type { Exchange } from "./exchange.js";

export class RestRequestContext implements RequestContext {
  readonly requestId: string;
  readonly maxCost: bigint | undefined;
  reservedId: RequestContext["reservedId"];
  readonly #exchange: Exchange;
  #signal: AbortSignal | undefined;
  #log: Logger | undefined;

  /** Throws BAD_REQUEST for a bound that is none. */
  constructor(
    readonly caller: Caller,
    exchange: Exchange,
    readonly clientAddress: string,
  ) {
    this.requestId = exchange.requestId;
    this.maxCost = readMaxCost(ownValue(exchange.req.headers, MAX_COST_HEADER.toLowerCase()));
    this.#exchange = exchange;
    if (caller.kind === "key") exchange.note.apiKeyId = caller.apiKeyId;
  }

  get note(): RequestNote {
    return this.#exchange.note;
  }

  get hops(): number | undefined {
    return readHops(this.#exchange.req.headers[HOPS_HEADER]);
  }

  /** Aborted when the connection closes before the answer has been written in full. */
  get signal(): AbortSignal {
    this.#signal ??= signalOf(this.#exchange);
    return this.#signal;
  }

  get log(): Logger {
    this.#log ??= this.#exchange.log;
    return this.#log;
  }
}

function signalOf(exchange: Exchange): AbortSignal {
  const controller = new AbortController();
  if (exchange.isGone) controller.abort();
  else {
    exchange.res.once("close", () => {
      if (!exchange.res.writableFinished) controller.abort();
    });
  }
  return controller.signal;
}
