/**
 * What a generation passes before anything is held for it: who asks, which model at which rates they may use, limits, addresses, and the
 * safety features that the model requires or the caller asks for (docs/spec/rate-limits.md, docs/spec/safety.md). What comes of it is a
 * task: all that later steps want to know of the request.
 */

import { LRUCache } from "lru-cache";
import type { KeyCaller, RequestContext, SessionCaller } from "../../context.js";
import { invalidInput } from "../../errors.js";
import { entriesMax } from "../../lib/bounded.js";
import { createId } from "../../lib/ids.js";
import { OutboundError, type OutboundGuard } from "../../lib/outbound-guard.js";
import { ownValue } from "../../lib/own-values.js";
import { AGENT_RUNS_NOTED_MAX, NAMED_HOSTS_MAX, RUN_TOKEN_MS } from "../../limits.js";
import { requireCaller } from "../access/permissions.js";
import type { RateLimits } from "../access/rate-limits.js";
import { type AskedFields, withAskedRates } from "../catalog/billed-fields.js";
import type { Catalog } from "../catalog/catalog.js";
import type { Modality } from "../catalog/modality.js";
import type { Model } from "../catalog/model.js";
import { SANDBOX_UPSTREAM } from "../catalog/sandbox.js";
import type { Media } from "../files/media.js";
import { featuresOf, isChecked, type SafeInput } from "../safety/features.js";
import type { Safety, SafetyReport } from "../safety/safety.js";
import type { Receipt } from "./receipt.js";

/** A generation that somebody may ask for. */
export interface GenerationTask {
  readonly generationId: string;
  /** Whose signal ends it, and whose note is told what came of it. */
  readonly request: RequestContext;
  readonly caller: KeyCaller | SessionCaller;
  /** The name by which a publishable key is counted where its caller is; null: no key's limits count. */
  readonly limitedAs: string | null;
  /** The one that was asked for, whose prices apply. */
  readonly model: Model;
  /** The model itself, then its fallbacks, in the order in which they are tried. */
  readonly candidates: readonly Model[];
  readonly isFree: boolean;
  /** What the request itself is warned of, before anybody has answered it. */
  readonly notes: readonly string[];
  /** Null when no safety feature applies, or none has been applied yet. */
  readonly safety: SafetyReport | null;
  /** Monotonic milliseconds. */
  readonly startedAt: number;
}

export interface Asked {
  readonly modality: Modality;
  /** An id or alias; nothing asks for the modality's default. */
  readonly modelName: string | null | undefined;
  /** Those of the request that reach the upstream as they are, and those that may have prices of their own. */
  readonly fields: AskedFields;
  readonly notes: readonly string[];
  /** Absent: one is made. */
  readonly generationId?: string | undefined;
}

/** What is looked at of a request: asked for only where there is something to look for. */
export interface Content {
  /** The caller's `safe` parameter. */
  readonly safe: SafeInput;
  /** What the caller names for an upstream to fetch. */
  addresses(): readonly NamedAddress[];
  /** Everything that the caller wrote and the model will read. */
  texts(): readonly string[];
}

export interface Admitted {
  /** As many as were given, rewritten where something was redacted: only these may go to an upstream. */
  readonly texts: readonly string[];
  /** Null when no feature applies. */
  readonly safety: SafetyReport | null;
}

export interface AdmittedTask {
  readonly task: GenerationTask;
  /** Of its content, rewritten where something was redacted; null when no feature has read them. */
  readonly texts: readonly string[] | null;
}

/**
 * What callers are charged for the generations that an agent asks for while it answers: told beside the agent's own cost, which is
 * nothing. Only for display: the usage rows are what counts.
 */
class ChildCosts {
  /** By the agent's generation, in nanocredits. */
  private readonly sums = new LRUCache<string, bigint>({ ...entriesMax(AGENT_RUNS_NOTED_MAX), ttl: RUN_TOKEN_MS });

  add({ run }: KeyCaller | SessionCaller, nanocredits: bigint): void {
    if (run && nanocredits > 0n) this.sums.set(run.parentRequestId, (this.sums.get(run.parentRequestId) ?? 0n) + nanocredits);
  }

  /** What has been charged so far; undefined for a model that asks for none. */
  of({ agentType }: Model, generationId: string): bigint | undefined {
    return agentType === "prompt_agent" || agentType === "code_agent" ? (this.sums.get(generationId) ?? 0n) : undefined;
  }
}

