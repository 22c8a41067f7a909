/**
 * Stands in for the language of GraphQL in what browsers load (vite.config.ts): documents are named by digests and have no text, so none
 * is ever read or written. What is left of the package is how it calls things.
 */

export const Kind = {
  OPERATION_DEFINITION: "OperationDefinition",
  FRAGMENT_DEFINITION: "FragmentDefinition",
  FIELD: "Field",
  FRAGMENT_SPREAD: "FragmentSpread",
  INLINE_FRAGMENT: "InlineFragment",
  NAME: "Name",
} as const;

export class GraphQLError extends Error {
  constructor(
    message: string,
    readonly nodes?: unknown,
    readonly source?: unknown,
    readonly positions?: unknown,
    readonly path?: unknown,
    readonly originalError?: unknown,
    readonly extensions: Readonly<Record<string, unknown>> = {},
  ) {
    super(message);
    this.name = "GraphQLError";
  }
}

export function parse(): never {
  throw new Error("The dashboard's documents are named by their digests and have no text.");
}

export function print(): string {
  return "";
}
