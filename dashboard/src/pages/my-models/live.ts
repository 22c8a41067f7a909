/** Asks anew when the gateway tells that one of the account's models was changed, or that calls of it went otherwise than before. */
import { useEffect, useRef } from "react";
import { useSubscription } from "urql";
import { onReconnect } from "../../client/connection.js";
import { MyModelsChangedDocument, MyModelsHealthDocument } from "../../client/generated/graphql.js";

const PAUSE_MS = 1_000;

/** Many changes at once are one question, and the last of them is never missed. */
export function useModelChanges(refetch: () => void): void {
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const ask = useRef(refetch);
  ask.current = refetch;
  const soon = () => {
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      ask.current();
    }, PAUSE_MS);
  };
  useEffect(() => onReconnect(() => ask.current()), []);
  useEffect(
    () => () => {
      clearTimeout(timer.current);
      timer.current = undefined;
    },
    [],
  );
  useSubscription({ query: MyModelsHealthDocument }, (_, told) => {
    soon();
    return told;
  });
  useSubscription({ query: MyModelsChangedDocument }, (_, told) => {
    soon();
    return told;
  });
}
