/** The settler on a real ledger whose flushes are held back, or lose their way, as each test needs. */
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type pg from "pg";
import { pino } from "pino";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { CONTENDED_HOLD_RETRY_MS, CONTENDED_HOLD_WAIT_MS, FLUSH_OPERATIONS_MAX, FLUSH_QUEUE_MAX } from "../../../src/limits.js";
import { Settler } from "../../../src/services/credits/settler.js";
import type { HoldOperation, Ledger, LedgerOperation, LedgerOutcome } from "../../../src/store/ledger.js";
import { openSettlementSpool } from "../../../src/store/settlement-spool.js";
import { createEmptyDir, createTestDatabase, type TestDatabase } from "../../support/database.js";
import { eventually } from "../../support/eventually.js";
import { findBrokenInvariants } from "../../support/invariants.js";
import {
  createAccount,
  createKey,
  createPayer,
  createTestLedger,
  extend,
  hold,
  readAccount,
  readKey,
  readUsage,
  release,
  settle,
  type TestPayer,
  usageRecord,
} from "../../support/ledger.js";
import { type SteeredLedger, steer } from "../../support/steered-ledger.js";

interface Running {
  readonly settler: Settler;
  readonly ledger: SteeredLedger;
  readonly dataDir: string;
  /** What `onCommitted` was told, in order. */
  readonly committed: [LedgerOperation, LedgerOutcome][];
}

let test: TestDatabase;
let pool: pg.Pool;
let real: Ledger;
let running: Running[] = [];

beforeAll(async () => {
  test = await createTestDatabase();
  pool = test.database.pool;
  real = createTestLedger(test.database);
});
afterEach(async () => {
  vi.useRealTimers();
  for (const { settler, dataDir } of running) {
    await settler.close().catch(() => undefined);
    await rm(dataDir, { recursive: true, force: true });
  }
  running = [];
});
afterAll(async () => {
  const broken = await findBrokenInvariants(pool);
  await test.close();
  expect(broken).toEqual({});
});

/** On a directory of its own, or as the next process on another's. */
async function start(dataDir?: string): Promise<Running> {
  const directory = dataDir ?? (await createEmptyDir());
  const ledger = steer(real);
  const committed: Running["committed"] = [];
  const settler = new Settler({
    ledger,
    spool: await openSettlementSpool(directory),
    log: pino({ level: "silent" }),
    onCommitted: (operation, outcome) => committed.push([operation, outcome]),
  });
  const made = { settler, ledger, dataDir: directory, committed };
  running.push(made);
  return made;
}

const payerWith = (pack: bigint, budget: bigint | null = null) => createPayer(pool, real, { pack }, budget);
const backInService = (settler: Settler) => eventually(() => expect(settler.isUnavailable).toBe(false));
const spooled = (dataDir: string) => readFile(join(dataDir, "spool/settlements.ndjson"), "utf8");

