/** The request context: caller and request data, the first argument of every public service method. Knows no transport. */
import type { Logger } from "pino";
import type { RequestNote } from "./lib/request-note.js";

export type ApiKeyType = "secret" | "publishable";
/** Account permissions (docs/spec/keys.md#permissions); a key holds some, a session all. */
export type AccountPermission = "profile" | "balance" | "usage" | "keys";

/** An agent run for a caller: it may only generate, with the caller's rights, and its generations are part of the caller's. */
export interface AgentRun {
  /** The agent's own generation. */
  readonly parentRequestId: string;
  /**
   * Nanocredits: the most that all of the run's generations may cost. Null: not a run of an agent, bounded only by the caller's credits.
   */
  readonly maxCost: bigint | null;
  /** Safety features of the agent's own generation, which also apply to the generations of its run. Absent: none. */
  readonly safetyFeatures?: readonly string[] | undefined;
}

export interface AnonymousCaller {
  readonly kind: "anonymous";
}

/** When a vendor key is used: before the operator's keys, after them, or instead of them. */
export type VendorKeyUse = "before" | "after" | "only";

/** A vendor key that the caller's requests use (docs/spec/vendor-keys.md). */
export interface UsableVendorKey {
  readonly id: string;
  /** The id of the operator's upstream that gets it. */
  readonly vendor: string;
  /** Counts its secrets. */
  readonly version: number;
  readonly use: VendorKeyUse;
  /** Canonical ids; empty: every model of the vendor. */
  readonly models: readonly string[];
  /** The vendor has refused it, and has not accepted it since. */
  readonly isRefused: boolean;
  /** Null: it cannot be opened. A function, so that no log or copy of the caller has it. */
  readonly secret: () => string | null;
}

export type UsageLimitMetric = "credits" | "requests" | "tokens" | "concurrency";

/** A limit that renews and counts the caller's generations (docs/spec/usage-limits.md). Its amount and window are only in the database. */
export interface CallerLimit {
  readonly id: string;
  /** Null: of a model, over all accounts. */
  readonly accountId: string | null;
  readonly metric: UsageLimitMetric;
  /** False: of the whole account. */
  readonly isOfKey: boolean;
  /** The canonical id of the model that it counts. Null: every model. */
  readonly model: string | null;
  /** The length of a rolling window, at most. Null: a calendar window, or none. */
  readonly rollingMs: number | null;
  /** Percentages of it are reported. */
  readonly hasAlerts: boolean;
}

/** A request authenticated by an API key. Budgets are only in the database. */
export interface KeyCaller {
  readonly kind: "key";
  readonly accountId: string;
  readonly isOperator: boolean;
  readonly apiKeyId: string;
  readonly apiKeyName: string;
  readonly apiKeyType: ApiKeyType;
  readonly permissions: ReadonlySet<AccountPermission>;
  /** Canonical model ids and aliases as stored: a model must be in each list, of the key and its ancestors. No list: every model. */
  readonly modelLists: readonly (readonly string[])[];
  /** It only manages the keys below it. Absent: it does what its permissions say. */
  readonly isManagement?: boolean | undefined;
  /** The key or an ancestor has a budget. */
  readonly hasBudget: boolean;
  readonly expiresAt: Date | null;
  /** The address that the key was granted for (RFC 8707). Null or absent: not bound to one. */
  readonly resource?: string | null;
  /** The runs that the key is of, the innermost first. Absent: none. */
  readonly runIds?: readonly string[] | undefined;
  /** In the order of their creation. Absent: none. */
  readonly vendorKeys?: readonly UsableVendorKey[] | undefined;
  /** The app that the key, or a key above it, was granted to, if it takes a margin from this account. */
  readonly app?: EarningApp | undefined;
  /** Of the key, its ancestors and the account. Absent: none. */
  readonly limits?: readonly CallerLimit[] | undefined;
  /** Absent: not an agent run. */
  readonly run?: AgentRun | undefined;
}

/** An app that earns from what its key spends (docs/spec/earnings.md#apps). */
export interface EarningApp {
  /** The id of its app key. */
  readonly id: string;
  /** The account of its owner. */
  readonly accountId: string;
  /** Percent of the price, a whole number above 0. */
  readonly marginPercent: number;
}

/** A signed-in person, with every permission on their own account. */
export interface SessionCaller {
  readonly kind: "session";
  readonly accountId: string;
  readonly isOperator: boolean;
  readonly sessionId: string;
  /** As of a key. */
  readonly vendorKeys?: readonly UsableVendorKey[] | undefined;
  /** Of the account. Absent: none. */
  readonly limits?: readonly CallerLimit[] | undefined;
  /** Absent: not an agent run. */
  readonly run?: AgentRun | undefined;
}

