/** Automatic top-ups with Stripe's automatic tax, which are paid by an invoice, at a server that speaks Stripe's wire format. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { readStripeEvent } from "../../src/services/payments/stripe-events.js";
import { CreateCheckoutDocument, MyBillingDocument, UpdateAutoTopUpDocument } from "../operations/generated/graphql.js";
import { createStranger } from "../rest/seed.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { createMovableClock, type MovableClock } from "../support/clock.js";
import { type FakeStripe, startFakeStripe } from "../support/fake-stripe.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { stripeConfig } from "../support/stripe-config.js";
import { execute, ok } from "./client.js";

const NANO = 10n ** 9n;

let stripe: FakeStripe;
let clock: MovableClock;
let app: TestApp;

beforeAll(async () => {
  clock = createMovableClock(new Date("2026-11-14T10:00:00Z"));
  stripe = await startFakeStripe();
  app = await createTestApp({ config: stripeConfig(stripe, { STRIPE_AUTOMATIC_TAX: "on" }), clock });
});
beforeEach(() => {
  stripe.requests.length = 0;
  stripe.areAddressesKnown = true;
  stripe.decline = null;
});
afterEach(async () => {
  expect(await findBrokenInvariants(app.database.pool, { isIdle: true })).toEqual({});
});
afterAll(async () => {
  await app.close();
  await stripe.close();
});

async function send(type: string, object: unknown): Promise<string> {
  const { body } = stripe.event(type, object);
  return app.services.paymentReports.takeStripeEvent(body, stripe.sign(body, clock.now()));
}

/** Has bought 4 credits with a method that is kept, and tops up by 20. */
async function createBuyer() {
  const { key, keyId } = await createStranger(app);
  const { accountId } = await app.database.prisma.apiKey.findUniqueOrThrow({ where: { id: keyId } });
  const buyer = { ...app, key, accountId };
  const opened = ok(await execute(buyer, CreateCheckoutDocument, { input: { credits: "4" } })).createCheckout;
  const { reference } = await app.database.prisma.topUp.findUniqueOrThrow({ where: { id: opened?.topUp.restId ?? "" } });
  stripe.pay(reference ?? "", { keepsMethod: true });
  expect(await send("checkout.session.completed", stripe.objects.get(reference ?? ""))).toBe("booked");
  ok(await execute(buyer, UpdateAutoTopUpDocument, { input: { isEnabled: true, threshold: "5", amount: "20", monthlyCap: "100" } }));
  await app.services.autoTopUps.look();
  return buyer;
}
type Buyer = Awaited<ReturnType<typeof createBuyer>>;

const automaticOf = ({ accountId }: Buyer) =>
  app.database.prisma.topUp.findMany({ where: { accountId, isAutomatic: true }, orderBy: { createdAt: "asc" } });
const packOf = async ({ accountId }: Buyer) =>
  (await app.database.prisma.account.findUniqueOrThrow({ where: { id: accountId } })).packNanocredits;
const stateOf = async (buyer: Buyer) => ok(await execute(buyer, MyBillingDocument, {})).me?.autoTopUp;
const invoicesOf = ({ accountId }: Buyer) =>
  [...stripe.objects.values()].filter(
    ({ object, metadata }) => object === "invoice" && (metadata as { account_id?: string } | undefined)?.account_id === accountId,
  );

describe("an automatic top-up with taxes", () => {
  it("charges them beside the price, once, and gives the credits of the price", async () => {
    const buyer = await createBuyer();
    await app.services.autoTopUps.look();

    const [topUp] = await automaticOf(buyer);
    expect(topUp).toMatchObject({ status: "paid", amountCents: 2_000n, chargedCents: 2_380n });
    expect(await packOf(buyer)).toBe(24n * NANO);
    expect(invoicesOf(buyer)).toMatchObject([{ status: "paid", subtotal: 2_000, total: 2_380 }]);
    const intent = stripe.objects.get(topUp?.paymentReference ?? "");
    expect(await send("payment_intent.succeeded", intent)).toBe("unchanged");

    stripe.refund(topUp?.paymentReference ?? "", 1_190);
    expect(await send("charge.refunded", stripe.objects.get(String(intent?.latest_charge)))).toBe("booked");
    expect(await packOf(buyer)).toBe(14n * NANO);
  });

  it.each([
    ["is made", /POST .*\/invoices$/],
    ["gets its line", /invoiceitems/],
    ["is finalized", /finalize/],
    ["gets its metadata", /POST .*\/payment_intents\//],
    ["is paid", /pay$/],
  ])("is paid once when the answer is lost by which its invoice %s", async (_name, losing) => {
    stripe.losing = losing;
    const buyer = await createBuyer();
    expect(await automaticOf(buyer)).toMatchObject([{ status: "open" }]);
    stripe.losing = null;
    clock.advance(61);
    await app.services.autoTopUps.look();

    expect(await automaticOf(buyer)).toMatchObject([{ status: "paid", chargedCents: 2_380n }]);
    expect(invoicesOf(buyer)).toMatchObject([{ status: "paid", total: 2_380 }]);
    expect(await packOf(buyer)).toBe(24n * NANO);
  });

  it("fails where the address is not known, and leaves no invoice", async () => {
    stripe.areAddressesKnown = false;
    const buyer = await createBuyer();

    expect((await stateOf(buyer))?.problem).toContain("your address is not known");
    expect(await automaticOf(buyer)).toMatchObject([{ status: "cancelled" }]);
    expect(invoicesOf(buyer)).toEqual([]);
    expect(await packOf(buyer)).toBe(4n * NANO);
  });

  it("fails when the card is declined, and its invoice cannot be paid later", async () => {
    stripe.decline = { code: "card_declined", message: "Your card was declined." };
    const buyer = await createBuyer();

    expect((await stateOf(buyer))?.problem).toBe("Your card was declined.");
    expect(invoicesOf(buyer)).toMatchObject([{ status: "void" }]);
  });
});

describe("the event of a payment with taxes", () => {
  it.each([
    ["has the price", { price_cents: "2000" }, 2_000n],
    ["has no price above the payment", { price_cents: "9000" }, 2_380n],
    ["has no price that is none", { price_cents: "-1" }, 2_380n],
  ])("%s", (_name, more, cents) => {
    const object = { id: "pi_1", amount_received: 2_380, currency: "usd", customer: null, metadata: { top_up_id: "1", ...more } };

    expect(readStripeEvent({ id: "evt_1", type: "payment_intent.succeeded", data: { object } })).toMatchObject({
      cents,
      chargedCents: 2_380n,
    });
  });
});
