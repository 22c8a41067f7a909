/**
 * Replaces `@0no-co/graphql.web` in the bundle (vite.config.ts). Persisted documents have no text, so the parser and the printer are never
 * used. Only the constants and the error class that urql imports remain.
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
  throw new Error("The dashboard's documents are persisted and have no text to parse.");
}

export function print(): string {
  return "";
}
