/** The context of every resolver: the request, its caller, and the services. */
import type { RequestContext } from "../context.js";
import type { Services } from "../services/services.js";

export interface BrowserAnswer {
  readonly userAgent: string | undefined;
  /** Throws BAD_REQUEST where the session cookie is not valid, FORBIDDEN for a page of another origin. */
  assertMaySignIn(): void;
  /** Adds a `Set-Cookie` line to the answer. */
  addCookie(line: string): void;
  /** The session that the answer signs in to. Null: the current session, if any, stays. */
  openedSessionId: string | null;
}

export interface GraphQLContext extends RequestContext {
  readonly services: Services;
  /** Whether this caller may read the schema, and gets suggestions for misspelt names. */
  readonly isSchemaOpen: boolean;
  /** Null on a WebSocket, whose HTTP answer was already sent. */
  readonly browser: BrowserAnswer | null;
  /**
   * Called when this operation is a subscription that does not end by itself: a stop of the gateway cuts it off. Over HTTP it counts as a
   * live connection. Throws RATE_LIMITED.
   */
  readonly openLive: () => void;
}

/** Yoga extends the object that it gets, so resolvers receive the request's own context. */
export function toGraphQLContext(ctx: RequestContext, more: Omit<GraphQLContext, keyof RequestContext>): GraphQLContext {
  return Object.assign(ctx, more);
}
