/** Credits that people buy (docs/spec/top-ups.md). */
import * as z from "zod";
import { toCreditsNumber } from "../../lib/money.js";
import { PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX } from "../../limits.js";
import { permissionOf, requireAccount, requireKeyManager } from "../../services/access/permissions.js";
import { disputedNanocredits, refundedNanocredits } from "../../services/payments/booking.js";
import { formatCents } from "../../services/payments/money.js";
import { createCheckoutInput, type TopUpRow, type TopUps } from "../../services/payments/top-ups.js";
import { queryInteger } from "../../services/requests/query-values.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { json } from "../openapi/answer.js";
import { credits, cursorText, nullableText, pathId, time } from "../openapi/schemas.js";
import { nextCursorOf, queryCursor } from "../query.js";
import type { Route } from "../route.js";

const topUp = z.object({
  id: z.string(),
  state: z.enum(["open", "expired", "paid", "refunded", "disputed", "cancelled", "failed"]),
  credits: credits.describe("The credits that it adds."),
  refunded: credits.describe("Credits whose money was paid back."),
  disputed: credits.describe("Credits of disputes that are open or lost."),
  is_automatic: z.boolean().describe("Whether it was charged to a saved payment method."),
  failure: nullableText.describe("Why the payment failed."),
  amount: z.string().describe("The price as a decimal number with two decimals."),
  currency: z.string().describe("ISO 4217, in lower case."),
  processor: z.string(),
  created_at: time,
  expires_at: time.describe("Until when the checkout can be paid."),
  paid_at: time.nullable(),
});

const listQuery = z.object({
  limit: queryInteger(z.int().min(1).max(PAGE_SIZE_MAX)).default(PAGE_SIZE_DEFAULT).describe("The maximum number of top-ups."),
  cursor: queryCursor("topUps").optional().describe(cursorText),
});

const byId = z.object({ id: pathId("The ID of the top-up.") });

export function addTopUpRoutes(route: Route, endpoint: Endpoint, { topUps }: Pick<Services, "topUps">): void {
  route("/top-ups", {
    GET: endpoint({
      id: "listTopUps",
      tag: "Account",
      summary: "Lists purchases of credits, newest first, unpaid ones included.",
      answer: json("TopUpList", z.object({ data: z.array(topUp), next_cursor: nullableText })),
      requires: permissionOf("balance"),
      query: listQuery,
      handler: async (ctx, { query }) => {
        const page = await topUps.list(ctx, requireAccount(ctx).accountId, { first: query.limit, after: query.cursor });
        return {
          data: page.items.map((row) => toTopUp(topUps, row)),
          next_cursor: nextCursorOf(page, "topUps"),
        };
      },
    }),
    POST: endpoint({
      id: "createCheckout",
      tag: "Account",
      summary: "Opens a checkout for credits.",
      description: "Open `url` in a browser, where a person pays. The credits are in the account as soon as the payment is reported.",
      answer: json(
        "OpenedCheckout",
        z.object({ url: z.string().describe("The page on which a person pays. Do not share it."), top_up: topUp }),
      ),
      errors: ["409", "503"],
      example: { body: { credits: 25 } },
      requires: requireKeyManager,
      body: createCheckoutInput,
      handler: async (ctx, { body, exchange }) => {
        const opened = await topUps.createCheckout(ctx, body);
        // The address is the credential for paying.
        exchange.setHeaders({ "Cache-Control": "no-store" });
        return { url: opened.url, top_up: toTopUp(topUps, opened.topUp) };
      },
    }),
  });
  route("/top-ups/:id", {
    GET: endpoint({
      id: "getTopUp",
      tag: "Account",
      summary: "Returns a purchase of credits.",
      answer: json("TopUp", topUp),
      requires: permissionOf("balance"),
      params: byId,
      handler: async (ctx, { params }) => toTopUp(topUps, await topUps.get(ctx, params.id)),
    }),
  });
}

function toTopUp(topUps: TopUps, row: TopUpRow) {
  return {
    id: row.id,
    state: topUps.stateOf(row),
    credits: toCreditsNumber(row.nanocredits),
    refunded: toCreditsNumber(refundedNanocredits(row)),
    disputed: toCreditsNumber(disputedNanocredits(row)),
    is_automatic: row.isAutomatic,
    failure: row.failure,
    amount: formatCents(row.amountCents),
    currency: row.currency,
    processor: row.processor,
    created_at: row.createdAt,
    expires_at: row.expiresAt,
    paid_at: row.paidAt,
  };
}
