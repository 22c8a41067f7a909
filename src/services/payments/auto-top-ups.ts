/**
 * Automatic top-ups: credits are bought with the saved payment method when the balance of an account falls below its threshold.
 *
 * 1. A change of a balance, or time, starts a look for accounts below their threshold.
 * 2. One process opens the attempt: under the lock of the account's row it sees that none is open, and that the month has room.
 * 3. The processor is charged by the id of the top-up, so that a repeated call pays once. A process that is killed meanwhile leaves an open
 *    attempt, for which another one calls again.
 * 4. A payment closes the attempt as it is booked. After a failure the next attempt waits; after the last one it is given up.
 */
import type { Logger } from "pino";
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { serviceUnavailable, wrongField } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { createId } from "../../lib/ids.js";
import { formatNanocredits } from "../../lib/money.js";
import { Repeated } from "../../lib/repeated.js";
import type { SalesSettings } from "../../lib/settings.js";
import { type Database, lockAccountRow } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { AutoTopUpModel, TopUpModel } from "../../store/generated/prisma/models.js";
import { requireKeyManager, requirePermission } from "../access/permissions.js";
import { positiveCredits } from "../credits/credits-amount.js";
import { queueForAccount } from "../webhooks/account-messages.js";
import type { TopUpBooking } from "./booking.js";
import {
  AUTO_TOP_UP_CREDITS_MAX,
  AUTO_TOP_UP_LOOK_MS,
  AUTO_TOP_UP_SWEEP_MS,
  AUTO_TOP_UPS_AT_ONCE_MAX,
  FAILED_CHARGE_SECONDS,
  PENDING_CHARGE_SECONDS,
  UNANSWERED_CHARGE_SECONDS,
  UNANSWERED_CHARGE_SECONDS_MAX,
} from "./limits.js";
import { failedMessage } from "./messages.js";
import { isInCents, priceOf } from "./money.js";
import type { ChargeResult, PaymentProcessor } from "./processor.js";
import { assertSold } from "./top-ups.js";

const NANO = 10n ** 9n;
const bounds = { anyOf: undefined, type: "number", exclusiveMinimum: 0, maximum: AUTO_TOP_UP_CREDITS_MAX } as const;
const amount = positiveCredits.refine(
  (nanocredits) => nanocredits <= BigInt(AUTO_TOP_UP_CREDITS_MAX) * NANO,
  `must be at most ${AUTO_TOP_UP_CREDITS_MAX}`,
);

export const updateAutoTopUpInput = z.strictObject({
  isEnabled: z.boolean().describe("Whether credits are bought automatically."),
  threshold: amount.meta({ ...bounds, description: "Credits are bought when the balance falls below this." }),
  amount: amount
    .refine(isInCents, "must have at most 2 decimals")
    .meta({ ...bounds, description: "The credits of each top-up, with at most 2 decimals." }),
  monthlyCap: amount.meta({ ...bounds, description: "The most credits that are bought automatically in a calendar month (UTC)." }),
});
export type UpdateAutoTopUpInput = z.output<typeof updateAutoTopUpInput>;
export type AutoTopUpRow = AutoTopUpModel;

export interface AutoTopUpsDependencies {
  readonly database: Database;
  readonly booking: TopUpBooking;
  readonly events: Events;
  readonly clock: Clock;
  readonly log: Logger;
  /** Null: credits cannot be bought. */
  readonly processor: PaymentProcessor | null;
  readonly sales: SalesSettings;
}

export class AutoTopUps {
  private readonly looks: Repeated;
  private timer: NodeJS.Timeout | null = null;
  private stopListening: () => void = () => undefined;
  /** As of the last look: changes of balances start none when no account wants it. */
  private isWanted = true;

  constructor(private readonly deps: AutoTopUpsDependencies) {
    this.looks = new Repeated(() => this.topUp(), deps.log, "could not look for automatic top-ups; it is tried again");
  }

  start(): void {
    if (!this.isOffered) return;
    this.stopListening = this.deps.events.listen("balance-changed", () => {
      if (this.isWanted) this.lookSoon();
    });
    this.looks.every(AUTO_TOP_UP_SWEEP_MS);
  }

