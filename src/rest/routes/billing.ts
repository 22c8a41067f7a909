/** Automatic top-ups, and the processor's invoices and portal (docs/spec/top-ups.md). */
import * as z from "zod";
import { toCreditsNumber } from "../../lib/money.js";
import { permissionOf, requireKeyManager } from "../../services/access/permissions.js";
import { type AutoTopUpRow, updateAutoTopUpInput } from "../../services/payments/auto-top-ups.js";
import { INVOICES_DEFAULT, INVOICES_MAX } from "../../services/payments/limits.js";
import { formatCents } from "../../services/payments/money.js";
import { queryInteger } from "../../services/requests/query-values.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { json } from "../openapi/answer.js";
import { credits, nullableText, time } from "../openapi/schemas.js";
import type { Route } from "../route.js";

const autoTopUp = json(
  "AutoTopUp",
  z.object({
    is_enabled: z.boolean(),
    threshold: credits.nullable().describe("Credits are bought when the balance falls below this. Null: never set up."),
    amount: credits.nullable(),
    monthly_cap: credits.nullable(),
    is_pending: z.boolean().describe("Whether a payment is under way."),
    failures: z.int(),
    problem: nullableText.describe("Why the last payment failed, or none was made."),
    next_attempt_at: time.nullable(),
    gave_up_at: time.nullable(),
  }),
);

const invoice = z.object({
  number: z.string(),
  status: z.enum(["draft", "open", "paid", "void", "uncollectible"]),
  amount: z.string().describe("With taxes, as a decimal number with two decimals."),
  currency: z.string(),
  issued_at: time,
  url: nullableText.describe("Its page, which needs no sign-in: do not share it."),
  pdf_url: nullableText,
});

const invoicesQuery = z.object({
  first: queryInteger(z.int().min(1).max(INVOICES_MAX)).default(INVOICES_DEFAULT).describe("The number of invoices."),
});

export function addBillingRoutes(
  route: Route,
  endpoint: Endpoint,
  { autoTopUps, billing }: Pick<Services, "autoTopUps" | "billing">,
): void {
  route("/auto-top-up", {
    GET: endpoint({
      id: "getAutoTopUp",
      tag: "Account",
      summary: "Returns the settings and state of automatic top-ups.",
      answer: autoTopUp,
      requires: permissionOf("balance"),
      handler: async (ctx) => toAutoTopUp(await autoTopUps.get(ctx)),
    }),
    PATCH: endpoint({
      id: "updateAutoTopUp",
      tag: "Account",
      summary: "Sets automatic top-ups up.",
      description: "Credits are bought with the saved payment method when the balance falls below `threshold`. Forgets earlier failures.",
      answer: autoTopUp,
      errors: ["503"],
      example: { body: { isEnabled: true, threshold: 5, amount: 25, monthlyCap: 100 } },
      requires: requireKeyManager,
      body: updateAutoTopUpInput,
      handler: async (ctx, { body }) => toAutoTopUp(await autoTopUps.update(ctx, body)),
    }),
  });
  route("/invoices", {
    GET: endpoint({
      id: "listInvoices",
      tag: "Account",
      summary: "Lists invoices of purchases, newest first.",
      answer: json("InvoiceList", z.object({ data: z.array(invoice) })),
      errors: ["502"],
      requires: permissionOf("balance"),
      query: invoicesQuery,
      handler: async (ctx, { query, exchange }) => {
        exchange.setHeaders({ "Cache-Control": "no-store" });
        const invoices = await billing.listInvoices(ctx, query.first);
        return {
          data: invoices.map(({ number, status, amountCents, currency, issuedAt, url, pdfUrl }) => ({
            ...{ number, status, amount: formatCents(amountCents), currency, issued_at: issuedAt, url, pdf_url: pdfUrl },
          })),
        };
      },
    }),
  });
  route("/billing-portal", {
    POST: endpoint({
      id: "createBillingPortal",
      tag: "Account",
      summary: "Opens the processor's page for payment methods.",
      answer: json("OpenedBillingPortal", z.object({ url: z.string().describe("Open it in a browser. Do not share it.") })),
      errors: ["409", "502", "503"],
      requires: requireKeyManager,
      handler: async (ctx, { exchange }) => {
        exchange.setHeaders({ "Cache-Control": "no-store" });
        return { url: await billing.openPortal(ctx) };
      },
    }),
  });
}

function toAutoTopUp(row: AutoTopUpRow | null) {
  return {
    is_enabled: row?.isEnabled ?? false,
    threshold: row && toCreditsNumber(row.thresholdNanocredits),
    amount: row && toCreditsNumber(row.amountNanocredits),
    monthly_cap: row && toCreditsNumber(row.monthlyNanocredits),
    is_pending: row?.attemptId != null,
    failures: row?.failures ?? 0,
    problem: row?.problem ?? null,
    next_attempt_at: row?.nextAt ?? null,
    gave_up_at: row?.gaveUpAt ?? null,
  };
}
