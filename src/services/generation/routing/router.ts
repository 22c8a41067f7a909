/**
 * Chooses the candidates of a request: the routes of its model, then those of the fallbacks (docs/spec/routing.md). Keeps the state of
 * routes, for models that have several or limits of them: the one route of another model costs nothing here.
 */
import type { UsableVendorKey } from "../../../context.js";
import { AppError, type ErrorCode, upstreamFailed } from "../../../errors.js";
import { ProviderError } from "../../../formats/upstream-error.js";
import type { Clock } from "../../../lib/clock.js";
import { systemClock } from "../../../lib/clock.js";
import type { Events } from "../../../store/events.js";
import type { RouteStates } from "../../../store/route-states.js";
import type { Model } from "../../catalog/model.js";
import { type RequestFields, takesFields } from "../../catalog/request-rates.js";
import type { Route } from "../../catalog/route.js";
import type { AttemptCode, Candidate } from "./candidate.js";
import { Conversations, conversationOf } from "./conversations.js";
import { RouteHealth, type RouteStatus, type Wait, type WaitCode } from "./health.js";
import { LimitShares } from "./limit-shares.js";
import { NO_WISHES, orderRoutes, type RouteWishes, type RoutingSnapshot, type WaitingRoute } from "./order.js";
import { Announcer, learnFromOthers, learnStored, type SharedBy } from "./sharing.js";
import { RouteTimes, type TimesOfRoute } from "./times.js";

export interface Routed {
  readonly accountId: string;
  readonly model: Model;
  /** Fallbacks that may serve. */
  readonly fallbacks: readonly Model[];
  /** Fields that reach the upstream. */
  readonly fields: RequestFields;
  readonly wishes?: RouteWishes | undefined;
}

/** How a vendor took a key: refusals that concern the key itself, and answers. */
export type VendorKeyResult = "ok" | Extract<AttemptCode, "credential_refused" | "payment_required">;

export interface RouterOptions {
  readonly clock?: Clock;
  /** At least 0 and less than 1. */
  readonly random?: () => number;
  /** Tells other processes about cool-downs, circuits and times. */
  readonly events?: Pick<Events, "publish" | "listenToOthers">;
  /** Where processes keep limits together; null: each keeps them alone. */
  readonly states?: RouteStates | null;
  /** Unique to this process. */
  readonly processId?: string;
  /** Counts the ends of attempts; `result` is `ok` or the code. */
  readonly onAttempt?: (upstream: string, result: AttemptCode | "ok") => void;
  /** A call by a vendor key of the account has ended. */
  readonly onVendorKeyUsed?: ((key: UsableVendorKey, result: VendorKeyResult) => void) | undefined;
}

export class Router implements RoutingSnapshot {
  readonly random: () => number;
  readonly onAttempt: NonNullable<RouterOptions["onAttempt"]>;
  private readonly onVendorKeyUsed: RouterOptions["onVendorKeyUsed"];
  private readonly health: RouteHealth;
  private readonly times: RouteTimes;
  private readonly conversations: Conversations;

  private readonly shares: LimitShares | null;
  private readonly sharedBy: SharedBy;

  constructor(options: RouterOptions = {}) {
    const { clock = systemClock, random = Math.random, events, states = null, processId = "", onAttempt = () => undefined } = options;
    this.onVendorKeyUsed = options.onVendorKeyUsed;
    this.random = random;
    this.onAttempt = onAttempt;
    this.sharedBy = { events, states, clock };
    const announcer = new Announcer(this.sharedBy);
    this.shares = states && new LimitShares(states, processId, () => clock.now().getTime());
    this.health = new RouteHealth(clock, {
      onChange: (change, times) => announcer.healthChanged(change, times),
      onRecovery: (kind, id) => announcer.recovered(kind, id),
      shares: this.shares,
    });
    this.times = new RouteTimes(clock, (change) => announcer.timesMeasured(change));
    this.conversations = new Conversations(clock);
    learnFromOthers(this.sharedBy, this.health, this.times);
  }

  /** Reads the state that other processes have left, takes shares of the limits, and goes on in the background. Waits at most a second. */
  async open(models: readonly Model[]): Promise<void> {
    this.watch(models);
    await Promise.all([learnStored(this.sharedBy, this.health, this.times), this.shares?.start()]);
  }

