/**
 * Admission: the checks before a hold: caller, model and rates, limits, addresses, and the safety features that the model or the request
 * requires (docs/spec/rate-limits.md, docs/spec/safety.md). Its result is a task, with the data that later steps need.
 */

import { setImmediate as nextTurn } from "node:timers/promises";
import { LRUCache } from "lru-cache";
import type { KeyCaller, RequestContext, SessionCaller } from "../../context.js";
import { readChat } from "../../formats/openai-chat/prompt.js";
import { entriesMax } from "../../lib/bounded.js";
import { createId } from "../../lib/ids.js";
import { copyJson } from "../../lib/json.js";
import { ownValue, withFields } from "../../lib/own-values.js";
import { AGENT_RUNS_NOTED_MAX, RUN_TOKEN_MS } from "../../limits.js";
import { requireCaller } from "../access/permissions.js";
import type { HourlyHold, RateLimits } from "../access/rate-limits.js";
import type { Catalog } from "../catalog/catalog.js";
import type { Modality } from "../catalog/modality.js";
import type { Model } from "../catalog/model.js";
import { type RequestFields, refuseForAllRoutes, withRequestRates } from "../catalog/request-rates.js";
import { featuresOf, isChecked, type SafeInput } from "../safety/features.js";
import type { Passages } from "../safety/passages.js";
import type { ReadPassages, Safety, SafetyReport } from "../safety/safety.js";
import { ChatPassages } from "./chat/passages.js";
import { appOf, type Sharing, sharingOf, withMargin } from "./earners.js";
import { addressesIn, fetchesNothing, type NamedAddress, type NamedAddresses } from "./named-addresses.js";
import type { Receipt } from "./receipt.js";
import { resolveRequested } from "./requested-model.js";
import type { Candidate } from "./routing/candidate.js";
import { dearestModel, wishedChain } from "./routing/chain.js";
import type { RouteWishes } from "./routing/order.js";
import { holdRates, withVendorKeys } from "./routing/own-routes.js";
import { Router } from "./routing/router.js";

export interface GenerationTask {
  readonly generationId: string;
  /** Its signal ends the generation, and its note gets the result. */
  readonly request: RequestContext;
  readonly caller: KeyCaller | SessionCaller;
  /** Counter name of a publishable key at its address; null: no limits of a key. */
  readonly limitedAs: string | null;
  readonly model: Model;
  /** In the order of attempts. */
  readonly candidates: readonly Candidate[];
  readonly isFree: boolean;
  /** Undefined: its charge has no earners. */
  readonly sharing: Sharing | undefined;
  /** Charged at the price of the model that serves: the caller named several. `model` has the highest rates of all. */
  readonly isChargedAsServed?: boolean | undefined;
  /** Warnings about the request itself, known before an answer. */
  readonly notes: readonly string[];
  /** Null when no safety feature applies, or none was applied yet. */
  readonly safety: SafetyReport | null;
  readonly startedAt: number;
}

export interface AdmissionRequest {
  readonly modality: Modality;
  /** An id or alias; absent: the modality's default. */
  readonly modelName: string | null | undefined;
  /** Fields that reach the upstream unchanged, and fields that may have their own prices. */
  readonly fields: RequestFields;
  readonly notes: readonly string[];
  /** Which routes may serve; absent: all. */
  readonly wishes?: RouteWishes | undefined;
  /** Absent: generated. */
  readonly generationId?: string | undefined;
}

/** The content of a request, read only when there is something to check. */
export interface Content<Body> {
  readonly safe: SafeInput;
  readonly body: Body;
  addresses(): readonly NamedAddress[];
  /** Reads all text of the request that is passed on. `body` is a copy into which redactions are written. */
  read(body: Body, into: Passages): void;
}

/** Text of a request that is passed on: texts, and unknown fields. */
export interface Words {
  readonly texts: readonly string[];
  readonly extra: RequestFields;
  /** Parts as in a chat's messages, by their field. */
  readonly parts?: Readonly<Record<string, readonly unknown[]>>;
}

export const NO_WORDS: Words = { texts: [], extra: {} };

