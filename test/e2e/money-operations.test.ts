/**
 * Every operation that generates, on every face: charged once or not at all, however it ends. The operations are those
 * of `test/support/operations.ts`, their upstreams real servers that fail at each of their steps.
 */
import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { formatNanocredits } from "../../src/lib/money.js";
import { BROKEN_OFF } from "../support/generation-outcome.js";
import { answerWell, COST_OF, createOperationsApp, modelOf, type OperationsApp, phasesOf } from "../support/operation-upstreams.js";
import { OPERATIONS, type Operation } from "../support/operations.js";
import { CREDIT, closeBooks, createPayer, databaseOf, expectNothingHeld, type Payer, type PayerOptions } from "./money.js";

let app: OperationsApp;

beforeAll(async () => {
  app = await createOperationsApp();
});
afterEach(() => {
  app.upstream.replyAlways(null);
  app.realtime.refuseWith(null);
});
afterAll(() => app.close());

const ask = (operation: Operation, payer: Payer, model = modelOf(operation.kind), headers: Record<string, string> = {}) =>
  operation.ask({ baseUrl: app.baseUrl, wsUrl: app.wsUrl, key: payer.key }, { model }, headers);

/** How often an upstream has been called. */
const calls = () => app.upstream.requests.length + app.realtime.requests.length;

const rowsOf = ({ accountId }: Payer) =>
  databaseOf(app).prisma.usageRecord.findMany({ where: { accountId }, select: { id: true, status: true } });

/** In a sound that has begun there is no way to say why it ends. */
const isSound = ({ name }: Operation) => name === "POST /v1/audio/speech";
/** Of log lines: what an operator has to look at. */
const ERROR = 50;

const named = OPERATIONS.map((operation) => [operation.name, operation] as const);

describe("a call that succeeds is charged once", () => {
  it.each(named)("at its reported price, and not when it is repeated: %s", async (_, operation) => {
    const cost = COST_OF[operation.kind];
    const payer = await createPayer(app, { pack: CREDIT });
    const headers = { "idempotency-key": randomUUID() };
    answerWell(app, operation);

    const outcome = await ask(operation, payer, modelOf(operation.kind), headers);
    const repeated = operation.isRepeatable ? await ask(operation, payer, modelOf(operation.kind), headers) : null;

    expect([outcome.code, outcome.message, outcome.isReplay]).toEqual([null, null, false]);
    // A session does not report its cost, which is known only after its end.
    if (operation.delivery !== "session") expect(Number(outcome.cost)).toBe(Number(formatNanocredits(cost)));
    if (repeated) expect(repeated).toMatchObject({ code: null, generationId: outcome.generationId, isReplay: true });
    const { rows, account, key } = await closeBooks(app, payer);
    expect(rows.map(({ id, costNanocredits, status }) => [id, costNanocredits, status])).toEqual([[outcome.generationId, cost, "ok"]]);
    expect([account.buckets.pack, key]).toEqual([CREDIT - cost, { spent: cost, held: 0n }]);
  });
});

/** Callers without access, each with the code and status of its refusal. */
const REFUSED: readonly (readonly [string, PayerOptions, string, number])[] = [
  ["has nothing", {}, "INSUFFICIENT_BALANCE", 402],
  ["has too little", { pack: 1n }, "INSUFFICIENT_BALANCE", 402],
  ["has a key whose budget is used up", { pack: CREDIT, budget: 1n }, "KEY_BUDGET_EXHAUSTED", 402],
  ["has a key for another model", { pack: CREDIT, allowedModels: ["acme/chat-b"] }, "FORBIDDEN", 403],
];

describe("a call that is refused", () => {
  it.each(named)("calls no upstream and is not charged: %s", async (_, operation) => {
    answerWell(app, operation);
    const before = calls();
    for (const [who, options, code, status] of REFUSED) {
      const payer = await createPayer(app, options);

      const outcome = await ask(operation, payer);

      expect([outcome.code, outcome.status], who).toEqual([code, operation.face === "REST" ? status : 200]);
      expect(await rowsOf(payer)).toEqual([]);
    }
    expect(calls()).toBe(before);
    await expectNothingHeld(app, 2);
  });
});

describe("a call whose upstream fails is charged once for the delivered part, or not at all", () => {
  it.each(named)("at every step: %s", async (_, operation) => {
    const payer = await createPayer(app, { pack: 10n * CREDIT });
    const outcomes: Record<string, unknown> = {};
    const expected: Record<string, unknown> = {};
    const known = new Set<string>();
    for (const phase of phasesOf(operation)) {
      phase.arrange(app);
      const { code, status } = await ask(operation, payer, phase.model);
      app.realtime.refuseWith(null);
      await expectNothingHeld(app, 2);
      const added = (await rowsOf(payer)).filter(({ id }) => !known.has(id));
      for (const { id } of added) known.add(id);
      outcomes[phase.name] = { code, charges: added.map((row) => row.status) };
      expected[phase.name] = {
        code: phase.isAnswered ? null : isSound(operation) && status === 200 ? BROKEN_OFF : "UPSTREAM_ERROR",
        charges: phase.isCharged ? [phase.isAnswered ? "ok" : "cancelled"] : [],
      };
    }

    expect(outcomes).toEqual(expected);
    const { rows, account, key } = await closeBooks(app, payer);
    const spent = rows.reduce((sum, { costNanocredits }) => sum + costNanocredits, 0n);
    expect([account.buckets.pack, key]).toEqual([10n * CREDIT - spent, { spent, held: 0n }]);
    expect(app.logs.filter(({ level }) => Number(level) >= ERROR)).toEqual([]);
  });
});
