/**
 * Stripe at a server that speaks its wire format: the checkout, and each event doubled, reordered, late by a day, and about the payment of
 * another account. The books are balanced after each.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { codes, execute, ok } from "../graphql/client.js";
import { CreateCheckoutDocument, RefundTopUpDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { createMovableClock, type MovableClock } from "../support/clock.js";
import { type FakeStripe, startFakeStripe } from "../support/fake-stripe.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { OLD_WEBHOOK_SECRET, stripeConfig } from "../support/stripe-config.js";
import { createStranger } from "./seed.js";

const NANO = 10n ** 9n;

let stripe: FakeStripe;
let app: TestApp;
let clock: MovableClock;
beforeAll(async () => {
  stripe = await startFakeStripe();
  clock = createMovableClock();
  app = await createTestApp({ config: stripeConfig(stripe, { STRIPE_INVOICES: "on" }), clock });
});
beforeEach(() => {
  stripe.requests.length = 0;
});
afterEach(async () => {
  expect(await findBrokenInvariants(app.database.pool, { isIdle: true })).toEqual({});
});
afterAll(async () => {
  await app.close();
  await stripe.close();
});

async function createBuyer() {
  const { key, keyId } = await createStranger(app);
  const { accountId } = await app.database.prisma.apiKey.findUniqueOrThrow({ where: { id: keyId } });
  return { ...app, key, accountId };
}
type Buyer = Awaited<ReturnType<typeof createBuyer>>;

async function openCheckout(buyer: Buyer, credits = "10") {
  const opened = ok(await execute(buyer, CreateCheckoutDocument, { input: { credits } })).createCheckout;
  if (!opened) throw new Error("no checkout");
  const { reference } = await app.database.prisma.topUp.findUniqueOrThrow({ where: { id: opened.topUp.restId } });
  return { id: opened.topUp.restId, globalId: opened.topUp.id, session: reference ?? "", url: opened.url };
}

async function post(body: string, signature: string | null = stripe.sign(body, clock.now())) {
  const answer = await fetch(`${app.baseUrl}/webhooks/stripe`, {
    method: "POST",
    headers: { "content-type": "application/json; charset=utf-8", ...(signature !== null && { "stripe-signature": signature }) },
    body,
  });
  return { status: answer.status, body: (await answer.json()) as { result?: string; error?: { code: string } } };
}

const packOf = async (accountId: string) =>
  (await app.database.prisma.account.findUniqueOrThrow({ where: { id: accountId } })).packNanocredits;
const send = async (type: string, object: unknown) => (await post(stripe.event(type, object).body)).body.result;

const disputeOf = (
  intent: { id: string; latest_charge?: unknown; amount?: unknown },
  status = "needs_response",
  amount = intent.amount,
) => ({
  ...{ id: `dp_${intent.id}`, object: "dispute", payment_intent: intent.id, charge: intent.latest_charge, amount, currency: "usd", status },
});

describe("a checkout at Stripe", () => {
  it("is opened with the parameters that Stripe needs, for one customer of the account", async () => {
    const buyer = await createBuyer();
    const first = await openCheckout(buyer, "12.5");
    await openCheckout(buyer);

    expect(new URL(first.url).host).toBe("checkout.stripe.example");
    const lines = stripe.requests.map(({ line }) => line);
    expect(lines).toEqual(["POST /v1/customers", "POST /v1/checkout/sessions", "POST /v1/checkout/sessions"]);
    const [customer, session, second] = stripe.requests;
    expect(customer?.fields["metadata.account_id"]).toBe(buyer.accountId);
    expect(session?.idempotencyKey).toBe(`checkout-${first.id}`);
    expect(second?.fields.customer).toBe(session?.fields.customer);
    expect(session?.fields).toMatchObject({
      ...{ mode: "payment", client_reference_id: first.id, "metadata.top_up_id": first.id, "metadata.account_id": buyer.accountId },
      ...{ "line_items.0.price_data.unit_amount": "1250", "line_items.0.price_data.currency": "usd" },
      ...{ "payment_intent_data.metadata.top_up_id": first.id, "invoice_creation.enabled": "true", "adaptive_pricing.enabled": "false" },
    });
    expect(session?.fields.success_url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/dashboard\/credits\?paid=/);
    expect(session?.fields["payment_intent_data.setup_future_usage"]).toBeUndefined();
  });

  it("is opened once when an answer is lost", async () => {
    const buyer = await createBuyer();
    await openCheckout(buyer);
    const before = [...stripe.objects.values()].filter(({ object }) => object === "checkout.session").length;
    stripe.lostAnswers = 1;

    await openCheckout(buyer);

    expect([...stripe.objects.values()].filter(({ object }) => object === "checkout.session").length).toBe(before + 1);
  });

  it("makes a customer again that was deleted at Stripe", async () => {
    const buyer = await createBuyer();
    await openCheckout(buyer);
    const { reference } = await app.database.prisma.paymentCustomer.findFirstOrThrow({ where: { accountId: buyer.accountId } });
    stripe.objects.delete(reference);

    const again = await openCheckout(buyer);

    expect(stripe.objects.get(again.session)?.customer).not.toBe(reference);
  });

  it("says that Stripe is away, or refuses the gateway's key, and charges nothing", async () => {
    const buyer = await createBuyer();
    stripe.isAway = true;
    const away = await execute(buyer, CreateCheckoutDocument, { input: { credits: "5" } });
    stripe.isAway = false;
    const foreign = { ...stripeConfig(stripe, { STRIPE_SECRET_KEY: "sk_test_another" }), databaseUrl: null };
    const other = await createTestApp({ config: foreign });
    const refused = await execute(other, CreateCheckoutDocument, { input: { credits: "5" } });
    await other.close();

    expect(codes(away)).toEqual(["UPSTREAM_ERROR"]);
    expect(JSON.stringify(away)).toContain("The payment processor cannot be reached");
    expect(codes(refused)).toEqual(["UPSTREAM_ERROR"]);
    expect(JSON.stringify(refused)).not.toContain("sk_test");
    expect(await app.database.prisma.topUp.findMany({ where: { accountId: buyer.accountId } })).toMatchObject([{ status: "cancelled" }]);
  });
});

describe("an answer that is not Stripe's", () => {
  it.each([
    ["a redirect", { status: 302, headers: { location: "http://127.0.0.1:9/" }, body: "" }],
    ["a page", { status: 200, headers: { "content-type": "text/html" }, body: "<h1>Sign in to this network</h1>" }],
    ["a list", { status: 200, body: "[]" }],
    ["an object without values", { status: 200, body: '{"id":null,"url":null}' }],
    ["an address that is a script", { status: 200, body: '{"id":"cs_1","url":"javascript:alert(1)"}' }],
    ["more than is read", { status: 200, body: `{"id":"cs_1","url":"https://example.com","x":"${"y".repeat(9_000_000)}"}` }],
    ["an error of another form", { status: 400, body: '{"error":"no"}' }],
  ])(
    "is %s: the checkout is cancelled",
    async (_name, garbage) => {
      const buyer = await createBuyer();
      stripe.garbage = garbage;
      const refused = await execute(buyer, CreateCheckoutDocument, { input: { credits: "5" } });
      stripe.garbage = null;

      expect(codes(refused)).toEqual(["UPSTREAM_ERROR"]);
      expect(await app.database.prisma.topUp.findMany({ where: { accountId: buyer.accountId } })).toMatchObject([{ status: "cancelled" }]);
      await app.database.prisma.paymentCustomer.deleteMany({ where: { accountId: buyer.accountId } });
      await openCheckout(buyer);
    },
    30_000,
  );
});

describe("the signature of an event", () => {
  const good = () => stripe.event("charge.updated", { id: "ch_1" }).body;

  it.each([
    ["of the secret", (body: string) => stripe.sign(body, clock.now()), 200],
    ["of the secret before a rotation", (body: string) => stripe.sign(body, clock.now(), OLD_WEBHOOK_SECRET), 200],
    ["of another secret", (body: string) => stripe.sign(body, clock.now(), "whsec_another"), 400],
    ["of another body", () => stripe.sign("{}", clock.now()), 400],
    ["that is 6 minutes old", (body: string) => stripe.sign(body, new Date(clock.now().getTime() - 360_000)), 400],
    ["that is none", () => "t=1,v1=zz", 400],
    ["that is missing", () => null, 400],
  ])("%s", async (_name, sign, status) => {
    const body = good();
    const answer = await post(body, sign(body));

    expect(answer.status).toBe(status);
    if (status === 400) expect(answer.body.error?.code).toBe("BAD_REQUEST");
  });

  it("is read of a large event too", async () => {
    const { body } = stripe.event("invoice.paid", { id: "in_1", lines: "x".repeat(500_000) });

    expect(await post(body)).toMatchObject({ status: 200, body: { result: "ignored" } });
  });

  it("is no reason to read a body without bounds", async () => {
    const body = JSON.stringify({ text: "x".repeat(600_000) });

    expect((await post(body)).status).toBe(413);
  });

  it("is no reason to take a body that is no event", async () => {
    for (const body of [
      "[]",
      "{}",
      '{"id":1}',
      "null",
      '{"id":"evt_1","type":"charge.refunded","data":{"object":{"amount":"x","payment_intent":"pi_1"}}}',
    ]) {
      expect((await post(body)).status).toBe(400);
    }
  });
});

/** Events of one purchase of 10 credits. */
type Story = (paid: {
  session: Record<string, unknown>;
  intent: Record<string, unknown> & { id: string };
}) => [type: string, object: unknown][];
/** The event of a refund up to `cents` in all. */
const refunded = (intent: Record<string, unknown> & { id: string }, cents: number): [string, unknown] => {
  const charge = stripe.objects.get(String(intent.latest_charge));
  stripe.refund(intent.id, cents - Number(charge?.amount_refunded));
  return ["charge.refunded", { ...charge }];
};
/** The event of the last refund, in a state. */
const refundIn = (intent: { id: string }, status: string, type = "refund.updated"): [string, unknown] => {
  const last = [...stripe.objects.values()].findLast((each) => each.object === "refund" && each.payment_intent === intent.id);
  if (last) Object.assign(last, { status });
  return [type, { ...last }];
};
const STORIES: readonly [name: string, story: Story, left: bigint][] = [
  ["checkout.session.completed", ({ session }) => [["checkout.session.completed", session]], 10n * NANO],
  [
    "a transfer that takes days",
    ({ session }) => [
      ["checkout.session.completed", { ...session, payment_status: "unpaid" }],
      ["checkout.session.async_payment_succeeded", session],
    ],
    10n * NANO,
  ],
  [
    "a transfer that fails",
    ({ session }) => [
      ["checkout.session.completed", { ...session, payment_status: "unpaid" }],
      ["checkout.session.async_payment_failed", { ...session, payment_status: "unpaid" }],
    ],
    0n,
  ],
  ["checkout.session.expired", ({ session }) => [["checkout.session.expired", { ...session, payment_status: "unpaid" }]], 0n],
  [
    "an expiry that is reported with the payment",
    ({ session }) => [
      ["checkout.session.expired", { ...session, payment_status: "unpaid" }],
      ["checkout.session.completed", session],
    ],
    10n * NANO,
  ],
  [
    "charge.refunded in parts",
    ({ session, intent }) => [["checkout.session.completed", session], refunded(intent, 250), refunded(intent, 400)],
    6n * NANO,
  ],
  ["a refund of all", ({ session, intent }) => [["checkout.session.completed", session], refunded(intent, 1_000)], 0n],
  [
    "a refund that fails",
    ({ session, intent }) => [
      ["checkout.session.completed", session],
      refunded(intent, 400),
      refundIn(intent, "succeeded"),
      refundIn(intent, "failed", "refund.failed"),
      refundIn(intent, "failed", "charge.refund.updated"),
    ],
    10n * NANO,
  ],
  [
    "a refund that fails, and another one that does not",
    ({ session, intent }) => [
      ["checkout.session.completed", session],
      refunded(intent, 400),
      refundIn(intent, "failed", "refund.failed"),
      refunded(intent, 700),
    ],
    7n * NANO,
  ],
  [
    "a refund that is cancelled while it waits for the payer",
    ({ session, intent }) => [
      ["checkout.session.completed", session],
      refunded(intent, 1_000),
      refundIn(intent, "requires_action", "refund.created"),
      refundIn(intent, "canceled"),
    ],
    10n * NANO,
  ],
  [
    "a refund of all after a dispute that is won",
    ({ session, intent }) => [
      ["checkout.session.completed", session],
      ["charge.dispute.created", disputeOf(intent)],
      ["charge.dispute.closed", disputeOf(intent, "won")],
      refunded(intent, 1_000),
    ],
    0n,
  ],
  [
    "a refund of a part before a dispute of all, which is won",
    ({ session, intent }) => [
      ["checkout.session.completed", session],
      refunded(intent, 300),
      ["charge.dispute.created", disputeOf(intent)],
      ["charge.dispute.funds_reinstated", disputeOf(intent, "won")],
    ],
    7n * NANO,
  ],
  [
    "a dispute that was prevented",
    ({ session, intent }) => [
      ["checkout.session.completed", session],
      ["charge.dispute.created", disputeOf(intent, "prevented")],
      ["charge.dispute.closed", disputeOf(intent, "prevented")],
    ],
    10n * NANO,
  ],
  [
    "a dispute that is lost",
    ({ session, intent }) => [
      ["checkout.session.completed", session],
      ["charge.dispute.created", disputeOf(intent)],
      ["charge.dispute.funds_withdrawn", disputeOf(intent)],
      ["charge.dispute.closed", disputeOf(intent, "lost")],
    ],
    0n,
  ],
  [
    "a dispute that is won",
    ({ session, intent }) => [
      ["checkout.session.completed", session],
      ["charge.dispute.created", disputeOf(intent)],
      ["charge.dispute.funds_reinstated", disputeOf(intent, "won")],
      ["charge.dispute.closed", disputeOf(intent, "won")],
    ],
    10n * NANO,
  ],
  [
    "a dispute of a part, after a refund",
    ({ session, intent }) => [
      ["checkout.session.completed", session],
      refunded(intent, 300),
      ["charge.dispute.created", disputeOf(intent, "needs_response", 200)],
    ],
    5n * NANO,
  ],
  [
    "an inquiry, in which no money moves",
    ({ session, intent }) => [
      ["checkout.session.completed", session],
      ["charge.dispute.created", disputeOf(intent, "warning_needs_response")],
      ["charge.dispute.closed", disputeOf(intent, "warning_closed")],
    ],
    10n * NANO,
  ],
  ["payment_intent.succeeded of a checkout", ({ intent }) => [["payment_intent.succeeded", intent]], 0n],
];