describe("group commit", () => {
  it("commits a lone operation at once", async () => {
    const { settler, ledger } = await start();
    const payer = await payerWith(10n);

    expect(await settler.submit(hold(payer, 4n))).toMatchObject({ outcome: "ok", available: 6n });

    expect(ledger.batches.map((batch) => batch.length)).toEqual([1]);
  });

  it("commits together what arrives in one turn of the event loop", async () => {
    const { settler, ledger } = await start();
    const payer = await payerWith(100n);

    await Promise.all(Array.from({ length: 20 }, () => settler.submit(hold(payer, 1n))));

    expect(ledger.batches.map((batch) => batch.length)).toEqual([20]);
  });

  it("has one flush under way, and puts the queue into the next", async () => {
    const { settler, ledger } = await start();
    const payer = await payerWith(1_000n);
    const isWaiting = ledger.pause();
    const first = settler.submit(hold(payer, 1n));
    await isWaiting;

    const later = Array.from({ length: 100 }, () => settler.submit(hold(payer, 1n)));
    await new Promise((resolve) => setImmediate(resolve));
    ledger.resume();
    await Promise.all([first, ...later]);

    expect(ledger.batches.map((batch) => batch.length)).toEqual([1, 100]);
    expect(ledger.concurrencyMax()).toBe(1);
  });

  it("limits the operations of one flush", async () => {
    const { settler, ledger } = await start();
    const payer = await payerWith(10_000n);

    await Promise.all(Array.from({ length: 2 * FLUSH_OPERATIONS_MAX + 1 }, () => settler.submit(hold(payer, 1n))));

    expect(ledger.batches.map((batch) => batch.length)).toEqual([FLUSH_OPERATIONS_MAX, FLUSH_OPERATIONS_MAX, 1]);
  });

  it("commits the operations of one generation in their order", async () => {
    const { settler, ledger, committed } = await start();
    const payer = await payerWith(10n);
    const held = hold(payer, 4n);
    const other = hold(payer, 1n);

    const outcomes = await Promise.all([held, extend(held, 2n, 3n), other, settle(held, 5n)].map((operation) => settler.submit(operation)));

    expect(outcomes.map(({ outcome }) => outcome)).toEqual(["ok", "ok", "ok", "ok"]);
    expect(outcomes[3]).toMatchObject({ charged: 5n, writtenOff: 0n });
    expect(ledger.batches.map((batch) => batch.map(({ kind }) => kind))).toEqual([["hold"], ["extend", "hold"], ["settle"]]);
    expect(committed.map(([{ kind }]) => kind)).toEqual(["hold", "extend", "hold", "settle"]);
  });

  it("refuses new holds when too many operations wait, and still takes settlements", async () => {
    const { settler, ledger } = await start();
    const payer = await payerWith(10n);
    const isWaiting = ledger.pause();
    const first = settler.submit(hold(payer, 1n));
    await isWaiting;
    const waiting = Array.from({ length: FLUSH_QUEUE_MAX }, () => settler.submit(hold(payer, 1n)));

    await expect(settler.submit(hold(payer, 1n))).rejects.toMatchObject({ code: "SERVICE_UNAVAILABLE", retryAfterSeconds: 1 });
    const settlement = settler.submit(settle(payer, 1n));

    ledger.lose("network");
    ledger.resume();
    const results = await Promise.allSettled([first, ...waiting]);
    expect(results.filter(({ status }) => status === "rejected")).toHaveLength(results.length);
    await settlement;
    ledger.heal();
    await backInService(settler);
  });
});

describe("a generation", () => {
  it("is open from the request of its hold until it is refused, settled or released", async () => {
    const { settler, ledger } = await start();
    const payer = await payerWith(10n);
    const [settled, released, refused, spooledOne, doubtful] = [4n, 1n, 100n, 1n, 1n].map((amount) => hold(payer, amount)) as [
      HoldOperation,
      HoldOperation,
      HoldOperation,
      HoldOperation,
      HoldOperation,
    ];
    const holding = Promise.all([settled, released, refused, spooledOne].map((operation) => settler.submit(operation)));
    expect([settled, released, refused, spooledOne].map(({ id }) => settler.isOpen(id))).toEqual([true, true, true, true]);
    await holding;
    await settler.submit(extend(settled, 1n, 1n));
    expect([settled, released, refused].map(({ id }) => settler.isOpen(id))).toEqual([true, true, false]);

    await Promise.all([settler.submit(settle(settled, 1n)), settler.submit(release(released))]);
    ledger.lose("network");
    await expect(settler.submit(doubtful)).rejects.toMatchObject({ code: "SERVICE_UNAVAILABLE" });
    await settler.submit(settle(spooledOne, 1n));
    expect([settled, released, spooledOne, doubtful].map(({ id }) => settler.isOpen(id))).toEqual([false, false, false, false]);

    ledger.heal();
    await backInService(settler);
  });
});

