/** What every resolver receives: the request, who asks, and the services that answer. */
import type { RequestContext } from "../context.js";
import type { Services } from "../services/services.js";

export interface GraphQLContext extends RequestContext {
  readonly services: Services;
  /** Aborted when the gateway stops: what would go on for ever ends then, what ends by itself may finish. */
  readonly closing: AbortSignal;
}
