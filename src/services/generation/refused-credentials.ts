/**
 * An upstream that refuses the gateway's own credential, or the account behind it, is for the operator to put right, and no outage of a
 * model: it is told in the log, the first time and then at most once in a while for each upstream and status, without a word of the
 * upstream's and never the key. What accounts have registered is theirs to see to: their calls and probes are told.
 */
import type { Logger } from "pino";
import type { Clock } from "../../lib/clock.js";
import { REFUSED_CREDENTIAL_LOG_MS } from "../../limits.js";
import type { Model } from "../catalog/model.js";
import { isCredentialRefused } from "./upstream-errors.js";

interface Told {
  readonly at: number;
  /** Since it was told. */
  untold: number;
}

export class RefusedCredentials {
  /** By upstream and status: as many as the operator's catalog has upstreams, three times. */
  private readonly told = new Map<string, Told>();

  constructor(
    private readonly log: Logger,
    private readonly clock: Clock,
  ) {}

  /** Of any failed call. */
  note({ id, upstreamId, isCommunity }: Pick<Model, "id" | "upstreamId" | "isCommunity">, error: unknown): void {
    if (isCommunity || !isCredentialRefused(error)) return;
    const name = `${upstreamId} ${error.status}`;
    const now = this.clock.now().getTime();
    const last = this.told.get(name);
    if (last && now - last.at < REFUSED_CREDENTIAL_LOG_MS) {
      last.untold += 1;
      return;
    }
    this.told.set(name, { at: now, untold: 0 });
    const line = { event: "upstream-credential-refused", upstream: upstreamId, status: error.status, model: id };
    this.log.warn({ ...line, untold: last?.untold ?? 0 }, "an upstream refuses the credential that it is called with");
  }
}
