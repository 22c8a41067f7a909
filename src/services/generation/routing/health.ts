/**
 * The state of routes (docs/spec/routing.md#health), for models with several of them or with limits: keys that cool down, circuits of
 * upstreams, and limits that are kept. Each process keeps its own, learns cool-downs and open circuits from the others, and has its share of
 * the limits.
 */
import { LRUCache } from "lru-cache";
import { ProviderError } from "../../../formats/upstream-error.js";
import { entriesMax } from "../../../lib/bounded.js";
import type { Clock } from "../../../lib/clock.js";
import type { Route } from "../../catalog/route.js";
import type { AttemptCode } from "./candidate.js";
import type { LimitShares } from "./limit-shares.js";

/** Why a route may not be called now. */
export type WaitCode = Extract<AttemptCode, "credential_refused" | "payment_required" | "rate_limited"> | "circuit_open" | "limit_reached";

export interface Wait {
  readonly code: WaitCode;
  /** Milliseconds, above 0. */
  readonly ms: number;
}

/** A change for the other processes. `until` is in milliseconds since 1970. */
export interface HealthChange {
  readonly kind: "key" | "circuit";
  /** Of a key, or of a key's model; of an upstream. */
  readonly id: string;
  readonly code: WaitCode;
  readonly until: number;
}

/** Unspecified: a first cool-down doubles up to the longest, and an upstream's Retry-After counts between 1 second and that. */
const RATE_LIMITED_MS = { first: 1_000, longest: 300_000 };
const REFUSED_MS = { first: 30_000, longest: 600_000 };
/** Unspecified: a circuit opens at that many failures, and that share of all calls, of the last half minute or so. */
const FAILURES_MIN = 5;
const FAILURE_SHARE = 0.5;
const HALF_LIFE_MS = 10_000;
const OPEN_MS = { first: 5_000, longest: 120_000 };
/** A probe that has not ended by then is given up. */
const PROBE_MS = 30_000;
/** Unspecified: keys, circuits or measured routes that a process remembers; accounts add vendor keys, and change them. */
export const ROUTE_STATES_MAX = 10_000;
const MINUTE_MS = 60_000;
/** Until a call under way may have ended. */
const SHORT_MS = 1_000;

interface Cooldown {
  readonly code: WaitCode;
  readonly until: number;
  readonly times: number;
}

interface Circuit {
  failures: number;
  successes: number;
  at: number;
  /** 0: closed. After it, one probe at a time is let through. */
  openUntil: number;
  times: number;
  probingUntil: number;
}

interface Use {
  minute: number;
  requests: number;
  tokens: number;
  running: number;
}

export interface HealthOptions {
  /** `times`: how often in a row it came. */
  readonly onChange?: (change: HealthChange, times: number) => void;
  /** A key or an upstream that was left answers again. */
  readonly onRecovery?: (kind: HealthChange["kind"], id: string) => void;
  /** Null: the process keeps the limits alone. */
  readonly shares?: LimitShares | null;
}

/** The state of a route in this process, for operators. Times are milliseconds since 1970. */
export interface RouteStatus {
  /** `half_open`: one call at a time probes the upstream. */
  readonly circuit: "closed" | "open" | "half_open";
  /** Null: the circuit is not open. */
  readonly openUntil: number | null;
  /** Why the key, or its model, is not called; null: it does not cool down. */
  readonly coolingDown: { readonly code: WaitCode; readonly until: number } | null;
  /** Calls under way, and requests and tokens of this minute; null: not counted, as the route has no limits. */
  readonly use: { readonly running: number; readonly requests: number; readonly tokens: number } | null;
}

export class RouteHealth {
  private readonly onChange: NonNullable<HealthOptions["onChange"]>;
  private readonly onRecovery: NonNullable<HealthOptions["onRecovery"]>;
  private readonly shares: LimitShares | null;
  private readonly cooldowns = new LRUCache<string, Cooldown>(entriesMax(ROUTE_STATES_MAX));
  private readonly circuits = new LRUCache<string, Circuit>(entriesMax(ROUTE_STATES_MAX));
  private readonly uses = new Map<string, Use>();

  constructor(
    private readonly clock: Clock,
    { onChange = () => undefined, onRecovery = () => undefined, shares = null }: HealthOptions = {},
  ) {
    this.onChange = onChange;
    this.onRecovery = onRecovery;
    this.shares = shares;
  }

  /** Takes shares of its limits ahead of its first call, or of its changed ones. */
  watch(route: Route): void {
    if (route.limits === null) return;
    this.useOf(route, this.now());
    this.shares?.relimit(callIdOf(route), route.limits);
  }

