/** The request log's sampling and retention. Nothing here waits: each write is requested. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RequestNote } from "../../../src/lib/request-note.js";
import { FailureRecorder } from "../../../src/services/request-log/failure-recorder.js";
import { FailureRetention } from "../../../src/services/request-log/failure-retention.js";
import {
  FAILURE_ACCOUNTS_MAX,
  FAILURE_BURST_MAX,
  FAILURE_WRITES_MAX,
  FAILURES_WAITING_MAX,
} from "../../../src/services/request-log/limits.js";
import type { Database } from "../../../src/store/database.js";
import { createMemoryEvents } from "../../../src/store/events.js";
import { createMovableClock } from "../../support/clock.js";
import { createTestDatabase, silentLog, type TestDatabase } from "../../support/database.js";

let test: TestDatabase;
beforeAll(async () => {
  test = await createTestDatabase();
});
afterAll(() => test.close());

const DAY_SECONDS = 24 * 60 * 60;

interface Options {
  readonly isOn?: boolean;
  readonly perAccountMax?: number;
  readonly database?: Database;
}

function createRecorder({ isOn = true, perAccountMax, database = test.database }: Options = {}) {
  const clock = createMovableClock();
  const retention = new FailureRetention(test.database, clock, 30, perAccountMax);
  const events = createMemoryEvents(silentLog);
  const recorder = new FailureRecorder({ database, events, retention, clock, log: silentLog, statusOf: () => 402, isOn });
  const fail = (accountId: string, code = "RATE_LIMITED", more: Partial<RequestNote> = {}) => {
    const note = Object.assign(new RequestNote(), { caller: { accountId }, isGeneration: true, requestId: randomUUID(), ...more });
    note.refused(code, "Too many requests.");
    recorder.requestOver(note, { method: "POST", status: 429, isLeft: false });
  };
  const counted = async () => Object.fromEntries((await recorder.counter.get()).values.map(({ labels, value }) => [labels.outcome, value]));
  return { recorder, retention, events, clock, fail, counted };
}

const rowsOf = (accountId: string) => test.database.prisma.failedRequest.findMany({ where: { accountId }, orderBy: { id: "asc" } });

describe("The failures of a request log", () => {
  it("are all kept in a burst, and of a flood one more for each write, which counts the others", async () => {
    const { recorder, fail, counted } = createRecorder();
    const accountId = randomUUID();
    for (let index = 0; index < FAILURE_BURST_MAX + 5_000; index += 1) fail(accountId);
    await recorder.flush();
    const first = await rowsOf(accountId);
    expect(first).toHaveLength(FAILURE_BURST_MAX);
    expect(first.reduce((sum, { leftOut }) => sum + leftOut, 0)).toBe(5_000);

    for (let index = 0; index < 100; index += 1) fail(accountId);
    await recorder.flush();
    const rows = await rowsOf(accountId);
    // A flush writes twice, so that two may be kept.
    expect(rows.length - first.length).toBe(2);
    expect(rows.length + rows.reduce((sum, { leftOut }) => sum + leftOut, 0)).toBe(FAILURE_BURST_MAX + 5_100);
    expect(await counted()).toEqual({ written: rows.length, left_out: FAILURE_BURST_MAX + 5_100 - rows.length, dropped: 0 });
  });

  it("are counted for each code and each account apart", async () => {
    const { recorder, fail } = createRecorder();
    const [loud, quiet] = [randomUUID(), randomUUID()];
    for (let index = 0; index < 1_000; index += 1) fail(loud);
    fail(loud, "BAD_REQUEST");
    fail(quiet);
    await recorder.flush();
    expect((await rowsOf(loud)).filter(({ code }) => code === "BAD_REQUEST")).toMatchObject([{ leftOut: 0 }]);
    expect(await rowsOf(quiet)).toMatchObject([{ leftOut: 0, status: 429, message: "Too many requests." }]);
  });

  it("are bounded in memory for any number of accounts", async () => {
    const { recorder, fail, counted } = createRecorder();
    for (let index = 0; index < FAILURE_ACCOUNTS_MAX + 10; index += 1) fail(randomUUID());
    await recorder.flush();
    expect(await counted()).toEqual({ written: FAILURES_WAITING_MAX, left_out: FAILURE_ACCOUNTS_MAX - FAILURES_WAITING_MAX, dropped: 10 });
  });

  it("wait for a database that is away, and are dropped after some writes", async () => {
    const statement = () => Promise.reject(new Error("away"));
    const database = { ...test.database, prisma: { $executeRaw: statement } } as unknown as Database;
    const { recorder, fail, counted } = createRecorder({ database });
    fail(randomUUID());
    for (let index = 0; index < FAILURE_WRITES_MAX; index += 2) await recorder.flush();
    expect(await counted()).toEqual({ written: 0, left_out: 0, dropped: 1 });
  });

  it("are not recorded when the log is off, without a caller, or for other requests", async () => {
    const off = createRecorder({ isOn: false });
    off.fail(randomUUID());
    await off.recorder.flush();
    const on = createRecorder();
    on.fail(randomUUID(), "BAD_REQUEST", { caller: null });
    on.fail(randomUUID(), "BAD_REQUEST", { isGeneration: false });
    await on.recorder.flush();
    for (const { counted } of [off, on]) expect(await counted()).toEqual({ written: 0, left_out: 0, dropped: 0 });
  });

  it("keep texts that clients made up within bounds and storable", async () => {
    const { recorder, fail } = createRecorder();
    const accountId = randomUUID();
    fail(accountId, "BAD_REQUEST", { requestedModel: `\ud800\0${"m".repeat(10_000)}` });
    await recorder.flush();
    const [row] = await rowsOf(accountId);
    expect(row?.model).toHaveLength(200);
    expect(row?.model).not.toMatch(/\0/);
  });

  it("are announced once they are written, by account", async () => {
    const { recorder, events, fail } = createRecorder();
    const accountId = randomUUID();
    const announced: string[] = [];
    events.listenToAccount("requests-failed", accountId, ({ failureIds }) => void announced.push(...failureIds));
    fail(accountId);
    fail(accountId);
    expect(announced).toEqual([]);
    await recorder.flush();
    // Ids of one millisecond are in no order.
    expect(announced.toSorted()).toEqual((await rowsOf(accountId)).map(({ id }) => id));
  });

  it("are deleted beyond the account's bound and after their time, and with the account", async () => {
    const { recorder, retention, clock, fail } = createRecorder({ perAccountMax: 10 });
    const [accountId, other] = [randomUUID(), randomUUID()];
    for (let index = 0; index < 25; index += 1) fail(accountId);
    fail(other);
    const newest = async () => (await rowsOf(accountId)).map(({ id }) => id);
    await recorder.flush();
    const kept = await newest();
    expect(kept).toHaveLength(10);

    clock.advance(29 * DAY_SECONDS);
    expect(await retention.sweepExpired()).toBe(0);
    fail(accountId);
    await recorder.flush();
    clock.advance(2 * DAY_SECONDS);
    await retention.sweepExpired();
    expect(await newest()).toHaveLength(1);
    expect(await rowsOf(other)).toEqual([]);
    expect(await retention.deleteOf(accountId)).toBe(1);
    expect(await newest()).toEqual([]);
  });

  it("of a deleted account are not written any more", async () => {
    const { recorder, fail } = createRecorder();
    const accountId = randomUUID();
    await test.database.prisma.account.create({ data: { id: accountId, handle: `gone-${accountId}` } });
    await test.database.prisma.accountDeletion.create({ data: { accountId, deletedAt: new Date() } });
    fail(accountId);
    await recorder.flush();
    expect(await rowsOf(accountId)).toEqual([]);
  });
});
