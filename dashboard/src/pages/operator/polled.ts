/** A query that is asked again and again while somebody looks. What it showed stays when one of its answers fails. */
import { useEffect, useState } from "react";
import type { AnyVariables, TypedDocumentNode } from "urql";
import { type Answer, useAnswer } from "../../client/answer.js";

export function usePolled<Data, Variables extends AnyVariables>(
  query: TypedDocumentNode<Data, Variables>,
  variables: Variables,
  everyMs: number,
): Answer<Data> {
  const { data, error, fetching, refetch } = useAnswer<Data, AnyVariables>({ query, variables });
  const [last, setLast] = useState<Data>();
  useEffect(() => {
    if (data) setLast(data);
  }, [data]);
  useEffect(() => {
    if (fetching) return;
    const askVisibly = () => {
      if (document.hidden) document.addEventListener("visibilitychange", refetch, { once: true });
      else refetch();
    };
    const timer = setTimeout(askVisibly, everyMs);
    return () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", refetch);
    };
  }, [fetching, refetch, everyMs]);
  const shown = data ?? last;
  // Of a moment without a connection the banner tells.
  const told = shown !== undefined && error?.networkError ? undefined : error;
  return { data: shown, error: told, fetching: fetching && shown === undefined, refetch };
}
