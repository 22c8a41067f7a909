/** Writes down what an operation is called, for the access log. Its document, and what stands in it, are its caller's alone. */
import { type ExecutionArgs, getOperationAST } from "graphql";
import type { Plugin } from "graphql-yoga";
import type { GraphQLContext } from "../context.js";

/** Clients choose the name: of a long one the beginning is told. GraphQL's grammar leaves it letters, digits and underscores. */
const NAME_CHARS_MAX = 64;

export function useRequestNote(): Plugin<GraphQLContext, GraphQLContext> {
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
