/**
 * Events of payment processors (docs/spec/top-ups.md#stripe). They are signed, and read no key; nor do they count as anonymous requests, of
 * which a processor may send more than a client does.
 */
import * as z from "zod";
import { notFound } from "../../errors.js";
import { readBytesBody } from "../../http/body.js";
import type { Exchange } from "../../http/exchange.js";
import { clientAddressOf } from "../../lib/client-address.js";
import { PAYMENT_EVENT_BYTES_MAX } from "../../services/payments/limits.js";
import type { Services } from "../../services/services.js";
import { openEndpoint } from "../open-endpoint.js";
import { json } from "../openapi/answer.js";
import type { Route } from "../route.js";

const taken = z.object({
  received: z.literal(true),
  result: z.enum(["booked", "unchanged", "ignored", "refused"]).describe("What the event changed. A refused one contradicts its top-up."),
});

const credited = z.object({
  received: z.literal(true),
  result: z.enum(["booked", "unchanged"]).describe("Unchanged: the same request was booked before."),
  top_up_id: z.string(),
});

const SIGNED_HEADERS = ["webhook-id", "webhook-timestamp", "webhook-signature"] as const;

type Needed = Pick<Services, "paymentReports" | "creditWebhooks" | "bodies">;

export function addPaymentEventRoutes(route: Route, { paymentReports, creditWebhooks, bodies }: Needed, trustProxyHops: number): void {
  const readSigned = async ({ req }: Exchange): Promise<string> => {
    const allowance = bodies.allow({ kind: "anonymous" }, clientAddressOf(req, trustProxyHops), PAYMENT_EVENT_BYTES_MAX);
    try {
      return (await readBytesBody(req, allowance, PAYMENT_EVENT_BYTES_MAX)).toString("utf8");
    } finally {
      allowance.release();
    }
  };
  route("/webhooks/stripe", {
    POST: openEndpoint({
      id: "takeStripeEvent",
      tag: "Service",
      summary: "Takes an event of Stripe.",
      description:
        "Stripe sends it, with the signature of the endpoint's secret in the header Stripe-Signature. Events of unknown types are accepted. Answers 404 unless PAYMENTS is stripe.",
      answer: json("TakenEvent", taken),
      errors: ["400", "404", "413"],
      handler: async (exchange) => {
        if (!paymentReports.takesStripe) throw notFound("path");
        const signature = exchange.req.headers["stripe-signature"];
        const body = await readSigned(exchange);
        const result = await paymentReports.takeStripeEvent(body, typeof signature === "string" ? signature : "");
        return { received: true as const, result };
      },
    }),
  });
  route("/webhooks/credits", {
    POST: openEndpoint({
      id: "takeCreditsWebhook",
      tag: "Service",
      summary: "Adds credits that were paid for elsewhere.",
      description:
        "Any other payment processor sends `account` (an ID or handle) and `credits` as JSON, signed as Standard Webhooks has it: the headers webhook-id, webhook-timestamp and webhook-signature, by CREDITS_WEBHOOK_SECRET. An ID is credited once. Answers 404 unless the secret is set.",
      answer: json("CreditedWebhook", credited),
      errors: ["400", "401", "404", "409", "413"],
      handler: async (exchange) => {
        const { headers } = exchange.req;
        const body = await readSigned(exchange);
        const [id, timestamp, signature] = SIGNED_HEADERS.map((name) => String(headers[name] ?? ""));
        const taken = await creditWebhooks.take({ id: id ?? "", timestamp: timestamp ?? "", signature: signature ?? "", body });
        return { received: true as const, result: taken.result === "booked" ? "booked" : "unchanged", top_up_id: taken.topUpId } as const;
      },
    }),
  });
}
