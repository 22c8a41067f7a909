/**
 * The checkout that is built in, for development: it moves no money, and shows the whole way without an account anywhere.
 *
 * 1. `openCheckout` returns the address of a page, which is secret to the payer.
 * 2. `view`: a person opens the page, without script and without signing in.
 * 3. `decide`: that person pays or cancels, and is redirected to the dashboard.
 */
import * as z from "zod";
import { AppError, conflict } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import type { Database } from "../../store/database.js";
import type { TopUpModel } from "../../store/generated/prisma/models.js";
import type { SignedLinks } from "../integrations/signed-links.js";
import type { Checkout, PaymentProcessor, RequestedCheckout } from "./processor.js";
import type { TopUps } from "./top-ups.js";

export const DEVELOPMENT_PROCESSOR = "development";

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
  /** False: another processor is configured, or none, and the pages do not exist. */
  readonly isInUse: boolean;
}

export class DevelopmentCheckout implements PaymentProcessor {
  readonly name = DEVELOPMENT_PROCESSOR;

  constructor(private readonly deps: DevelopmentCheckoutDependencies) {}

  async openCheckout({ topUpId }: RequestedCheckout): Promise<Checkout> {
    return { reference: topUpId, url: `${this.deps.pageUrl()}?token=${this.deps.links.sign({ topUpId })}` };
  }

  async refund(): Promise<void> {}

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
