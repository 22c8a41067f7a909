/**
 * Sends the explorer's requests: queries and mutations over HTTP, subscriptions over a WebSocket, with the typed key or, without one,
 * with the session. An Authorization header of the headers editor takes precedence on both.
 */
import { createGraphiQLFetcher, type Fetcher, type FetcherOpts, type FetcherParams } from "@graphiql/toolkit";
import { type DocumentNode, type ExecutionResult, getOperationAST, type OperationDefinitionNode, parse } from "graphql";
import { createClient } from "graphql-ws";
import { readAuthorization } from "./api-key.js";

const ENDPOINT = "/graphql";
/** The number of subscription events shown: the editor lays out all of them again for each. */
const EVENTS_SHOWN_MAX = 100;

/** With `schemaUrl`, the schema is a file that browsers cache. Without it, it is read with the caller's credentials. */
export function createFetcher(schemaUrl: string | null): Fetcher {
  const askOverHttp = createGraphiQLFetcher({
    url: ENDPOINT,
    fetch: (input, init = {}) => {
      const headers = new Headers(init.headers);
      const authorization = readAuthorization();
      if (authorization !== null && !headers.has("authorization")) headers.set("authorization", authorization);
      return fetch(input, { ...init, headers });
    },
  });
  return (params, options) => {
    if (schemaUrl !== null && params.operationName === INTROSPECTION) return fetch(schemaUrl).then((response) => response.json());
    const { operation, ...prepared } = withOperation(params);
    return operation?.operation === "subscription" ? subscribe(prepared, options) : askOverHttp(prepared, options);
  };
}

/** The name of GraphiQL's own schema query. */
const INTROSPECTION = "IntrospectionQuery";

/** GraphiQL reads the editor with a delay, so the name that it sends may be that of the previous operation. */
function withOperation(params: FetcherParams): FetcherParams & { readonly operation?: OperationDefinitionNode | null | undefined } {
  let document: DocumentNode;
  try {
    document = parse(params.query);
  } catch {
    // The gateway reports the error.
    return params;
  }
  const named = getOperationAST(document, params.operationName);
  if (named) return { ...params, operation: named };
  return { ...params, operationName: null, operation: getOperationAST(document) };
}

/** The events of a subscription, newest first. GraphiQL shows one result, which would be only the last chunk of a streamed text. */
interface Shown extends ExecutionResult {
  readonly events: readonly unknown[];
}

function subscribe({ query, variables, operationName }: FetcherParams, options: FetcherOpts | undefined): AsyncIterableIterator<Shown> {
  const authorization = new Headers(options?.headers).get("authorization") ?? readAuthorization();
  const client = createClient({
    url: `${location.origin.replace(/^http/, "ws")}${ENDPOINT}`,
    retryAttempts: 0,
    ...(authorization !== null && { connectionParams: { authorization } }),
  });
  const results = client.iterate({ query, variables, operationName: operationName ?? null });
  let events: readonly unknown[] = [];
  // Not a generator, because leaving one that waits takes effect only after the wait.
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next: async () => {
      const { done, value } = await results.next().catch((reason: unknown) => {
        throw reason instanceof CloseEvent ? new Error(describeClose(reason)) : reason;
      });
      if (done) return { done, value: undefined };
      events = [value, ...events.slice(0, EVENTS_SHOWN_MAX - 1)];
      return { done: false, value: { events } };
    },
    return: async () => {
      await results.return?.();
      return { done: true, value: undefined };
    },
  };
}

function describeClose({ code, reason }: CloseEvent): string {
  return reason === "" ? `The WebSocket was closed with code ${code}.` : reason;
}
