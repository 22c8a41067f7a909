/** Yoga with this schema, its limits and its error mapping: one instance behind HTTP, SSE and WebSocket. */
import { useCSRFPrevention } from "@graphql-yoga/plugin-csrf-prevention";
import { type ExecutionArgs, GraphQLError, getOperationAST } from "graphql";
import { createYoga, type Plugin, type YogaServerInstance } from "graphql-yoga";
import type { Logger } from "pino";
import { statusOf } from "../http/errors.js";
import type { KeepAlive } from "../lib/keep-alive.js";
import type { RequestEnd, RequestNote } from "../lib/request-note.js";
import type { Services } from "../services/services.js";
import type { GraphQLContext } from "./context.js";
import { maskRequestError, useAppErrors } from "./plugins/use-app-errors.js";
import { useIdempotency } from "./plugins/use-idempotency.js";
import { documentLimits } from "./plugins/use-limits.js";
import { useUploads } from "./plugins/use-uploads.js";
import { schema } from "./schema.js";

export const GRAPHQL_PATH = "/graphql";

/** Any of these makes a browser ask first, which a form or an image on somebody else's page cannot. */
const CSRF_HEADERS = ["x-graphql-yoga-csrf", "apollo-require-preflight", "x-apollo-operation-name", "graphql-preflight"];

export interface YogaOptions {
  /** Whether the schema may be asked for. */
  readonly introspection: boolean;
  /** Whether a browser is shown the explorer. */
  readonly graphiql: boolean;
}

export type Yoga = YogaServerInstance<GraphQLContext, object>;

/** What the transports share. */
export interface Face {
  readonly yoga: Yoga;
  readonly services: Services;
  readonly log: Logger;
  /** Aborted when the gateway stops. */
  readonly closing: AbortSignal;
  readonly keepAlive: KeepAlive;
  /** Told of each operation on a WebSocket when it is over. */
  readonly onOver: (note: RequestNote, end: RequestEnd) => void;
}

export function createYogaServer({ introspection, graphiql }: YogaOptions): Yoga {
  return createYoga<GraphQLContext>({
    schema,
    graphqlEndpoint: GRAPHQL_PATH,
    // What there is to log is logged by the error mapping, once and with its request id.
    logging: false,
    maskedErrors: { maskError: maskRequestError },
    landingPage: false,
    graphiql: graphiql && { title: "Sluice", defaultQuery: DEFAULT_QUERY, shouldPersistHeaders: true },
    renderGraphiQL: async (options) => (await import("@graphql-yoga/render-graphiql")).renderGraphiQL(options),
    // The handler in front of Yoga answers for origins and sizes.
    cors: false,
    maxRequestBodySize: false,
    // useUploads reads forms.
    multipart: false,
    batching: false,
    plugins: [
      useCSRFPrevention({ requestHeaders: CSRF_HEADERS }),
      useUploads(),
      useRequestRules(),
      ...documentLimits({ introspection }),
      useAppErrors(),
      useRequestNote(),
      useIdempotency(),
    ],
  });
}

const DEFAULT_QUERY = `# Your key goes in the Headers tab: { "Authorization": "Bearer sk_..." }
query {
  me { handle balance { available } }
  models { id title }
}
`;

/** Refusals that Yoga makes without a body, or late. */
function useRequestRules(): Plugin<GraphQLContext, GraphQLContext> {
  return {
    onRequestParse: ({ request, requestParser }) => {
      if (request.method === "POST" && !requestParser) {
        throw refusal("Send the operation as application/json.", statusOf("UNSUPPORTED_MEDIA_TYPE"));
      }
    },
    onParams: ({ params: { operationName } }) => {
      if (operationName !== undefined && operationName !== null && typeof operationName !== "string") {
        throw refusal("operationName must be text.", statusOf("BAD_REQUEST"));
      }
    },
    onSubscribe: ({ args, setResultAndStopExecution }) => {
      // On a WebSocket there is no request.
      const accept = args.contextValue.request?.headers.get("accept") ?? "*/*";
      if (/text\/event-stream|text\/\*|\*\/\*/.test(accept)) return;
      const error = refusal(
        "A subscription is answered as text/event-stream: send it with Accept: text/event-stream, or over a WebSocket.",
        406,
      );
      setResultAndStopExecution({ errors: [error] });
    },
  };
}

function refusal(message: string, status: number): GraphQLError {
  return new GraphQLError(message, { extensions: { code: "BAD_REQUEST", http: { status } } });
}

/** Clients choose the name: of a long one the beginning is told. GraphQL's grammar leaves it letters, digits and underscores. */
const NAME_CHARS_MAX = 64;

/** Writes down what an operation is called, for the access log. Its document, and what stands in it, are its caller's alone. */
function useRequestNote(): Plugin<GraphQLContext, GraphQLContext> {
  const note = ({
    args,
  }: {
    readonly args: Pick<ExecutionArgs, "document" | "operationName"> & { readonly contextValue: GraphQLContext };
  }) => {
    const operation = getOperationAST(args.document, args.operationName);
    if (!operation || !args.contextValue.note) return;
    args.contextValue.note.operation = operation.name?.value.slice(0, NAME_CHARS_MAX) ?? operation.operation;
  };
  return { onExecute: note, onSubscribe: note };
}