  /** Null: it may be called now. */
  waitOf(route: Route): Wait | null {
    const now = this.now();
    return (
      this.cooldownOf(route.keyId, now) ?? this.cooldownOf(callIdOf(route), now) ?? this.circuitOf(route, now) ?? this.limitOf(route, now)
    );
  }

  /** Changes nothing. */
  statusOf(route: Route): RouteStatus {
    const now = this.now();
    const circuit = this.circuits.get(route.upstreamId);
    const isOpened = circuit !== undefined && circuit.openUntil > 0;
    const isOpen = isOpened && circuit.openUntil > now;
    const coolingDown = [this.cooldowns.get(route.keyId), this.cooldowns.get(callIdOf(route))].find((one) => one && one.until > now);
    const known = this.uses.get(callIdOf(route));
    const isOfMinute = known?.minute === Math.floor(now / MINUTE_MS);
    const minute = isOfMinute ? { requests: known.requests, tokens: known.tokens } : { requests: 0, tokens: 0 };
    return {
      circuit: isOpen ? "open" : isOpened ? "half_open" : "closed",
      openUntil: isOpen ? circuit.openUntil : null,
      coolingDown: coolingDown === undefined ? null : { code: coolingDown.code, until: coolingDown.until },
      use: route.limits === null ? null : { running: known?.running ?? 0, ...minute },
    };
  }

  /** Counts a call that begins; or the wait without which it may not. `ended` must follow. */
  begin(route: Route): Wait | null {
    const wait = this.waitOf(route);
    if (wait !== null) return wait;
    const now = this.now();
    const circuit = this.circuits.get(route.upstreamId);
    if (circuit && circuit.openUntil > 0) circuit.probingUntil = now + PROBE_MS;
    if (route.limits === null) return null;
    const use = this.useOf(route, now);
    use.requests += 1;
    use.running += 1;
    this.shares?.noteUse(callIdOf(route), use);
    return null;
  }

  /** `tokens` of its prompt and answer. */
  ended(route: Route, tokens: number): void {
    if (route.limits === null) return;
    const use = this.useOf(route, this.now());
    use.running = Math.max(0, use.running - 1);
    use.tokens += tokens;
    this.shares?.noteUse(callIdOf(route), use);
  }

  /** A call ended without a result. A probe is due again. */
  left(route: Route): void {
    this.ended(route, 0);
    const circuit = this.circuits.get(route.upstreamId);
    if (circuit) circuit.probingUntil = 0;
  }

  succeeded(route: Route): void {
    this.forgetCooldown(route.keyId);
    this.forgetCooldown(callIdOf(route));
    const circuit = this.circuits.get(route.upstreamId);
    if (!circuit) return;
    if (circuit.openUntil > 0) this.closeCircuit(route.upstreamId);
    else this.count(circuit).successes += 1;
  }

  /** Failures that are the request's fault change nothing. */
  failed(route: Route, error: unknown): void {
    if (!(error instanceof ProviderError)) return;
    const status = error.kind === "status" ? (error.status ?? 500) : null;
    if (status === 401) this.coolDown(route.keyId, "credential_refused", REFUSED_MS, null);
    else if (status === 402) this.coolDown(route.keyId, "payment_required", REFUSED_MS, null);
    else if (status === 429) this.coolDown(callIdOf(route), "rate_limited", RATE_LIMITED_MS, error.retryAfterSeconds ?? null);
    else if (status === null || status >= 500 || status === 408) this.countFailure(route);
    else this.probeAnswered(route);
  }

  /** Of another process. `times`: how often in a row it came. */
  learn({ kind, id, code, until: stated }: HealthChange, times = 1): void {
    const until = Math.min(stated, this.now() + REFUSED_MS.longest);
    if (kind === "key") {
      const known = this.cooldowns.get(id);
      if (!known || known.until < until) this.cooldowns.set(id, { code, until, times: Math.max(known?.times ?? 1, times) });
      return;
    }
    const circuit = this.circuits.get(id) ?? this.newCircuit(id);
    circuit.openUntil = Math.max(circuit.openUntil, until);
    circuit.times = Math.max(circuit.times, times);
  }

  private forgetCooldown(id: string): void {
    if (this.cooldowns.delete(id)) this.onRecovery("key", id);
  }

  private closeCircuit(upstreamId: string): void {
    this.circuits.delete(upstreamId);
    this.onRecovery("circuit", upstreamId);
  }

  private cooldownOf(id: string, now: number): Wait | null {
    const cooldown = this.cooldowns.get(id);
    return cooldown && cooldown.until > now ? { code: cooldown.code, ms: cooldown.until - now } : null;
  }

  private circuitOf({ upstreamId }: Route, now: number): Wait | null {
    const circuit = this.circuits.get(upstreamId);
    if (!circuit || circuit.openUntil === 0) return null;
    const until = Math.max(circuit.openUntil, circuit.probingUntil);
    return until > now ? { code: "circuit_open", ms: until - now } : null;
  }