/** A checkout that was paid at Stripe, of which no event has arrived. */
async function paidAtStripe(buyer: Buyer) {
  const { session: sessionId, id, globalId } = await openCheckout(buyer);
  const intent = stripe.pay(sessionId);
  return { id, globalId, session: stripe.objects.get(sessionId) as Record<string, unknown>, intent };
}

describe.each(STORIES)("%s", (_name, story, left) => {
  const arrivals: [name: string, arrive: (events: string[]) => string[] | Promise<string[]>][] = [
    ["in order", (events) => events],
    ["each doubled", (events) => events.flatMap((event) => [event, event])],
    ["all of them again", (events) => [...events, ...events]],
    ["in the opposite order", (events) => [...events].reverse()],
  ];

  it.each(arrivals)("%s", async (_arrival, arrive) => {
    const buyer = await createBuyer();
    const paid = await paidAtStripe(buyer);
    const bodies = story(paid).map(([type, object]) => stripe.event(type, object).body);

    for (const body of await arrive(bodies)) expect((await post(body)).status).toBe(200);

    expect(await packOf(buyer.accountId)).toBe(left);
  });

  it("a day late, and all at once", async () => {
    const buyer = await createBuyer();
    const paid = await paidAtStripe(buyer);
    const bodies = story(paid).map(([type, object]) => stripe.event(type, object).body);
    clock.advance(86_400);

    const answers = await Promise.all([...bodies, ...bodies].map((body) => post(body)));

    expect(answers.map(({ status }) => status).filter((status) => status !== 200)).toEqual([]);
    expect(await packOf(buyer.accountId)).toBe(left);
  });
});

