/** Refetches when one of the account's models, or its health, has changed. */
import { useEffect, useRef } from "react";
import { useSubscription } from "urql";
import { onReconnect } from "../../client/connection.js";
import { MyModelsChangedDocument, MyModelsHealthDocument } from "../../client/generated/graphql.js";
import { useCombined } from "../../client/use-combined.js";

export function useModelChanges(refetch: () => void): void {
  const latest = useRef(refetch);
  latest.current = refetch;
  const schedule = useCombined(refetch);
  useEffect(() => onReconnect(() => latest.current()), []);
  useSubscription({ query: MyModelsHealthDocument }, (_, event) => {
    schedule();
    return event;
  });
  useSubscription({ query: MyModelsChangedDocument }, (_, event) => {
    schedule();
    return event;
  });
}