  async close(): Promise<void> {
    this.stopListening();
    if (this.timer) clearTimeout(this.timer);
    await this.looks.close();
  }

  /** Whether payments without a person are possible on this gateway. */
  get isOffered(): boolean {
    return this.deps.processor?.canCharge ?? false;
  }

  /** Null: never set up. */
  async get(ctx: RequestContext): Promise<AutoTopUpRow | null> {
    const { accountId } = requirePermission(ctx, "balance");
    return this.deps.database.prisma.autoTopUp.findUnique({ where: { accountId } });
  }

  /** Sets it up, and forgets earlier failures. */
  async update(ctx: RequestContext, { isEnabled, threshold, amount: each, monthlyCap }: UpdateAutoTopUpInput): Promise<AutoTopUpRow> {
    const { accountId } = requireKeyManager(ctx);
    const { database, sales } = this.deps;
    if (!this.isOffered) throw serviceUnavailable("Automatic top-ups are not offered on this gateway.");
    assertSold(sales, "amount", each);
    if (monthlyCap < each) throw wrongField("monthlyCap", `must be at least the amount of one top-up, ${formatNanocredits(each)}`);
    const row = await database.prisma.$transaction(async (transaction) => {
      await lockAccountRow(transaction, accountId);
      const earlier = await transaction.autoTopUp.findUnique({ where: { accountId } });
      const data = {
        ...{ isEnabled, thresholdNanocredits: threshold, amountNanocredits: each, monthlyNanocredits: monthlyCap },
        ...{ failures: 0, problem: null, gaveUpAt: null, ...(earlier?.attemptId == null && { nextAt: null }) },
      };
      return transaction.autoTopUp.upsert({ where: { accountId }, create: { accountId, ...data }, update: data });
    });
    this.isWanted = true;
    this.lookSoon();
    return row;
  }

  /** Looks now, or joins the look under way. */
  look(): Promise<void> {
    return this.looks.now();
  }

  /** Notes that the payment of an attempt failed. `reason`: for the payer. */
  async fail(topUpId: string, reason: string): Promise<void> {
    const { database, events, clock, log } = this.deps;
    const { accountId } = await database.prisma.topUp.findUniqueOrThrow({ where: { id: topUpId } });
    const failed = await database.prisma.$transaction(async (transaction) => {
      await lockAccountRow(transaction, accountId);
      const where = { id: topUpId, status: "open" } as const;
      const [topUp] = await transaction.topUp.updateManyAndReturn({ where, data: { status: "cancelled", failure: reason } });
      const row = await transaction.autoTopUp.findUnique({ where: { accountId, attemptId: topUpId } });
      if (!topUp || !row) return null;
      const failures = row.failures + 1;
      const wait = FAILED_CHARGE_SECONDS[failures - 1];
      const now = clock.now();
      await queueForAccount(transaction, accountId, failedMessage(topUp, reason, now), now);
      const next = wait === undefined ? { gaveUpAt: now, nextAt: null } : { nextAt: secondsAfter(now, wait) };
      return transaction.autoTopUp.update({ where: { accountId }, data: { attemptId: null, failures, problem: reason, ...next } });
    });
    if (!failed) return;
    log.warn({ accountId, topUpId, failures: failed.failures, isGivenUp: failed.gaveUpAt !== null }, "an automatic top-up failed");
    events.publish("top-up-changed", { accountId, topUpId });
    events.publish("top-up-failed", { accountId, topUpId, reason });
  }

  private lookSoon(): void {
    this.timer ??= setTimeout(() => {
      this.timer = null;
      void this.looks.now();
    }, AUTO_TOP_UP_LOOK_MS).unref();
  }

