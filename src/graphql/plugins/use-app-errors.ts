/**
 * Maps every error of an operation before Yoga masks it, so that expected failures do not reach the error log and unexpected ones
 * never reach a caller. It wraps the execution itself, which WebSocket and HTTP share.
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
      // A source that fails in mid-stream: the transports pass on errors thrown here.
      onSubscribeError: ({ error, setError }) => setError(toPublicError(error, args.contextValue)),
    }),
    // Refused before there was an operation: the request, its syntax, its validation.
    onResultProcess: ({ result, setResult, serverContext }) => {
      if (!Array.isArray(result) && !isStream(result)) setResult(withPublicErrors(result, serverContext));
    },
  };
}

/**
 * For Yoga's own masking, which does not know the request: it only has to hide the thrown error, because `onResultProcess` above maps
 * it. Malformed parameters in a query string surface as a SyntaxError of JSON.parse.
 */
export function maskRequestError(error: unknown): Error {
  if (error instanceof GraphQLError) return error;
  if (error instanceof SyntaxError) return new GraphQLError("The query parameters `variables` and `extensions` must be JSON.");
  return new GraphQLError("Unexpected error.", { originalError: error instanceof Error ? error : new Error(String(error)) });
}

/** Each part of an answer in parts has its own errors. */
interface Answered {
  readonly errors?: readonly unknown[] | undefined;
  readonly incremental?: readonly Answered[];
}

function withPublicErrors<Answer extends Answered>(answer: Answer, scope: PublicErrorScope): Answer {
  const { errors, incremental } = answer;
  if (errors === undefined && incremental === undefined) return answer;
  const publicErrors = errors && toPublicErrors(errors, scope);
  return {
    ...answer,
    ...(publicErrors && { errors: publicErrors, stringify: (written: ExecutionResult) => stringify(written, publicErrors) }),
    ...(incremental && { incremental: incremental.map((part) => withPublicErrors(part, scope)) }),
  };
}

/** Yoga copies each error with its nodes, which loses their places. */
function stringify(written: ExecutionResult, publicErrors: readonly GraphQLError[]): string {
  const errors = written.errors?.map((error, index) => {
    const { message, ...more } = error.toJSON();
    const locations = publicErrors[index]?.locations;
    return { message, ...(locations && { locations }), ...more };
  });
  return JSON.stringify({ ...written, errors });
}

export function isStream<Result>(result: Result): result is Extract<Result, AsyncIterable<unknown>> {
  return typeof result === "object" && result !== null && Symbol.asyncIterator in result;
}
