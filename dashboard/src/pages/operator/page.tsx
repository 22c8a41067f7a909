import { useLocation, useParams } from "react-router";
import { OperatorAccountDocument, OperatorAccountsDocument, OperatorGatewayDocument } from "../../client/generated/graphql.js";
import { prefetch } from "../../client/graphql.js";
import { OneAccount } from "./account.js";
import { Accounts, toAccountsVariables } from "./accounts.js";
import { GatewayStatus } from "./gateway.js";
import { ACCOUNTS } from "./parts.js";

export function start({ params: { id }, url }: { readonly params: Readonly<Record<string, string | undefined>>; readonly url: URL }): void {
  if (id !== undefined) prefetch(OperatorAccountDocument, { id });
  else if (url.pathname.endsWith("/accounts")) prefetch(OperatorAccountsDocument, toAccountsVariables(url.searchParams));
  else prefetch(OperatorGatewayDocument, {});
}

export function Component() {
  const { id } = useParams();
  const { pathname } = useLocation();
  if (id !== undefined) return <OneAccount key={id} id={id} />;
  return pathname.startsWith(ACCOUNTS) ? <Accounts /> : <GatewayStatus />;
}
