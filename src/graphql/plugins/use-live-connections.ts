/**
 * Tells the transport which subscriptions do not end by themselves. Over server-sent events they count as live connections, like
 * WebSockets, because each has a connection of its own. Generations are paid for, and end by themselves: their fields' extensions say so.
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
      if (endsByItself(args)) return;
      try {
        args.contextValue.openLive();
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
