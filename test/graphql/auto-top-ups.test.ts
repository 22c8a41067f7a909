/** Automatic top-ups at a server that speaks Stripe's wire format, on two processes: once under load, retried, given up, within the month. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  CreateBillingPortalDocument,
  CreateCheckoutDocument,
  MyBillingDocument,
  UpdateAutoTopUpDocument,
} from "../operations/generated/graphql.js";
import { createStranger } from "../rest/seed.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { createMovableClock, type MovableClock } from "../support/clock.js";
import { type FakeStripe, startFakeStripe } from "../support/fake-stripe.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { chatCompletion, wireUsage } from "../support/openai-bodies.js";
import { isPostgresInstalled } from "../support/postgres.js";
import { stripeConfig } from "../support/stripe-config.js";
import { createPostgresDatabase } from "../support/suite-server.js";
import { json } from "../support/upstream-replies.js";
import { codes, execute, ok } from "./client.js";

const NANO = 10n ** 9n;

describe.skipIf(!isPostgresInstalled)("automatic top-ups", () => {
  let stripe: FakeStripe;
  let clock: MovableClock;
  let apps: [TestApp, TestApp];
  let drop: () => Promise<void>;
  const first = () => apps[0];

  beforeAll(async () => {
    // The middle of a month, so that no test runs over its end.
    clock = createMovableClock(new Date("2026-11-14T10:00:00Z"));
    stripe = await startFakeStripe();
    const shared = await createPostgresDatabase();
    drop = shared.drop;
    const config = { ...stripeConfig(stripe), databaseUrl: shared.url, encryptionKey: "the same for both processes of this test" };
    const one = await createTestApp({ config, clock });
    apps = [one, await createTestApp({ config, clock, upstream: one.upstream })];
  });
  beforeEach(() => {
    stripe.requests.length = 0;
    stripe.decline = null;
    stripe.isAway = false;
    stripe.isPending = false;
  });
  afterAll(async () => {
    const broken = await findBrokenInvariants(first().database.pool, { isIdle: true });
    for (const app of [...apps].reverse()) await app.close();
    await stripe.close();
    await drop();
    expect(broken).toEqual({});
  });

  /** Has bought `credits` with a payment method that is kept, if any. */
  async function createBuyer({ credits = "10", hasMethod = true } = {}) {
    const { key, keyId } = await createStranger(first());
    const { accountId } = await first().database.prisma.apiKey.findUniqueOrThrow({ where: { id: keyId } });
    const buyer = { ...first(), key, accountId };
    const opened = ok(await execute(buyer, CreateCheckoutDocument, { input: { credits } })).createCheckout;
    const { reference } = await first().database.prisma.topUp.findUniqueOrThrow({ where: { id: opened?.topUp.restId ?? "" } });
    stripe.pay(reference ?? "", { keepsMethod: hasMethod });
    const { body } = stripe.event("checkout.session.completed", stripe.objects.get(reference ?? ""));
    expect(await first().services.paymentReports.takeStripeEvent(body, stripe.sign(body, clock.now()))).toBe("booked");
    return buyer;
  }
  type Buyer = Awaited<ReturnType<typeof createBuyer>>;

  async function update(
    buyer: { key: string; baseUrl: string },
    changes: Partial<Record<"threshold" | "amount" | "monthlyCap", string>> = {},
  ) {
    const input = { isEnabled: true, threshold: "5", amount: "20", monthlyCap: "100", ...changes };
    return execute({ ...first(), ...buyer }, UpdateAutoTopUpDocument, { input });
  }
  const lookEverywhere = () => Promise.all(apps.map((app) => app.services.autoTopUps.look()));
  const stateOf = async (buyer: Buyer) => ok(await execute(buyer, MyBillingDocument, {})).me?.autoTopUp;
  const automatic = (buyer: Buyer) =>
    first().database.prisma.topUp.findMany({ where: { accountId: buyer.accountId, isAutomatic: true }, orderBy: { createdAt: "asc" } });
  const packOf = async ({ accountId }: Buyer) =>
    (await first().database.prisma.account.findUniqueOrThrow({ where: { id: accountId } })).packNanocredits;
  const charges = () => stripe.requests.filter(({ line }) => line === "POST /v1/payment_intents");

  it("fires once under load on two processes", async () => {
    const buyer = await createBuyer();
    ok(await update(buyer));
    const { upstream } = first();
    for (let i = 0; i < 8; i += 1) upstream.replyNext(json(chatCompletion({ usage: wireUsage(1, 1) })));
    const chat = (app: TestApp) =>
      fetch(`${app.baseUrl}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${buyer.key}`, "content-type": "application/json" },
        body: JSON.stringify({ model: "acme/dear", max_tokens: 1, messages: [{ role: "user", content: "Hi" }] }),
      }).then(async (answer) => [answer.status, await answer.text()] as const);

    // Each costs one credit: from 10 to below 5.
    const answers = await Promise.all(Array.from({ length: 8 }, (_, i) => chat(apps[i % 2] as TestApp)));
    expect(answers.map(([status]) => status)).toEqual(Array.from({ length: 8 }, () => 200));
    await expect.poll(async () => (await automatic(buyer)).map(({ status }) => status), { timeout: 20_000 }).toEqual(["paid"]);
    await lookEverywhere();
    await lookEverywhere();

    expect(await automatic(buyer)).toHaveLength(1);
    expect(charges()).toHaveLength(1);
    await expect.poll(() => first().database.prisma.usageRecord.count({ where: { accountId: buyer.accountId } })).toBe(8);
    await Promise.all(apps.map((app) => app.infrastructure.leases.recall(buyer.accountId)));
    expect(await packOf(buyer)).toBe(22n * NANO);
    expect(await stateOf(buyer)).toMatchObject({ isPending: false, failures: 0, problem: null });
  });

  it("charges once when the answer is lost, and the process with it", async () => {
    const buyer = await createBuyer({ credits: "4" });
    stripe.lostAnswers = 3;
    ok(await update(buyer));
    await lookEverywhere();
    expect((await stateOf(buyer))?.isPending).toBe(true);

    stripe.lostAnswers = 0;
    clock.advance(61);
    await Promise.all([lookEverywhere(), lookEverywhere()]);

    expect((await automatic(buyer)).map(({ status }) => status)).toEqual(["paid"]);
    const intents = [...stripe.objects.values()].filter(
      ({ object, metadata }) => object === "payment_intent" && (metadata as { account_id?: string }).account_id === buyer.accountId,
    );
    // That of the checkout, and one more.
    expect(intents).toHaveLength(2);
    expect(await packOf(buyer)).toBe(24n * NANO);

    // The report of the same payment changes nothing.
    const { body } = stripe.event("payment_intent.succeeded", intents.at(-1));
    expect(await first().services.paymentReports.takeStripeEvent(body, stripe.sign(body, clock.now()))).toBe("unchanged");
    expect(await packOf(buyer)).toBe(24n * NANO);
  });

  it("tries a declined payment again, and gives it up after the fourth", async () => {
    const buyer = await createBuyer({ credits: "4" });
    stripe.decline = { code: "card_declined", message: "Your card was declined." };
    ok(await update(buyer));
    await lookEverywhere();
    expect(await stateOf(buyer)).toMatchObject({ failures: 1, problem: "Your card was declined.", gaveUpAt: null });
    await lookEverywhere();
    expect(charges()).toHaveLength(1);
    for (const hours of [1, 6, 24]) {
      clock.advance(hours * 3_600);
      await lookEverywhere();
    }

    expect(await stateOf(buyer)).toMatchObject({ failures: 4, gaveUpAt: clock.now().toISOString() });
    expect((await automatic(buyer)).map(({ failure }) => failure)).toEqual(Array.from({ length: 4 }, () => "Your card was declined."));
    clock.advance(86_400);
    await lookEverywhere();
    expect(charges()).toHaveLength(4);

    stripe.decline = null;
    ok(await update(buyer));
    await lookEverywhere();
    expect(await stateOf(buyer)).toMatchObject({ failures: 0, problem: null, gaveUpAt: null });
    expect(await packOf(buyer)).toBe(24n * NANO);
  });

  it("stays within the month, and continues with the next", async () => {
    const buyer = await createBuyer({ credits: "4" });
    ok(await update(buyer, { threshold: "1000", amount: "30", monthlyCap: "70" }));
    for (let i = 0; i < 4; i += 1) await lookEverywhere();

    expect(await automatic(buyer)).toHaveLength(2);
    const state = await stateOf(buyer);
    expect(state?.problem).toContain("monthly limit");
    expect(state?.nextAttemptAt).toBe("2026-12-01T00:00:00.000Z");
    // Its next checkout keeps the payment method.
    ok(await execute(buyer, CreateCheckoutDocument, { input: { credits: "4" } }));
    expect(stripe.requests.at(-1)?.fields["payment_intent_data.setup_future_usage"]).toBe("off_session");

    ok(await update(buyer, { threshold: "1000", amount: "30", monthlyCap: "90" }));
    for (let i = 0; i < 2; i += 1) await lookEverywhere();
    expect(await automatic(buyer)).toHaveLength(3);
    ok(
      await execute({ ...first(), ...buyer }, UpdateAutoTopUpDocument, {
        input: { isEnabled: false, threshold: "1", amount: "1", monthlyCap: "1" },
      }),
    );
  });

  it("charges nothing more once it is switched off, and books an answer that was lost", async () => {
    const off = (buyer: Buyer) =>
      execute({ ...first(), ...buyer }, UpdateAutoTopUpDocument, {
        input: { isEnabled: false, threshold: "5", amount: "20", monthlyCap: "100" },
      });
    const [away, lost] = [await createBuyer({ credits: "4" }), await createBuyer({ credits: "4" })];
    stripe.isAway = true;
    ok(await update(away));
    await lookEverywhere();
    stripe.isAway = false;
    stripe.lostAnswers = 3;
    ok(await update(lost));
    await lookEverywhere();
    stripe.lostAnswers = 0;
    for (const buyer of [away, lost]) ok(await off(buyer));
    stripe.requests.length = 0;

    clock.advance(61);
    await lookEverywhere();

    expect(charges()).toHaveLength(0);
    expect((await automatic(away)).map(({ status }) => status)).toEqual(["cancelled"]);
    expect(await stateOf(away)).toMatchObject({ isPending: false, failures: 0 });
    expect((await automatic(lost)).map(({ status }) => status)).toEqual(["paid"]);
    expect([await packOf(away), await packOf(lost)]).toEqual([4n * NANO, 24n * NANO]);
  });

  it("tries a payment again that a bank refused later, though its report is lost", async () => {
    const buyer = await createBuyer({ credits: "4" });
    stripe.isPending = true;
    ok(await update(buyer));
    await lookEverywhere();
    stripe.isPending = false;
    const [topUp] = await automatic(buyer);
    expect(topUp).toMatchObject({ status: "open", paymentReference: expect.stringMatching(/^pi_/) });
    Object.assign(stripe.objects.get(topUp?.paymentReference ?? "") ?? {}, {
      ...{ status: "requires_payment_method", last_payment_error: { message: "The account is closed." } },
    });

    clock.advance(3_601);
    await lookEverywhere();

    expect(await stateOf(buyer)).toMatchObject({ isPending: false, failures: 1, problem: "The account is closed." });
  });

  it("are given up when a payment is disputed, until they are set up again", async () => {
    const buyer = await createBuyer({ credits: "10" });
    ok(await update(buyer, { threshold: "8" }));
    const { paymentReference } = await first().database.prisma.topUp.findFirstOrThrow({ where: { accountId: buyer.accountId } });
    const { body } = stripe.event("charge.dispute.funds_withdrawn", stripe.dispute(paymentReference ?? "", 1_000));
    expect(await first().services.paymentReports.takeStripeEvent(body, stripe.sign(body, clock.now()))).toBe("booked");
    await lookEverywhere();

    expect(await stateOf(buyer)).toMatchObject({ gaveUpAt: clock.now().toISOString(), problem: expect.stringContaining("disputed") });
    expect(charges()).toHaveLength(0);
    ok(await update(buyer, { threshold: "8" }));
    await lookEverywhere();
    expect(charges()).toHaveLength(1);
  });

  it("says that no payment method is saved", async () => {
    const buyer = await createBuyer({ credits: "4", hasMethod: false });
    ok(await update(buyer));
    await lookEverywhere();

    expect((await stateOf(buyer))?.problem).toContain("No payment method is saved");
    expect(charges()).toHaveLength(0);
  });

  it.each([
    [{ amount: "0" }, "amount: must be more than 0"],
    [{ amount: "0.5" }, "amount: must be from 1 to 10000"],
    [{ amount: "10000.01", monthlyCap: "20000" }, "amount: must be from 1 to 10000"],
    [{ amount: "1.001" }, "amount: must have at most 2 decimals"],
    [{ threshold: "0" }, "threshold: must be more than 0"],
    [{ monthlyCap: "19.99" }, "monthlyCap: must be at least the amount of one top-up, 20"],
    [{ monthlyCap: "1000001" }, "monthlyCap: must be at most 1000000"],
  ])("is refused for %j, naming the field", async (changes, message) => {
    const refused = await update(await createBuyer(), changes);

    expect(codes(refused)).toEqual(["BAD_REQUEST"]);
    expect(JSON.stringify(refused)).toContain(message);
  });

  it("has the room of a month up to its last moment, and that of the next from its first, on both processes", async () => {
    const buyer = await createBuyer({ credits: "4" });
    const now = clock.now();
    const next = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1));
    clock.advance((next.getTime() - now.getTime()) / 1_000 - 1);
    ok(await update(buyer, { threshold: "1000", amount: "30", monthlyCap: "60" }));
    for (let i = 0; i < 3; i += 1) await lookEverywhere();
    expect((await stateOf(buyer))?.nextAttemptAt).toBe(next.toISOString());
    clock.advance(0.999);
    await lookEverywhere();
    expect(await automatic(buyer)).toHaveLength(2);

    clock.advance(0.001);
    for (let i = 0; i < 3; i += 1) await lookEverywhere();

    expect(await automatic(buyer)).toHaveLength(4);
    expect(await packOf(buyer)).toBe(124n * NANO);
  });

  it("opens the portal for the account's customer", async () => {
    const buyer = await createBuyer();
    const { url = "" } = ok(await execute(buyer, CreateBillingPortalDocument, {})).createBillingPortal ?? {};
    const { reference } = await first().database.prisma.paymentCustomer.findFirstOrThrow({ where: { accountId: buyer.accountId } });

    expect(url).toBe(`https://billing.stripe.example/p/session/${reference}`);
  });
});