/** Is told of each generation that is over. */
export interface GenerationCounter {
  generationOver(asked: Pick<Model, "id" | "isCommunity">, receipt: Receipt): void;
}

export class Admission {
  readonly childCosts = new ChildCosts();

  constructor(
    private readonly catalog: Catalog,
    private readonly limits: RateLimits,
    private readonly safety: Safety,
    /** What is named for an upstream to fetch passes it. */
    readonly addresses: NamedAddresses,
    private readonly metrics: GenerationCounter,
  ) {}

  /**
   * All of it, for whoever has its content at hand: at once where nothing limits the caller and nothing is looked at, else a promise.
   * Throws as `task` does; rejects as `pass` does, and with BAD_REQUEST for an address that nobody may be asked to fetch.
   */
  admit(ctx: RequestContext, asked: Asked, content: Content): AdmittedTask | Promise<AdmittedTask> {
    const task = this.task(ctx, asked);
    const limited = this.limits.admit(task.limitedAs, task.caller, task.model);
    const addresses = task.candidates.every(fetchesNothing) ? [] : content.addresses();
    const isRead = isChecked(task.model, content.safe);
    if (limited === null && addresses.length === 0 && !isRead) return { task, texts: null };
    return (async () => {
      await limited;
      if (addresses.length > 0) await this.addresses.check(addresses, ctx.signal);
      if (!isRead) return { task, texts: null };
      const { texts, safety } = await this.check(ctx, task.model, content.texts(), content.safe);
      return { task: { ...task, safety }, texts };
    })();
  }

  /** Who asks, and for what. Throws UNAUTHORIZED, BAD_REQUEST, NOT_FOUND or FORBIDDEN. */
  task(ctx: RequestContext, { modality, modelName, fields, notes, generationId = takeGenerationId(ctx) }: Asked): GenerationTask {
    const startedAt = performance.now();
    const { catalog } = this;
    const caller = requireCaller(ctx);
    const model = withAskedRates(catalog.resolve(caller, modelName ?? undefined, modality), fields);
    ctx.note?.began(generationId, model.id);
    const fallbacks = catalog.fallbacksOf(model);
    // A key that may not use a model is not served by it either.
    const candidates = fallbacks.length === 0 ? [model] : [model, ...fallbacks.filter((fallback) => catalog.isAllowed(caller, fallback))];
    return {
      generationId,
      request: ctx,
      caller,
      limitedAs: this.limits.nameOf(caller, ctx.clientAddress),
      model,
      candidates,
      isFree: model.rates.isFree,
      notes,
      safety: null,
      startedAt,
    };
  }

  /** Limits and safety of a task. Throws RATE_LIMITED, CONTENT_BLOCKED, BAD_REQUEST (an unknown feature) or SERVICE_UNAVAILABLE (a check that does not answer). */
  async pass(
    ctx: RequestContext,
    { limitedAs, caller, model }: GenerationTask,
    texts: readonly string[],
    safe: SafeInput,
  ): Promise<Admitted> {
    const features = featuresOf(model, safe);
    await this.limits.admit(limitedAs, caller, model);
    return features.length === 0 ? { texts, safety: null } : this.check(ctx, model, texts, safe);
  }

  /** The safety features alone. */
  async check(ctx: RequestContext, model: Model, texts: readonly string[], safe: SafeInput): Promise<Admitted> {
    const checked = await this.safety.check(texts, featuresOf(model, safe), ctx.signal, ctx.log);
    return { texts: checked.texts, safety: checked.report };
  }

  /**
   * A generation was charged: limits by cost take it, so does the run that it is part of, and what is told of the gateway's work. Each
   * that is delivered comes here, once.
   */
  concluded({ request, caller, limitedAs, model }: GenerationTask, receipt: Receipt): void {
    this.childCosts.add(caller, receipt.costNanocredits);
    if (limitedAs !== null) this.limits.charged(limitedAs, receipt.costNanocredits, request);
    this.metrics.generationOver(model, receipt);
    request.note?.finished(receipt);
  }
}

/** An id that was written down before the request began (see `Idempotency`), for the first generation of a request; every further one has an id of its own. */
export class ReservedId {
  private isTaken = false;

  constructor(readonly id: string) {}

  take(): string | null {
    if (this.isTaken) return null;
    this.isTaken = true;
    return this.id;
  }
}

