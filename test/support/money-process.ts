/** The money side of one of several processes on one database: what opens, leases, settles and recovers. */
import { randomUUID } from "node:crypto";
import { rm } from "node:fs/promises";
import { pino } from "pino";
import { type Clock, systemClock } from "../../src/lib/clock.js";
import { Credits, createCommitListener } from "../../src/services/credits/credits.js";
import { KnownBalances } from "../../src/services/credits/known-balances.js";
import { Leases } from "../../src/services/credits/leases.js";
import { HoldRecovery } from "../../src/services/credits/recovery.js";
import { RefusedFunds } from "../../src/services/credits/refused-funds.js";
import { Settler } from "../../src/services/credits/settler.js";
import { LimitClaims } from "../../src/services/usage-limits/claims.js";
import type { Database } from "../../src/store/database.js";
import { createMemoryEvents, type Events } from "../../src/store/events.js";
import { openSettlementSpool } from "../../src/store/settlement-spool.js";
import { createEmptyDir, silentLog } from "./database.js";
import { createTestLedger } from "./ledger.js";
import { type SteeredLedger, steer } from "./steered-ledger.js";

export interface MoneyProcess {
  readonly processId: string;
  readonly ledger: SteeredLedger;
  readonly settler: Settler;
  readonly leases: Leases;
  readonly claims: LimitClaims;
  readonly credits: Credits;
  readonly recovery: HoldRecovery;
  /** What its leases have logged. */
  readonly logged: readonly object[];
  /** Its flushes and leases no longer reach the database, and it counts as dead at once. */
  crash(): Promise<void>;
  close(): Promise<void>;
}

/** Processes of one database hear each other at once. */
const buses = new WeakMap<Database, Events>();

export interface MoneyProcessOptions {
  readonly freeSpendCap?: bigint | null;
  /** Generous: a busy machine is no failure. */
  readonly contendedHoldWaitMs?: number;
  /** Of limits that renew. */
  readonly clock?: Clock;
}

export async function createMoneyProcess(
  database: Database,
  { freeSpendCap = null, contendedHoldWaitMs = 20_000, clock = systemClock }: MoneyProcessOptions = {},
): Promise<MoneyProcess> {
  const events = buses.get(database) ?? createMemoryEvents(silentLog);
  buses.set(database, events);
  const processId = randomUUID();
  const dataDir = await createEmptyDir();
  const ledger = steer(createTestLedger(database, { processId, freeSpendCap }));
  const known = new KnownBalances();
  const logged: object[] = [];
  const leases = new Leases({
    ledger: ledger.leases,
    database: { prisma: database.prisma, isExclusive: false },
    processId,
    events,
    log: pino({ base: null, timestamp: false }, { write: (line) => void logged.push(JSON.parse(line)) }),
  });
  const claims = new LimitClaims({ database, processId, events, clock, log: silentLog });
  const settler = new Settler({
    ...{ ledger, spool: await openSettlementSpool(dataDir), log: silentLog, events, contendedHoldWaitMs },
    onCommitted: createCommitListener(known, leases, events, undefined, claims),
    onContended: (accountId) => leases.want(accountId),
  });
  const recovery = new HoldRecovery(
    database,
    settler,
    { ledger: ledger.leases, leases, claims },
    { processId, instanceId: randomUUID() },
    silentLog,
  );
  await recovery.start();
  const credits = new Credits(settler, known, { refillIfDue: () => null }, new RefusedFunds(database, null), leases, claims);
  const end = async () => {
    await settler.close();
    await leases.close();
    await claims.close().catch(() => undefined);
    await recovery.stop();
    await rm(dataDir, { recursive: true });
  };
  return {
    ...{ processId, ledger, settler, leases, claims, credits, recovery, logged },
    crash: async () => {
      ledger.lose("network");
      await end();
    },
    close: end,
  };
}