describe("an event that contradicts its top-up", () => {
  it.each<[string, (session: Record<string, unknown>, other: Buyer) => Record<string, unknown>]>([
    ["of another amount", (session) => ({ ...session, amount_subtotal: 900, amount_total: 900 })],
    ["of an amount with a discount", (session) => ({ ...session, amount_total: 1 })],
    ["of another currency", (session) => ({ ...session, currency: "eur" })],
    [
      "of another account",
      (session, other) => ({ ...session, metadata: { ...(session.metadata as object), account_id: other.accountId } }),
    ],
    ["of another checkout", (session) => ({ ...session, id: "cs_test_another" })],
    [
      "of an unknown top-up",
      (session) => ({ ...session, client_reference_id: null, metadata: { top_up_id: "00000000-0000-4000-8000-000000000000" } }),
    ],
    ["of no top-up at all", (session) => ({ ...session, client_reference_id: "'; DROP TABLE top_up", metadata: {} })],
  ])("%s is refused and logged, and credits nothing", async (_name, change) => {
    const [buyer, other] = [await createBuyer(), await createBuyer()];
    const { session } = await paidAtStripe(buyer);

    expect(await send("checkout.session.completed", change(session, other))).toBe("refused");

    expect([await packOf(buyer.accountId), await packOf(other.accountId)]).toEqual([0n, 0n]);
    expect(app.logs.at(-1) ?? {}).toBeDefined();
    expect(app.logs.some(({ event, result }) => event === "payment-reported" && result === "refused")).toBe(true);
  });

  it("of a payment that paid another top-up is refused", async () => {
    const buyer = await createBuyer();
    const [first, second] = [await paidAtStripe(buyer), await paidAtStripe(buyer)];
    expect(await send("checkout.session.completed", first.session)).toBe("booked");

    expect(await send("checkout.session.completed", { ...second.session, payment_intent: first.intent.id })).toBe("refused");
    expect(await packOf(buyer.accountId)).toBe(10n * NANO);
  });

  it("of payments that are not of this gateway is ignored", async () => {
    expect(await send("charge.refunded", { payment_intent: "pi_unknown", amount: 5, amount_refunded: 5, currency: "usd" })).toBe("ignored");
    expect(await send("refund.failed", { id: "re_1", payment_intent: "pi_unknown", amount: 5, currency: "usd" })).toBe("ignored");
    expect(await send("charge.refunded", { payment_intent: null, amount: 5, amount_refunded: 5, currency: "usd" })).toBe("ignored");
    expect(await send("invoice.paid", { id: "in_1" })).toBe("ignored");
  });
});

