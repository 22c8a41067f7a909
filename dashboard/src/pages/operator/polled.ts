/** A query that is asked again and again while somebody looks. What it showed stays when one of its answers fails. */
import { useEffect, useState } from "react";
import { type AnyVariables, type CombinedError, type TypedDocumentNode, useQuery } from "urql";

export interface Polled<Data> {
  readonly state: { readonly data?: Data | undefined; readonly error?: CombinedError | undefined; readonly fetching: boolean };
  readonly askNow: () => void;
}

export function usePolled<Data, Variables extends AnyVariables>(
  query: TypedDocumentNode<Data, Variables>,
  variables: Variables,
  everyMs: number,
): Polled<Data> {
  const [{ data, error, fetching }, ask] = useQuery<Data, AnyVariables>({ query, variables });
  const [last, setLast] = useState<Data>();
  useEffect(() => {
    if (data) setLast(data);
  }, [data]);
  useEffect(() => {
    if (fetching) return;
    const askAgain = () => ask({ requestPolicy: "network-only" });
    const askVisibly = () => {
      if (document.hidden) document.addEventListener("visibilitychange", askAgain, { once: true });
      else askAgain();
    };
    const timer = setTimeout(askVisibly, everyMs);
    return () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", askAgain);
    };
  }, [fetching, ask, everyMs]);
  const shown = data ?? last;
  // Of a moment without a connection the banner tells.
  const told = shown !== undefined && error?.networkError ? undefined : error;
  return {
    state: { data: shown, error: told, fetching: fetching && shown === undefined },
    askNow: () => ask({ requestPolicy: "network-only" }),
  };
}
