/** Recovery of holds that their process has abandoned. */
import { randomUUID } from "node:crypto";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from "vitest";
import { NO_USAGE } from "../../../src/lib/usage.js";
import { HEARTBEAT_DEAD_MS, HEARTBEAT_MS, RECOVERY_SWEEP_MS } from "../../../src/limits.js";
import { Leases } from "../../../src/services/credits/leases.js";
import { HoldRecovery } from "../../../src/services/credits/recovery.js";
import { Settler } from "../../../src/services/credits/settler.js";
import { createMemoryEvents } from "../../../src/store/events.js";
import { openSettlementSpool } from "../../../src/store/settlement-spool.js";
import { createEmptyDir, createTestDatabase, silentLog, type TestDatabase } from "../../support/database.js";
import { eventually } from "../../support/eventually.js";
import { findBrokenInvariants } from "../../support/invariants.js";
import {
  countHolds,
  createPayer,
  createTestLedger,
  extend,
  hold,
  readAccount,
  readUsage,
  type TestPayer,
  usageRecord,
} from "../../support/ledger.js";
import { type SteeredLedger, steer } from "../../support/steered-ledger.js";

interface Process {
  readonly processId: string;
  readonly instanceId: string;
  readonly settler: Settler;
  readonly recovery: HoldRecovery;
  readonly ledger: SteeredLedger;
  readonly dataDir: string;
  end(): Promise<void>;
}

let test: TestDatabase;
let pool: pg.Pool;
let processes: Process[];

beforeAll(async () => {
  test = await createTestDatabase();
  pool = test.database.pool;
});
beforeEach(async () => {
  processes = [];
  await pool.query("DELETE FROM gateway_process");
});
afterEach(async () => {
  vi.useRealTimers();
  for (const process of processes) await process.end();
});
afterAll(async () => {
  const broken = await findBrokenInvariants(pool);
  await test.close();
  expect(broken).toEqual({});
});

