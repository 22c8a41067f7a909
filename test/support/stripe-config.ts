/** The configuration of a gateway that sells at a test's own Stripe. */
import { parseConfig } from "../../src/config/config.js";
import type { FakeStripe } from "./fake-stripe.js";

/** Another secret of the endpoint, as while one is replaced. */
export const OLD_WEBHOOK_SECRET = "whsec_theSecretBeforeTheRotation";

export function stripeConfig({ url, key, webhookSecret }: FakeStripe, more: Readonly<Record<string, string>> = {}) {
  const secrets = `${webhookSecret},${OLD_WEBHOOK_SECRET}`;
  const env = { PAYMENTS: "stripe", STRIPE_API_URL: url, STRIPE_SECRET_KEY: key, STRIPE_WEBHOOK_SECRET: secrets };
  const { payments, sales } = parseConfig({ ...env, ...more });
  return { payments, sales };
}
