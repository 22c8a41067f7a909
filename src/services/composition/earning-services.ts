/** Earnings of owners of models and apps, and the work behind them. */
import type { Logger } from "pino";
import type { Clock } from "../../lib/clock.js";
import { BookkeepingWork } from "../earnings/bookkeeping-work.js";
import { Earnings } from "../earnings/earnings.js";
import { EarningsAdministration } from "../earnings/earnings-administration.js";
import type { Infrastructure } from "./infrastructure.js";

export function createEarnings({ database, ledger, leases, events }: Infrastructure, clock: Clock, log: Logger) {
  const earnings = new Earnings({ database, ledger, events, clock });
  return {
    earnings,
    earningsAdministration: new EarningsAdministration({ database, ledger, events, clock }, earnings),
    bookkeepingWork: new BookkeepingWork({ database, ledger, leases, events, clock, log }),
  };
}
