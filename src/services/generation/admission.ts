/**
 * What a generation passes before anything is held for it: who asks, which model at which rates they may use, limits, addresses, and the
 * safety features that the model requires or the caller asks for (docs/spec/rate-limits.md, docs/spec/safety.md). What comes of it is a
 * task: all that later steps want to know of the request.
 */

import { setImmediate as nextTurn } from "node:timers/promises";
import { LRUCache } from "lru-cache";
import type { KeyCaller, RequestContext, SessionCaller } from "../../context.js";
import { entriesMax } from "../../lib/bounded.js";
import { readChat } from "../../lib/chat-prompt.js";
import { createId } from "../../lib/ids.js";
import { copyJson } from "../../lib/json.js";
import { ownValue, withFields } from "../../lib/own-values.js";
import { AGENT_RUNS_NOTED_MAX, RUN_TOKEN_MS } from "../../limits.js";
import { requireCaller } from "../access/permissions.js";
import type { HourlyHold, RateLimits } from "../access/rate-limits.js";
import { type AskedFields, takesFields, withAskedRates } from "../catalog/asked-rates.js";
import type { Catalog } from "../catalog/catalog.js";
import type { Modality } from "../catalog/modality.js";
import type { Model } from "../catalog/model.js";
import { featuresOf, isChecked, type SafeInput } from "../safety/features.js";
import type { Passages } from "../safety/passages.js";
import type { ReadPassages, Safety, SafetyReport } from "../safety/safety.js";
import { ChatPassages } from "./chat/passages.js";
import { addressesIn, fetchesNothing, type NamedAddress, type NamedAddresses } from "./named-addresses.js";
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
export interface Content<Body> {
  /** The caller's `safe` parameter. */
  readonly safe: SafeInput;
  readonly body: Body;
  /** What the caller names for an upstream to fetch. */
  addresses(): readonly NamedAddress[];
  /** Everything that the caller wrote and goes on. `body` is a copy: what is redacted is written there. */
  read(body: Body, into: Passages): void;
}

/** What a caller wrote that goes on: texts that are read for themselves, and fields that nobody here knows. */
export interface Words {
  readonly texts: readonly string[];
  readonly extra: AskedFields;
  /** Parts as a chat's messages have them, by the field that holds them. */
  readonly parts?: Readonly<Record<string, readonly unknown[]>>;
}

export const NO_WORDS: Words = { texts: [], extra: {} };

export interface Admitted {
  /** Rewritten where something was redacted: only these may go to an upstream. */
  readonly words: Words;
  /** Null when no feature applies. */
  readonly safety: SafetyReport | null;
}

export interface AdmittedTask<Body> {
  readonly task: GenerationTask;
  /** Rewritten where something was redacted; null when no feature has read it. */
  readonly body: Body | null;
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
  admit<Body>(ctx: RequestContext, asked: Asked, content: Content<Body>): AdmittedTask<Body> | Promise<AdmittedTask<Body>> {
    const task = this.task(ctx, asked);
    const limited = this.limits.admit(task.limitedAs, task.caller, task.model);
    const isRead = isChecked(task.caller, task.model, content.safe);
    const findAddresses = () => (task.candidates.every(fetchesNothing) ? [] : content.addresses());
    const found = ctx.hasLargeInput ? null : findAddresses();
    if (limited === null && found?.length === 0 && !isRead) return { task, body: null };
    return (async () => {
      await limited;
      if (ctx.hasLargeInput) await nextTurn();
      const addresses = found ?? findAddresses();
      if (addresses.length > 0) await this.addresses.check(addresses, ctx.signal);
      if (!isRead) return { task, body: null };
      if (ctx.hasLargeInput) await nextTurn();
      const body = copyJson(content.body);
      if (ctx.hasLargeInput) await nextTurn();
      const safety = await this.check(task, (into) => content.read(body, into), content.safe);
      return { task: { ...task, safety }, body };
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
    // A key that may not use a model is not served by it either, and what a vendor is not sent goes on to no fallback of that vendor.
    const mayServe = (fallback: Model) => catalog.isAllowed(caller, fallback) && takesFields(fallback, fields);
    const candidates = fallbacks.length === 0 ? [model] : [model, ...fallbacks.filter(mayServe)];
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

  /**
   * Limits, addresses and safety of a task. Throws RATE_LIMITED, CONTENT_BLOCKED, BAD_REQUEST (an address that nobody may be asked to
   * fetch, an unknown feature) or SERVICE_UNAVAILABLE (a check that does not answer).
   */
  async pass(ctx: RequestContext, task: GenerationTask, words: Words, safe: SafeInput): Promise<Admitted> {
    const { limitedAs, caller, model, candidates } = task;
    await this.limits.admit(limitedAs, caller, model);
    const addresses = candidates.every(fetchesNothing) ? [] : addressesIn(withFields(words.extra, words.parts ?? {}));
    if (addresses.length > 0) await this.addresses.check(addresses, ctx.signal);
    if (!isChecked(caller, model, safe)) return { words, safety: null };
    const copy = copyJson(words);
    if (ctx.hasLargeInput) await nextTurn();
    const safety = await this.check(task, (into) => readWords(copy, into), safe);
    return { words: copy, safety };
  }

  /** The safety features alone. */
  check({ request, caller, model }: GenerationTask, read: ReadPassages, safe: SafeInput): Promise<SafetyReport> {
    return this.safety.check(read, featuresOf(caller, model, safe), request.signal, request.log);
  }

  /** What a generation is to hold of its key's hourly credits; null where nobody counts them. Free work costs nothing here either. */
  hourlyHold(task: GenerationTask, totalMs: number): HourlyHold | null {
    return task.limitedAs === null || task.isFree ? null : this.limits.hourlyHold(task.limitedAs, task, totalMs);
  }

  /** Nanocredits that the caller's key can spend at once; undefined where nobody counts them. */
  hourlyCreditsMax({ limitedAs }: GenerationTask): bigint | undefined {
    return limitedAs === null ? undefined : this.limits.hourlyCreditsMax;
  }

  /** A generation was charged: the run that it is part of and the metrics count it. Each that is delivered comes here, once. */
  concluded({ request, caller, model }: GenerationTask, receipt: Receipt): void {
    this.childCosts.add(caller, receipt.costNanocredits);
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

function readWords({ texts, extra, parts = {} }: Words, into: Passages): void {
  for (const [index, text] of texts.entries()) {
    into.text(`${index}`, text, (after) => Object.assign(texts, { [index]: after }));
  }
  for (const name of Object.keys(extra)) into.field(name, ownValue(extra, name), extra, name);
  for (const [name, content] of Object.entries(parts)) readChat({ messages: [{ content }] }, new ChatPassages(into, name));
}