describe("with taxes on the price", () => {
  it("the credits are those of the price, and a refund of half takes half", async () => {
    const buyer = await createBuyer();
    const { session: sessionId } = await openCheckout(buyer);
    const intent = stripe.pay(sessionId, { amount_total: 1_190 });
    expect(await send("checkout.session.completed", stripe.objects.get(sessionId))).toBe("booked");
    expect(await packOf(buyer.accountId)).toBe(10n * NANO);

    const [type, object] = refunded(intent, 595);
    expect(await send(type, object)).toBe("booked");
    expect(await packOf(buyer.accountId)).toBe(5n * NANO);
  });
});

describe("a refund by an operator", () => {
  it("goes through Stripe once, however often it is asked for and reported", async () => {
    const buyer = await createBuyer();
    const { session, intent, globalId } = await paidAtStripe(buyer);
    expect(await send("checkout.session.completed", session)).toBe("booked");
    stripe.requests.length = 0;
    stripe.lostAnswers = 1;

    const refund = () => execute(app, RefundTopUpDocument, { input: { topUpId: globalId } });
    const both = await Promise.all([refund(), refund()]);
    expect(both.some((each) => codes(each).length === 0)).toBe(true);
    expect(codes(await refund())).toEqual(["CONFLICT"]);
    expect(await send("charge.refunded", stripe.objects.get(String(intent.latest_charge)))).toBe("unchanged");

    expect(await packOf(buyer.accountId)).toBe(0n);
    const keys = new Set(stripe.requests.filter(({ line }) => line === "POST /v1/refunds").map(({ idempotencyKey }) => idempotencyKey));
    expect(keys.size).toBe(1);
    expect([...stripe.objects.values()].filter(({ object, payment_intent: of }) => object === "refund" && of === intent.id)).toHaveLength(
      1,
    );
  });

  it("changes nothing while Stripe is away", async () => {
    const buyer = await createBuyer();
    const { session, globalId } = await paidAtStripe(buyer);
    await send("checkout.session.completed", session);
    stripe.isAway = true;
    const refused = await execute(app, RefundTopUpDocument, { input: { topUpId: globalId } });
    stripe.isAway = false;

    expect(codes(refused)).toEqual(["UPSTREAM_ERROR"]);
    expect(await packOf(buyer.accountId)).toBe(10n * NANO);
  });
});

