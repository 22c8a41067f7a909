/** Messages about an account that are queued together with their cause, in its transaction. The dispatcher finds them within seconds. */
import type { Database } from "../../store/database.js";
import { toBody, type WebhookMessage } from "./messages.js";

/** Queues a message once for each endpoint of the account that listens to its event. */
export async function queueForAccount(
  client: Pick<Database["prisma"], "$executeRaw">,
  accountId: string,
  message: WebhookMessage,
  now: Date,
): Promise<void> {
  const { event, key, timestamp } = message;
  const time = now.toISOString();
  await client.$executeRaw`
    INSERT INTO webhook_delivery (id, endpoint_id, event, event_key, payload, next_attempt_at, created_at)
    SELECT gen_random_uuid(), e.id, ${event}, ${key}, ${JSON.stringify(toBody(message))}::jsonb, ${time}::timestamptz, ${time}::timestamptz
    FROM webhook_endpoint e
    WHERE e.account_id = ${accountId}::uuid AND e.is_enabled AND ${event} = ANY (e.events) AND e.listens_since <= ${timestamp.toISOString()}::timestamptz
    ON CONFLICT (endpoint_id, event, event_key) DO NOTHING`;
}