/** The money side of one gateway process; on a directory of its own, or as the next one on another's. */
async function createProcess(instanceId: string = randomUUID(), ofAnother?: string): Promise<Process> {
  const processId = randomUUID();
  const dataDir = ofAnother ?? (await createEmptyDir());
  const ledger = steer(createTestLedger(test.database, { processId }));
  const settler = new Settler({ ledger, spool: await openSettlementSpool(dataDir), log: silentLog });
  const leases = new Leases({
    ledger: ledger.leases,
    database: test.database,
    processId,
    events: createMemoryEvents(silentLog),
    log: silentLog,
  });
  const recovery = new HoldRecovery(test.database, settler, { ledger: ledger.leases, leases }, { processId, instanceId }, silentLog);
  const process = {
    processId,
    instanceId,
    settler,
    recovery,
    ledger,
    dataDir,
    end: async () => {
      await recovery.stop();
      await settler.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
  processes.push(process);
  return process;
}

async function createPayerWith(pack: bigint): Promise<TestPayer> {
  return createPayer(pool, createTestLedger(test.database), { pack });
}

/** A generation that is under way: 10 held, and `metered` delivered of it. */
async function beginGeneration({ settler }: Process, payer: TestPayer, metered: bigint): Promise<string> {
  const held = hold(payer, 10n, { record: usageRecord({ status: "cancelled", usageSource: "partial" }) });
  await settler.submit(held);
  if (metered > 0n) {
    const usage = { ...NO_USAGE, inputTextTokens: 3, outputTextTokens: Number(metered) };
    await settler.submit(extend(held, 0n, metered, usageRecord({ usage, model: "acme/metered", status: "ok", usageSource: "provider" })));
  }
  return held.id;
}

const lastHeardOf = (processId: string, millisecondsAgo: number) =>
  pool.query("UPDATE gateway_process SET heartbeat_at = now() - make_interval(secs => $2) WHERE id = $1", [
    processId,
    millisecondsAgo / 1000,
  ]);

it("settles at once the metered work of a predecessor on the same directory, even one seen a moment ago", async () => {
  const dead = await createProcess();
  await dead.recovery.start();
  const payer = await createPayerWith(100n);
  const id = await beginGeneration(dead, payer, 7n);

  await (await createProcess(dead.instanceId)).recovery.start();

  expect(await readUsage(pool, id)).toEqual({ cost: 7n, source: "pack", status: "cancelled", usageSource: "partial" });
  expect(await test.database.prisma.usageRecord.findUniqueOrThrow({ where: { id } })).toMatchObject({
    model: "acme/metered",
    inputTextTokens: 3,
    outputTextTokens: 7,
  });
  expect(await readAccount(pool, payer.accountId)).toMatchObject({ buckets: { pack: 93n }, held: { pack: 0n } });
});

it("releases holds without a delivery, and records no usage", async () => {
  const dead = await createProcess();
  await dead.recovery.start();
  const payer = await createPayerWith(100n);
  const id = await beginGeneration(dead, payer, 0n);

  await (await createProcess(dead.instanceId)).recovery.start();

  expect(await readUsage(pool, id)).toBeNull();
  expect(await readAccount(pool, payer.accountId)).toMatchObject({ buckets: { pack: 100n }, held: { pack: 0n } });
});

it("leaves alone the holds of a living process on another directory, and its own", async () => {
  const living = await createProcess();
  await living.recovery.start();
  const payer = await createPayerWith(100n);
  await beginGeneration(living, payer, 7n);
  const other = await createProcess();
  await other.recovery.start();
  await beginGeneration(other, payer, 7n);

  expect(await living.recovery.sweep()).toBe(0);
  expect(await other.recovery.sweep()).toBe(0);

  expect(await countHolds(pool, payer.accountId)).toBe(2);
});

it("takes over from a process on another directory after a long silence", async () => {
  const quiet = await createProcess();
  await quiet.recovery.start();
  const payer = await createPayerWith(100n);
  const id = await beginGeneration(quiet, payer, 7n);
  const other = await createProcess();
  await other.recovery.start();

  await lastHeardOf(quiet.processId, HEARTBEAT_DEAD_MS - 5_000);
  expect(await other.recovery.sweep()).toBe(0);
  await lastHeardOf(quiet.processId, HEARTBEAT_DEAD_MS + 1);
  expect(await other.recovery.sweep()).toBe(1);

  expect(await readUsage(pool, id)).toMatchObject({ cost: 7n, status: "cancelled" });
});

it("recovers the holds of a process that has signed off", async () => {
  const leaving = await createProcess();
  await leaving.recovery.start();
  const payer = await createPayerWith(100n);
  const id = await beginGeneration(leaving, payer, 7n);
  const other = await createProcess();
  await other.recovery.start();

  await leaving.recovery.stop();
  expect(await other.recovery.sweep()).toBe(1);

  expect(await readUsage(pool, id)).toMatchObject({ cost: 7n });
});

it("settles expired holds, its own included", async () => {
  const process = await createProcess();
  await process.recovery.start();
  const payer = await createPayerWith(100n);
  const id = await beginGeneration(process, payer, 7n);
  await pool.query("UPDATE hold SET expires_at = now() - interval '1 second' WHERE id = $1", [id]);

  expect(await process.recovery.sweep()).toBe(1);

  expect(await readUsage(pool, id)).toMatchObject({ cost: 7n });
});

it("releases its own hold that was committed after all processes had given it up", async () => {
  const process = await createProcess();
  await process.recovery.start();
  const payer = await createPayerWith(100n);
  await beginGeneration(process, payer, 7n);
  // A flush that the network delivered late, past the release that was meant for it.
  await createTestLedger(test.database, { processId: process.processId }).flush([hold(payer, 10n)]);

  expect(await process.recovery.sweep()).toBe(1);

  expect(await readAccount(pool, payer.accountId)).toMatchObject({ buckets: { pack: 100n }, held: { pack: 10n } });
});

it("charges what the account can pay when more was metered than is left", async () => {
  const dead = await createProcess();
  await dead.recovery.start();
  const payer = await createPayerWith(10n);
  const id = await beginGeneration(dead, payer, 25n);

  await (await createProcess(dead.instanceId)).recovery.start();

  expect(await readUsage(pool, id)).toMatchObject({ cost: 10n });
});

it("charges once when several processes find the same hold", async () => {
  const dead = await createProcess();
  await dead.recovery.start();
  const payer = await createPayerWith(100n);
  await beginGeneration(dead, payer, 7n);
  const others = await Promise.all([createProcess(), createProcess(), createProcess()]);

  await lastHeardOf(dead.processId, HEARTBEAT_DEAD_MS + 1);
  await Promise.all(others.map(({ recovery }) => recovery.sweep()));

  expect(await readAccount(pool, payer.accountId)).toMatchObject({ buckets: { pack: 93n }, held: { pack: 0n } });
});

it("recovers the other holds when one cannot be settled", async () => {
  const dead = await createProcess();
  await dead.recovery.start();
  const payer = await createPayerWith(100n);
  const ids = [await beginGeneration(dead, payer, 7n), await beginGeneration(dead, payer, 7n), await beginGeneration(dead, payer, 7n)];
  const [impossible] = ids.toSorted();
  await pool.query(`UPDATE hold SET record = record || '{"modality": "telepathy"}' WHERE id = $1`, [impossible]);

  const next = await createProcess(dead.instanceId);
  await next.recovery.start();

  const costs = await Promise.all(ids.map(async (id) => (await readUsage(pool, id))?.cost ?? null));
  expect(costs.filter((cost) => cost === 7n)).toHaveLength(2);
  // Its settlement is kept aside, and the money that it held is let go.
  expect(await readFile(join(next.dataDir, "spool/refused.ndjson"), "utf8")).toContain(impossible);
  expect(await readAccount(pool, payer.accountId)).toMatchObject({ buckets: { pack: 86n }, held: { pack: 0n } });
});

it("commits its recoveries in one flush", async () => {
  const dead = await createProcess();
  await dead.recovery.start();
  const payer = await createPayerWith(1_000n);
  for (let index = 0; index < 50; index++) await beginGeneration(dead, payer, 7n);
  const next = await createProcess(dead.instanceId);

  await next.recovery.start();

  expect(next.ledger.batches.map((batch) => batch.length)).toEqual([50]);
  expect(await readAccount(pool, payer.accountId)).toMatchObject({ buckets: { pack: 650n }, held: { pack: 0n } });
});

it("sends heartbeats, even after another process has declared it dead", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  const process = await createProcess();
  await process.recovery.start();
  const secondsSince = async (): Promise<number | null> => {
    const { rows } = await pool.query("SELECT extract(epoch FROM now() - heartbeat_at)::float8 AS s FROM gateway_process WHERE id = $1", [
      process.processId,
    ]);
    return rows[0]?.s ?? null;
  };

  await lastHeardOf(process.processId, 3_600_000);
  vi.advanceTimersByTime(HEARTBEAT_MS);
  await eventually(async () => expect(await secondsSince()).toBeLessThan(60));

  await pool.query("DELETE FROM gateway_process");
  vi.advanceTimersByTime(HEARTBEAT_MS);
  await eventually(async () => expect(await secondsSince()).toBeLessThan(60));
});

it("looks for abandoned holds at intervals", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  const dead = await createProcess();
  const payer = await createPayerWith(100n);
  const process = await createProcess();
  await process.recovery.start();
  const id = await beginGeneration(dead, payer, 7n);

  vi.advanceTimersByTime(RECOVERY_SWEEP_MS);

  await eventually(async () => expect(await readUsage(pool, id)).toMatchObject({ cost: 7n }));
});