/** Every order of a list. */
function* ordersOf<Item>(items: readonly Item[]): Generator<readonly Item[]> {
  if (items.length < 2) yield items;
  for (const [index, item] of items.entries()) {
    for (const rest of ordersOf(items.filter((_, at) => at !== index))) yield [item, ...rest];
  }
}

async function spend(accountId: string, credits: bigint) {
  const spent = { id: crypto.randomUUID(), accountId, bucket: "pack", amount: credits * NANO, note: null } as const;
  await app.database.prisma.$transaction((within) => app.infrastructure.ledger.withdraw(spent, within));
}

/** What the entries of a top-up and its refunds and disputes have moved, by book. */
async function booksOf(accountId: string) {
  const rows = await app.database.prisma.ledgerEntry.groupBy({
    by: ["book"],
    where: { accountId, kind: { in: ["purchase", "refund"] } },
    _sum: { amountNanocredits: true },
  });
  const sumOf = (book: string) => (rows.find((row) => row.book === book)?._sum.amountNanocredits ?? 0n) / NANO;
  return { pack: sumOf("pack"), cash: sumOf("cash"), writeOff: sumOf("write_off") };
}

describe("credits that are spent", () => {
  it("are written off by a dispute, and the write-off is reversed when it is won", async () => {
    const buyer = await createBuyer();
    const { session, intent, id } = await paidAtStripe(buyer);
    await send("checkout.session.completed", session);
    await spend(buyer.accountId, 7n);
    const { id: endpointId } = await app.database.prisma.webhookEndpoint.create({
      data: {
        ...{ id: crypto.randomUUID(), accountId: buyer.accountId, url: "https://127.0.0.1", secret: new Uint8Array(1) },
        ...{ events: ["top_up.disputed"], listensSince: clock.now() },
      },
    });

    expect(await send("charge.dispute.funds_withdrawn", disputeOf(intent))).toBe("booked");
    expect(await packOf(buyer.accountId)).toBe(0n);
    expect(await booksOf(buyer.accountId)).toEqual({ pack: 7n, cash: 0n, writeOff: -7n });
    const [row] = await app.database.prisma.topUpReversal.findMany({ where: { topUpId: id } });
    expect(row).toMatchObject({ kind: "dispute", nanocredits: 10n * NANO, movedNanocredits: 3n * NANO, soldNanocredits: 3n * NANO });
    expect(await send("charge.dispute.closed", disputeOf(intent, "won"))).toBe("booked");

    const messages = await app.database.prisma.webhookDelivery.findMany({ where: { endpointId } });
    const sent = messages.map(({ event, payload }) => [event, (payload as { data: { change: string } }).data] as const);
    expect(sent.sort(([, one], [, other]) => one.change.localeCompare(other.change))).toMatchObject([
      ["top_up.disputed", { change: "dispute", change_credits: 10, moved_credits: 3, lost_credits: 10 }],
      ["top_up.disputed", { change: "dispute_won", change_credits: 10, moved_credits: 3, lost_credits: 0 }],
    ]);
    expect(await packOf(buyer.accountId)).toBe(3n * NANO);
    expect(await booksOf(buyer.accountId)).toEqual({ pack: 10n, cash: -10n, writeOff: 0n });
  });

  it("come out the same in every order of a refund, a refund that fails, and a dispute that is won", async () => {
    // The payment is 10, 7 are spent, and 2 are paid back in the end.
    for (const order of ordersOf([0, 1, 2, 3])) {
      const buyer = await createBuyer();
      const { session, intent } = await paidAtStripe(buyer);
      await send("checkout.session.completed", session);
      await spend(buyer.accountId, 7n);
      const failing = stripe.refund(intent.id, 500, "pending");
      const lasting = stripe.refund(intent.id, 200);
      const events: readonly [string, unknown][] = [
        ["refund.failed", { ...failing, status: "failed" }],
        ["refund.updated", { ...lasting }],
        ["charge.dispute.funds_withdrawn", disputeOf(intent, "needs_response", 800)],
        ["charge.dispute.funds_reinstated", disputeOf(intent, "won", 800)],
      ];
      for (const index of order) await send(...(events[index] as [string, unknown]));

      expect([order, await packOf(buyer.accountId), await booksOf(buyer.accountId)]).toEqual([
        order,
        1n * NANO,
        { pack: 8n, cash: -8n, writeOff: 0n },
      ]);
    }
  }, 120_000);

  it("stay granted when they were, though a dispute took them and is won", async () => {
    const buyer = await createBuyer();
    const { session, intent } = await paidAtStripe(buyer);
    await send("checkout.session.completed", session);
    await spend(buyer.accountId, 10n);
    await app.infrastructure.ledger.grant({
      ...{ id: crypto.randomUUID(), accountId: buyer.accountId, bucket: "pack", amount: 3n * NANO, note: null },
    });

    await send("charge.dispute.funds_withdrawn", disputeOf(intent));
    await send("charge.dispute.closed", disputeOf(intent, "won"));

    const account = await app.database.prisma.account.findUniqueOrThrow({ where: { id: buyer.accountId } });
    expect([account.packNanocredits, account.packSoldNanocredits]).toEqual([3n * NANO, 0n]);
  });
});

