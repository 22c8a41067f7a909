/**
 * Purchases, refunds that fail, disputes that are won, spending, leases and grants that expire, at random on two processes: the reports of
 * Stripe are shuffled, doubled and sent to both. In the end the books have what Stripe has.
 */
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseNanocredits } from "../../src/lib/money.js";
import { execute, ok } from "../graphql/client.js";
import { CreateCheckoutDocument, TrialBalanceDocument, type TrialBalanceQuery } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { type FakeStripe, startFakeStripe } from "../support/fake-stripe.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { chatCompletion, wireUsage } from "../support/openai-bodies.js";
import { isPostgresInstalled } from "../support/postgres.js";
import { stripeConfig } from "../support/stripe-config.js";
import { createPostgresDatabase } from "../support/suite-server.js";
import { json } from "../support/upstream-replies.js";
import { createStranger } from "./seed.js";

const NANO = 10n ** 9n;
const CENT = 10n ** 7n;
const RUNS = 10;

function signed(text: string): bigint {
  const size = parseNanocredits(text.replace("-", ""));
  if (size === null) throw new Error(`no amount: ${text}`);
  return text.startsWith("-") ? -size : size;
}

interface Step {
  readonly kind: "buy" | "chat" | "refund" | "fail" | "dispute" | "win" | "lose" | "grant" | "deliver";
  /** Chooses among what there is. */
  readonly pick: number;
  readonly cents: number;
}

const KINDS = [
  "buy",
  "chat",
  "chat",
  "refund",
  "refund",
  "fail",
  "dispute",
  "win",
  "lose",
  "grant",
  "deliver",
  "deliver",
  "deliver",
] as const;
const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.record({ kind: fc.constantFrom(...KINDS), pick: fc.nat(1_000), cents: fc.integer({ min: 1, max: 900 }) }),
  { minLength: 15, maxLength: 40 },
);

