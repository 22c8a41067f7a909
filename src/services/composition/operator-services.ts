/** The services for operators: each act writes its row of the audit log. */

import type { Clock } from "../../lib/clock.js";
import type { Ledger } from "../../store/ledger.js";
import { AccountAdministration } from "../accounts/account-administration.js";
import type { Accounts } from "../accounts/accounts.js";
import { Books } from "../accounts/books.js";
import { CreditGrants } from "../accounts/credit-grants.js";
import { InvoiceSales } from "../accounts/invoice-sales.js";
import { OWNER_HANDLE } from "../accounts/owner.js";
import { RefusedSettlements } from "../accounts/refused-settlements.js";
import { AccountSuspensions } from "../accounts/suspensions.js";
import { Withdrawals } from "../accounts/withdrawals.js";
import { KeyAdministration } from "../api-keys/key-administration.js";
import { AuditLog } from "../audit/audit-log.js";
import { GatewayTraffic } from "../metrics/gateway-traffic.js";
import { OperatorRoutes } from "../routes/operator-routes.js";
import type { RouteStates } from "../routes/view.js";
import { PasswordLinks } from "../sessions/password-links.js";
import type { Passwords } from "../sessions/passwords.js";
import { SessionAdministration } from "../sessions/session-administration.js";
import { Margins } from "../usage/margins.js";
import { SpendReports } from "../usage/spend.js";
import type { Infrastructure, PlatformSettings } from "./infrastructure.js";

export interface OperatorServiceParts {
  readonly infrastructure: Infrastructure;
  readonly settings: Pick<PlatformSettings, "worker" | "topUp">;
  readonly clock: Clock;
  readonly accounts: Accounts;
  readonly passwords: Passwords;
  readonly router: RouteStates;
  /** The sign-in address. */
  readonly authUrl: () => string;
}

export function createOperatorServices({ infrastructure, settings, clock, accounts, passwords, router, authUrl }: OperatorServiceParts) {
  const { database, events, leases, refills, settler, tiers } = infrastructure;
  const ledger: Ledger = infrastructure.ledger;
  infrastructure.routeDirectory.onApplied((models) => router.watch(models));
  return {
    accountAdministration: new AccountAdministration(database, ledger, events, tiers, refills, leases, clock),
    accountSuspensions: new AccountSuspensions(database, events, clock),
    auditLog: new AuditLog(database),
    gatewayTraffic: new GatewayTraffic(database, clock),
    operatorRoutes: new OperatorRoutes({
      ...{ database, events, clock, catalog: infrastructure.catalog },
      directory: infrastructure.routeDirectory,
      states: router,
    }),
    books: new Books(database, clock),
    invoiceSales: new InvoiceSales(database, ledger, events, leases),
    margins: new Margins(database, clock),
    spendReports: new SpendReports(database, clock),
    creditGrants: new CreditGrants(database, accounts, tiers, settings.topUp),
    keyAdministration: new KeyAdministration(database, events, clock, OWNER_HANDLE),
    passwordLinks: new PasswordLinks({
      ...{ database, passwords, events, clock },
      secret: infrastructure.secrets.hashing("password links"),
      pageUrl: () => `${authUrl()}/set-password`,
    }),
    sessionAdministration: new SessionAdministration(database, events),
    withdrawals: new Withdrawals(database, ledger, events, leases, refills),
    refusedSettlements: new RefusedSettlements(settler.refused, database, settings.worker),
  };
}