describe("a hold that has to wait for other holds", () => {
  it("is granted after a settlement that leaves enough", async () => {
    const { settler } = await start();
    const payer = await payerWith(10n);
    const first = hold(payer, 8n);
    await settler.submit(first);
    const second = settler.submit(hold(payer, 6n));
    await settler.submit(hold(await payerWith(1n), 1n));

    await settler.submit(settle(first, 3n));

    expect(await second).toMatchObject({ outcome: "ok", available: 1n });
  });

  it("is granted after a release on the key's budget", async () => {
    const { settler } = await start();
    const payer = await payerWith(100n, 10n);
    const first = hold(payer, 8n);
    await settler.submit(first);
    const second = settler.submit(hold(payer, 6n));

    await settler.submit(release(first));

    expect(await second).toMatchObject({ outcome: "ok", keyAvailable: 4n });
  });

  it("is tried again when the settlement that it needs is in the same flush, after it", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
    const { settler, ledger } = await start();
    const accountId = await createAccount(pool, real, { pack: 10n });
    const keys = (await Promise.all([createKey(pool, accountId, null), createKey(pool, accountId, null)])).sort();
    // Within an account, keys are served in the order of their ids.
    const [early, late] = keys.map((apiKeyId) => ({ accountId, apiKeyId })) as [TestPayer, TestPayer];
    const first = hold(late, 8n);
    await settler.submit(first);

    const [, second] = await Promise.all([settler.submit(settle(first, 3n)), settler.submit(hold(early, 6n))]);

    expect(second).toMatchObject({ outcome: "ok", available: 1n });
    expect(ledger.batches.map((batch) => batch.map(({ kind }) => kind))).toEqual([["hold"], ["settle", "hold"], ["hold"]]);
  });

  it("is refused when no outstanding hold can free enough", async () => {
    const { settler } = await start();
    const payer = await payerWith(100n, 10n);
    const first = hold(payer, 8n);
    await settler.submit(first);
    const second = settler.submit(hold(payer, 6n));

    await settler.submit(settle(first, 8n));

    expect(await second).toMatchObject({ outcome: "key_budget_exhausted", isContended: false, keyAvailable: 2n });
  });

  it("is refused at its deadline", async () => {
    const { settler } = await start();
    const payer = await payerWith(10n);
    await settler.submit(hold(payer, 8n));
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
    let refused: LedgerOutcome | null = null;
    const second = settler.submit(hold(payer, 6n)).then((outcome) => {
      refused = outcome;
    });
    // Two flushes of others pass: it is no longer in the queue.
    await settler.submit(hold(payer, 0n));
    await settler.submit(hold(payer, 0n));

    vi.advanceTimersByTime(CONTENDED_HOLD_WAIT_MS - 1);
    await settler.submit(hold(payer, 0n));
    expect(refused).toBeNull();
    vi.advanceTimersByTime(1);
    await second;

    expect(refused).toMatchObject({ outcome: "insufficient_balance", isContended: true });
  });

  it("finds a release by another process without a notification", async () => {
    const [{ settler }, other] = [await start(), await start()];
    const payer = await payerWith(10n);
    const first = hold(payer, 8n);
    await other.settler.submit(first);
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
    const second = settler.submit(hold(payer, 6n));
    await settler.submit(hold(payer, 0n));
    await settler.submit(hold(payer, 0n));

    await other.settler.submit(release(first));
    vi.advanceTimersByTime(CONTENDED_HOLD_RETRY_MS);

    expect(await second).toMatchObject({ outcome: "ok", available: 4n });
  });

  it("is refused at once when no release could free enough", async () => {
    const { settler } = await start();
    const payer = await payerWith(10n);
    await settler.submit(hold(payer, 8n));

    expect(await settler.submit(hold(payer, 11n))).toMatchObject({ outcome: "insufficient_balance", isContended: false });
  });

  it("shares released credits with other waiting holds, as far as they go", async () => {
    const { settler } = await start();
    const payer = await payerWith(10n);
    const first = hold(payer, 10n);
    await settler.submit(first);
    const held = Array.from({ length: 4 }, () => hold(payer, 4n));
    const waiting = held.map((operation) => settler.submit(operation));
    await settler.submit(hold(await payerWith(1n), 1n));

    await settler.submit(settle(first, 1n));
    const winners = await Promise.all(waiting.slice(0, 2));
    expect(await readAccount(pool, payer.accountId)).toMatchObject({ buckets: { pack: 9n }, held: { pack: 8n } });
    await Promise.all(held.slice(0, 2).map((operation) => settler.submit(settle(operation, 4n))));
    const losers = await Promise.all(waiting.slice(2));

    expect([...winners, ...losers].map(({ outcome }) => outcome)).toEqual(["ok", "ok", "insufficient_balance", "insufficient_balance"]);
  });
});

