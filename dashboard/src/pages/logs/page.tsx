import { useLocation, useParams } from "react-router";
import { LogEntryDocument, LogsDocument, OperatorLogEntryDocument, OperatorLogsDocument } from "../../client/generated/graphql.js";
import { prefetch } from "../../client/graphql.js";
import { addressOf } from "../../shell/pages.js";
import { OperatorLogs } from "./operator-logs.js";
import { OwnLogs } from "./own-logs.js";
import { toLogsVariables } from "./variables.js";

const OPERATOR = addressOf("operator");

export function start({ params: { id }, url }: { readonly params: Readonly<Record<string, string | undefined>>; readonly url: URL }): void {
  const isOperator = url.pathname.includes(OPERATOR);
  const variables = toLogsVariables(url.searchParams);
  if (isOperator) prefetch(OperatorLogsDocument, { ...variables, accountId: url.searchParams.get("account") });
  else prefetch(LogsDocument, variables);
  if (id === undefined) return;
  if (isOperator) prefetch(OperatorLogEntryDocument, { id });
  else prefetch(LogEntryDocument, { id });
}

export function Component() {
  const { id } = useParams();
  const { pathname } = useLocation();
  return pathname.startsWith(OPERATOR) ? <OperatorLogs id={id ?? null} /> : <OwnLogs id={id ?? null} />;
}
