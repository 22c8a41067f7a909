/** Limits of documents and operations (docs/spec/graphql.md#limits). Each states its reason. */

/** Documents: `me` with a page of usage is 5 deep, the introspection query is exempt from depth (docs/spec/graphql.md#limits). */
export const GRAPHQL_DEPTH_MAX = 10;
/** Clients that join many small requests into one name each by an alias; the cost bounds the work. */
export const GRAPHQL_ALIASES_MAX = 200;
export const GRAPHQL_DIRECTIVES_MAX = 20;
/** Unspecified: every field of the schema at once is below it; prompts belong in variables. */
export const GRAPHQL_TOKENS_MAX = 2_000;
/** Unspecified: characters of a document. Some prompts as literals fit; longer texts belong in variables. */
export const GRAPHQL_DOCUMENT_CHARS_MAX = 256 * 1024;
/** Unspecified: characters of a name in a document, which may be compared with every name of the schema. */
export const GRAPHQL_NAME_CHARS_MAX = 255;
/** Unspecified: comments of a document; one for each of its tokens. */
export const GRAPHQL_COMMENTS_MAX = GRAPHQL_TOKENS_MAX;
/** Unspecified: errors of one document or of its variables that are shown, places of the document that an error shows, and errors that suggest a name. */
export const GRAPHQL_ERRORS_MAX = 20;
export const GRAPHQL_ERROR_LOCATIONS_MAX = 10;
export const GRAPHQL_SUGGESTIONS_MAX = 3;
/** Unspecified: fields that are compared to see whether they can be merged; ten times as many as a document can select. */
export const GRAPHQL_MERGED_FIELDS_MAX = 50_000;
/** Unspecified: fields, each list's times its page size. A full page of usage with every field is below it. */
export const GRAPHQL_COST_MAX = 5_000;
/** Unspecified: characters of the schema that introspection may return for a cost of 1; the whole schema costs about half of the most. */
export const GRAPHQL_INTROSPECTION_CHARS_PER_COST = 250;
/** Unspecified: values of arguments that a field which runs more than once may be given again for a cost of 1. */
export const GRAPHQL_REPEATED_VALUES_PER_COST = 10;
/** Unspecified: parts of an answer that is deferred and streamed; two full pages, item by item. */
export const GRAPHQL_PARTS_MAX = 200;
/** Unspecified: a mutation that generates, beside its fields: 16 of them fit into an operation, which runs them one after the other and holds their answers until the last. */
export const GRAPHQL_GENERATION_COST = 300;
/** Unspecified: a message on a WebSocket, which is unmasked and put together in one turn of the event loop. */
export const GRAPHQL_MESSAGE_BYTES_MAX = 8 * 1024 * 1024;
