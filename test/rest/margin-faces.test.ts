/** The margin of an app on every operation that generates: charged, stated in usage, and earned (docs/spec/earnings.md#apps). */
import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { createPayer, databaseOf, type Payer } from "../e2e/money.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { answerWell, COST_OF, createOperationsApp, modelOf, type OperationsApp } from "../support/operation-upstreams.js";
import { OPERATIONS } from "../support/operations.js";
import { buyCredits } from "../support/top-ups.js";

const MARGIN_PERCENT = 15n;

let app: OperationsApp;
let developer: Payer;
let appKeyId: string;
let payer: Payer;

beforeAll(async () => {
  app = await createOperationsApp({ earnings: { communityShare: 750_000n, marginPercentMax: 20 } });
  developer = await createPayer(app);
  appKeyId = randomUUID();
  await databaseOf(app).prisma.apiKey.create({
    data: {
      ...{ id: appKeyId, accountId: developer.accountId, type: "publishable", name: "App", start: "pk_app" },
      hash: new Uint8Array(32),
    },
  });
});
beforeEach(async () => {
  payer = await createPayer(app);
  await buyCredits(app, payer.accountId, 10_000n);
  // As a consent would have made it.
  const data = { appKeyId, marginPercent: Number(MARGIN_PERCENT) };
  await databaseOf(app).prisma.apiKey.updateMany({ where: { accountId: payer.accountId }, data });
});
afterEach(() => {
  app.upstream.replyAlways(null);
});
afterAll(async () => {
  const broken = await findBrokenInvariants(app.database.pool, { isIdle: true });
  await app.close();
  expect(broken).toEqual({});
});

it.each(OPERATIONS.map((operation) => [operation.name, operation] as const))("is charged and earned: %s", async (_, operation) => {
  answerWell(app, operation);
  const price = COST_OF[operation.kind];
  const margin = (price * MARGIN_PERCENT) / 100n;

  const outcome = await operation.ask({ baseUrl: app.baseUrl, wsUrl: app.wsUrl, key: payer.key }, { model: modelOf(operation.kind) });

  expect([outcome.code, outcome.message]).toEqual([null, null]);
  const { prisma } = databaseOf(app);
  const select = { id: true, costNanocredits: true, appMarginNanocredits: true };
  const find = () => prisma.usageRecord.findMany({ where: { accountId: payer.accountId }, select });
  // A session is charged after its end.
  await expect.poll(async () => (await find()).length).toBe(1);
  const rows = await find();
  expect(rows).toEqual([{ id: expect.any(String), costNanocredits: price + margin, appMarginNanocredits: margin }]);
  const shares = await prisma.earning.findMany({ where: { payerId: payer.accountId } });
  expect(shares).toMatchObject([
    {
      generationId: rows[0]?.id,
      kind: "app",
      accountId: developer.accountId,
      source: appKeyId,
      nanocredits: margin,
      soldNanocredits: price + margin,
    },
  ]);
});