export function takeGenerationId(ctx: RequestContext): string {
  return ctx.reservedId?.take() ?? createId();
}

// What a caller names by its address for an upstream to fetch: pictures, films, recordings and documents of a chat. An upstream of the
// operator's own stands in a network where an address may lead to what no caller can reach, so nobody is asked to fetch one that the
// gateway itself would not: it passes the outbound guard first, whoever serves the model. `data:` URLs and the media host's own
// links name nothing elsewhere.
// What an upstream resolves a moment later is its own affair: an address whose name changes in between is held up by its network alone.

export interface NamedAddress {
  readonly text: string;
  /** Where it stands in the request, dotted. */
  readonly param: string;
}

/** With a scheme that leads somewhere, however carelessly it is written. */
const ADDRESS = /^\s*(?:[a-z][a-z0-9+.-]{0,30}:[/\\]|(?:https?|ftp|file):)/i;
/** Fields that are read by the model, and fetched by nobody. */
const TEXTS: ReadonlySet<string> = new Set([
  ...["text", "refusal", "reasoning", "reasoning_content", "reasoning_details", "tool_calls", "function_call"],
  ...["role", "name", "type", "title", "filename"],
  // Of realtime events.
  ...["instructions", "transcript", "arguments", "output", "description", "prompt"],
]);

/** Every address in the parts of messages, or in the fields of another input; texts are not searched for any. */
export function addressesIn(value: unknown, param: string): readonly NamedAddress[] {
  const found: NamedAddress[] = [];
  if (Array.isArray(value)) {
    value.forEach((item: unknown, index) => {
      if (isObject(item)) visitFields(item, () => `${param}.${index}`, true, found);
    });
  } else if (isObject(value)) visitFields(value, () => param, false, found);
  return found;
}

type Fields = Readonly<Record<string, unknown>>;

/** `path` is where the object stands, for what is found: most of them hold no address. */
function visitFields(fields: Fields, path: () => string, isMessage: boolean, found: NamedAddress[]): void {
  for (const name of Object.keys(fields)) {
    if (TEXTS.has(name)) continue;
    const part = ownValue(fields, name);
    if (typeof part === "string") {
      const isText = isMessage && name === "content";
      if (!isText && ADDRESS.test(part)) found.push({ text: part, param: `${path()}.${name}` });
    } else if (isObject(part)) visitFields(part, () => `${path()}.${name}`, false, found);
  }
}

/** A list counts as one, by its places. */
function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null;
}

/** Those of an event that a caller sends in a realtime session. */
export function addressesInEvent(event: Readonly<Record<string, unknown>>): readonly NamedAddress[] {
  return ["item", "response", "session"].flatMap((name) => addressesIn(ownValue(event, name), name));
}

/** What runs in the gateway itself. */
export function fetchesNothing({ upstreamId }: Model): boolean {
  return upstreamId === SANDBOX_UPSTREAM.id;
}

export class NamedAddresses {
  constructor(
    private readonly guard: Pick<OutboundGuard, "parse" | "check">,
    /** The media host's files. */
    private readonly own: Pick<Media, "idOf">,
  ) {}

  /** Rejects with BAD_REQUEST naming the first that may not be fetched. One look-up at a time, of a bounded number of hosts. */
  async check(addresses: readonly NamedAddress[], signal: AbortSignal): Promise<void> {
    const elsewhere = addresses.filter(({ text }) => this.own.idOf(text) === null);
    const hosts = new Map<string, NamedAddress>();
    for (const address of elsewhere) {
      const { host } = await refusing(address, async () => this.guard.parse(address.text));
      if (!hosts.has(host)) hosts.set(host, address);
    }
    if (hosts.size > NAMED_HOSTS_MAX) {
      throw invalidInput(`At most ${NAMED_HOSTS_MAX} hosts may be named in one request: send the rest as data: URLs.`, elsewhere[0]?.param);
    }
    for (const address of hosts.values()) {
      signal.throwIfAborted();
      await refusing(address, () => this.guard.check(address.text));
    }
  }
}

async function refusing<Result>({ param }: NamedAddress, check: () => Promise<Result>): Promise<Result> {
  try {
    return await check();
  } catch (error) {
    throw error instanceof OutboundError ? invalidInput(`${error.message} Send it as a data: URL instead.`, param) : error;
  }
}
