/** Polls a query while the page is visible. The last data stays visible when a poll fails. */
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
    const refetchWhenVisible = () => {
      if (document.hidden) document.addEventListener("visibilitychange", refetch, { once: true });
      else refetch();
    };
    const timer = setTimeout(refetchWhenVisible, everyMs);
    return () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", refetch);
    };
  }, [fetching, refetch, everyMs]);
  const shown = data ?? last;
  // The connection banner reports network errors.
  const reported = shown !== undefined && error?.networkError ? undefined : error;
  return { data: shown, error: reported, fetching: fetching && shown === undefined, refetch };
}