  /** Shares of the limits of these models are taken ahead of their first calls. */
  watch(models: readonly Model[]): void {
    if (this.shares === null) return;
    for (const { routes } of models) for (const route of routes) this.health.watch(route);
  }

  /** Exchanges shares of limits with the other processes now. */
  async exchange(): Promise<void> {
    await this.shares?.exchange();
  }

  /** Gives its shares back. */
  async close(): Promise<void> {
    await this.shares?.close();
  }

  waitOf(route: Route): Wait | null {
    return this.health.waitOf(route);
  }

  statusOf(route: Route): RouteStatus {
    return this.health.statusOf(route);
  }

  timesOf(route: Route): TimesOfRoute {
    return this.times.of(route);
  }

  measuredAtOf(route: Route): number {
    return this.times.measuredAtOf(route);
  }

  /**
   * In the order of attempts; empty when no route may get all of the fields. Throws UPSTREAM_ERROR with `details.reasons` when routes could
   * serve, and none may be called now.
   */
  candidatesOf({ accountId, model, fallbacks, fields, wishes = NO_WISHES }: Routed): readonly Candidate[] {
    const [first, ...others] = model.routes;
    if (others.length === 0 && fallbacks.length === 0 && !wishes.accepts && first.limits === null) return [{ model, route: first }];
    const candidates: Candidate[] = [];
    const waiting: WaitingRoute[] = [];
    for (const each of fallbacks.length === 0 ? [model] : [model, ...fallbacks]) {
      // The model's only route has been checked with the request.
      const isChecked = each === model && others.length === 0;
      const conversation = each.routes.length > 1 && each.modality === "text" ? conversationOf(accountId, each.id, fields) : null;
      const preferred = conversation === null ? null : this.conversations.routeOf(conversation);
      const ordered = orderRoutes(each, { ...(isChecked ? wishes : taking(fields, wishes)), preferred }, this);
      for (const route of ordered.ready) candidates.push({ model: each, route, conversation });
      for (const one of ordered.waiting) waiting.push(one);
    }
    if (candidates.length === 0 && waiting.length > 0) throw refuseWaiting(model, waiting);
    return candidates;
  }

  /** A call begins: null, or the wait without which it may not. `ended` must follow once. */
  begin(candidate: Candidate): Wait | null {
    return isWatched(candidate) ? this.health.begin(candidate.route) : null;
  }

  /** An upstream has begun to answer, or has answered, after that many milliseconds. */
  answered(candidate: Candidate, ms: number): void {
    const { route, conversation } = candidate;
    // Attempts by vendor keys are no concern of the operator, whose metrics are by upstream.
    if (route.vendorKey) this.onVendorKeyUsed?.(route.vendorKey.key, "ok");
    else this.onAttempt(route.upstreamName, "ok");
    if (!isWatched(candidate)) return;
    this.health.succeeded(route);
    this.times.noteFirst(route, ms);
    if (conversation != null) this.conversations.note(conversation, route.id);
  }

  failed(candidate: Candidate, error: unknown, code: AttemptCode): void {
    const { vendorKey } = candidate.route;
    const status = error instanceof ProviderError ? error.status : undefined;
    // A 403 may be about the model or the region.
    if (vendorKey && (status === 401 || status === 402)) {
      this.onVendorKeyUsed?.(vendorKey.key, status === 401 ? "credential_refused" : "payment_required");
    }
    if (!vendorKey) this.onAttempt(candidate.route.upstreamName, code);
    if (isWatched(candidate)) this.health.failed(candidate.route, error);
  }

  /** The call was left, because another one was faster. `ms`: its time without an answer, where that says something about the route. */
  lost(candidate: Candidate, ms: number | null): void {
    const { route } = candidate;
    this.onAttempt(route.upstreamName, "hedged");
    if (!isWatched(candidate)) return;
    this.health.left(route);
    if (ms !== null) this.times.noteFirst(route, ms);
  }

  ended(candidate: Candidate, tokens: number): void {
    if (isWatched(candidate)) this.health.ended(candidate.route, tokens);
  }

  /** Output tokens that came in that time, in milliseconds. */
  measured(candidate: Candidate, ms: number, outputTokens: number): void {
    if (isWatched(candidate)) this.times.noteTokens(candidate.route, ms, outputTokens);
  }
}

