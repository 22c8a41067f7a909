/** Yoga with this schema, its limits and its error mapping: one instance behind HTTP, SSE and WebSocket. */
import { createYoga, type YogaServerInstance } from "graphql-yoga";
import { LRUCache } from "lru-cache";
import type { Logger } from "pino";
import type { Caller } from "../context.js";
import type { KeepAlive } from "../lib/keep-alive.js";
import type { RequestEnd, RequestNote } from "../lib/request-note.js";
import type { LiveConnections } from "../services/access/live-connections.js";
import type { Services } from "../services/services.js";
import type { GraphQLContext } from "./context.js";
import { useAgentReach } from "./plugins/use-agent-reach.js";
import { maskRequestError, useAppErrors } from "./plugins/use-app-errors.js";
import { useIdempotency } from "./plugins/use-idempotency.js";
import { useDocumentLimits } from "./plugins/use-limits.js";
import { useLiveConnections } from "./plugins/use-live-connections.js";
import { useOperations } from "./plugins/use-operations.js";
import { usePersistedDocuments } from "./plugins/use-persisted-documents.js";
import { useRequestNote } from "./plugins/use-request-note.js";
import { useCsrfRule, useRequestRules } from "./plugins/use-request-rules.js";
import { useUploads } from "./plugins/use-uploads.js";
import { schema } from "./schema.js";

export const GRAPHQL_PATH = "/graphql";
/** The schema as text, for tools that do not use introspection. */
export const SCHEMA_PATH = "/schema.graphql";

export type Yoga = YogaServerInstance<GraphQLContext, object>;

/** Shared by the transports. */
export interface Face {
  readonly yoga: Yoga;
  readonly services: Services;
  readonly log: Logger;
  readonly isSchemaOpenTo: (caller: Caller) => boolean;
  /** Aborted when the gateway stops. */
  readonly closing: AbortSignal;
  readonly keepAlive: KeepAlive;
  readonly connections: LiveConnections;
  /** Called for each operation on a WebSocket when it ends. */
  readonly onOver: (note: RequestNote, end: RequestEnd) => void;
}

export function createYogaServer(): Yoga {
  return createYoga<GraphQLContext>({
    schema,
    graphqlEndpoint: GRAPHQL_PATH,
    // The error mapping logs each error once, with its request ID.
    logging: false,
    maskedErrors: { maskError: maskRequestError },
    landingPage: false,
    graphiql: false,
    // The handler in front of Yoga handles origins and sizes.
    cors: false,
    maxRequestBodySize: false,
    // useUploads reads forms.
    multipart: false,
    batching: false,
    parserAndValidationCache: { documentCache: boundedByText(), errorCache: boundedByText() },
    plugins: [
      useCsrfRule(),
      useUploads(),
      useRequestRules(),
      usePersistedDocuments(),
      useRequestNote(),
      useDocumentLimits(),
      useAgentReach(),
      useOperations(),
      useLiveConnections(),
      useAppErrors(),
      useIdempotency(),
    ],
  });
}

/** Unspecified: document texts that are cached after parsing, and the longest of them. Prompts are in variables. */
const PARSED_DOCUMENTS_MAX = 1_024;
const PARSED_CHARS_MAX = 16 * 1024 * 1024;
const PARSED_DOCUMENT_CHARS_MAX = 64 * 1024;

/** Yoga limits only their number: a thousand documents with long texts would exceed a process's memory. */
function boundedByText<Value extends object>(): LRUCache<string, Value> {
  return new LRUCache({
    maxSize: PARSED_CHARS_MAX,
    maxEntrySize: PARSED_DOCUMENT_CHARS_MAX,
    // Short documents take more memory than their text.
    sizeCalculation: (_value, text) => Math.max(text.length, Math.ceil(PARSED_CHARS_MAX / PARSED_DOCUMENTS_MAX)),
  });
}