describe.skipIf(!isPostgresInstalled)("reports at random", () => {
  let stripe: FakeStripe;
  let apps: [TestApp, TestApp];
  let drop: () => Promise<void>;

  beforeAll(async () => {
    stripe = await startFakeStripe();
    const shared = await createPostgresDatabase();
    drop = shared.drop;
    const config = { ...stripeConfig(stripe), databaseUrl: shared.url, encryptionKey: "the same for both processes of this test" };
    const one = await createTestApp({ config });
    apps = [one, await createTestApp({ config, upstream: one.upstream })];
  });
  afterAll(async () => {
    for (const app of [...apps].reverse()) await app.close();
    await stripe.close();
    await drop();
  });

  async function createRun() {
    const [app] = apps;
    const { key, keyId } = await createStranger(app);
    const { accountId } = await app.database.prisma.apiKey.findUniqueOrThrow({ where: { id: keyId } });
    const intents: { id: string; latest_charge?: unknown }[] = [];
    const refunds: { id: string; status?: unknown }[] = [];
    const disputes: { id: string; status?: unknown }[] = [];
    const events: string[] = [];
    const grants: string[] = [];
    const report = (type: string, object: unknown) => events.push(stripe.event(type, structuredClone(object)).body);

    async function deliver(body: string, pick: number): Promise<void> {
      const { paymentReports } = (apps[pick % 2] as TestApp).services;
      await paymentReports.takeStripeEvent(body, stripe.sign(body));
    }

    async function take({ kind, pick, cents }: Step): Promise<void> {
      const intent = intents[pick % Math.max(intents.length, 1)];
      const refund = refunds[pick % Math.max(refunds.length, 1)];
      const dispute = disputes[pick % Math.max(disputes.length, 1)];
      const charge = intent && stripe.objects.get(String(intent.latest_charge));
      switch (kind) {
        case "buy": {
          const opened = ok(await execute({ ...app, key }, CreateCheckoutDocument, { input: { credits: "10" } })).createCheckout;
          const { reference } = await app.database.prisma.topUp.findUniqueOrThrow({ where: { id: opened?.topUp.restId ?? "" } });
          intents.push(stripe.pay(reference ?? ""));
          report("checkout.session.completed", stripe.objects.get(reference ?? ""));
          return;
        }
        case "chat": {
          app.upstream.replyNext(json(chatCompletion({ usage: wireUsage(1, 1) })));
          await fetch(`${(apps[pick % 2] as TestApp).baseUrl}/v1/chat/completions`, {
            method: "POST",
            headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
            body: JSON.stringify({ model: "acme/dear", max_tokens: 1, messages: [{ role: "user", content: "Hi" }] }),
          }).then((answer) => answer.text());
          return;
        }
        case "refund": {
          const left = Number(charge?.amount ?? 0) - Number(charge?.amount_refunded ?? 0);
          if (!intent || left === 0) return;
          refunds.push(stripe.refund(intent.id, Math.min(left, cents), pick % 2 === 0 ? "pending" : "succeeded"));
          report("charge.refunded", charge);
          report("refund.created", refunds.at(-1));
          return;
        }
        case "fail":
          if (!refund || refund.status === "failed") return;
          Object.assign(refund, { status: "failed" });
          report("refund.failed", refund);
          return;
        case "dispute":
          if (!intent) return;
          disputes.push(stripe.dispute(intent.id, cents));
          report("charge.dispute.created", disputes.at(-1));
          report("charge.dispute.funds_withdrawn", disputes.at(-1));
          return;
        case "win":
        case "lose":
          if (dispute?.status !== "needs_response") return;
          Object.assign(dispute, { status: kind === "win" ? "won" : "lost" });
          if (kind === "win") report("charge.dispute.funds_reinstated", dispute);
          report("charge.dispute.closed", dispute);
          return;
        case "grant": {
          const id = crypto.randomUUID();
          const expiry = { expiresAt: new Date(Date.now() - 1_000), priority: 0 };
          await app.infrastructure.ledger.grant({ id, accountId, bucket: "pack", amount: BigInt(cents) * CENT, note: null, expiry });
          grants.push(id);
          return;
        }
        case "deliver":
          // It stays in the list: it comes again.
          if (events.length > 0) await deliver(events[pick % events.length] as string, pick);
      }
    }

    return { accountId, intents, refunds, disputes, events, grants, take, deliver };
  }

  /** The trial balances before and after the time of an entry, which is in the second one, are that of the whole. */
  async function expectPeriodsToJoin(pick: number): Promise<void> {
    const [app] = apps;
    const times = await app.database.prisma.ledgerEntry.findMany({ select: { createdAt: true }, distinct: ["createdAt"] });
    const cut = (times[pick % times.length] as { createdAt: Date }).createdAt.toISOString();
    const read = async (from: string | null, to: string) =>
      ok(await execute(app, TrialBalanceDocument, { from, to })).trialBalance as NonNullable<TrialBalanceQuery["trialBalance"]>;
    const end = new Date(Date.now() + 60_000).toISOString();
    const [whole, before, after] = await Promise.all([read(null, end), read(null, cut), read(cut, end)]);

    for (const balance of [whole, before, after]) expect(balance.debit).toBe(balance.credit);
    const closing = (books: typeof whole.books) => new Map(books.map((row) => [row.book, row.closing]));
    const opening = new Map(after.books.map((row) => [row.book, row.opening]));
    for (const [book, amount] of closing(before.books)) expect([book, opening.get(book) ?? "0"]).toEqual([book, amount]);
    expect(closing(after.books)).toEqual(closing(whole.books));
    const total = whole.books.reduce((sum, row) => sum + signed(row.closing), 0n);
    expect(total).toBe(0n);
  }

  it("leave the books as Stripe has them", async () => {
    await fc.assert(
      fc.asyncProperty(steps, fc.infiniteStream(fc.nat(1_000_000)), async (taken, noise) => {
        const run = await createRun();
        await run.take({ kind: "buy", pick: 0, cents: 0 });
        for (const step of taken) await run.take(step);
        const random = () => noise.next().value ?? 0;
        const shuffled = run.events.map((body) => [random(), body] as const).sort(([one], [other]) => one - other);
        await Promise.all(shuffled.map(([pick, body]) => run.deliver(body, pick)));
        await Promise.all(shuffled.map(([pick, body]) => run.deliver(body, pick + 1)));
        await Promise.all(apps.map((app) => app.infrastructure.leases.recall(run.accountId)));
        for (const id of run.grants) await apps[0].infrastructure.ledger.expire(crypto.randomUUID(), id);

        const { prisma, pool } = apps[0].database;
        let cash = 0n;
        for (const { id: intent } of run.intents) {
          const row = await prisma.topUp.findFirstOrThrow({ where: { paymentReference: intent } });
          const open = [...stripe.objects.values()].filter(
            ({ payment_intent: of, object, status }) =>
              of === intent && (object === "refund" ? status !== "failed" : object === "dispute" && status !== "won"),
          );
          const asked = open.reduce((sum, { amount }) => sum + BigInt(Number(amount)), 0n);
          const lost = asked > row.amountCents ? row.amountCents : asked;
          expect(row.refundedCents + row.disputedCents).toBe(lost);
          cash += (row.amountCents - lost) * CENT;
        }
        const sums = await prisma.ledgerEntry.groupBy({
          by: ["book"],
          where: { accountId: run.accountId },
          _sum: { amountNanocredits: true },
        });
        const sumOf = (book: string) => sums.find((row) => row.book === book)?._sum.amountNanocredits ?? 0n;
        expect(sumOf("cash")).toBe(-cash);
        expect(sumOf("write_off")).toBeLessThanOrEqual(0n);
        expect(sumOf("pack")).toBeGreaterThanOrEqual(0n);
        expect(await findBrokenInvariants(pool)).toEqual({});
        await expectPeriodsToJoin(random());
      }),
      { numRuns: RUNS },
    );
  }, 240_000);

  it("of a purchase that both processes take at once credit it once", async () => {
    const run = await createRun();
    await run.take({ kind: "buy", pick: 0, cents: 0 });
    await Promise.all(Array.from({ length: 20 }, (_, index) => run.deliver(run.events[0] as string, index)));

    const { packNanocredits } = await apps[0].database.prisma.account.findUniqueOrThrow({ where: { id: run.accountId } });
    expect(packNanocredits).toBe(10n * NANO);
  });
});