describe("an operation that the database rejects", () => {
  const impossible = usageRecord({ timestamp: "no time" });

  it("fails alone; a settlement is written to disk, and counts as done", async () => {
    const { settler, ledger, dataDir } = await start();
    const payer = await payerWith(10n);
    const good = [settle(payer, 1n), settle(payer, 2n)];
    const bad = settle(payer, 3n, { record: impossible });

    const results = await Promise.allSettled([...good, bad, hold(payer, 4n)].map((operation) => settler.submit(operation)));

    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "fulfilled", "fulfilled"]);
    expect(settler.refused.list(9)).toMatchObject([{ operation: bad, reason: expect.stringMatching(/no time/) }]);
    expect(settler.isOpen(bad.id)).toBe(true);
    expect(ledger.batches.map((batch) => batch.length)).toEqual([4, 1, 1, 1, 1]);
    expect(settler.isUnavailable).toBe(false);
    expect(await readAccount(pool, payer.accountId)).toMatchObject({ buckets: { pack: 7n }, held: { pack: 4n } });
    expect(await readFile(join(dataDir, "spool/refused.ndjson"), "utf8")).toContain(bad.id);
    expect(await spooled(dataDir)).toBe("");
  });

  it("fails alone when it was spooled, and lets the others commit", async () => {
    const { settler, ledger, dataDir } = await start();
    const payer = await payerWith(10n);
    const good = settle(payer, 1n);
    const bad = settle(payer, 3n, { record: impossible });
    ledger.lose("network");
    await Promise.all([settler.submit(bad), settler.submit(good)]);

    ledger.heal();
    await backInService(settler);

    expect(await readUsage(pool, good.id)).toMatchObject({ cost: 1n });
    expect(await readFile(join(dataDir, "spool/refused.ndjson"), "utf8")).toContain(bad.id);
    expect(await spooled(dataDir)).toBe("");
  });

  it("makes the rest of its batch spool at once when the database goes away during the search for it", async () => {
    const { settler, ledger } = await start();
    const payer = await payerWith(10n);
    const bad = settle(payer, 3n, { record: impossible });
    const good = Array.from({ length: 5 }, () => settle(payer, 1n));
    // The batch of six is refused, the bad one alone is refused, and then the database is gone.
    ledger.lose("network", { afterFlushes: 2 });

    const results = await Promise.allSettled([bad, ...good].map((operation) => settler.submit(operation)));
    ledger.heal();
    await backInService(settler);

    expect(results.map(({ status }) => status)).toEqual(["fulfilled", ...good.map(() => "fulfilled")]);
    // None of the others had to find out by itself, each for the time that a flush may take, that the database is gone.
    expect(ledger.batches.slice(0, 4).map((batch) => batch.length)).toEqual([6, 1, 1, 5]);
    for (const { id } of good) expect(await readUsage(pool, id)).toMatchObject({ cost: 1n });
  });
});

describe("a settlement that the database refuses", () => {
  /** Until it is called again with false. */
  const refuse = async ({ accountId }: TestPayer, isRefused: boolean): Promise<void> => {
    const change = isRefused ? `ADD CONSTRAINT refused_check CHECK (account_id <> '${accountId}')` : "DROP CONSTRAINT refused_check";
    await pool.query(`ALTER TABLE usage_record ${change}`);
  };

  it("is committed once the cause is gone, and keeps its hold until then", async () => {
    const { settler, dataDir, committed } = await start();
    const payer = await payerWith(10n);
    const held = hold(payer, 5n);
    await settler.submit(held);
    await refuse(payer, true);

    expect(await settler.submit(settle(held, 3n))).toMatchObject({ outcome: "ok", charged: 3n });
    expect(await readAccount(pool, payer.accountId)).toMatchObject({ buckets: { pack: 10n }, held: { pack: 5n } });
    await settler.refused.retry();
    expect(settler.refused.count).toBe(1);
    await refuse(payer, false);
    await eventually(() => expect(settler.refused.count).toBe(0));

    expect(await readAccount(pool, payer.accountId)).toMatchObject({ buckets: { pack: 7n }, held: { pack: 0n } });
    expect(committed.at(-1)).toMatchObject([{ kind: "settle", id: held.id }, { charged: 3n }]);
    await settler.refused.retry();
    expect(await readFile(join(dataDir, "spool/refused.ndjson"), "utf8")).toBe("");
  });

  it("is taken over by the next process on the directory", async () => {
    const first = await start();
    const payer = await payerWith(10n);
    const settlement = settle(payer, 3n);
    await refuse(payer, true);
    await first.settler.submit(settlement);
    await first.settler.close();

    const second = await start(first.dataDir);
    await second.settler.replaySpool();
    expect(second.settler.refused.count).toBe(1);
    await second.settler.close();
    await refuse(payer, false);
    const third = await start(first.dataDir);
    await third.settler.replaySpool();

    expect(third.settler.refused.count).toBe(0);
    expect(await readUsage(pool, settlement.id)).toMatchObject({ cost: 3n });
  });

  it("fails when the disk fails too", async () => {
    const { settler, dataDir } = await start();
    const payer = await payerWith(10n);
    await refuse(payer, true);
    await rm(join(dataDir, "spool"), { recursive: true });

    await expect(settler.submit(settle(payer, 3n))).rejects.toThrow(/ENOENT/);

    await refuse(payer, false);
  });
});

