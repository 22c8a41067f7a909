/**
 * Maps every error of an operation before Yoga's masking sees it, so that expected failures do not reach the error log
 * and unexpected ones never reach a caller. It works on the execution itself, which WebSocket and HTTP share.
 */
import { type ExecutionResult, GraphQLError } from "graphql";
import type { Plugin } from "graphql-yoga";
import type { GraphQLContext } from "../context.js";
import { type PublicErrorScope, toPublicError, toPublicErrors } from "../public-errors.js";

export function useAppErrors(): Plugin<GraphQLContext, GraphQLContext> {
  return {
    onExecute: ({ args }) => ({
      onExecuteDone: ({ result, setResult }) => {
        if (isStream(result)) return { onNext: (part) => part.setResult(withPublicErrors(part.result, args.contextValue)) };
        setResult(withPublicErrors(result, args.contextValue));
        return undefined;
      },
    }),
    onSubscribe: ({ args }) => ({
      onSubscribeResult: ({ result, setResult }) => {
        if (isStream(result))
          return { onNext: (event) => event.setResult(withPublicErrors(event.result as ExecutionResult, args.contextValue)) };
        setResult(withPublicErrors(result, args.contextValue));
        return undefined;
      },
      // A source that fails in mid-stream: the transports pass on whatever is thrown here.
      onSubscribeError: ({ error, setError }) => setError(toPublicError(error, args.contextValue)),
    }),
    // What was refused before there was an operation: the request, its syntax, its validation.
    onResultProcess: ({ result, setResult, serverContext }) => {
      if (!Array.isArray(result) && !isStream(result)) setResult(withPublicErrors(result, serverContext));
    },
  };
}

/**
 * For Yoga's own masking, which knows no request: it only has to keep what was thrown out of sight, because
 * `onResultProcess` above maps it. Malformed parameters in a query string surface as a SyntaxError of JSON.parse.
 */
export function maskRequestError(error: unknown): Error {
  if (error instanceof GraphQLError) return error;
  if (error instanceof SyntaxError) return new GraphQLError("The query parameters `variables` and `extensions` must be JSON.");
  return new GraphQLError("Unexpected error.", { originalError: error instanceof Error ? error : new Error(String(error)) });
}

/** Of an answer in parts each part has errors of its own. */
interface Answered {
  readonly errors?: readonly unknown[] | undefined;
  readonly incremental?: readonly Answered[];
}

function withPublicErrors<Answer extends Answered>(answer: Answer, scope: PublicErrorScope): Answer {
  const { errors, incremental } = answer;
  if (errors === undefined && incremental === undefined) return answer;
  const told = errors && toPublicErrors(errors, scope);
  return {
    ...answer,
    ...(told && { errors: told, stringify: (written: ExecutionResult) => stringify(written, told) }),
    ...(incremental && { incremental: incremental.map((part) => withPublicErrors(part, scope)) }),
  };
}

/** Yoga writes each error as another, made of its nodes: where these stand is lost. */
function stringify(written: ExecutionResult, told: readonly GraphQLError[]): string {
  const errors = written.errors?.map((error, index) => {
    const { message, ...more } = error.toJSON();
    const locations = told[index]?.locations;
    return { message, ...(locations && { locations }), ...more };
  });
  return JSON.stringify({ ...written, errors });
}

export function isStream<Result>(result: Result): result is Extract<Result, AsyncIterable<unknown>> {
  return typeof result === "object" && result !== null && Symbol.asyncIterator in result;
}
