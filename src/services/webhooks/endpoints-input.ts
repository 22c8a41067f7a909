/** What is asked of webhook endpoints. One schema each, for both faces. */
import { z } from "zod";
import { distinct, storableText } from "../requests/input.js";
import { WEBHOOK_EVENTS } from "./messages.js";

/** Whether it may be asked for is the outbound guard's to say, its length included. */
const url = storableText.min(1).meta({ pattern: "^https?://[^/?#\\s\\u0000][^\\s\\u0000]*$" });
const events = distinct(z.array(z.enum(WEBHOOK_EVENTS)).min(1).max(WEBHOOK_EVENTS.length));

export const createWebhookEndpointInput = z.strictObject({ url, events });
export type CreateWebhookEndpointInput = z.output<typeof createWebhookEndpointInput>;

export const updateWebhookEndpointInput = z.strictObject({ url, events, isEnabled: z.boolean() }).partial();
export type UpdateWebhookEndpointInput = z.output<typeof updateWebhookEndpointInput>;
