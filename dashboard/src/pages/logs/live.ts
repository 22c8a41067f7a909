/** Refetches the newest page of the logs when a request was logged. */
import { useCallback, useEffect, useRef } from "react";
import { useSubscription } from "urql";
import { onReconnect } from "../../client/connection.js";
import { LogsChangedDocument, type LogsChangedSubscriptionVariables } from "../../client/generated/graphql.js";

/** Shortest time between two refetches. */
const REFETCH_MS = 1_000;

export function useLiveLogs(variables: LogsChangedSubscriptionVariables, isNewest: boolean, refetch: () => void): void {
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  const schedule = useCallback(() => {
    timer.current ??= setTimeout(() => {
      timer.current = null;
      refetch();
    }, REFETCH_MS);
  }, [refetch]);
  useEffect(
    () => () => {
      if (timer.current !== null) clearTimeout(timer.current);
      timer.current = null;
    },
    [refetch],
  );
  useSubscription({ query: LogsChangedDocument, variables, pause: !isNewest }, (_, event) => {
    schedule();
    return event;
  });
  useEffect(() => onReconnect(schedule), [schedule]);
}
