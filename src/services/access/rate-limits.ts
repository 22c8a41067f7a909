/**
 * Rate limits (docs/spec/rate-limits.md#anonymous-requests). A secret key on a model without a limit is not counted, and takes no
 * asynchronous step.
 *
 * 1. Client address: requests that no good key or session authenticates.
 * 2. Publishable key at one address: generations a minute, and credits by the hour. A generation is admitted while the bucket is above
 *    zero, holds its highest cost until it is charged, and then pays its cost (`HourlyHold`): either may take the bucket below zero.
 * 3. Model with `perUserRpm`: generations of one account.
 *
 * Unspecified: the limit of the requested model counts, not those of its fallbacks. Requests of an agent for its caller are not counted, as
 * the call of the agent was.
 */
import type { KeyCaller, RequestContext, SessionCaller } from "../../context.js";
import { rateLimited } from "../../errors.js";
import { addressGroupOf } from "../../lib/client-address.js";
import { BUCKET_PER_HOUR_MAX, BUCKET_UNITS_MAX, type BucketRule, type Counters, type WindowRule } from "../../store/counters.js";
import type { Model } from "../catalog/model.js";
import { ANONYMOUS_WINDOW_SECONDS, HOURLY_HOLD_MORE_MS, PUBLISHABLE_BURST_HOURS, PUBLISHABLE_WINDOW_SECONDS } from "./limits.js";

export interface RateLimitSettings {
  readonly anonymousRequestsPer10Seconds: number;
  readonly publishableRequestsPerMinute: number;
  /** Nanocredits. */
  readonly publishableCreditsPerHour: bigint;
}

/** A model's bucket counts millionths of a request, so that any decimal of `perUserRpm` refills it. */
const REQUEST = 1_000_000;
const MINUTES_PER_HOUR = 60;

export class RateLimits {
  private readonly anonymous: WindowRule;
  private readonly publishable: WindowRule;
  /** In nanocredits. */
  private readonly publishableCredits: BucketRule;

  constructor(
    private readonly counters: Counters,
    settings: RateLimitSettings,
  ) {
    this.anonymous = { name: "anonymous", max: settings.anonymousRequestsPer10Seconds, seconds: ANONYMOUS_WINDOW_SECONDS };
    this.publishable = { name: "publishable", max: settings.publishableRequestsPerMinute, seconds: PUBLISHABLE_WINDOW_SECONDS };
    const perHour = bounded(Number(settings.publishableCreditsPerHour), BUCKET_PER_HOUR_MAX);
    this.publishableCredits = { perHour: Math.max(1, perHour), capacity: perHour * PUBLISHABLE_BURST_HOURS };
  }

  /** Counts an anonymous request. Rejects with RATE_LIMITED. */
  async countAnonymous(clientAddress: string): Promise<void> {
    const wait = await this.counters.count(this.anonymous, addressGroupOf(clientAddress));
    if (wait > 0) throw refusal("Too many requests without a valid API key from this address.", wait);
  }

  /** The counter name of a publishable key at an address; null for every other caller. */
  nameOf(caller: KeyCaller | SessionCaller, clientAddress: string): string | null {
    return caller.kind === "key" && caller.apiKeyType === "publishable" ? nameAt(caller, clientAddress) : null;
  }

  /** Counts a generation under the name from `nameOf`. Null when no limit applies; rejects with RATE_LIMITED. */
  admit(limitedAs: string | null, caller: KeyCaller | SessionCaller, model: Model): Promise<void> | null {
    return limitedAs === null && model.perUserRpm === null ? null : this.count(limitedAs, caller, model);
  }

  /** Makes the hourly hold of a generation that takes at most `totalMs`. */
  hourlyHold(limitedAs: string, generation: CountedGeneration, totalMs: number): HourlyHold {
    return new HourlyHold(this.counters, this.publishableCredits, limitedAs, generation, totalMs + HOURLY_HOLD_MORE_MS);
  }

  /** Nanocredits that a publishable key can spend at once. */
  get hourlyCreditsMax(): bigint {
    return BigInt(this.publishableCredits.capacity);
  }

