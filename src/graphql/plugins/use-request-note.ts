/** Completes a request's note for the access log, the metrics and the request log: the operation's name, and whether it generates. */
import { type DocumentNode, type ExecutionArgs, type GraphQLSchema, getOperationAST, Kind, type OperationDefinitionNode } from "graphql";
import type { Plugin } from "graphql-yoga";
import type { GraphQLContext } from "../context.js";
import { fragmentsOf, rootFieldNames } from "../documents/fragments.js";
import { GENERATION_MUTATIONS, rootFields } from "./use-idempotency.js";

/** Clients choose the name, so a long one is truncated. GraphQL's grammar allows letters, digits and underscores. */
const NAME_CHARS_MAX = 64;
/** A contract test compares it with the schema. */
export const GENERATION_SUBSCRIPTIONS: ReadonlySet<string> = new Set(["chatCompletion", "response", "speech"]);

type Args = Pick<ExecutionArgs, "document" | "operationName"> & { readonly contextValue: GraphQLContext };

export function useRequestNote(): Plugin<GraphQLContext, GraphQLContext> {
  const noteName = ({ args }: { readonly args: Args }) => {
    const operation = getOperationAST(args.document, args.operationName);
    const { note } = args.contextValue;
    if (!operation || !note) return;
    note.operation = operation.name?.value.slice(0, NAME_CHARS_MAX) ?? operation.operation;
    if (note.isGeneration && hasSeveralFields(args.document, operation)) note.parts = [];
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

/** Wraps the mutations that generate, so that each has its own result in a request that has several. */
export function noteGenerations(schema: GraphQLSchema): void {
  const fields = schema.getMutationType()?.getFields() ?? {};
  for (const [name, field] of Object.entries(fields)) {
    const { resolve } = field;
    if (!resolve || !GENERATION_MUTATIONS.has(name)) continue;
    field.resolve = (source, args, context: GraphQLContext, info) => {
      context.note?.beganPart(String(info.path.key));
      return resolve(source, args, context, info);
    };
  }
}

function hasSeveralFields(document: DocumentNode, { operation, selectionSet }: OperationDefinitionNode): boolean {
  const [first, ...others] = selectionSet.selections;
  if (operation !== "mutation" || (others.length === 0 && first?.kind === Kind.FIELD)) return false;
  return rootFields(document, selectionSet).size > 1;
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
