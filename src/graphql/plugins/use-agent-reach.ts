/**
 * Limits a running agent (docs/spec/agents.md#run-tokens) to root fields marked `isForAgents`. An operation with any other field is
 * refused as a whole, before any of it runs.
 */
import { type ExecutionArgs, type GraphQLObjectType, getOperationAST } from "graphql";
import type { Plugin } from "graphql-yoga";
import { isAgentAtWork } from "../../context.js";
import { ownValue } from "../../lib/own-values.js";
import { beyondAgents } from "../../services/access/permissions.js";
import type { GraphQLContext } from "../context.js";
import { fragmentsOf, rootFieldNames } from "../documents/fragments.js";
import { toPublicError } from "../public-errors.js";

const TYPE_NAME = "__typename";

type Args = ExecutionArgs & { readonly contextValue: GraphQLContext };

export function useAgentReach(): Plugin<GraphQLContext, GraphQLContext> {
  const refuse = ({
    args,
    setResultAndStopExecution,
  }: {
    readonly args: Args;
    readonly setResultAndStopExecution: (result: { errors: ReturnType<typeof toPublicError>[] }) => void;
  }) => {
    const { caller } = args.contextValue;
    if (!isAgentAtWork(caller) || !isBeyond(args)) return;
    setResultAndStopExecution({ errors: [toPublicError(beyondAgents(), args.contextValue)] });
  };
  return { onExecute: refuse, onSubscribe: refuse };
}

/** Fields that a directive skips count like the others. */
function isBeyond({ schema, document, operationName }: Args): boolean {
  const operation = getOperationAST(document, operationName);
  const root = operation && schema.getRootType(operation.operation);
  if (!root) return false;
  const fragments = fragmentsOf(document);
  return rootFieldNames(operation.selectionSet, (name) => fragments.get(name)).some((name) => !isForAgents(root, name));
}

function isForAgents(root: GraphQLObjectType, fieldName: string): boolean {
  return fieldName === TYPE_NAME || ownValue(root.getFields(), fieldName)?.extensions.isForAgents === true;
}