describe("while the database is away", () => {
  it("refuses holds and spools settlements, then commits them and resumes", async () => {
    const { settler, ledger, dataDir, committed } = await start();
    const payer = await payerWith(10n, 8n);
    const held = hold(payer, 4n);
    await settler.submit(held);
    ledger.lose("network");

    const settled = await settler.submit(settle(held, 3n));
    expect(settled).toMatchObject({ outcome: "ok", charged: 3n, writtenOff: 0n });
    expect(await spooled(dataDir)).toContain(held.id);
    expect(settler.isUnavailable).toBe(true);
    expect(() => settler.assertAvailable()).toThrow(/cannot reach its database/);
    const flushes = ledger.batches.length;
    await expect(settler.submit(hold(payer, 1n))).rejects.toMatchObject({ code: "SERVICE_UNAVAILABLE", retryAfterSeconds: 1 });
    expect(ledger.batches.length - flushes).toBeLessThanOrEqual(1);

    ledger.heal();
    await backInService(settler);

    expect(await spooled(dataDir)).toBe("");
    expect(await readUsage(pool, held.id)).toMatchObject({ cost: 3n });
    expect(await readKey(pool, payer.apiKeyId ?? "")).toEqual({ budget: 8n, spent: 3n, held: 0n });
    expect(committed.map(([{ kind }, { charged }]) => [kind, charged])).toEqual([
      ["hold", 0n],
      ["settle", 3n],
    ]);
    expect(await settler.submit(hold(payer, 5n))).toMatchObject({ outcome: "ok" });
  });

  it("charges once when the answer to a settlement was lost after its commit", async () => {
    const { settler, ledger } = await start();
    const payer = await payerWith(10n);
    const held = hold(payer, 4n);
    await settler.submit(held);
    ledger.lose("answer");

    expect(await settler.submit(settle(held, 3n))).toMatchObject({ outcome: "ok", charged: 3n });
    expect(await readUsage(pool, held.id)).toMatchObject({ cost: 3n });
    ledger.heal();
    await backInService(settler);

    expect(await readAccount(pool, payer.accountId)).toMatchObject({ buckets: { pack: 7n }, held: { pack: 0n } });
  });

  it("releases a hold whose commit is uncertain", async () => {
    const { settler, ledger } = await start();
    const payer = await payerWith(10n);
    ledger.lose("answer");

    await expect(settler.submit(hold(payer, 4n))).rejects.toMatchObject({ code: "SERVICE_UNAVAILABLE" });
    expect(await readAccount(pool, payer.accountId)).toMatchObject({ held: { pack: 4n } });
    ledger.heal();
    await backInService(settler);

    expect(await readAccount(pool, payer.accountId)).toMatchObject({ buckets: { pack: 10n }, held: { pack: 0n } });
  });

  it("refuses the holds that were queued or waiting when it went away", async () => {
    const { settler, ledger } = await start();
    const payer = await payerWith(10n);
    await settler.submit(hold(payer, 8n));
    const contended = settler.submit(hold(payer, 6n));
    await settler.submit(hold(payer, 0n));
    const isWaiting = ledger.pause();
    const sent = settler.submit(hold(payer, 1n));
    await isWaiting;
    const queued = settler.submit(hold(payer, 1n));

    ledger.lose("network");
    ledger.resume();

    for (const refused of [contended, sent, queued]) await expect(refused).rejects.toMatchObject({ code: "SERVICE_UNAVAILABLE" });
    ledger.heal();
    await backInService(settler);
    expect(await readAccount(pool, payer.accountId)).toMatchObject({ held: { pack: 8n } });
  });

  it("keeps releases, and grants extensions so that streams end", async () => {
    const { settler, ledger } = await start();
    const payer = await payerWith(10n);
    const held = hold(payer, 4n);
    const streaming = hold(payer, 1n);
    await Promise.all([settler.submit(held), settler.submit(streaming)]);
    ledger.lose("network");

    expect(await settler.submit(release(held))).toMatchObject({ outcome: "ok" });
    expect(await settler.submit(extend(streaming, 1n, 1n))).toMatchObject({ outcome: "ok" });
    expect(await settler.submit(settle(streaming, 2n))).toMatchObject({ outcome: "ok", charged: 2n });
    ledger.heal();
    await backInService(settler);

    expect(await readAccount(pool, payer.accountId)).toMatchObject({ buckets: { pack: 8n }, held: { pack: 0n } });
  });

  it("commits new operations during a replay of earlier settlements", async () => {
    const { settler, ledger, dataDir } = await start();
    const payer = await payerWith(10n);
    const [first, second] = [settle(payer, 1n), settle(payer, 2n)];
    ledger.lose("network");
    await settler.submit(first);
    const isReplaying = ledger.pause();
    ledger.heal();
    await isReplaying;

    await settler.submit(second);
    ledger.resume();
    await backInService(settler);

    expect(await readUsage(pool, first.id)).toMatchObject({ cost: 1n });
    expect(await readUsage(pool, second.id)).toMatchObject({ cost: 2n });
    expect(await spooled(dataDir)).toBe("");
  });

  it("leaves the spool to the next process, which commits it first", async () => {
    const first = await start();
    const payer = await payerWith(10n);
    const held = hold(payer, 4n);
    await first.settler.submit(held);
    first.ledger.lose("network");
    await first.settler.submit(settle(held, 3n));
    await first.settler.close();

    const second = await start(first.dataDir);
    await second.settler.replaySpool();

    expect(await readUsage(pool, held.id)).toMatchObject({ cost: 3n });
    expect(await readAccount(pool, payer.accountId)).toMatchObject({ buckets: { pack: 7n }, held: { pack: 0n } });
    expect(await spooled(first.dataDir)).toBe("");
    expect(second.settler.isUnavailable).toBe(false);
  });

  it("charges the rest of the balance for a spooled settlement that it no longer covers", async () => {
    const { settler, ledger } = await start();
    const payer = await payerWith(10n);
    ledger.lose("network");
    const settlement = settle(payer, 6n);
    await settler.submit(settlement);
    await real.flush([settle(payer, 7n)]);

    ledger.heal();
    await backInService(settler);

    expect(await readUsage(pool, settlement.id)).toMatchObject({ cost: 3n });
  });
});

