/** Raises alerts: an alert, its webhooks and its event, once for each occurrence. */

import type { Clock } from "../../lib/clock.js";
import { createId } from "../../lib/ids.js";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import { toBody } from "../webhooks/messages.js";
import { type AlertDetails, alertMessage, describeAlert } from "./messages.js";
import type { AlertKind } from "./rules.js";

/** An occurrence that a rule has found. */
export interface FoundAlert {
  readonly accountId: string;
  /** Unique among the alerts of the account and the kind. */
  readonly occurrence: string;
  /** The id of a key, model or top-up; empty: the account. */
  readonly subjectId: string;
  readonly subjectName: string | null;
  readonly details: AlertDetails;
}

interface Raised {
  readonly id: string;
  readonly accountId: string;
  readonly isSilenced: boolean;
}

export class AlertRaiser {
  constructor(
    private readonly database: Database,
    private readonly events: Events,
    private readonly clock: Clock,
  ) {}

  /** Returns the number of new alerts. Leaves out known occurrences, and accounts whose rule is off. */
  async raise(kind: AlertKind, found: readonly FoundAlert[]): Promise<number> {
    if (found.length === 0) return 0;
    const now = this.clock.now();
    const alerts = found.map((each) => ({ ...each, id: createId() }));
    const bodies = alerts.map((alert) =>
      JSON.stringify(toBody(alertMessage({ ...alert, kind, createdAt: now, text: describeAlert(kind, alert) }))),
    );
    const column = <Value>(read: (alert: (typeof alerts)[number]) => Value) => alerts.map(read);
    const [ids, accountIds, subjectIds] = [
      column(({ id }) => id),
      column(({ accountId }) => accountId),
      column(({ subjectId }) => subjectId),
    ];
    const [occurrences, names] = [column(({ occurrence }) => occurrence), column(({ subjectName }) => subjectName)];
    const details = column((alert) => JSON.stringify(alert.details));
    const time = now.toISOString();
    const raised = await this.database.prisma.$queryRaw<Raised[]>`
      WITH found AS (
        SELECT * FROM unnest(${ids}::uuid[], ${accountIds}::uuid[], ${subjectIds}::text[], ${names}::text[], ${occurrences}::text[], ${details}::text[], ${bodies}::text[])
          AS f(id, account_id, subject_id, subject_name, occurrence, details, body)
        WHERE NOT EXISTS (SELECT FROM alert_rule r WHERE r.account_id = f.account_id AND r.kind = ${kind}::"AlertKind" AND NOT r.is_enabled)
          AND NOT EXISTS (SELECT FROM account_deletion x WHERE x.account_id = f.account_id)
      ), raised AS (
        INSERT INTO alert (id, account_id, kind, subject_id, subject_name, occurrence, details, is_silenced, created_at)
        SELECT f.id, f.account_id, ${kind}::"AlertKind", f.subject_id, f.subject_name, f.occurrence, f.details::jsonb, EXISTS (
          SELECT FROM alert_silence s WHERE s.account_id = f.account_id AND s.kind = ${kind}::"AlertKind" AND s.subject_id IN ('', f.subject_id)
            AND (s.until IS NULL OR s.until > ${time}::timestamptz)), ${time}::timestamptz
        FROM found f
        ON CONFLICT (account_id, kind, occurrence) DO NOTHING
        RETURNING id, account_id, is_silenced
      ), queued AS (
        INSERT INTO webhook_delivery (id, endpoint_id, event, event_key, payload, next_attempt_at, created_at)
        SELECT gen_random_uuid(), e.id, 'alert.raised', r.id::text, f.body::jsonb, ${time}::timestamptz, ${time}::timestamptz
        FROM raised r JOIN found f ON f.id = r.id
        JOIN webhook_endpoint e ON e.account_id = r.account_id AND e.is_enabled AND 'alert.raised' = ANY (e.events)
        WHERE NOT r.is_silenced
        ON CONFLICT (endpoint_id, event, event_key) DO NOTHING
        RETURNING 1
      )
      SELECT id::text, account_id::text AS "accountId", is_silenced AS "isSilenced" FROM raised`;
    for (const { id, accountId, isSilenced } of raised) {
      if (!isSilenced) this.events.publish("alert-raised", { accountId, alertId: id });
    }
    return raised.length;
  }
}
