/** The services for operators: each act writes its row of the audit log. */
import type { Clock } from "../../lib/clock.js";
import type { Ledger } from "../../store/ledger.js";
import { AccountAdministration } from "../accounts/account-administration.js";
import type { Accounts } from "../accounts/accounts.js";
import { CreditGrants } from "../accounts/credit-grants.js";
import { RefusedSettlements } from "../accounts/refused-settlements.js";
import { AccountSuspensions } from "../accounts/suspensions.js";
import { AuditLog } from "../audit/audit-log.js";
import type { Infrastructure, PlatformSettings } from "./infrastructure.js";

export interface OperatorServiceParts {
  readonly infrastructure: Infrastructure;
  readonly settings: Pick<PlatformSettings, "worker" | "topUp">;
  readonly clock: Clock;
  readonly accounts: Accounts;
}

export function createOperatorServices({ infrastructure, settings, clock, accounts }: OperatorServiceParts) {
  const { database, events, leases, refills, settler, tiers } = infrastructure;
  const ledger: Ledger = infrastructure.ledger;
  return {
    accountAdministration: new AccountAdministration(database, ledger, events, tiers, refills, leases),
    accountSuspensions: new AccountSuspensions(database, events, clock),
    auditLog: new AuditLog(database),
    creditGrants: new CreditGrants(database, accounts, tiers, settings.topUp),
    refusedSettlements: new RefusedSettlements(settler.refused, database, settings.worker),
  };
}