interface RouterDependencies {
  readonly events: Events;
  readonly routeStates: RouteStates | null;
  readonly processId: string;
  readonly metrics: { readonly routes: { attempted(upstream: string, result: AttemptCode | "ok"): void } };
  readonly usableVendorKeys: { noteUse(key: UsableVendorKey, result: VendorKeyResult): void };
}

/** The router of a process. */
export function createRouter(dependencies: RouterDependencies, clock: Clock): Router {
  const { events, routeStates: states, processId, metrics, usableVendorKeys } = dependencies;
  return new Router({
    ...{ clock, events, states, processId },
    onAttempt: (upstream, result) => metrics.routes.attempted(upstream, result),
    onVendorKeyUsed: (key, result) => usableVendorKeys.noteUse(key, result),
  });
}

/** State is kept of routes beside which there are others, and of those with limits. */
export function isWatched({ model, route }: Candidate): boolean {
  return model.routes.length > 1 || route.limits !== null;
}

function taking(fields: RequestFields, { accepts, ...wishes }: RouteWishes): RouteWishes {
  const takes = (model: Model, route: Route) => takesFields(model, route, fields) && (accepts === undefined || accepts(model, route));
  return { ...wishes, accepts: takes };
}

/** Why one upstream was not used, for errors. */
export interface RouteReason {
  /** The upstream, as shown to callers. */
  readonly route: string;
  readonly code: AttemptCode | WaitCode;
  readonly retryAfterSeconds: number | null;
  /** The vendor key of the account that was refused or may not be called; absent: a key of the operator. */
  readonly vendorKeyId?: string;
}

function refuseWaiting({ id }: Model, waiting: readonly WaitingRoute[]): AppError {
  const reasons = joinReasons(waiting.map(({ route, wait }) => toReason(route, wait.code, wait.ms)));
  return upstreamFailed(`No upstream of ${id} can be called now. details.reasons says why, and when to try again.`, {
    details: { reasons },
    ...soonestOf(reasons),
  });
}

/** The other codes are the request's own faults. */
const ENDED_UPSTREAM: ReadonlySet<ErrorCode> = new Set(["UPSTREAM_ERROR", "UPSTREAM_TIMEOUT"]);

/** The failure with all reasons, and the soonest time to try again. */
export function withReasons(failure: unknown, reasons: readonly RouteReason[]): unknown {
  const all = joinReasons(reasons);
  if (failure === undefined)
    return upstreamFailed("No upstream of the model can be called now.", { details: { reasons: all }, ...soonestOf(all) });
  if (!(failure instanceof AppError) || !ENDED_UPSTREAM.has(failure.code)) return failure;
  const { code, message, param, details, retryAfterSeconds } = failure;
  return new AppError(code, message, {
    cause: failure.cause,
    ...(param !== undefined && { param }),
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    ...soonestOf(all),
    isFinal: failure.isFinal,
    details: { ...details, reasons: all },
  });
}

export function toReason({ upstreamName, vendorKey }: Route, code: RouteReason["code"], ms: number | null): RouteReason {
  const retryAfterSeconds = ms === null ? null : Math.max(1, Math.ceil(ms / 1_000));
  return { route: upstreamName, code, retryAfterSeconds, ...(vendorKey && { vendorKeyId: vendorKey.key.id }) };
}

/** Once for each upstream and code, with the soonest time. */
export function joinReasons(reasons: readonly RouteReason[]): readonly RouteReason[] {
  const joined = new Map<string, RouteReason>();
  for (const reason of reasons) {
    const key = `${reason.route} ${reason.code} ${reason.vendorKeyId ?? ""}`;
    const known = joined.get(key);
    if (!known || (reason.retryAfterSeconds ?? Number.MAX_VALUE) < (known.retryAfterSeconds ?? Number.MAX_VALUE)) joined.set(key, reason);
  }
  return [...joined.values()];
}

export function soonestOf(reasons: readonly RouteReason[]): { readonly retryAfterSeconds?: number } {
  const times = reasons.map(({ retryAfterSeconds }) => retryAfterSeconds).filter((seconds) => seconds !== null);
  return times.length === 0 ? {} : { retryAfterSeconds: times.reduce((soonest, seconds) => Math.min(soonest, seconds)) };
}
