/** Generations: each is asked for once, is paid for, and can be stopped. The client shares, keeps and repeats none of them. */
import { type AnyVariables, CombinedError, createRequest, makeOperation, type OperationResult, type TypedDocumentNode } from "urql";
import { byDigest, digestOf, generations, graph, isSessionOver } from "./graphql.js";
import { noteSessionEnded } from "./session.js";

export interface StreamEvents<Data> {
  readonly onData: (data: Data) => void;
  /** Nothing more comes. Not called for a stream that was stopped. */
  readonly onEnd: (error: CombinedError | undefined) => void;
}

/** A subscription that generates; answers with what stops it at once. */
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
      error: (met) =>
        finish(
          Array.isArray(met)
            ? new CombinedError({ graphQLErrors: met })
            : new CombinedError({ networkError: met instanceof Error ? met : new Error("The connection was lost.") }),
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
  /** Undefined when it was stopped. */
  readonly answer: Promise<OperationResult<Data, Variables> | undefined>;
  readonly stop: () => void;
}

/** A mutation that generates. */
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
