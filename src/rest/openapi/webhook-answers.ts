/** What the routes about webhooks and low balances answer; a part of `answers.ts`. */
import * as z from "zod";

const nullableText = z.string().nullable();

const webhookEndpoint = z.object({
  id: z.string(),
  url: z.string(),
  events: z.array(z.string()),
  isEnabled: z.boolean(),
  disabledReason: z.enum(["gone", "failing"]).nullable().describe("Why the gateway disabled it."),
  failingSince: nullableText.describe("Since when every try has failed."),
  createdAt: z.string(),
});

const webhookDelivery = z.object({
  id: z.string().describe("The message's id: `webhook-id`."),
  event: z.string(),
  status: z.enum(["pending", "delivered", "failed"]),
  attempts: z.int().min(0),
  nextAttemptAt: nullableText,
  lastStatus: z.int().nullable(),
  lastError: nullableText,
  message: z.object({ type: z.string(), timestamp: z.string(), data: z.looseObject({}) }).describe("The body, as it is sent."),
  createdAt: z.string(),
  finishedAt: nullableText,
});

export const WEBHOOK_ANSWERS = {
  LowBalance: z.object({
    threshold: z.number().nullable().describe("Credits; null: not to be told."),
    since: nullableText.describe("Since when the balance has been below it."),
  }),
  WebhookEndpoint: webhookEndpoint,
  WebhookEndpointList: z.object({ data: z.array(webhookEndpoint) }),
  WebhookEndpointWithSecret: z.object({ ...webhookEndpoint.shape, secret: z.string().describe("`whsec_...`, shown this once.") }),
  DeletedWebhookEndpoint: z.object({ id: z.string(), deleted: z.literal(true) }),
  WebhookDelivery: webhookDelivery,
  WebhookDeliveryList: z.object({ data: z.array(webhookDelivery), nextCursor: nullableText, hasMore: z.boolean() }),
} as const satisfies Record<string, z.ZodType>;
