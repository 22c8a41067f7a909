/** Refetches the newest page of the logs when a request was logged. */
import { useEffect } from "react";
import { useSubscription } from "urql";
import { onReconnect } from "../../client/connection.js";
import { LogsChangedDocument, type LogsChangedSubscriptionVariables } from "../../client/generated/graphql.js";
import { useCombined } from "../../client/use-combined.js";

export function useLiveLogs(variables: LogsChangedSubscriptionVariables, isNewest: boolean, refetch: () => void): void {
  const schedule = useCombined(refetch);
  useSubscription({ query: LogsChangedDocument, variables, pause: !isNewest }, (_, event) => {
    schedule();
    return event;
  });
  useEffect(() => onReconnect(schedule), [schedule]);
}
