/**
 * Counts subscriptions over server-sent events as live connections, like WebSockets, because each has a connection of its own. Fields
 * whose extensions state that they end by themselves are not counted: these are generations, which are paid for.
 */
import { type ExecutionArgs, getOperationAST } from "graphql";
import type { Plugin } from "graphql-yoga";
import { AppError } from "../../errors.js";
import { ownValue } from "../../lib/own-values.js";
import type { GraphQLContext } from "../context.js";
import { toRefusal } from "../public-errors.js";
import { rootFields } from "./use-idempotency.js";

export function useLiveConnections(): Plugin<GraphQLContext, GraphQLContext> {
  return {
    onSubscribe: ({ args, setResultAndStopExecution }) => {
      const { holdConnection } = args.contextValue;
      if (!holdConnection || endsByItself(args)) return;
      try {
        holdConnection();
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        setResultAndStopExecution({ errors: [toRefusal(error, args.contextValue)] });
      }
    },
  };
}

function endsByItself({ schema, document, operationName }: ExecutionArgs): boolean {
  const operation = getOperationAST(document, operationName);
  const fields = schema.getSubscriptionType()?.getFields();
  if (!operation || !fields) return false;
  // Validation has ensured a single root field.
  const [name = ""] = rootFields(document, operation.selectionSet).values();
  return ownValue(fields, name)?.extensions.endsByItself === true;
}
