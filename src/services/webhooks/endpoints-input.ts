/** What is asked of webhook endpoints. One schema each, for both faces. */
import { z } from "zod";
import { storableText } from "../input.js";
import { WEBHOOK_EVENTS } from "./messages.js";

/** Whether it may be asked for is the outbound guard's to say, its length included. */
const url = storableText.min(1);
const events = z
  .array(z.enum(WEBHOOK_EVENTS))
  .min(1)
  .max(WEBHOOK_EVENTS.length)
  .refine((names) => new Set(names).size === names.length, "must not name an event twice");

export const createWebhookEndpointInput = z.strictObject({ url, events });
export type CreateWebhookEndpointInput = z.output<typeof createWebhookEndpointInput>;

export const updateWebhookEndpointInput = z.strictObject({ url, events, isEnabled: z.boolean() }).partial();
export type UpdateWebhookEndpointInput = z.output<typeof updateWebhookEndpointInput>;
