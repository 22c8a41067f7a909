import { useLocation, useParams } from "react-router";
import {
  OperatorAccountDocument,
  OperatorAccountsDocument,
  OperatorAuditDocument,
  OperatorEarningsDocument,
  OperatorGatewayDocument,
  OperatorRoutesDocument,
  OperatorSalesDocument,
  OperatorSpendDocument,
} from "../../client/generated/graphql.js";
import { prefetch } from "../../client/graphql.js";
import { OneAccount } from "./account.js";
import { Accounts, toAccountsVariables } from "./accounts.js";
import { AuditLog, toAuditVariables } from "./audit.js";
import { EarningsPage } from "./earnings.js";
import { GatewayStatus, isDayShown } from "./gateway.js";
import { ACCOUNTS, AUDIT, EARNINGS, ROUTES, SALES, SPEND } from "./parts.js";
import { RoutesPage, toRoutesVariables } from "./routes.js";
import { SalesPage } from "./sales.js";
import { SpendPage, toSpendVariables } from "./spend.js";

export function start({ params: { id }, url }: { readonly params: Readonly<Record<string, string | undefined>>; readonly url: URL }): void {
  if (url.pathname.endsWith(SPEND)) prefetch(OperatorSpendDocument, toSpendVariables(url.searchParams));
  else if (url.pathname.endsWith(SALES)) prefetch(OperatorSalesDocument, {});
  else if (url.pathname.endsWith(EARNINGS)) prefetch(OperatorEarningsDocument, {});
  else if (url.pathname.endsWith(ROUTES)) prefetch(OperatorRoutesDocument, toRoutesVariables(url.searchParams));
  else if (url.pathname.includes(AUDIT)) prefetch(OperatorAuditDocument, toAuditVariables(url.searchParams));
  else if (id !== undefined) prefetch(OperatorAccountDocument, { id });
  else if (url.pathname.endsWith("/accounts")) prefetch(OperatorAccountsDocument, toAccountsVariables(url.searchParams));
  else if (url.searchParams.get("view") !== "engine") prefetch(OperatorGatewayDocument, { isDay: isDayShown(url.searchParams) });
}

export function Component() {
  const { id } = useParams();
  const { pathname } = useLocation();
  if (pathname === SPEND) return <SpendPage />;
  if (pathname === SALES) return <SalesPage />;
  if (pathname === EARNINGS) return <EarningsPage />;
  if (pathname === ROUTES) return <RoutesPage />;
  if (pathname.startsWith(AUDIT)) return <AuditLog id={id ?? null} />;
  if (id !== undefined) return <OneAccount key={id} id={id} />;
  return pathname.startsWith(ACCOUNTS) ? <Accounts /> : <GatewayStatus />;
}
