/** Limits of documents and operations (docs/spec/graphql.md#limits). Each states its reason. */

/** Depth. `me` with a page of usage is 5 deep; introspection is exempt (docs/spec/graphql.md#limits). */
export const GRAPHQL_DEPTH_MAX = 10;
/** Aliases. Clients that join many small requests give each an alias; the cost limits the work. */
export const GRAPHQL_ALIASES_MAX = 200;
export const GRAPHQL_DIRECTIVES_MAX = 20;
/** Unspecified: tokens. Every field of the schema at once is below it; prompts belong in variables. */
export const GRAPHQL_TOKENS_MAX = 2_000;
/** Unspecified: characters of a document. Some prompts as literals fit; longer texts belong in variables. */
export const GRAPHQL_DOCUMENT_CHARS_MAX = 256 * 1024;
/** Unspecified: characters of a name in a document, which may be compared with every name of the schema. */
export const GRAPHQL_NAME_CHARS_MAX = 255;
/** Unspecified: comments of a document, as many as its tokens. */
export const GRAPHQL_COMMENTS_MAX = GRAPHQL_TOKENS_MAX;
/** Unspecified: shown errors of a document or of its variables, shown places per error, and errors that suggest a name. */
export const GRAPHQL_ERRORS_MAX = 20;
export const GRAPHQL_ERROR_LOCATIONS_MAX = 10;
export const GRAPHQL_SUGGESTIONS_MAX = 3;
/** Unspecified: fields compared for merging, ten times as many as a document can select. */
export const GRAPHQL_MERGED_FIELDS_MAX = 50_000;
/** Unspecified: the cost of fields, each list's multiplied by its page size. A full page of usage with every field is below it. */
export const GRAPHQL_COST_MAX = 5_000;
/**
 * Unspecified: characters of the schema that introspection may return for a cost of 1. The whole schema costs about two thirds of the
 * maximum.
 */
export const GRAPHQL_INTROSPECTION_CHARS_PER_COST = 320;
/** Unspecified: argument values that may be passed again to a repeated field for a cost of 1. */
export const GRAPHQL_REPEATED_VALUES_PER_COST = 10;
/** Unspecified: parts of a deferred or streamed answer: two full pages, item by item. */
export const GRAPHQL_PARTS_MAX = 200;
/**
 * Unspecified: the cost of a mutation that generates, besides its fields. 16 fit into an operation, which runs them one after the
 * other and holds their answers until the last.
 */
export const GRAPHQL_GENERATION_COST = 300;
/** Unspecified: bytes of a message on a WebSocket, which is unmasked and assembled in one turn of the event loop. */
export const GRAPHQL_MESSAGE_BYTES_MAX = 8 * 1024 * 1024;
