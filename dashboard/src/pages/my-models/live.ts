/** Refetches when one of the account's models, or its health, has changed. */
import { useEffect, useRef } from "react";
import { useSubscription } from "urql";
import { onReconnect } from "../../client/connection.js";
import { MyModelsChangedDocument, MyModelsHealthDocument } from "../../client/generated/graphql.js";

const PAUSE_MS = 1_000;

/** Combines the changes of PAUSE_MS into one refetch, which comes after the last of them. */
export function useModelChanges(refetch: () => void): void {
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const latest = useRef(refetch);
  latest.current = refetch;
  const schedule = () => {
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      latest.current();
    }, PAUSE_MS);
  };
  useEffect(() => onReconnect(() => latest.current()), []);
  useEffect(
    () => () => {
      clearTimeout(timer.current);
      timer.current = undefined;
    },
    [],
  );
  useSubscription({ query: MyModelsHealthDocument }, (_, event) => {
    schedule();
    return event;
  });
  useSubscription({ query: MyModelsChangedDocument }, (_, event) => {
    schedule();
    return event;
  });
}
