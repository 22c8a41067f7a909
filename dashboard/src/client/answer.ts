import { useCallback, useEffect } from "react";
import { type AnyVariables, type CombinedError, type UseQueryArgs, useQuery } from "urql";

export interface Answer<Data> {
  readonly data: Data | undefined;
  readonly error: CombinedError | undefined;
  readonly fetching: boolean;
  /** Runs the query again and bypasses the cache. */
  readonly refetch: () => void;
}

export function useAnswer<Data, Variables extends AnyVariables>(query: UseQueryArgs<Variables, Data>): Answer<Data> {
  const [{ data, error, fetching }, execute] = useQuery(query);
  const refetch = useCallback(() => execute({ requestPolicy: "network-only" }), [execute]);
  return { data, error, fetching, refetch };
}

/** Refetches whenever `changedAt` is later than `fetchedAt`, the time of the first fetch. `changedAt` is 0 until the first change. */
export function useRefetchOnChange(changedAt: number, refetch: () => void, fetchedAt = 0): void {
  useEffect(() => {
    if (changedAt > fetchedAt) refetch();
  }, [changedAt, fetchedAt, refetch]);
}
