/** Refetches the newest page of the logs when requests were logged. */
import { useEffect } from "react";
import { useSubscription } from "urql";
import { onReconnect } from "../../client/connection.js";
import { LogsChangedDocument, type LogsChangedSubscriptionVariables, OperatorLogsChangedDocument } from "../../client/generated/graphql.js";
import { useCombined } from "../../client/use-combined.js";

/** The same for operators, of all accounts or of one. The gateway announces changes at most once a second. */
export function useLiveOperatorLogs(account: string | null, isNewest: boolean, refetch: () => void): void {
  const schedule = useCombined(refetch);
  const onEvent = <Event>(_: unknown, event: Event) => {
    schedule();
    return event;
  };
  useSubscription({ query: OperatorLogsChangedDocument, variables: {}, pause: !isNewest || account !== null }, onEvent);
  useSubscription({ query: LogsChangedDocument, variables: { accountId: account }, pause: !isNewest || account === null }, onEvent);
  useEffect(() => onReconnect(schedule), [schedule]);
}

export function useLiveLogs(variables: LogsChangedSubscriptionVariables, isNewest: boolean, refetch: () => void): void {
  const schedule = useCombined(refetch);
  useSubscription({ query: LogsChangedDocument, variables, pause: !isNewest }, (_, event) => {
    schedule();
    return event;
  });
  useEffect(() => onReconnect(schedule), [schedule]);
}