  private async count(limitedAs: string | null, { accountId, run }: KeyCaller | SessionCaller, model: Model): Promise<void> {
    if (limitedAs !== null) {
      const window = run ? 0 : await this.counters.count(this.publishable, limitedAs);
      if (window > 0) throw refusal("Too many requests with this publishable key from this address.", window);
      const bucket = await this.counters.take(this.publishableCredits, limitedAs, 0, 1);
      if (bucket > 0) throw noHourlyCredits(bucket);
    }
    if (model.perUserRpm === null) return;
    const name = `model:${model.id}:${accountId}`;
    const wait = await this.counters.take(toBucketRule(model.perUserRpm), name, REQUEST, REQUEST);
    if (wait > 0) throw refusal(`The model ${model.id} takes ${model.perUserRpm} requests a minute from one account.`, wait);
  }
}

/** The identity of a hold. */
export interface CountedGeneration {
  readonly generationId: string;
  readonly request: Pick<RequestContext, "log">;
}

/** The hold of one generation on its key's hourly credits, from admission to charge. The counters release it when its process dies. */
export class HourlyHold {
  private heldNanocredits = 0n;
  private isConcluded = false;

  constructor(
    private readonly counters: Counters,
    private readonly rule: BucketRule,
    private readonly name: string,
    private readonly generation: CountedGeneration,
    private readonly ttlMs: number,
  ) {}

  /** Holds the highest cost. Rejects with RATE_LIMITED when all credits are spent or held. */
  async begin(nanocredits: bigint): Promise<void> {
    const wait = await this.take(nanocredits, 1, this.ttlMs);
    if (wait > 0) throw noHourlyCredits(wait);
    this.heldNanocredits = nanocredits;
  }

  /** Raises the hold; never refused, because the upstream has begun. */
  extendTo(nanocredits: bigint): void {
    if (this.isConcluded || nanocredits <= this.heldNanocredits) return;
    this.heldNanocredits = nanocredits;
    this.takeUnwatched(nanocredits, this.ttlMs);
  }

  /** Concludes the hold with the charge, or 0 for a failed generation. Only the first call counts. */
  conclude(nanocredits: bigint): void {
    if (this.isConcluded) return;
    this.isConcluded = true;
    if (nanocredits > 0n || this.heldNanocredits > 0n) this.takeUnwatched(nanocredits, 0);
  }

  /** Counters do not fail; if they did, the charge would stand. */
  private takeUnwatched(nanocredits: bigint, ttlMs: number): void {
    this.take(nanocredits, null, ttlMs).catch((error: unknown) => {
      this.generation.request.log.warn({ err: error }, "a charge was not counted against its key's hourly credits");
    });
  }

  private take(nanocredits: bigint, needed: number | null, ttlMs: number): Promise<number> {
    const units = bounded(Number(nanocredits), BUCKET_UNITS_MAX);
    return this.counters.take(this.rule, this.name, units, needed, { id: this.generation.generationId, ttlMs });
  }
}

function noHourlyCredits(waitMs: number): Error {
  return refusal("The hourly credits of this publishable key at this address are spent, or held for its requests under way.", waitMs);
}

function nameAt({ apiKeyId }: KeyCaller, clientAddress: string): string {
  return `${apiKeyId}:${addressGroupOf(clientAddress)}`;
}

/** Capacity: the requests of a minute, and at least one (docs/spec/rate-limits.md#requests-per-user). */
function toBucketRule(perUserRpm: number): BucketRule {
  const perHour = Math.max(1, bounded(Math.round(perUserRpm * REQUEST * MINUTES_PER_HOUR), BUCKET_PER_HOUR_MAX));
  return { perHour, capacity: bounded(Math.round(Math.max(1, perUserRpm) * REQUEST), BUCKET_UNITS_MAX) };
}

function refusal(message: string, waitMs: number): Error {
  return rateLimited(message, waitMs / 1000);
}

function bounded(number: number, max: number): number {
  return Math.min(number, max);
}