  private async topUp(): Promise<void> {
    const { database, clock, log } = this.deps;
    const { prisma } = database;
    const now = clock.now();
    this.isWanted = (await prisma.autoTopUp.count({ where: { isEnabled: true, gaveUpAt: null }, take: 1 })) > 0;
    const open = await prisma.autoTopUp.findMany({
      where: { attemptId: { not: null }, OR: [{ nextAt: null }, { nextAt: { lte: now } }] },
      take: AUTO_TOP_UPS_AT_ONCE_MAX,
    });
    for (const { accountId, attemptId } of open) {
      // One that the processor refuses to tell about is no reason to leave the others.
      await this.continueAttempt(accountId, attemptId ?? "").catch((error: unknown) =>
        log.warn({ err: error, accountId, topUpId: attemptId }, "an automatic top-up is not decided: the processor is called again"),
      );
    }
    if (!this.isWanted) return;
    for (const accountId of await this.findLow(now)) {
      const attempt = await this.openAttempt(accountId);
      if (attempt) await this.pay(attempt);
    }
  }

  /** A hint: `openAttempt` looks again under the lock. */
  private async findLow(now: Date): Promise<string[]> {
    const rows = await this.deps.database.prisma.$queryRaw<{ id: string }[]>`
      SELECT a.id FROM auto_top_up t JOIN account a ON a.id = t.account_id
      WHERE t.is_enabled AND t.gave_up_at IS NULL AND t.attempt_id IS NULL AND (t.next_at IS NULL OR t.next_at <= ${now})
        AND a.suspended_at IS NULL AND a.tier_nanocredits + a.crypto_nanocredits + a.pack_nanocredits < t.threshold_nanocredits
      ORDER BY t.next_at NULLS FIRST LIMIT ${AUTO_TOP_UPS_AT_ONCE_MAX}`;
    return rows.map(({ id }) => id);
  }

