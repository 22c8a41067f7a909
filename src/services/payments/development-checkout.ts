/**
 * The checkout that is built in, for development: it moves no money, and shows the whole way without an account anywhere.
 *
 * 1. `openCheckout` returns the address of a page, which is secret to the payer.
 * 2. `view`: a person opens the page, without script and without signing in.
 * 3. `decide`: that person pays or cancels, and is redirected to the dashboard.
 */
import * as z from "zod";
import { AppError, conflict, notFound } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import type { Database } from "../../store/database.js";
import type { TopUpModel } from "../../store/generated/prisma/models.js";
import type { SignedLinks } from "../integrations/signed-links.js";
import { ALL_REFUNDS, type Claim } from "./claims.js";
import { DEVELOPMENT_PROCESSOR, INVOICES_MAX } from "./limits.js";
import type { ChargeResult, Checkout, Invoice, PaidTopUp, PaymentProcessor, RequestedCharge, RequestedCheckout } from "./processor.js";
import type { TopUps } from "./top-ups.js";

/** Content of a checkout's link. */
export const checkoutLink = z.object({ topUpId: z.uuid() });
export type CheckoutLink = z.output<typeof checkoutLink>;

export interface CheckoutView {
  readonly topUp: TopUpModel;
  readonly handle: string;
  /** It can be paid or cancelled. */
  readonly isOpen: boolean;
}

export interface DevelopmentCheckoutDependencies {
  readonly database: Pick<Database, "prisma">;
  readonly links: SignedLinks<CheckoutLink>;
  readonly clock: Clock;
  readonly pageUrl: () => string;
  readonly receiptUrl: () => string;
  /** False: another processor is configured, or none, and the pages do not exist. */
  readonly isInUse: boolean;
}

export class DevelopmentCheckout implements PaymentProcessor {
  readonly name = DEVELOPMENT_PROCESSOR;
  readonly hasPortal = false;
  readonly canCharge = true;
  readonly findFees = null;

  constructor(private readonly deps: DevelopmentCheckoutDependencies) {}

  async openCheckout({ topUpId, returnUrl }: RequestedCheckout): Promise<Checkout> {
    // On the host where the person is signed in.
    const page = new URL(this.deps.pageUrl());
    const { host, protocol } = new URL(returnUrl);
    Object.assign(page, { host, protocol });
    return { reference: topUpId, url: `${page.href}?token=${this.deps.links.sign({ topUpId })}` };
  }

  async refund(): Promise<void> {}

  async listRefunds({ chargedCents: cents }: PaidTopUp): Promise<readonly Claim[]> {
    return [{ kind: "refund", reference: ALL_REFUNDS, cents, isVoid: false }];
  }

  /** Unspecified: an amount that ends in .13 is declined, so that failures can be tried. */
  async charge({ topUpId, price: { cents } }: RequestedCharge): Promise<ChargeResult> {
    if (cents % 100n === DECLINED_CENTS) return { outcome: "failed", reason: "The development checkout declines amounts that end in .13." };
    return { outcome: "paid", payment: topUpId, chargedCents: cents };
  }

  async findCharge(): Promise<null> {
    return null;
  }

  async findPayment(): Promise<null> {
    return null;
  }

  async openPortal(): Promise<never> {
    throw conflict("The development checkout has no payment methods to manage.");
  }

  async listInvoices(accountId: string, first: number): Promise<readonly Invoice[]> {
    const { database, links, receiptUrl } = this.deps;
    const rows = await database.prisma.topUp.findMany({
      where: { accountId, processor: this.name, receiptNumber: { not: null } },
      orderBy: { receiptNumber: "desc" },
      take: Math.min(first, INVOICES_MAX),
    });
    return rows.map((row) => ({
      ...{ id: row.id, number: receiptNumberOf(row), status: "paid", amountCents: row.amountCents, currency: row.currency },
      ...{ issuedAt: row.paidAt ?? row.createdAt, url: `${receiptUrl()}?token=${links.sign({ topUpId: row.id })}`, pdfUrl: null },
    }));
  }

  /** The receipt of a paid top-up; the link is the credential. Rejects with NOT_FOUND for a forged link, and before it is paid. */
  async receipt(token: string): Promise<CheckoutView & { readonly number: string }> {
    const view = await this.view(token);
    if (view.topUp.receiptNumber === null) throw notFound("receipt");
    return { ...view, number: receiptNumberOf(view.topUp) };
  }

  /** Step 2; the link is the credential. Rejects with NOT_FOUND for a forged link. */
  async view(token: string): Promise<CheckoutView> {
    const { database, links, clock, isInUse } = this.deps;
    const link = isInUse ? links.read(token) : null;
    const topUp = link && (await database.prisma.topUp.findUnique({ where: { id: link.topUpId, processor: this.name } }));
    const account = topUp && (await database.prisma.account.findUnique({ where: { id: topUp.accountId }, select: { handle: true } }));
    if (!topUp || !account) throw new AppError("NOT_FOUND", "This link is invalid. Start the purchase again.");
    return { topUp, handle: account.handle, isOpen: topUp.status === "open" && topUp.expiresAt > clock.now() };
  }

  /** Step 3. Rejects as `view`; also CONFLICT when it was paid or cancelled before, or is too late. */
  async decide(topUps: Pick<TopUps, "bookPayment" | "cancel">, token: string, isPaid: boolean): Promise<void> {
    const { topUp, isOpen } = await this.view(token);
    if (!isOpen) throw conflict("This checkout was paid or cancelled before, or has expired. Start the purchase again.");
    if (isPaid) await topUps.bookPayment(this.name, { topUpId: topUp.id, cents: topUp.amountCents, currency: topUp.currency });
    else await topUps.cancel(this.name, topUp.id);
  }
}

const DECLINED_CENTS = 13n;

function receiptNumberOf({ receiptNumber }: TopUpModel): string {
  return `DEV-${String(receiptNumber).padStart(6, "0")}`;
}
