/** Fees of Stripe in the books: each once, whenever Stripe knows it, on two processes; those of disputes as they change. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { nanocreditsOf } from "../../src/services/payments/fees.js";
import { execute, ok } from "../graphql/client.js";
import { CreateCheckoutDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { createMovableClock, type MovableClock } from "../support/clock.js";
import { type FakeStripe, startFakeStripe } from "../support/fake-stripe.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { isPostgresInstalled } from "../support/postgres.js";
import { stripeConfig } from "../support/stripe-config.js";
import { createPostgresDatabase } from "../support/suite-server.js";
import { createStranger } from "./seed.js";

const NANO = 10n ** 9n;
const CENT = 10n ** 7n;

describe.skipIf(!isPostgresInstalled)("fees", () => {
  let stripe: FakeStripe;
  let clock: MovableClock;
  let apps: [TestApp, TestApp];
  let drop: () => Promise<void>;

  beforeAll(async () => {
    clock = createMovableClock();
    stripe = await startFakeStripe();
    const shared = await createPostgresDatabase();
    drop = shared.drop;
    const config = { ...stripeConfig(stripe), databaseUrl: shared.url, encryptionKey: "the same for both processes of this test" };
    apps = [await createTestApp({ config, clock }), await createTestApp({ config, clock })];
  });
  beforeEach(() => {
    stripe.areFeesKnown = true;
    stripe.isAway = false;
  });
  afterAll(async () => {
    const broken = await findBrokenInvariants(apps[0].database.pool, { isIdle: true });
    for (const app of [...apps].reverse()) await app.close();
    await stripe.close();
    await drop();
    expect(broken).toEqual({});
  });

  async function send(type: string, object: unknown): Promise<string> {
    const { body } = stripe.event(type, object);
    return apps[0].services.paymentReports.takeStripeEvent(body, stripe.sign(body, clock.now()));
  }

  /** Has bought 10 credits, of which Stripe takes 59 cents. */
  async function createBuyer() {
    const [app] = apps;
    const { key, keyId } = await createStranger(app);
    const { accountId } = await app.database.prisma.apiKey.findUniqueOrThrow({ where: { id: keyId } });
    const opened = ok(await execute({ ...app, key }, CreateCheckoutDocument, { input: { credits: "10" } })).createCheckout;
    const { reference } = await app.database.prisma.topUp.findUniqueOrThrow({ where: { id: opened?.topUp.restId ?? "" } });
    const intent = stripe.pay(reference ?? "");
    expect(await send("checkout.session.completed", stripe.objects.get(reference ?? ""))).toBe("booked");
    return { accountId, intent };
  }

  async function lookLater(seconds = 16) {
    clock.advance(seconds);
    await Promise.all(apps.map(({ services }) => services.fees.look()));
  }

  /** Of the books `fees` and `cash`. */
  async function feesOf(accountId: string): Promise<readonly [bigint, bigint]> {
    const rows = await apps[0].database.prisma.ledgerEntry.findMany({ where: { accountId, kind: "fee" } });
    const sumOf = (book: string) =>
      rows.filter((row) => row.book === book).reduce((sum, { amountNanocredits }) => sum + amountNanocredits, 0n);
    return [sumOf("fees"), sumOf("cash")];
  }

  it("of a payment are booked once, and stay with a refund", async () => {
    const { accountId, intent } = await createBuyer();
    expect(await feesOf(accountId)).toEqual([0n, 0n]);

    await lookLater();
    await lookLater(86_400);
    stripe.refund(intent.id, 1_000);
    await send("charge.refunded", stripe.objects.get(String(intent.latest_charge)));
    await lookLater(86_400);

    expect(await feesOf(accountId)).toEqual([-59n * CENT, 59n * CENT]);
    const broken = await findBrokenInvariants(apps[0].database.pool);
    expect(broken).toEqual({});
  });

  it("are asked for again while they are not known, while Stripe is away, and once Stripe reports them", async () => {
    stripe.areFeesKnown = false;
    const { accountId, intent } = await createBuyer();
    await lookLater();
    stripe.isAway = true;
    await lookLater(60);
    stripe.isAway = false;
    await lookLater(120);
    expect(await feesOf(accountId)).toEqual([0n, 0n]);

    stripe.areFeesKnown = true;
    expect(await send("charge.updated", stripe.objects.get(String(intent.latest_charge)))).toBe("ignored");
    await lookLater(0);

    expect(await feesOf(accountId)).toEqual([-59n * CENT, 59n * CENT]);
  });

  it("of a payment that never are known are given up with a warning", async () => {
    stripe.areFeesKnown = false;
    const { intent } = await createBuyer();
    for (let i = 0; i < 30; i += 1) await lookLater(43_201);

    const logs = apps.flatMap((app) => app.logs).filter(({ payment }) => payment === intent.id);
    expect(logs).toHaveLength(1);
    const { nextAt } = await apps[0].database.prisma.paymentFee.findFirstOrThrow({ where: { reference: intent.id } });
    expect(nextAt).toBeNull();
  });

  it("of a dispute are those of its movements, and follow them", async () => {
    const { accountId, intent } = await createBuyer();
    await lookLater();
    const dispute = stripe.dispute(intent.id, 1_000);
    await send("charge.dispute.created", dispute);
    await lookLater();
    expect(await feesOf(accountId)).toEqual([-59n * CENT, 59n * CENT]);

    Object.assign(dispute, { balance_transactions: [{ id: "txn_1", amount: -1_000, fee: 1_500, currency: "usd" }] });
    await send("charge.dispute.funds_withdrawn", dispute);
    await lookLater();
    expect(await feesOf(accountId)).toEqual([-1_559n * CENT, 1_559n * CENT]);

    Object.assign(dispute, {
      status: "won",
      balance_transactions: [
        { id: "txn_1", amount: -1_000, fee: 1_500, currency: "usd" },
        { id: "txn_2", amount: 1_000, fee: -1_500, currency: "usd" },
      ],
    });
    await send("charge.dispute.closed", dispute);
    await lookLater();
    await lookLater();
    expect(await feesOf(accountId)).toEqual([-59n * CENT, 59n * CENT]);
  });
});

describe("a fee in the currency of the processor's account", () => {
  it.each([
    ["the same currency", { feeCents: 59n, grossCents: 1_000n, currency: "usd" }, 59n * CENT],
    ["another one, at the rate of its payment", { feeCents: 50n, grossCents: 800n, currency: "eur" }, (50n * CENT * 1_000n) / 800n],
    ["a rate that does not divide, rounded up", { feeCents: 1n, grossCents: 300n, currency: "eur" }, 33_333_334n],
    ["a fee that came back", { feeCents: -1n, grossCents: 300n, currency: "eur" }, -33_333_334n],
    ["a movement of money that went", { feeCents: 1_500n, grossCents: -1_000n, currency: "eur" }, 15n * NANO],
    ["a movement of nothing", { feeCents: 5n, grossCents: 0n, currency: "eur" }, 5n * CENT],
  ])("%s", (_name, fee, nanocredits) => {
    expect(nanocreditsOf(fee, 1_000n, "usd")).toBe(nanocredits);
  });
});
