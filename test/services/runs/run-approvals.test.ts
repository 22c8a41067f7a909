/** Calls that wait for the payer of their run, without a database. */
import { describe, expect, it } from "vitest";
import type { KeyCaller } from "../../../src/context.js";
import { AppError } from "../../../src/errors.js";
import { systemClock } from "../../../src/lib/clock.js";
import { Cancellation } from "../../../src/services/generation/cancellation.js";
import { RunApprovals } from "../../../src/services/runs/run-approvals.js";
import type { Database } from "../../../src/store/database.js";
import { createMemoryEvents } from "../../../src/store/events.js";
import { silentLog } from "../../support/database.js";
import { eventually } from "../../support/eventually.js";

const RUN = "01970000-0000-7000-8000-000000000001";
const ACCOUNT = "01970000-0000-7000-8000-000000000002";
const caller = { kind: "key", accountId: ACCOUNT, apiKeyId: RUN, runIds: [RUN] } as unknown as KeyCaller;
const refusal = new AppError("KEY_BUDGET_EXHAUSTED", "Too little.", { details: { bound: "key_budget", required: "1" } });

function create() {
  let asked: bigint | null = null;
  const row = { id: RUN, budgetNanocredits: 1n, spentNanocredits: 1n, heldNanocredits: 0n, run: { onLimit: "ask" } };
  const prisma = {
    apiKey: { findUnique: async () => ({ ancestorIds: [] }), findMany: async () => [row] },
    run: {
      updateManyAndReturn: async () => {
        const withdrawn = asked === null ? [] : [{ id: RUN }];
        asked = null;
        return withdrawn;
      },
    },
    $queryRaw: async () => {
      const isNews = asked === null;
      asked = 1n;
      return [{ isNews }];
    },
  };
  const events = createMemoryEvents(silentLog);
  const changes: string[] = [];
  events.listen("run-changed", ({ change }) => changes.push(change));
  const approvals = new RunApprovals({ database: { prisma } as unknown as Database, events, clock: systemClock, log: silentLog });
  return { approvals, changes, asked: () => asked };
}

function wait(approvals: RunApprovals) {
  const end = new Cancellation(new AbortController().signal, 60_000);
  const waiting = approvals.holdInTime(caller, refusal, end, () => Promise.reject(refusal)).finally(() => end.dispose());
  waiting.catch(() => undefined);
  return { end, waiting };
}

describe("waiting calls of a run", () => {
  it("take their question back when all end at once, and say so", async () => {
    const { approvals, changes, asked } = create();
    const calls = [wait(approvals), wait(approvals)];
    await eventually(async () => expect(asked()).not.toBeNull());

    for (const { end } of calls) end.stop(new AppError("UNAUTHORIZED", "Ended."));

    for (const { waiting } of calls) await expect(waiting).rejects.toMatchObject({ code: "UNAUTHORIZED" });
    expect(asked()).toBeNull();
    expect(changes).toEqual(["asked", "withdrawn"]);
  });

  it("are refused when the gateway stops, and so are later ones", async () => {
    const { approvals, asked } = create();
    const { waiting } = wait(approvals);
    await eventually(async () => expect(asked()).not.toBeNull());

    approvals.close();

    await expect(waiting).rejects.toMatchObject({ code: "SERVICE_UNAVAILABLE" });
    await expect(wait(approvals).waiting).rejects.toMatchObject({ code: "SERVICE_UNAVAILABLE" });
    expect(asked()).toBeNull();
  });
});
