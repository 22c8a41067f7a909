/** Sales by day for operators (docs/spec/top-ups.md#sales), on both faces: purchases, refunds and disputes on the days of their bookings. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CreateCheckoutDocument, SalesDocument } from "../operations/generated/graphql.js";
import { createClient } from "../rest/client.js";
import { createStranger } from "../rest/seed.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { createMovableClock } from "../support/clock.js";
import { codes, execute, ok } from "./client.js";

const DAY = 86_400;
const clock = createMovableClock(new Date("2026-11-10T12:00:00Z"));
let app: TestApp;

beforeAll(async () => {
  app = await createTestApp({ clock });
  const first = await buy("10");
  const second = await buy("2.50");
  clock.advance(DAY);
  await app.services.topUps.bookRefund(first, 400n, null);
  await app.services.topUps.bookRefund(first, 600n, null);
  await buy("5");
  clock.advance(DAY);
  expect(second).toBeDefined();
});
afterAll(() => app.close());

async function buy(credits: string): Promise<string> {
  const { key } = await createStranger(app);
  const { topUp } = ok(await execute({ ...app, key }, CreateCheckoutDocument, { input: { credits } })).createCheckout ?? {};
  const { id, amountCents: cents, currency } = await app.database.prisma.topUp.findUniqueOrThrow({ where: { id: topUp?.restId ?? "" } });
  expect(await app.services.topUps.bookPayment("development", { topUpId: id, cents, currency })).toBe(true);
  return id;
}

describe("sales", () => {
  const unpaid = { refunds: 0, refunded: "0.00", disputes: 0, disputed: "0.00", disputesWon: 0, won: "0.00" } as const;
  const back = { refundsFailed: 0, returned: "0.00", writtenOff: "0", writeOffsReversed: "0" } as const;
  const days = [
    {
      ...{ day: "2026-11-11", processor: "development", currency: "usd", purchases: 1, automatic: 0, credits: "5", sold: "5.00" },
      ...{ ...unpaid, ...back, refunds: 2, refunded: "6.00" },
    },
    {
      day: "2026-11-10",
      processor: "development",
      currency: "usd",
      purchases: 2,
      automatic: 0,
      credits: "12.5",
      sold: "12.50",
      ...unpaid,
      ...back,
    },
  ];

  it("are by day, newest first, on both faces", async () => {
    expect(ok(await execute(app, SalesDocument, {})).sales).toEqual(days);

    const client = createClient(app.baseUrl, app.key);
    const { sales } = (await client.get("/account/operator/sales")).json<{ sales: object[] }>();
    const csv = (await client.get("/account/operator/sales?format=csv")).text.trim().split("\r\n");
    expect(sales).toMatchObject([
      { day: "2026-11-11", refunds: 2, refunded: "6.00" },
      { day: "2026-11-10", sold: "12.50" },
    ]);
    expect(csv[0]).toBe(
      "day,processor,currency,purchases,automatic,credits,sold,refunds,refunded,disputes,disputed,disputes_won,won,written_off,refunds_failed,returned,write_offs_reversed",
    );
    expect(csv[1]).toBe("2026-11-11,development,usd,1,0,5,5.00,2,6.00,0,0.00,0,0.00,0,0,0.00,0");
    expect(csv).toHaveLength(3);
  });

  it("are those of the range", async () => {
    const range = { from: "2026-11-10T00:00:00.000Z", to: "2026-11-11T00:00:00.000Z" };

    expect(ok(await execute(app, SalesDocument, range)).sales).toEqual(days.slice(1));
    expect(codes(await execute(app, SalesDocument, { from: "2025-01-01T00:00:00.000Z", to: "2026-11-11T00:00:00.000Z" }))).toEqual([
      "BAD_REQUEST",
    ]);
  });

  it("are for operators alone", async () => {
    const { key } = await createStranger(app);

    expect(codes(await execute({ ...app, key }, SalesDocument, {}))).toEqual(["FORBIDDEN"]);
  });
});
