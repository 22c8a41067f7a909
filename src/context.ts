/** Who asks, and with what: the first argument of every public service method. Knows no transport. */
import type { Logger } from "pino";
import type { RequestNote } from "./lib/request-note.js";

export type ApiKeyType = "secret" | "publishable";
/** Account permissions (docs/spec/keys.md#permissions); a key holds some, a session all. */
export type AccountPermission = "profile" | "balance" | "usage" | "keys";

/** An agent at work for a caller: it may generate what they may, and nothing else; every generation of it is part of theirs. */
export interface AgentRun {
  /** The agent's own generation. */
  readonly parentRequestId: string;
  /** Nanocredits: what everything that it asks for may cost in all. Null: it is no agent's, and only what its caller has bounds it. */
  readonly maxCost: bigint | null;
  /** Safety features of the agent's own generation: all that it asks for goes through them too. Absent: none. */
  readonly safetyFeatures?: readonly string[] | undefined;
}

export interface AnonymousCaller {
  readonly kind: "anonymous";
}

/** A request authenticated by an API key. Budgets are not here: only the database knows them. */
export interface KeyCaller {
  readonly kind: "key";
  readonly accountId: string;
  readonly isOperator: boolean;
  readonly apiKeyId: string;
  readonly apiKeyName: string;
  readonly apiKeyType: ApiKeyType;
  readonly permissions: ReadonlySet<AccountPermission>;
  /** Canonical model ids and aliases as stored: a model must be in each list, the key's own and those of the keys that made it. None: every model. */
  readonly modelLists: readonly (readonly string[])[];
  /** The key has a budget of its own, or draws on that of a key that made it. */
  readonly hasBudget: boolean;
  readonly expiresAt: Date | null;
  /** Absent: the caller itself asks. */
  readonly run?: AgentRun | undefined;
}

/** A signed-in person: every permission on their own account. */
export interface SessionCaller {
  readonly kind: "session";
  readonly accountId: string;
  readonly isOperator: boolean;
  readonly sessionId: string;
  /** Absent: the caller itself asks. */
  readonly run?: AgentRun | undefined;
}

export type Caller = AnonymousCaller | KeyCaller | SessionCaller;

/** Tells when a caller has gone. */
export interface Leaving {
  /** Calls the listener once, at once where they have gone already. */
  onGone(listener: () => void): void;
}

export interface RequestContext {
  readonly caller: Caller;
  /** Echoed as X-Request-Id; chosen by the caller or made. Never a key to money: generations have ids of their own. */
  readonly requestId: string;
  /** Where the request came from, as far as proxies are trusted; limits are counted by it. */
  readonly clientAddress: string;
  /** Aborted when the caller has gone. */
  readonly signal: AbortSignal;
  /** Tells the same without a signal, which may be made only for who asks for it. Absent: the signal alone tells. */
  readonly leaving?: Leaving | undefined;
  readonly log: Logger;
  /** Where is written down what the access log and the metrics tell of the request. Absent: nobody tells of it, as of what an agent asks within the process. */
  readonly note?: RequestNote | undefined;
  /** With an Idempotency-Key: the id of the first generation, written down before it begins. */
  readonly reservedId?: { take(): string | null } | undefined;
  /** How many gateways the request has come through before this one; absent: none. A model whose upstream is a gateway must not go in circles. */
  readonly hops?: number | undefined;
  /** Its input is large: whatever walks through it leaves other requests their turn before and after. */
  readonly hasLargeInput?: boolean | undefined;
  /** What everything that the request generates may be charged in all. Absent: its caller has not said. */
  readonly maxCost?: MaxCost | undefined;
}

/** One object for each request that states it: all that the request generates draws on it. */
export interface MaxCost {
  readonly nanocredits: bigint;
}

/**
 * The same request with changes, for a part of the work on it. All that is known of the request goes along, but for the id that is kept
 * for its first generation: only whoever goes on with that very generation names it.
 */
export function deriveContext(ctx: RequestContext, changes: Partial<RequestContext>): RequestContext {
  const inherited = changes.signal ? { leaving: undefined } : {};
  return Object.create(ctx, Object.getOwnPropertyDescriptors({ reservedId: undefined, ...inherited, ...changes }));
}
