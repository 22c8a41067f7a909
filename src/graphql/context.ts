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
  /** Aborted when the gateway stops. Endless subscriptions then end; others may finish. */
  readonly closing: AbortSignal;
  /** Whether this caller may read the schema, and gets suggestions for misspelt names. */
  readonly isSchemaOpen: boolean;
  /** Null on a WebSocket, whose HTTP answer was already sent. */
  readonly browser: BrowserAnswer | null;
  /**
   * Counts this request as a live connection until it has been answered. Throws RATE_LIMITED. Null on a WebSocket, which is counted
   * itself.
   */
  readonly holdConnection: (() => void) | null;
}

/** Yoga extends the object that it gets, so resolvers receive the request's own context. */
export function toGraphQLContext(ctx: RequestContext, more: Omit<GraphQLContext, keyof RequestContext>): GraphQLContext {
  return Object.assign(ctx, more);
}
