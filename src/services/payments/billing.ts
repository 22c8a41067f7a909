/** How credits are sold here, and the processor's own pages: invoices, and the portal for payment methods. */
import type { RequestContext } from "../../context.js";
import { serviceUnavailable, wrongField } from "../../errors.js";
import type { SalesSettings } from "../../lib/settings.js";
import { requireKeyManager, requirePermission } from "../access/permissions.js";
import { INVOICES_MAX } from "./limits.js";
import type { Invoice, PaymentProcessor } from "./processor.js";

export interface CreditSalesOffer {
  readonly processor: string;
  readonly currency: string;
  /** Nanocredits. */
  readonly packs: readonly bigint[];
  readonly least: bigint;
  readonly most: bigint;
  readonly hasPortal: boolean;
  readonly hasAutoTopUp: boolean;
}

export type InvoiceRow = Invoice;

export interface BillingDependencies {
  /** Null: credits cannot be bought. */
  readonly processor: PaymentProcessor | null;
  readonly sales: SalesSettings;
  readonly creditsUrl: (ctx: RequestContext | null) => string;
}

export class Billing {
  constructor(private readonly deps: BillingDependencies) {}

  /** Null: credits are not sold here. */
  get offer(): CreditSalesOffer | null {
    const { processor, sales } = this.deps;
    if (!processor) return null;
    const { currency, packs, least, most } = sales;
    return { processor: processor.name, currency, packs, least, most, hasPortal: processor.hasPortal, hasAutoTopUp: processor.canCharge };
  }

  /** Newest first. Rejects with UPSTREAM_ERROR while the processor cannot be reached. */
  async listInvoices(ctx: RequestContext, first: number): Promise<readonly Invoice[]> {
    const { accountId } = requirePermission(ctx, "balance");
    if (first < 1 || first > INVOICES_MAX) throw wrongField("first", `must be from 1 to ${INVOICES_MAX}`);
    return (await this.deps.processor?.listInvoices(accountId, first)) ?? [];
  }

  /** The address of the processor's page for payment methods. Rejects with CONFLICT where the processor has none. */
  async openPortal(ctx: RequestContext): Promise<string> {
    const { accountId } = requireKeyManager(ctx);
    const { processor, creditsUrl } = this.deps;
    if (!processor) throw serviceUnavailable("Credits cannot be bought on this gateway: no payment processor is configured.");
    return processor.openPortal(accountId, creditsUrl(ctx));
  }
}