  /** Null: another process was faster, or it is not due any more. */
  private async openAttempt(accountId: string): Promise<TopUpModel | null> {
    const { database, clock, processor, sales } = this.deps;
    if (!processor) return null;
    const now = clock.now();
    return database.prisma.$transaction(async (transaction) => {
      await lockAccountRow(transaction, accountId);
      const row = await transaction.autoTopUp.findFirst({ where: { accountId, isEnabled: true, gaveUpAt: null, attemptId: null } });
      if (!row || (row.nextAt !== null && row.nextAt > now)) return null;
      const account = await transaction.account.findUniqueOrThrow({ where: { id: accountId }, include: { deletion: true } });
      const balance = account.tierNanocredits + account.cryptoNanocredits + account.packNanocredits;
      if (account.suspendedAt !== null || account.deletion !== null || balance >= row.thresholdNanocredits) return null;
      const month = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1));
      const bought = await transaction.topUp.aggregate({
        where: { accountId, isAutomatic: true, status: { in: ["open", "paid"] }, createdAt: { gte: month } },
        _sum: { nanocredits: true },
      });
      if ((bought._sum.nanocredits ?? 0n) + row.amountNanocredits > row.monthlyNanocredits) {
        const nextAt = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1));
        await transaction.autoTopUp.update({ where: { accountId }, data: { nextAt, problem: MONTH_IS_FULL } });
        return null;
      }
      const { cents: amountCents, currency } = priceOf(row.amountNanocredits, sales.currency);
      const id = createId();
      const times = { createdAt: now, expiresAt: secondsAfter(now, UNANSWERED_CHARGE_SECONDS_MAX) };
      const topUp = await transaction.topUp.create({
        data: {
          ...{ id, accountId, processor: processor.name, reference: id, isAutomatic: true },
          ...{ nanocredits: row.amountNanocredits, currency, amountCents, ...times },
        },
      });
      const nextAt = secondsAfter(now, UNANSWERED_CHARGE_SECONDS);
      await transaction.autoTopUp.update({ where: { accountId }, data: { attemptId: id, nextAt } });
      return topUp;
    });
  }

  /** Of an attempt that was left open: its process was killed, the processor was away, or a bank decides. */
  private async continueAttempt(accountId: string, topUpId: string): Promise<void> {
    const { database, clock, processor } = this.deps;
    const topUp = await database.prisma.topUp.findUnique({ where: { id: topUpId } });
    if (topUp?.status !== "open" || topUp.processor !== processor?.name) {
      await database.prisma.autoTopUp.updateMany({ where: { accountId, attemptId: topUpId }, data: { attemptId: null, nextAt: null } });
      return;
    }
    if (topUp.paymentReference === null) {
      if (clock.now() >= topUp.expiresAt) return this.fail(topUpId, "The payment processor could not be reached.");
      return (await this.isWantedBy(accountId)) ? this.pay(topUp) : this.end(topUp);
    }
    await this.waitFor(accountId, topUpId, PENDING_CHARGE_SECONDS);
    const found = await processor.findPayment(topUp.paymentReference);
    if (found?.isPaid) await this.book(topUp, found.payment, found.chargedCents);
    else if (found?.failure != null) await this.fail(topUpId, found.failure);
  }

  /** False: it was switched off or given up, or the account suspended or deleted, since the attempt was opened. */
  private async isWantedBy(accountId: string): Promise<boolean> {
    const { autoTopUp, account } = this.deps.database.prisma;
    const isOn = (await autoTopUp.count({ where: { accountId, isEnabled: true, gaveUpAt: null } })) > 0;
    return isOn && (await account.count({ where: { id: accountId, suspendedAt: null, deletion: null } })) > 0;
  }

  /** Of an attempt that is not wanted any more: an answer that was lost may still have been a payment. */
  private async end(topUp: TopUpModel): Promise<void> {
    const { database, processor, events } = this.deps;
    const { id: topUpId, accountId } = topUp;
    await this.waitFor(accountId, topUpId, UNANSWERED_CHARGE_SECONDS);
    const found = await processor?.findCharge({ topUpId, accountId });
    if (found) return this.conclude(topUp, found);
    await database.prisma.$transaction(async (transaction) => {
      await lockAccountRow(transaction, accountId);
      await transaction.topUp.updateMany({ where: { id: topUpId, status: "open" }, data: { status: "cancelled" } });
      await transaction.autoTopUp.updateMany({ where: { accountId, attemptId: topUpId }, data: { attemptId: null, nextAt: null } });
    });
    events.publish("top-up-changed", { accountId, topUpId });
  }

  private async pay(topUp: TopUpModel): Promise<void> {
    const { processor, log } = this.deps;
    const { id: topUpId, accountId, nanocredits, amountCents: cents, currency } = topUp;
    if (!processor) return;
    await this.waitFor(accountId, topUpId, UNANSWERED_CHARGE_SECONDS);
    try {
      await this.conclude(
        topUp,
        await processor.charge({ topUpId, accountId, price: { cents, currency }, credits: formatNanocredits(nanocredits) }),
      );
    } catch (error) {
      log.warn({ err: error, accountId, topUpId }, "an automatic top-up is not decided: the processor is called again");
    }
  }

  private async conclude(topUp: TopUpModel, result: ChargeResult): Promise<void> {
    const { id: topUpId, accountId } = topUp;
    if (result.outcome === "failed") return this.fail(topUpId, result.reason);
    if (result.outcome === "paid") return this.book(topUp, result.payment, result.chargedCents);
    await this.deps.database.prisma.topUp.updateMany({
      where: { id: topUpId, status: "open" },
      data: { paymentReference: result.payment },
    });
    await this.waitFor(accountId, topUpId, PENDING_CHARGE_SECONDS);
  }

  private async book({ id: topUpId, processor, amountCents: cents, currency }: TopUpModel, payment: string | null, chargedCents: bigint) {
    const result = await this.deps.booking.bookPayment(processor, { topUpId, cents, currency, payment, chargedCents });
    if (result === "refused") this.deps.log.warn({ topUpId, payment }, "a payment contradicts its automatic top-up");
  }

  /** Until the processor is called again for the attempt. */
  private async waitFor(accountId: string, attemptId: string, seconds: number): Promise<void> {
    const nextAt = secondsAfter(this.deps.clock.now(), seconds);
    await this.deps.database.prisma.autoTopUp.updateMany({ where: { accountId, attemptId }, data: { nextAt } });
  }
}

const MONTH_IS_FULL = "The monthly limit is reached. Top-ups continue next month, or when you raise the limit.";

function secondsAfter(time: Date, seconds: number): Date {
  return new Date(time.getTime() + seconds * 1_000);
}