export interface Admitted {
  /** Redacted if needed: only these may go to an upstream. */
  readonly words: Words;
  /** Null when no feature applies. */
  readonly safety: SafetyReport | null;
}

export interface AdmittedTask<Body> {
  readonly task: GenerationTask;
  /** Redacted if needed; null when no feature has read it. */
  readonly body: Body | null;
}

/**
 * Costs of the generations that an agent made while it answered, shown beside the agent's own cost of 0. Only for display: the usage rows
 * are authoritative.
 */
class ChildCosts {
  /** By the agent's generation, in nanocredits. */
  private readonly sums = new LRUCache<string, bigint>({ ...entriesMax(AGENT_RUNS_NOTED_MAX), ttl: RUN_TOKEN_MS });

  add({ run }: KeyCaller | SessionCaller, nanocredits: bigint): void {
    if (run && nanocredits > 0n) this.sums.set(run.parentRequestId, (this.sums.get(run.parentRequestId) ?? 0n) + nanocredits);
  }

  /** The charges so far; undefined for a model that makes none. */
  of({ agentType }: Model, generationId: string): bigint | undefined {
    return agentType === "prompt_agent" || agentType === "code_agent" ? (this.sums.get(generationId) ?? 0n) : undefined;
  }
}

export interface GenerationCounter {
  generationOver(called: Pick<Model, "id" | "isCommunity">, receipt: Receipt): void;
}

export class Admission {
  readonly childCosts = new ChildCosts();

  constructor(
    private readonly catalog: Catalog,
    private readonly limits: RateLimits,
    private readonly safety: Safety,
    readonly addresses: NamedAddresses,
    private readonly metrics: GenerationCounter,
    readonly router: Router = new Router(),
    /** The fee for calls by vendor keys, in millionths of the model's price. */
    private readonly vendorKeyFee = 0n,
    /** What owners of community models earn of the price, as a decimal percentage. */
    private readonly modelPercent = "0",
  ) {}

  /**
   * All checks, for callers that have the content: synchronous when no limit and no check applies, else a promise. Throws as `task`;
   * rejects as `pass`, and with BAD_REQUEST for an address that is not allowed.
   */
  admit<Body>(ctx: RequestContext, request: AdmissionRequest, content: Content<Body>): AdmittedTask<Body> | Promise<AdmittedTask<Body>> {
    return ctx.hasLargeInput ? nextTurn().then(() => this.admitInTurn(ctx, request, content)) : this.admitInTurn(ctx, request, content);
  }

