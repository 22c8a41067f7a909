/**
 * What an operation costs (docs/decisions/graphql-cost.md): counted once, when the variables are known and before anything runs, and told
 * with its answer as `extensions.cost`.
 */
import { complexityFromQuery } from "@pothos/plugin-complexity";
import {
  type DocumentNode,
  type ExecutionResult,
  GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  Kind,
  type OperationDefinitionNode,
} from "graphql";
import type { Plugin } from "graphql-yoga";
import { GRAPHQL_COST_MAX, GRAPHQL_GENERATION_COST } from "../../limits.js";
import type { GraphQLContext } from "../context.js";
import { toPublicError } from "../public-errors.js";
import { isStream } from "./use-app-errors.js";
import { countGenerations } from "./use-idempotency.js";

export interface CostedOperation {
  readonly document: DocumentNode;
  readonly operationName?: string | null | undefined;
  readonly schema: GraphQLSchema;
  readonly variableValues?: Readonly<Record<string, unknown>> | null | undefined;
  readonly contextValue: GraphQLContext;
}

type Tell = <Result>(result: Result, setResult: (result: Result) => void) => void;

export function useCost(): Plugin<GraphQLContext, GraphQLContext> {
  return {
    onExecute: ({ args, setResultAndStopExecution }) => {
      const cost = costOf(args);
      if (cost === null) return undefined;
      if (cost > GRAPHQL_COST_MAX) setResultAndStopExecution({ errors: [tooDear(cost, args)] });
      const tell = tellOnce(cost);
      return {
        onExecuteDone: ({ result, setResult }) => {
          if (isStream(result)) return { onNext: (event) => tell(event.result, event.setResult) };
          tell(result, setResult);
          return undefined;
        },
      };
    },
    onSubscribe: ({ args, setResultAndStopExecution }) => {
      const cost = costOf(args);
      if (cost === null) return undefined;
      if (cost > GRAPHQL_COST_MAX) setResultAndStopExecution({ errors: [tooDear(cost, args)] });
      const tell = tellOnce(cost);
      return {
        onSubscribeResult: ({ result, setResult }) => {
          if (isStream(result)) return { onNext: (event) => tell(event.result, event.setResult) };
          tell(result, setResult);
          return undefined;
        },
      };
    },
  };
}

/** Of an answer in several parts the first tells it. */
function tellOnce(requested: number): Tell {
  let isTold = false;
  return (result, setResult) => {
    if (isTold) return;
    isTold = true;
    const { extensions } = result as ExecutionResult;
    setResult({ ...result, extensions: { ...extensions, cost: { requested, maximum: GRAPHQL_COST_MAX } } });
  };
}

function tooDear(cost: number, { contextValue }: CostedOperation): GraphQLError {
  const error = new GraphQLError(
    `The operation costs ${cost}, and at most ${GRAPHQL_COST_MAX} is allowed: ask for smaller pages, fewer fields or fewer generations.`,
  );
  return toPublicError(error, contextValue);
}

/** Null without such an operation, or with variables of wrong types: execution refuses them in its own words. */
export function costOf(args: CostedOperation): number | null {
  const operation = getOperationAST(args.document, args.operationName);
  if (!operation) return null;
  const fields = costOfFields(args, operation);
  return fields === null ? null : fields + countGenerations(args.document, operation) * GRAPHQL_GENERATION_COST;
}

function costOfFields(
  { document, schema, variableValues, contextValue }: CostedOperation,
  operation: OperationDefinitionNode,
): number | null {
  const definitions = [operation, ...document.definitions.filter(({ kind }) => kind === Kind.FRAGMENT_DEFINITION)];
  try {
    const options = { ctx: contextValue, schema, variables: variableValues ?? {} };
    return complexityFromQuery({ kind: Kind.DOCUMENT, definitions }, options).complexity;
  } catch (error) {
    if (error instanceof GraphQLError) return null;
    throw error;
  }
}
