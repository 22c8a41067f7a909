/** What the operations about webhooks and low balances are called and do; a part of `operations.ts`. */
import type { Operation } from "./operation.js";

export const WEBHOOK_OPERATIONS = {
  "GET /account/balance/threshold": {
    id: "getLowBalanceThreshold",
    tag: "Account",
    summary: "The balance below which the account is told (permission `balance`).",
    answer: "LowBalance",
  },
  "PATCH /account/balance/threshold": {
    id: "setLowBalanceThreshold",
    tag: "Account",
    summary: "Changes the balance below which the account is told (a secret key with `keys`).",
    description: "Each fall below it is told once, by the webhook `balance.low` and the GraphQL subscription `balanceLow`.",
    answer: "LowBalance",
  },
  "GET /account/webhooks": { id: "listWebhooks", tag: "Webhooks", summary: "The account's endpoints.", answer: "WebhookEndpointList" },
  "POST /account/webhooks": {
    id: "createWebhook",
    tag: "Webhooks",
    summary: "Adds an endpoint. Its secret is shown this once.",
    answer: "WebhookEndpointWithSecret",
  },
  "PATCH /account/webhooks/{webhook}": {
    id: "updateWebhook",
    tag: "Webhooks",
    summary: "Changes an endpoint.",
    description: "Enabled again, or given other events, it is sent what happens from now on.",
    answer: "WebhookEndpoint",
  },
  "DELETE /account/webhooks/{webhook}": {
    id: "deleteWebhook",
    tag: "Webhooks",
    summary: "Removes an endpoint with its log.",
    answer: "DeletedWebhookEndpoint",
  },
  "POST /account/webhooks/{webhook}/rotate-secret": {
    id: "rotateWebhookSecret",
    tag: "Webhooks",
    summary: "Makes another secret, which is shown this once.",
    description: "For 24 hours messages are signed with the one before it too.",
    answer: "WebhookEndpointWithSecret",
  },
  "POST /account/webhooks/{webhook}/test": {
    id: "testWebhook",
    tag: "Webhooks",
    summary: "Sends the event `webhook.test`.",
    answer: "WebhookDelivery",
  },
  "GET /account/webhooks/{webhook}/deliveries": {
    id: "listWebhookDeliveries",
    tag: "Webhooks",
    summary: "What was sent and how it went, newest first.",
    answer: "WebhookDeliveryList",
  },
  "POST /account/webhooks/{webhook}/deliveries/{delivery}/redeliver": {
    id: "redeliverWebhook",
    tag: "Webhooks",
    summary: "Sends a message anew, under the same id.",
    answer: "WebhookDelivery",
  },
} as const satisfies Readonly<Record<string, Operation>>;
