import type { Logger } from "pino";
import type { Clock } from "../../lib/clock.js";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { Metrics } from "../metrics/metrics.js";
import { FailureRecorder } from "./failure-recorder.js";
import { FailureRetention } from "./failure-retention.js";
import { LiveRequests } from "./live-requests.js";
import { RequestLog } from "./request-log.js";

interface Infrastructure {
  readonly database: Database;
  readonly events: Events;
  readonly metrics: Pick<Metrics, "instruments">;
}

interface Settings {
  /** How long failures are kept, in days. 0: they are not recorded. */
  readonly requestLogDays: number;
  readonly statusOf: (code: string) => number;
}

export function createRequestLog({ database, events, metrics }: Infrastructure, settings: Settings, clock: Clock, log: Logger) {
  const { requestLogDays: days, statusOf } = settings;
  const retention = new FailureRetention(database, clock, days);
  const failureRecorder = new FailureRecorder({ database, events, retention, clock, log, statusOf, isOn: days > 0 });
  metrics.instruments.push(failureRecorder.counter);
  const requestLog = new RequestLog(database, clock);
  return { failureRecorder, failures: retention, logs: { requestLog, liveRequests: new LiveRequests(events, requestLog) } };
}
