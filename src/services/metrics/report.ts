/** Who may read the metrics: whoever sends the operator's token, or, without one, whoever asks where only this machine can. */
import { createHash, timingSafeEqual } from "node:crypto";
import { AppError, unauthenticated } from "../../errors.js";
import type { Access } from "../access/access.js";
import { readBearer } from "../access/bearer.js";
import type { Metrics } from "./metrics.js";

export interface MetricsSettings {
  /** Null: none is set. */
  readonly token: string | null;
  /** Nobody need send one. */
  readonly isOpen: boolean;
}

export class MetricsReport {
  constructor(
    private readonly metrics: Pick<Metrics, "read">,
    private readonly settings: MetricsSettings,
    private readonly access: Pick<Access, "authenticate">,
  ) {}

  /** In Prometheus's text format. Rejects with UNAUTHORIZED, RATE_LIMITED for who guesses, and NOT_FOUND where nobody may read them. */
  async read(authorization: string | undefined, clientAddress: string): Promise<string> {
    const { token, isOpen } = this.settings;
    if (!isOpen && (token === null || !isToken(authorization, token))) {
      // Counted as a wrong key is.
      await this.access.authenticate(null, clientAddress);
      throw refusalOf(token, authorization);
    }
    return this.metrics.read();
  }
}

function refusalOf(token: string | null, authorization: string | undefined): AppError {
  if (token === null) return new AppError("NOT_FOUND", "This gateway shows no metrics: its operator has not set METRICS_TOKEN.");
  if (authorization === undefined)
    return unauthenticated("Metrics are read with the gateway's METRICS_TOKEN: Authorization: Bearer <token>.");
  return unauthenticated("This is not the gateway's METRICS_TOKEN. API keys do not read metrics.");
}

/** In the same time whatever was sent: hashes are of one length, and say nothing about how much of it was right. */
function isToken(authorization: string | undefined, token: string): boolean {
  if (authorization === undefined) return false;
  const sent = createHash("sha256").update(readBearer(authorization)).digest();
  return timingSafeEqual(sent, createHash("sha256").update(token).digest());
}
