/** Generations cost credits, so the client sends each one once: no cache, no deduplication, no retry. */
import { type AnyVariables, CombinedError, createRequest, makeOperation, type OperationResult, type TypedDocumentNode } from "urql";
import { byDigest } from "./early-answers.js";
import { digestOf, generations, graph, isSessionOver } from "./graphql.js";
import { noteSessionEnded } from "./session.js";

export interface StreamEvents<Data> {
  readonly onData: (data: Data) => void;
  /** Called once when the stream ends, unless it was stopped. */
  readonly onEnd: (error: CombinedError | undefined) => void;
}

/** Starts a generation as a subscription and returns a function that stops it. */
export function streamGeneration<Data, Variables extends AnyVariables>(
  query: TypedDocumentNode<Data, Variables>,
  variables: Variables & object,
  { onData, onEnd }: StreamEvents<Data>,
): () => void {
  let isOver = false;
  const finish = (error?: CombinedError) => {
    if (isOver) return;
    isOver = true;
    if (error && isSessionOver(error)) noteSessionEnded();
    onEnd(error);
  };
  const unsubscribe = generations.subscribe<Data>(
    { query: "", variables: { ...variables }, extensions: byDigest(digestOf({ query }) ?? "") },
    {
      next: ({ data, errors }) => {
        if (isOver) return;
        if (data) onData(data);
        if (errors) finish(new CombinedError({ graphQLErrors: [...errors] }));
      },
      error: (error) =>
        finish(
          Array.isArray(error)
            ? new CombinedError({ graphQLErrors: error })
            : new CombinedError({ networkError: error instanceof Error ? error : new Error("The connection was lost.") }),
        ),
      complete: () => finish(),
    },
  );
  return () => {
    isOver = true;
    unsubscribe();
  };
}

export interface SentGeneration<Data extends object, Variables extends AnyVariables> {
  /** Resolves with undefined when the generation was stopped. */
  readonly answer: Promise<OperationResult<Data, Variables> | undefined>;
  readonly stop: () => void;
}

/** Starts a generation as a mutation. */
export function sendGeneration<Data extends object, Variables extends AnyVariables>(
  document: TypedDocumentNode<Data, Variables>,
  variables: Variables,
): SentGeneration<Data, Variables> {
  const operation = graph.createRequestOperation<Data, Variables>("mutation", createRequest(document, variables));
  return {
    answer: graph.executeRequestOperation(operation).toPromise(),
    stop: () => graph.reexecuteOperation(makeOperation("teardown", operation, operation.context)),
  };
}
