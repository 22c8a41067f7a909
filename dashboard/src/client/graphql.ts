/**
 * GraphQL client. Queries and mutations go over HTTP, subscriptions over one WebSocket. Documents are persisted: the client sends their
 * digests instead of their texts.
 */
import { createClient as createSocket } from "graphql-ws";
import {
  type AnyVariables,
  type CombinedError,
  cacheExchange,
  createClient,
  type ExecutionResult,
  fetchExchange,
  makeOperation,
  mapExchange,
  type Operation,
  type OperationContext,
  type SubscriptionForwarder,
  subscriptionExchange,
  type TypedDocumentNode,
} from "urql";
import { connectionChanged, noteMissedEvents, waitForRetry } from "./connection.js";
import { byDigest, fetchOnce, HEADERS, PATH } from "./early-answers.js";
import { ShellDocument } from "./generated/graphql.js";
import { noteSessionAlive, noteSessionEnded } from "./session.js";

const socketUrl = () => `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${PATH}`;

/** Socket of generations. It never retries: a repeated generation would be charged twice, so a lost stream ends with an error. */
export const generations = createSocket({ url: socketUrl, lazy: true, lazyCloseTimeout: 60_000, retryAttempts: 0, keepAlive: 20_000 });

const socket = createSocket({
  url: socketUrl,
  lazy: true,
  // A restart of the gateway takes seconds, the sleep of a laptop hours.
  retryAttempts: Number.POSITIVE_INFINITY,
  shouldRetry: () => true,
  retryWait: (tries) => waitForRetry(retryDelayMs(tries)),
  keepAlive: 20_000,
  on: {
    connected: () => connectionChanged("open"),
    closed: (event) => {
      connectionChanged("closed");
      // The cookie may belong to a newer session, as after a password change. Only a request can tell.
      if ((event as CloseEvent).code === SESSION_OVER) void refetchQuery(ShellDocument, {});
    },
  },
});
/** Doubled with each failed try, with jitter. */
function retryDelayMs(tries: number): number {
  return Math.min(30_000, 500 * 2 ** tries) * (0.5 + Math.random() / 2);
}

/** HTTP status: Service Unavailable. */
const UNAVAILABLE = 503;
/** Close code for an ended session (graphql-transport-ws: Forbidden). */
const SESSION_OVER = 4403;

/** Replaces the text of each document by its digest. */
const digestExchange = mapExchange({
  onOperation: (operation) => {
    const digest = digestOf(operation);
    if (digest === null || operation.kind === "teardown") return operation;
    const extensions = { ...operation.extensions, ...byDigest(digest) };
    return makeOperation(
      operation.kind,
      { ...operation, variables: operation.variables ?? {}, query: WITHOUT_TEXT, extensions },
      operation.context,
    );
  },
});
const WITHOUT_TEXT = { kind: "Document", definitions: [] } as unknown as TypedDocumentNode;

export function digestOf({ query }: Pick<Operation, "query">): string | null {
  return "documentId" in query && typeof query.documentId === "string" ? query.documentId : null;
}

/** Reads the state of session and connection from the result of every operation. */
const watchExchange = mapExchange({
  onResult: ({ error, operation: { kind } }) => {
    if (kind === "teardown") return;
    if (error && isSessionOver(error)) noteSessionEnded();
    else if (!error || !isUnreachable(error)) {
      noteSessionAlive();
      connectionChanged("answered");
    } else if (kind !== "subscription") connectionChanged("unreachable");
  },
});

export const graph = createClient({
  url: PATH,
  preferGetMethod: false,
  fetch: fetchOnce,
  fetchOptions: { headers: HEADERS },
  exchanges: [
    cacheExchange,
    watchExchange,
    digestExchange,
    fetchExchange,
    subscriptionExchange({
      forwardSubscription: (request, { context }) => ({
        subscribe: (sink) => ({ unsubscribe: subscribe(request, context.endsByItself === true, sink) }),
      }),
    }),
  ],
});

type SubscriptionRequest = Parameters<SubscriptionForwarder>[0];
type SubscriptionSink = Parameters<ReturnType<SubscriptionForwarder>["subscribe"]>[0];

/** Context of a subscription whose completion is final. */
export const ENDS_BY_ITSELF: Partial<OperationContext> = { endsByItself: true };

/** Codes of errors that pass: the gateway is stopping or busy, or failed. */
const PASSING: ReadonlySet<unknown> = new Set(["SERVICE_UNAVAILABLE", "RATE_LIMITED", "INTERNAL_ERROR"]);

/**
 * Opens a subscription. One without an end is opened again when it completes, or is refused by an error that passes: both happen at a
 * restart of the gateway.
 */
function subscribe({ variables, extensions }: SubscriptionRequest, endsByItself: boolean, sink: SubscriptionSink): () => void {
  let isLeft = false;
  let tries = 0;
  let leave = () => {};
  const open = () => {
    leave = socket.subscribe(
      { query: "", ...(variables && { variables }), ...(extensions && { extensions }) },
      {
        next: (result) => {
          tries = 0;
          sink.next(result as ExecutionResult);
        },
        error: (error) => {
          if (endsByItself || !doesPass(error)) sink.error(error);
          else setTimeout(openAgain, retryDelayMs(tries++));
        },
        complete: () => {
          if (endsByItself) sink.complete();
          else if (!isLeft) setTimeout(openAgain, retryDelayMs(tries++));
        },
      },
    );
  };
  const openAgain = () => {
    if (isLeft) return;
    open();
    noteMissedEvents();
  };
  open();
  return () => {
    isLeft = true;
    leave();
  };
}

type SubscriptionError = { readonly extensions?: { readonly code?: unknown } };

function doesPass(error: unknown): boolean {
  return Array.isArray(error) && error.every(({ extensions }: SubscriptionError) => PASSING.has(extensions?.code));
}

/** Client without a cache, for large results that are read once, such as an export. */
export const uncached = createClient({ url: PATH, preferGetMethod: false, exchanges: [watchExchange, digestExchange, fetchExchange] });

/** Runs a query and bypasses the cache. Mounted components that use the same query get the new result. */
export function refetchQuery<Data, Variables extends AnyVariables>(document: TypedDocumentNode<Data, Variables>, variables: Variables) {
  return graph.query(document, variables, { requestPolicy: "network-only" }).toPromise();
}

/** Queries of `prefetch` that have no answer yet. */
const prefetching = new Set<Promise<unknown>>();

/** Starts a query while the code of its page still loads. The page then reuses the running request. */
export function prefetch<Data, Variables extends AnyVariables>(document: TypedDocumentNode<Data, Variables>, variables: Variables): null {
  const answer = graph
    .query(document, variables)
    .toPromise()
    .catch(() => {})
    .finally(() => prefetching.delete(answer));
  prefetching.add(answer);
  return null;
}

/** Resolves when the queries that were started until now are answered. */
export const prefetched = () => Promise.all(prefetching);

/** Whether the gateway gave no answer of its own. One that is starting or stopping refuses each request with 503. */
export function isUnreachable({ networkError, response }: CombinedError): boolean {
  return networkError !== undefined || (response as Response | undefined)?.status === UNAVAILABLE;
}

export function isSessionOver({ graphQLErrors }: CombinedError): boolean {
  return graphQLErrors.some(({ extensions }) => extensions.code === "UNAUTHORIZED");
}
