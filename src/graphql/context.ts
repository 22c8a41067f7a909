/** What every resolver receives: the request, who asks, and the services that answer. */
import type { RequestContext } from "../context.js";
import type { Services } from "../services/services.js";

/** The browser that asks, and the way to set a cookie in it. */
export interface BrowserAnswer {
  readonly userAgent: string | undefined;
  /** Throws BAD_REQUEST where the session's cookie does not count, FORBIDDEN for a page of another origin. */
  assertMaySignIn(): void;
  /** A `Set-Cookie` line of the answer to come. */
  addCookie(line: string): void;
  /** The session that the answer signs it in to. Null: it stays in the one that asks, if there is one. */
  openedSessionId: string | null;
}

export interface GraphQLContext extends RequestContext {
  readonly services: Services;
  /** Aborted when the gateway stops: what would go on for ever ends then, what ends by itself may finish. */
  readonly closing: AbortSignal;
  /** Whether this caller may ask for the schema, and is helped with what it misspells. */
  readonly isSchemaOpen: boolean;
  /** Null on a WebSocket, whose answer has long been given. */
  readonly browser: BrowserAnswer | null;
  /** Counts the connection of this request as a live one until it has been answered; throws RATE_LIMITED. Null on a WebSocket, which is counted itself. */
  readonly holdConnection: (() => void) | null;
}

/** Yoga adds to the very object that it is given, so the request's own context is what resolvers receive. */
export function toGraphQLContext(ctx: RequestContext, more: Omit<GraphQLContext, keyof RequestContext>): GraphQLContext {
  return Object.assign(ctx, more);
}