  private limitOf(route: Route, now: number): Wait | null {
    if (route.limits === null) return null;
    const use = this.useOf(route, now);
    const { requests, tokens, running } = use;
    const allowed = this.shares?.allowed(callIdOf(route)) ?? null;
    const rpm = leastOf(allowed?.rpm, route.limits.rpm);
    const tpm = leastOf(allowed?.tpm, route.limits.tpm);
    const concurrent = leastOf(allowed?.concurrent, route.limits.concurrent);
    const isBusy = concurrent !== null && running >= concurrent;
    const hasNoRequests = rpm !== null && requests >= rpm;
    const hasNoTokens = tpm !== null && tokens >= tpm;
    if (!isBusy && !hasNoRequests && !hasNoTokens) return null;
    if (isBusy || hasNoRequests) this.shares?.noteUse(callIdOf(route), use);
    // The next exchange may bring units of the others.
    const isForMinute = hasNoTokens || (hasNoRequests && (allowed === null || allowed.isUsedUp));
    return { code: "limit_reached", ms: isForMinute ? MINUTE_MS - (now % MINUTE_MS) : SHORT_MS };
  }

  private coolDown(id: string, code: WaitCode, { first, longest }: typeof REFUSED_MS, retryAfterSeconds: number | null): void {
    const now = this.now();
    const known = this.cooldowns.get(id);
    // Calls that began before it are not counted again.
    if (known && known.until > now && retryAfterSeconds === null) return;
    const times = (known?.times ?? 0) + 1;
    const asked = retryAfterSeconds === null ? null : retryAfterSeconds * 1_000;
    const ms = asked === null ? Math.min(longest, first * 2 ** Math.min(times - 1, 20)) : Math.min(longest, Math.max(1_000, asked));
    const until = Math.max(now + ms, known?.until ?? 0);
    this.cooldowns.set(id, { code, until, times });
    this.onChange({ kind: "key", id, code, until }, times);
  }

  private countFailure({ upstreamId }: Route): void {
    const now = this.now();
    const circuit = this.count(this.circuits.get(upstreamId) ?? this.newCircuit(upstreamId));
    circuit.failures += 1;
    const isProbe = circuit.openUntil > 0 && circuit.openUntil <= now;
    const share = circuit.failures / (circuit.failures + circuit.successes);
    if (circuit.openUntil > now) return;
    if (!isProbe && (circuit.failures < FAILURES_MIN || share < FAILURE_SHARE)) return;
    circuit.openUntil = now + Math.min(OPEN_MS.longest, OPEN_MS.first * 2 ** Math.min(circuit.times, 20));
    circuit.times += 1;
    circuit.probingUntil = 0;
    this.onChange({ kind: "circuit", id: upstreamId, code: "circuit_open", until: circuit.openUntil }, circuit.times);
  }

  /** The upstream answered a probe, if only with a refusal. */
  private probeAnswered({ upstreamId }: Route): void {
    const circuit = this.circuits.get(upstreamId);
    if (circuit && circuit.openUntil > 0 && circuit.openUntil <= this.now()) this.closeCircuit(upstreamId);
  }

  private newCircuit(upstreamId: string): Circuit {
    const circuit = { failures: 0, successes: 0, at: this.now(), openUntil: 0, times: 0, probingUntil: 0 };
    this.circuits.set(upstreamId, circuit);
    return circuit;
  }

  /** Its counts, decayed to now. */
  private count(circuit: Circuit): Circuit {
    const now = this.now();
    const decay = 0.5 ** ((now - circuit.at) / HALF_LIFE_MS);
    circuit.failures *= decay;
    circuit.successes *= decay;
    circuit.at = now;
    return circuit;
  }

  private useOf(route: Route, now: number): Use {
    const id = callIdOf(route);
    const minute = Math.floor(now / MINUTE_MS);
    let use = this.uses.get(id);
    if (!use) {
      use = { minute, requests: 0, tokens: 0, running: 0 };
      this.uses.set(id, use);
      if (route.limits !== null) this.shares?.track(id, route.limits, () => this.useOf(route, this.now()));
    }
    if (use.minute !== minute) Object.assign(use, { minute, requests: 0, tokens: 0 });
    return use;
  }

  private now(): number {
    return this.clock.now().getTime();
  }
}

/** Null: no limit. */
function leastOf(share: number | null | undefined, limit: number | null): number | null {
  return share == null || limit === null ? (share ?? limit) : Math.min(share, limit);
}

/** A key's model at the upstream: vendors limit requests by both. */
export function callIdOf({ keyId, upstreamModel }: Pick<Route, "keyId" | "upstreamModel">): string {
  return `${keyId} ${upstreamModel}`;
}
