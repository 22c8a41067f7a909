/** Signatures of webhooks, as Standard Webhooks 1.0.0 has them: symmetric, version v1. */
import { createHmac, randomBytes } from "node:crypto";
import { WEBHOOK_SECRET_BYTES } from "./limits.js";

const SECRET_PREFIX = "whsec_";

export interface SignedHeaders {
  /** The same at every try: the receiver knows by it what it has had already. */
  readonly "webhook-id": string;
  /** Of the try, in whole seconds: the receiver refuses what is old. */
  readonly "webhook-timestamp": string;
  /** One for each secret, apart by spaces. */
  readonly "webhook-signature": string;
}

export function createWebhookSecret(): string {
  return SECRET_PREFIX + randomBytes(WEBHOOK_SECRET_BYTES).toString("base64");
}

export function signWebhook(secrets: readonly string[], message: { id: string; body: string; sentAt: Date }): SignedHeaders {
  const timestamp = String(Math.floor(message.sentAt.getTime() / 1000));
  const signed = `${message.id}.${timestamp}.${message.body}`;
  const signatures = secrets.map((secret) => `v1,${createHmac("sha256", keyOf(secret)).update(signed).digest("base64")}`);
  return { "webhook-id": message.id, "webhook-timestamp": timestamp, "webhook-signature": signatures.join(" ") };
}

function keyOf(secret: string): Buffer {
  return Buffer.from(secret.slice(SECRET_PREFIX.length), "base64");
}
