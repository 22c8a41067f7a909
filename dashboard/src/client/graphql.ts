/** The one client of the graph: documents go by their digests, queries and mutations over HTTP, subscriptions over one WebSocket. */

import { createClient as createSocket } from "graphql-ws";
import {
  type AnyVariables,
  type CombinedError,
  cacheExchange,
  createClient,
  fetchExchange,
  makeOperation,
  mapExchange,
  type Operation,
  subscriptionExchange,
  type TypedDocumentNode,
} from "urql";
import { connectionChanged, waitForRetry } from "./connection.js";
import { ShellDocument } from "./generated/graphql.js";
import { noteSessionAlive, noteSessionEnded } from "./session.js";

/** Where sessions count the graph is at the origin of the page. */
const PATH = "/graphql";

const socketUrl = () => `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${PATH}`;

/**
 * For what is generated, which is paid for each time that it is asked for: a stream that was lost with its connection is told as lost and
 * never begun anew by itself.
 */
export const generations = createSocket({ url: socketUrl, lazy: true, lazyCloseTimeout: 60_000, retryAttempts: 0, keepAlive: 20_000 });

const socket = createSocket({
  url: socketUrl,
  lazy: true,
  // A gateway that restarts is away for seconds; a laptop that slept, for hours.
  retryAttempts: Number.POSITIVE_INFINITY,
  shouldRetry: () => true,
  retryWait: async (tries) => {
    const longest = Math.min(30_000, 500 * 2 ** tries);
    await waitForRetry(longest * (0.5 + Math.random() / 2));
  },
  keepAlive: 20_000,
  on: {
    connected: () => connectionChanged("open"),
    closed: (event) => {
      connectionChanged("closed");
      // Another may have taken its place, as after a change of the password: whether anybody is signed in is asked.
      if ((event as CloseEvent).code === SESSION_OVER) void refetchQuery(ShellDocument, {});
    },
  },
});
/** As the gateway closes the socket of a session that is over (graphql-transport-ws: Forbidden). */
const SESSION_OVER = 4403;

/** The gateway knows the text of each document and is sent its digest alone. */
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

export const byDigest = (digest: string) => ({ persistedQuery: { version: 1 as const, sha256Hash: digest } });

export function digestOf({ query }: Pick<Operation, "query">): string | null {
  return "documentId" in query && typeof query.documentId === "string" ? query.documentId : null;
}

/** What answers say of the session and the connection. */
const watchExchange = mapExchange({
  onResult: ({ error, operation: { kind } }) => {
    if (kind === "teardown") return;
    if (error && isSessionOver(error)) noteSessionEnded();
    else if (!error?.networkError) {
      noteSessionAlive();
      connectionChanged("answered");
    } else if (kind !== "subscription") connectionChanged("unreachable");
  },
});

export const graph = createClient({
  url: PATH,
  preferGetMethod: false,
  // A form with files is something that a page of another site could send, too; this header is not.
  fetchOptions: { headers: { "graphql-preflight": "1" } },
  exchanges: [
    cacheExchange,
    watchExchange,
    digestExchange,
    fetchExchange,
    subscriptionExchange({
      forwardSubscription: ({ variables, extensions }) => ({
        subscribe: (sink) => ({
          unsubscribe: socket.subscribe(
            { query: "", ...(variables && { variables }), ...(extensions && { extensions }) },
            {
              next: (result) => sink.next(result as Parameters<typeof sink.next>[0]),
              error: (error) => sink.error(error),
              complete: () => sink.complete(),
            },
          ),
        }),
      }),
    }),
  ],
});

/** What is asked once and is much, such as an export: nothing of it is kept. */
export const uncached = createClient({ url: PATH, preferGetMethod: false, exchanges: [watchExchange, digestExchange, fetchExchange] });

/** Asks the gateway, whatever is kept of its answer; the pages that show it are given the new one. */
export function refetchQuery<Data, Variables extends AnyVariables>(document: TypedDocumentNode<Data, Variables>, variables: Variables) {
  return graph.query(document, variables, { requestPolicy: "network-only" }).toPromise();
}

/** Starts a query before the page that shows it has come: the page finds its answer on the way. */
export function prefetch<Data, Variables extends AnyVariables>(document: TypedDocumentNode<Data, Variables>, variables: Variables): null {
  graph
    .query(document, variables)
    .toPromise()
    .catch(() => {});
  return null;
}

export function isSessionOver({ graphQLErrors }: CombinedError): boolean {
  return graphQLErrors.some(({ extensions }) => extensions.code === "UNAUTHORIZED");
}