it("corrects another process's recovery by the settlement that the own process had spooled", async () => {
  const away = await createProcess();
  await away.recovery.start();
  const payer = await createPayerWith(100n);
  const [more, less] = [await beginGeneration(away, payer, 7n), await beginGeneration(away, payer, 7n)];
  away.ledger.lose("network");
  const real = usageRecord({ usage: { ...NO_USAGE, outputTextTokens: 9 }, model: "acme/metered" });
  await away.settler.submit({ kind: "settle", id: more, ...payer, amount: 9n, paidOnly: false, record: real });
  await away.settler.submit({ kind: "settle", id: less, ...payer, amount: 2n, paidOnly: false, record: real });
  await away.settler.close();
  const other = await createProcess();
  await other.recovery.start();
  await lastHeardOf(away.processId, HEARTBEAT_DEAD_MS + 1);
  expect(await other.recovery.sweep()).toBe(2);
  expect(await readUsage(pool, more)).toEqual({ cost: 7n, source: "pack", status: "cancelled", usageSource: "partial" });

  const back = await createProcess(away.instanceId, away.dataDir);
  await back.settler.replaySpool();
  await back.settler.replaySpool();

  expect(await readUsage(pool, more)).toEqual({ cost: 9n, source: "pack", status: "ok", usageSource: "provider" });
  expect(await readUsage(pool, less)).toMatchObject({ cost: 2n, status: "ok" });
  expect(await readAccount(pool, payer.accountId)).toMatchObject({ buckets: { pack: 89n }, held: { pack: 0n } });
});
