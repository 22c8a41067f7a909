/** The answer of a query with what asks for it anew, whatever the client keeps of it. */
import { useCallback, useEffect } from "react";
import { type AnyVariables, type CombinedError, type UseQueryArgs, useQuery } from "urql";

export interface Answer<Data> {
  readonly data: Data | undefined;
  readonly error: CombinedError | undefined;
  readonly fetching: boolean;
  readonly refetch: () => void;
}

export function useAnswer<Data, Variables extends AnyVariables>(question: UseQueryArgs<Variables, Data>): Answer<Data> {
  const [{ data, error, fetching }, ask] = useQuery(question);
  const refetch = useCallback(() => ask({ requestPolicy: "network-only" }), [ask]);
  return { data, error, fetching, refetch };
}

/** Asks again whenever something has changed since the answer was first asked for. `changedAt` is 0 while nothing has. */
export function useRefetchOnChange(changedAt: number, refetch: () => void, askedAt = 0): void {
  useEffect(() => {
    if (changedAt > askedAt) refetch();
  }, [changedAt, askedAt, refetch]);
}
