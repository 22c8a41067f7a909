/**
 * Fees of a processor (docs/spec/top-ups.md#fees). It knows them some time after the payment, or when a dispute ends, so they are asked for
 * again and again; the books get each difference once.
 */
import type { Logger } from "pino";
import type { Clock } from "../../lib/clock.js";
import { createId } from "../../lib/ids.js";
import { formatNanocredits } from "../../lib/money.js";
import { Repeated } from "../../lib/repeated.js";
import { type Database, type DatabaseClient, lockAccountRow } from "../../store/database.js";
import type { PaymentFeeModel } from "../../store/generated/prisma/models.js";
import type { Ledger } from "../../store/ledger.js";
import { FEE_ATTEMPTS_MAX, FEE_SECONDS_MAX, FEE_SWEEP_MS, FEES_AT_ONCE_MAX, FIRST_FEE_SECONDS } from "./limits.js";
import { NANOCREDITS_PER_CENT } from "./money.js";
import type { PaymentProcessor, ProcessorFee } from "./processor.js";

export interface FeesDependencies {
  readonly database: Database;
  readonly ledger: Pick<Ledger, "bookFee">;
  readonly clock: Clock;
  readonly log: Logger;
  /** Those that may have paid a top-up. */
  readonly processors: readonly PaymentProcessor[];
}

type Transaction = Pick<DatabaseClient, "paymentFee">;

/** Asks for a fee from now on; also for one that was booked, because it may have changed. */
export async function expectFee(
  { paymentFee }: Transaction,
  fee: Pick<PaymentFeeModel, "processor" | "reference" | "kind" | "topUpId" | "cents">,
  now: Date,
): Promise<void> {
  const { processor, reference } = fee;
  const due = { nextAt: new Date(now.getTime() + FIRST_FEE_SECONDS * 1_000), attempts: 0 };
  await paymentFee.upsert({ where: { processor_reference: { processor, reference } }, create: { ...fee, ...due }, update: due });
}

export class Fees {
  private readonly sweeps: Repeated;

  constructor(private readonly deps: FeesDependencies) {
    this.sweeps = new Repeated(() => this.sweep(), deps.log, "could not ask for fees of payments; it is tried again");
  }

  start(): void {
    if (this.deps.processors.some(({ findFees }) => findFees !== null)) this.sweeps.every(FEE_SWEEP_MS);
  }

  close(): Promise<void> {
    return this.sweeps.close();
  }

  /** Asks for the fees that are due, or joins the run under way. */
  look(): Promise<void> {
    return this.sweeps.now();
  }

  private async sweep(): Promise<void> {
    const { database, clock, processors, log } = this.deps;
    for (const processor of processors) {
      const due = await database.prisma.paymentFee.findMany({
        where: { processor: processor.name, nextAt: { lte: clock.now() } },
        orderBy: { nextAt: "asc" },
        take: FEES_AT_ONCE_MAX,
      });
      for (const fee of due) {
        await this.ask(processor, fee).catch((error: unknown) =>
          log.warn({ err: error, processor: fee.processor, fee: fee.reference }, "a fee is not known: the processor is asked again"),
        );
      }
    }
  }

  private async ask(from: PaymentProcessor, fee: PaymentFeeModel): Promise<void> {
    const { database, clock, log } = this.deps;
    const { processor, reference, kind, attempts } = fee;
    const isLast = attempts + 1 >= FEE_ATTEMPTS_MAX;
    const seconds = Math.min(FIRST_FEE_SECONDS * 2 ** attempts, FEE_SECONDS_MAX);
    const nextAt = isLast ? null : new Date(clock.now().getTime() + seconds * 1_000);
    // One process asks.
    const claimed = await database.prisma.paymentFee.updateMany({
      where: { processor, reference, nextAt: fee.nextAt },
      data: { nextAt, attempts: attempts + 1 },
    });
    if (claimed.count === 0) return;
    const found = (await from.findFees?.({ kind, reference })) ?? null;
    if (found !== null) await this.book(fee, found, nextAt);
    else if (isLast && kind === "payment")
      log.warn({ processor, payment: reference }, "the fee of a payment is not known: it is not booked");
  }

  private async book(
    { processor, reference, kind, topUpId, cents }: PaymentFeeModel,
    found: readonly ProcessorFee[],
    nextAt: Date | null,
  ): Promise<void> {
    const { database, ledger, log } = this.deps;
    const { accountId, currency } = await database.prisma.topUp.findUniqueOrThrow({ where: { id: topUpId } });
    const total = found.reduce((sum, fee) => sum + nanocreditsOf(fee, cents, currency), 0n);
    const booked = await database.prisma.$transaction(async (transaction) => {
      await lockAccountRow(transaction, accountId);
      const where = { processor_reference: { processor, reference } };
      const known = await transaction.paymentFee.findUniqueOrThrow({ where });
      const change = total - known.bookedNanocredits;
      const isFresh = known.nextAt?.getTime() === nextAt?.getTime();
      // A report that came meanwhile is another reason to ask.
      await transaction.paymentFee.update({ where, data: { bookedNanocredits: total, ...(isFresh && { nextAt: null }) } });
      if (change !== 0n) await ledger.bookFee({ id: createId(), accountId, amount: change, note: `${kind} ${reference}` }, transaction);
      return change;
    });
    if (booked !== 0n) log.info({ processor, [kind]: reference, topUpId, credits: formatNanocredits(booked) }, "a fee was booked");
  }
}

/**
 * In the gateway's currency. A fee in another one is converted at the rate of its own payment, and rounded away from 0.
 *
 * @param cents the amount of the payment or dispute in its own currency
 */
export function nanocreditsOf({ feeCents, grossCents, currency }: ProcessorFee, cents: bigint, paidIn: string): bigint {
  const fee = feeCents * NANOCREDITS_PER_CENT;
  const gross = grossCents < 0n ? -grossCents : grossCents;
  if (currency === paidIn || gross === 0n) return fee;
  const size = fee < 0n ? -fee : fee;
  const converted = (size * cents + gross - 1n) / gross;
  return fee < 0n ? -converted : converted;
}