  private admitInTurn<Body>(
    ctx: RequestContext,
    request: AdmissionRequest,
    content: Content<Body>,
  ): AdmittedTask<Body> | Promise<AdmittedTask<Body>> {
    const task = this.task(ctx, request);
    const limited = this.admitLimits(task);
    const isRead = isScreened(task, content.safe);
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

  /** Resolves caller and model. Throws UNAUTHORIZED, BAD_REQUEST, NOT_FOUND or FORBIDDEN. */
  task(
    ctx: RequestContext,
    { modality, modelName, fields, notes, wishes, generationId = takeGenerationId(ctx) }: AdmissionRequest,
  ): GenerationTask {
    const startedAt = performance.now();
    const caller = requireCaller(ctx);
    const catalog = withMargin(withVendorKeys(this.catalog, caller, this.vendorKeyFee), appOf(caller));
    const model = withRequestRates(resolveRequested(ctx, catalog, modelName, modality), fields);
    ctx.note?.began(generationId, model.id);
    const chain = ctx.wishes === undefined ? null : wishedChain({ ctx, catalog, model, modality, fields }, ctx.wishes, wishes);
    const stated = chain?.fallbacks ?? catalog.fallbacksOf(model);
    const fallbacks = stated.length === 0 ? stated : stated.filter((fallback) => this.catalog.isAllowed(caller, fallback));
    const first = chain?.model ?? model;
    const candidates = this.router.candidatesOf({
      accountId: caller.accountId,
      model: first,
      fallbacks,
      fields,
      wishes: chain?.wishes ?? wishes,
    });
    if (candidates.length === 0) throw refuseForAllRoutes(model, fields);
    const priced = heldModel(chain?.isChargedAsServed ? dearestModel(first, fallbacks) : first, candidates);
    return {
      generationId,
      request: ctx,
      caller,
      limitedAs: this.limits.nameOf(caller, ctx.clientAddress),
      model: priced,
      candidates,
      isFree: priced.rates.isFree,
      sharing: priced.rates.isFree ? undefined : sharingOf(this.catalog, caller, candidates, this.modelPercent),
      isChargedAsServed: chain?.isChargedAsServed,
      notes,
      safety: null,
      startedAt,
    };
  }

  /**
   * Checks limits, addresses and safety of a task. Throws RATE_LIMITED, CONTENT_BLOCKED, BAD_REQUEST (a forbidden address, an unknown
   * feature) or SERVICE_UNAVAILABLE (a check does not answer).
   */
  async pass(ctx: RequestContext, task: GenerationTask, words: Words, safe: SafeInput): Promise<Admitted> {
    const { candidates } = task;
    await this.admitLimits(task);
    const addresses = candidates.every(fetchesNothing) ? [] : addressesIn(withFields(words.extra, words.parts ?? {}));
    if (addresses.length > 0) await this.addresses.check(addresses, ctx.signal);
    if (!isScreened(task, safe)) return { words, safety: null };
    const copy = copyJson(words);
    if (ctx.hasLargeInput) await nextTurn();
    const safety = await this.check(task, (into) => readWords(copy, into), safe);
    return { words: copy, safety };
  }

  /** Every model that the caller named counts the request. */
  private admitLimits({ limitedAs, caller, model, candidates, isChargedAsServed }: GenerationTask): Promise<void> | null {
    const first = this.limits.admit(limitedAs, caller, model);
    if (!isChargedAsServed) return first;
    const others = new Map(candidates.map((candidate) => [candidate.model.id, candidate.model]));
    others.delete(model.id);
    return (async () => {
      await first;
      for (const other of others.values()) await this.limits.admit(null, caller, other);
    })();
  }

  check({ request, caller, model }: GenerationTask, read: ReadPassages, safe: SafeInput): Promise<SafetyReport> {
    return this.safety.check(read, featuresOf(caller, model, safe), request.signal, request.log);
  }

  /** The generation's hold of its key's hourly credits; null where they are not limited. Free work costs nothing here either. */
  hourlyHold(task: GenerationTask, totalMs: number): HourlyHold | null {
    return task.limitedAs === null || task.isFree ? null : this.limits.hourlyHold(task.limitedAs, task, totalMs);
  }

  /** Nanocredits that the caller's key can spend at once; undefined where they are not limited. */
  hourlyCreditsMax({ limitedAs }: GenerationTask): bigint | undefined {
    return limitedAs === null ? undefined : this.limits.hourlyCreditsMax;
  }

  /** Called once for each delivered generation. */
  concluded({ request, caller, model }: GenerationTask, receipt: Receipt): void {
    this.childCosts.add(caller, receipt.costNanocredits);
    this.metrics.generationOver(model, receipt);
    request.note?.finished(receipt);
  }
}

/** Calls by vendor keys alone are held at their fee, of which the operator pays nothing: any bucket may pay it. */
function heldModel(model: Model, candidates: readonly Candidate[]): Model {
  const rates = holdRates(candidates, model.rates);
  return rates === model.rates ? model : { ...model, rates, paidOnly: false };
}

/** An id that was stored before the request began (see `Idempotency`), for the request's first generation; further ones get their own. */
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

/** Throws BAD_REQUEST for an unknown feature. A quote sends no text to a check. */
function isScreened({ request, caller, model }: GenerationTask, safe: SafeInput): boolean {
  if (!isChecked(caller, model, safe)) return false;
  if (request.quoting === undefined) return true;
  featuresOf(caller, model, safe);
  return false;
}

function readWords({ texts, extra, parts = {} }: Words, into: Passages): void {
  for (const [index, text] of texts.entries()) {
    into.text(`${index}`, text, (after) => Object.assign(texts, { [index]: after }));
  }
  for (const name of Object.keys(extra)) into.field(name, ownValue(extra, name), extra, name);
  for (const [name, content] of Object.entries(parts)) readChat({ messages: [{ content }] }, new ChatPassages(into, name));
}