describe("a dispute", () => {
  it("suspends the account where the operator wants it", async () => {
    const strict = await createTestApp({ config: stripeConfig(stripe, { PAYMENT_DISPUTES_SUSPEND: "on" }), clock });
    const { key, keyId } = await createStranger(strict);
    const { accountId } = await strict.database.prisma.apiKey.findUniqueOrThrow({ where: { id: keyId } });
    const opened = ok(await execute({ ...strict, key }, CreateCheckoutDocument, { input: { credits: "10" } })).createCheckout;
    const { reference } = await strict.database.prisma.topUp.findUniqueOrThrow({ where: { id: opened?.topUp.restId ?? "" } });
    const intent = stripe.pay(reference ?? "");
    const { body } = stripe.event("charge.dispute.created", disputeOf(intent));
    const { paymentReports } = strict.services;

    expect(await paymentReports.takeStripeEvent(body, stripe.sign(body, clock.now()))).toBe("booked");
    const account = await strict.database.prisma.account.findUniqueOrThrow({ where: { id: accountId } });
    await strict.close();

    expect(account.suspendedAt).not.toBeNull();
    expect(account.suspensionReason).toContain("disputed");
  });
});

describe("a payment", () => {
  it("is paid back though the answer of its checkout was lost with the process", async () => {
    const buyer = await createBuyer();
    const { session, id, globalId } = await paidAtStripe(buyer);
    await app.database.prisma.topUp.update({ where: { id }, data: { reference: null } });

    expect(await send("checkout.session.completed", session)).toBe("booked");
    expect(codes(await execute(app, RefundTopUpDocument, { input: { topUpId: globalId } }))).toEqual([]);
    expect(await packOf(buyer.accountId)).toBe(0n);
  });

  it("for a top-up that another payment paid is refused and logged", async () => {
    const buyer = await createBuyer();
    const { session } = await paidAtStripe(buyer);
    await send("checkout.session.completed", session);

    expect(await send("checkout.session.async_payment_succeeded", { ...session, payment_intent: "pi_twice" })).toBe("refused");
    expect(await packOf(buyer.accountId)).toBe(10n * NANO);
  });

  it("of a deleted account is booked, and its credits are forfeited", async () => {
    const buyer = await createBuyer();
    const { session, intent } = await paidAtStripe(buyer);
    const now = clock.now();
    await app.database.prisma.accountDeletion.create({ data: { accountId: buyer.accountId, deletedAt: now, finishedAt: now } });

    expect(await send("checkout.session.completed", session)).toBe("booked");
    expect(await packOf(buyer.accountId)).toBe(0n);
    expect(await send("charge.dispute.created", disputeOf(intent))).toBe("booked");
    expect(await send("charge.dispute.closed", disputeOf(intent, "won"))).toBe("booked");
    expect(await packOf(buyer.accountId)).toBe(0n);
    await app.database.prisma.accountDeletion.delete({ where: { accountId: buyer.accountId } });
  });
});

it("events of a gateway without Stripe have no address", async () => {
  const plain = await createTestApp();
  const answer = await fetch(`${plain.baseUrl}/webhooks/stripe`, { method: "POST", body: "{}" });
  await plain.close();

  expect(answer.status).toBe(404);
});