describe("closing", () => {
  it("commits queued operations before it resolves", async () => {
    const { settler, ledger } = await start();
    const payer = await payerWith(10n);
    const isWaiting = ledger.pause();
    const sent = settler.submit(hold(payer, 1n));
    await isWaiting;
    const settlement = settle(payer, 2n);
    const queued = settler.submit(settlement);
    let isClosed = false;
    const closing = settler.close().then(() => {
      isClosed = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(isClosed).toBe(false);

    ledger.resume();
    await closing;

    expect(await readUsage(pool, settlement.id)).toMatchObject({ cost: 2n });
    await Promise.all([sent, queued]);
  });

  it("refuses waiting holds, and new ones", async () => {
    const { settler } = await start();
    const payer = await payerWith(10n);
    await settler.submit(hold(payer, 8n));
    const contended = settler.submit(hold(payer, 6n));
    await settler.submit(hold(payer, 0n));

    const closing = settler.close();

    await expect(contended).rejects.toMatchObject({ code: "SERVICE_UNAVAILABLE" });
    await expect(settler.submit(hold(payer, 1n))).rejects.toMatchObject({ code: "SERVICE_UNAVAILABLE" });
    await closing;
  });

  it("spools a settlement that arrives while it closes", async () => {
    const { settler, ledger, dataDir } = await start();
    const payer = await payerWith(10n);
    const isWaiting = ledger.pause();
    const sent = settler.submit(hold(payer, 1n));
    await isWaiting;
    const closing = settler.close();
    const late = settle(payer, 2n);

    expect(await settler.submit(late)).toMatchObject({ outcome: "ok", charged: 2n });
    ledger.resume();
    await Promise.all([closing, sent]);

    expect(await spooled(dataDir)).toContain(late.id);
    await (await start(dataDir)).settler.replaySpool();
    expect(await readUsage(pool, late.id)).toMatchObject({ cost: 2n });
  });
});
