/** POST /v1/quote: the price of a generation before it (docs/spec/quotes.md). */
import * as z from "zod";
import { toQuoteObject } from "../../services/generation/quote.js";
import { quoteInput } from "../../services/generation/quotes.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { json } from "../openapi/answer.js";
import { calledModel, HELLO } from "../openapi/schemas.js";
import type { Route } from "../route.js";

const credits = z.string().describe("A decimal number of credits.");
const costs = { least: credits, expected: credits, most: credits };
const quotedRoute = z.object({
  upstream: z.string(),
  vendorKeyId: z.string().optional().describe("The vendor key of the account by which it is called. Absent: a key of the operator."),
  ...costs,
});

const quote = json(
  "Quote",
  z.object({
    ...costs,
    currency: z.literal("credits"),
    model: calledModel,
    routes: z.array(quotedRoute).describe("The upstreams that may serve it, in their order."),
    notes: z.array(z.string()).describe("The uncertainties, one sentence each."),
  }),
);

export function addQuoteRoutes(route: Route, endpoint: Endpoint, { quotes }: Pick<Services, "quotes">): void {
  route("/v1/quote", {
    POST: endpoint({
      id: "createQuote",
      tag: "Account",
      summary: "Returns what a generation would cost, without generating or charging.",
      description:
        "`path` is that of the generation, with its query, and `body` its body; a file of a form is a data URL. The request is checked as the generation itself, and its errors are the same, except that no credits are needed. `?quote=true` on the route of a generation answers the same.",
      answer: quote,
      example: { body: { path: "/v1/chat/completions", body: { model: "sandbox/text-paid", messages: HELLO, max_tokens: 100 } } },
      isForAgents: true,
      body: quoteInput,
      handler: async (ctx, { body }) => toQuoteObject(await quotes.quote(ctx, body)),
    }),
  });
}
