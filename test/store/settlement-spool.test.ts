import { appendFile, rm, stat, truncate } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SPOOL_BYTES_MAX } from "../../src/limits.js";
import type { SettleOperation } from "../../src/store/ledger.js";
import {
  adoptSettlements,
  hasSettlements,
  openSettlementSpool,
  type RefusedSettlement,
  type SettlementSpool,
} from "../../src/store/settlement-spool.js";
import { createEmptyDir } from "../support/database.js";
import { settle, usageRecord } from "../support/ledger.js";

const PAYER = { accountId: "6b9e3a51-2f0e-4b7a-9f0e-1c2d3e4f5a6b", apiKeyId: null };

describe("the settlement spool", () => {
  let dataDir: string;
  let path: string;
  let spool: SettlementSpool;

  beforeEach(async () => {
    dataDir = await createEmptyDir();
    path = join(dataDir, "spool/settlements.ndjson");
    spool = await openSettlementSpool(dataDir);
  });
  afterEach(async () => {
    await spool.close();
    await rm(dataDir, { recursive: true });
  });

  /** As a new process on the same directory does. */
  const reopen = async (): Promise<void> => {
    await spool.close();
    spool = await openSettlementSpool(dataDir);
  };
  const settlements = (count: number): SettleOperation[] => Array.from({ length: count }, (_, index) => settle(PAYER, BigInt(index)));

  it("is empty at first", async () => {
    expect(await spool.read()).toEqual([]);
  });

  it("gives a new process its entries, in order, to the last field", async () => {
    const kept = [
      settle({ ...PAYER, apiKeyId: "0f0e0d0c-0b0a-4909-8807-060504030201" }, 2n ** 62n, { paidOnly: true }),
      settle(PAYER, 0n, { record: usageRecord({ model: "acme/líne\nbreak \u2028", timeToFirstTokenMs: 4, status: "cancelled" }) }),
    ];
    for (const operation of kept) await spool.append(operation);

    await reopen();

    expect(await spool.read()).toEqual(kept);
  });

  it("keeps appends that are made at once", async () => {
    const kept = settlements(50);

    await Promise.all(kept.map((operation) => spool.append(operation)));

    expect(await spool.read()).toEqual(kept);
  });

  it("is readable by its owner alone", async () => {
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect((await stat(join(dataDir, "spool"))).mode & 0o777).toBe(0o700);
  });

  it("skips a last line that was not written whole", async () => {
    const [first, second] = settlements(2) as [SettleOperation, SettleOperation];
    await spool.append(first);
    await spool.append(second);
    await truncate(path, (await stat(path)).size - 10);

    await reopen();

    expect(await spool.read()).toEqual([first]);
  });

  it.each([
    ["alone in the file", 0],
    ["after whole ones", 2],
  ])("keeps an entry after a line that was not written whole, %s", async (_, before) => {
    const [later, ...kept] = settlements(before + 1) as [SettleOperation, ...SettleOperation[]];
    for (const operation of kept) await spool.append(operation);
    await appendFile(path, '{"kind":"settle","id":"6b9e3a51-2f0e-4b7a-9');

    await reopen();
    await spool.append(later);
    await reopen();

    expect(await spool.read()).toEqual([...kept, later]);
  });

  it("can be cleared", async () => {
    for (const operation of settlements(3)) await spool.append(operation);

    await spool.clear(() => true);
    const [after] = settlements(1) as [SettleOperation];
    await spool.append(after);
    await reopen();

    expect(await spool.read()).toEqual([after]);
  });

  it("does not lose an append that slips in before it is cleared", async () => {
    const pending = new Set<SettleOperation>();
    const [slippedIn] = settlements(1) as [SettleOperation];
    const append = spool.append(slippedIn);
    pending.add(slippedIn);

    await spool.clear(() => pending.size === 0);
    await append;

    expect(await spool.read()).toEqual([slippedIn]);
  });

  it("does not lose an append that comes while it is being cleared", async () => {
    await spool.append(settlements(1)[0] as SettleOperation);
    const [later] = settlements(1) as [SettleOperation];

    await Promise.all([spool.clear(() => true), spool.append(later)]);

    expect(await spool.read()).toEqual([later]);
  });

  it("takes up to its limit and refuses further entries, until it is cleared", async () => {
    const [first, second] = settlements(2) as [SettleOperation, SettleOperation];
    await spool.append(first);
    const lineBytes = (await stat(path)).size;
    // A sparse file, which takes no room on the disk.
    await truncate(path, SPOOL_BYTES_MAX - lineBytes);
    await reopen();

    await spool.append(first);
    expect((await stat(path)).size).toBe(SPOOL_BYTES_MAX);
    await expect(spool.append(second)).rejects.toThrow(/full/);
    expect((await stat(path)).size).toBe(SPOOL_BYTES_MAX);
    await spool.clear(() => true);
    await spool.append(second);

    expect(await spool.read()).toEqual([second]);
  });

  it("takes over another directory's entries, behind its own, and leaves none there", async () => {
    const [own, other, refused] = settlements(3) as [SettleOperation, SettleOperation, SettleOperation];
    const from = join(dataDir, "workers/3");
    expect(await hasSettlements(from)).toBe(false);
    await spool.append(own);
    await spool.close();
    const left = await openSettlementSpool(from);
    await left.append(other);
    await left.keepRefused({ operation: refused, refusedAt: "2026-11-22T12:00:00.000Z", reason: "because" });
    await left.close();
    // A process that died in the middle of a line.
    await appendFile(join(from, "spool/settlements.ndjson"), '\n{"kind":"sett');
    expect(await hasSettlements(from)).toBe(true);

    await adoptSettlements(from, dataDir);
    spool = await openSettlementSpool(dataDir);

    expect(await spool.read()).toEqual([own, other]);
    expect(await spool.readRefused()).toMatchObject([{ operation: refused }]);
    expect(await hasSettlements(from)).toBe(false);
    await expect(adoptSettlements(from, dataDir)).resolves.toBeUndefined();
  });

  it("keeps refused settlements aside, until they are replaced", async () => {
    const [refused, other] = settlements(2) as [SettleOperation, SettleOperation];
    const [first, second] = [refused, { ...other, kind: "recover" as const }].map((operation) => ({
      operation,
      refusedAt: "2026-11-22T12:00:00.000Z",
      reason: "because",
    })) as [RefusedSettlement, RefusedSettlement];
    await spool.keepRefused(first);
    await spool.keepRefused(second);
    await spool.clear(() => true);
    await reopen();

    expect(await spool.read()).toEqual([]);
    expect(await spool.readRefused()).toEqual([first, second]);
    await spool.replaceRefused(() => [second]);
    await spool.keepRefused(first);
    expect(await spool.readRefused()).toEqual([second, first]);
    // As versions before kept them.
    await spool.replaceRefused(() => []);
    await appendFile(join(dataDir, "spool/refused.ndjson"), `${JSON.stringify({ ...refused, amount: "1" })}\n`);
    expect(await spool.readRefused()).toMatchObject([{ operation: { ...refused, amount: 1n }, reason: "" }]);
  });
});
