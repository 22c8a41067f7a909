/** Completes a request's note for the access log, the metrics and the request log: the operation's name, and whether it generates. */
import { type DocumentNode, type ExecutionArgs, getOperationAST, Kind } from "graphql";
import type { Plugin } from "graphql-yoga";
import type { GraphQLContext } from "../context.js";
import { fragmentsOf, rootFieldNames } from "../documents/fragments.js";
import { GENERATION_MUTATIONS } from "./use-idempotency.js";

/** Clients choose the name, so a long one is truncated. GraphQL's grammar allows letters, digits and underscores. */
const NAME_CHARS_MAX = 64;
/** A contract test compares it with the schema. */
export const GENERATION_SUBSCRIPTIONS: ReadonlySet<string> = new Set(["chatCompletion", "response", "speech"]);

type Args = Pick<ExecutionArgs, "document" | "operationName"> & { readonly contextValue: GraphQLContext };

export function useRequestNote(): Plugin<GraphQLContext, GraphQLContext> {
  const noteName = ({ args }: { readonly args: Args }) => {
    const operation = getOperationAST(args.document, args.operationName);
    if (!operation || !args.contextValue.note) return;
    args.contextValue.note.operation = operation.name?.value.slice(0, NAME_CHARS_MAX) ?? operation.operation;
  };
  return {
    // Before the document is refused, so that a refused generation is noted as one.
    onValidate: ({ context, params }) => {
      const { note } = context as GraphQLContext;
      if (note) note.isGeneration = generates(params.documentAST);
    },
    onExecute: noteName,
    onSubscribe: noteName,
  };
}

/** Yoga caches documents by their text. */
const GENERATES = new WeakMap<DocumentNode, boolean>();

function generates(document: DocumentNode): boolean {
  let known = GENERATES.get(document);
  if (known === undefined) {
    known = findGeneration(document);
    GENERATES.set(document, known);
  }
  return known;
}

function findGeneration(document: DocumentNode): boolean {
  const fragments = fragmentsOf(document);
  return document.definitions.some((definition) => {
    if (definition.kind !== Kind.OPERATION_DEFINITION || definition.operation === "query") return false;
    const generating = definition.operation === "mutation" ? GENERATION_MUTATIONS : GENERATION_SUBSCRIPTIONS;
    return rootFieldNames(definition.selectionSet, (name) => fragments.get(name)).some((name) => generating.has(name));
  });
}
