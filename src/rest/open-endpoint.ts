/** Endpoints that read no credentials: health, metrics, documents and files. */
import type { Exchange } from "../http/exchange.js";
import type { Answer, ResultOf } from "./openapi/answer.js";
import type { Described, ParamsSchema } from "./openapi/contract.js";
import { type RouteHandler, readParams, withContract } from "./route.js";

export type OpenOptions<A extends Answer, Params> = Described<A> & {
  readonly params?: ParamsSchema<Params>;
  readonly handler: (exchange: Exchange, params: Params) => ResultOf<A> | Promise<ResultOf<A>>;
};

/** The router answers what the handler throws. */
export function openEndpoint<A extends Answer = never, Params = undefined>(options: OpenOptions<A, Params>): RouteHandler {
  const { params, handler } = options;
  const answer = async (exchange: Exchange): Promise<void> => {
    const value = await handler(exchange, readParams(params, exchange));
    if (value !== undefined) exchange.sendJson(value);
  };
  return withContract(answer, { ...options, isPublic: true, readsKey: false });
}