export type Caller = AnonymousCaller | KeyCaller | SessionCaller;

/** Whether the request comes from an agent run, which works for its caller. */
export function isAgentAtWork(caller: Caller): boolean {
  return caller.kind !== "anonymous" && caller.run !== undefined;
}

/** Whether the caller's key only manages the keys below it. */
export function isManagementKey(caller: Caller): caller is KeyCaller & { readonly isManagement: true } {
  return caller.kind === "key" && caller.isManagement === true;
}

/** The runs that the caller works for, the innermost first; undefined: none. */
export function runIdsOf(caller: Caller): readonly string[] | undefined {
  return caller.kind === "key" ? caller.runIds : undefined;
}

export interface Leaving {
  /** Calls the listener once, or at once if the client has already disconnected. */
  onGone(listener: () => void): void;
}

export interface RequestContext {
  readonly caller: Caller;
  /** Sent back as X-Request-Id; chosen by the client or generated. Never identifies a charge: generations have their own ids. */
  readonly requestId: string;
  /** The client's address, as far as proxies are trusted; used for limits. */
  readonly clientAddress: string;
  /** The host of the request, with its port, as the client states it. Absent: none. */
  readonly host?: string | undefined;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
  /** The same as a callback, because a signal may be created on demand only. Absent: use the signal. */
  readonly leaving?: Leaving | undefined;
  readonly log: Logger;
  /** Data for the access log and metrics. Absent: not logged, as for generations of an agent within the process. */
  readonly note?: RequestNote | undefined;
  /** With an Idempotency-Key: the id of the first generation, stored before it begins. */
  readonly reservedId?: { take(): string | null } | undefined;
  /** Number of gateways that the request passed before; absent: none. Prevents loops through models whose upstream is a gateway. */
  readonly hops?: number | undefined;
  /** The input is large: code that walks through it yields to the event loop before and after. */
  readonly hasLargeInput?: boolean | undefined;
  /** The most that all generations of the request may cost. Absent: no such limit. */
  readonly maxCost?: MaxCost | undefined;
  /** What the request asks of the models and upstreams that may serve it. Absent: nothing. */
  readonly wishes?: RequestWishes | undefined;
  /** Asks for the price of the request's generation instead of the generation. */
  readonly quoting?: Quoting | undefined;
}

/** See docs/spec/routing.md#wishes. */
export interface RequestWishes {
  /** Parsed by `providerInput`. */
  readonly provider: ProviderWishes | null;
  /** Names of the caller's own fallbacks, tried after the requested model. */
  readonly models: readonly string[];
}

/** In OpenRouter's form. Absent or null: no such wish. */
export interface ProviderWishes {
  readonly order?: readonly string[] | null | undefined;
  readonly only?: readonly string[] | null | undefined;
  readonly ignore?: readonly string[] | null | undefined;
  readonly allow_fallbacks?: boolean | null | undefined;
  readonly sort?: "price" | "latency" | "throughput" | null | undefined;
  readonly max_price?: PriceLimits | null | undefined;
  readonly require_parameters?: boolean | null | undefined;
  readonly data_collection?: "allow" | "deny" | null | undefined;
  readonly quantizations?: readonly string[] | null | undefined;
}

/** Decimal credits: of a million tokens, of a request, of an image. */
export interface PriceLimits {
  readonly prompt?: string | null | undefined;
  readonly completion?: string | null | undefined;
  readonly request?: string | null | undefined;
  readonly image?: string | null | undefined;
}

/** Receives the quote, which is given where the generation would be held for. One object per request. */
export interface Quoting {
  quote: Quote | null;
}

/** In nanocredits. */
export interface CostRange {
  readonly least: bigint;
  readonly expected: bigint;
  readonly most: bigint;
}

/** The price of a generation, as far as it is known before it (docs/spec/quotes.md). */
export interface Quote extends CostRange {
  /** The canonical id. */
  readonly model: string;
  readonly routes: readonly (CostRange & { readonly upstream: string; readonly vendorKeyId?: string })[];
  /** The uncertainties, one sentence each. */
  readonly notes: readonly string[];
}

/** One object per request with a limit: all of its generations draw on it. */
export interface MaxCost {
  readonly nanocredits: bigint;
}

/**
 * Copies a context with changes, for a part of the request's work. The reserved id of the first generation is dropped unless given, as it
 * belongs to that generation only.
 */
export function deriveContext(ctx: RequestContext, changes: Partial<RequestContext>): RequestContext {
  const inherited = changes.signal ? { leaving: undefined } : {};
  return Object.create(ctx, Object.getOwnPropertyDescriptors({ reservedId: undefined, ...inherited, ...changes }));
}
