/**
 * What stands between a caller and a model beside money: limits, and the safety features that the model requires or the
 * caller asks for (docs/spec/rate-limits.md, docs/spec/safety.md). Looked at before anything is held.
 */

import { LRUCache } from "lru-cache";
import type { KeyCaller, RequestContext, SessionCaller } from "../../context.js";
import { invalidInput } from "../../errors.js";
import { entriesMax } from "../../lib/bounded.js";
import { OutboundError, type OutboundGuard } from "../../lib/outbound-guard.js";
import { ownValue } from "../../lib/own-values.js";
import { AGENT_RUNS_NOTED_MAX, NAMED_HOSTS_MAX, RUN_TOKEN_MS } from "../../limits.js";
import type { RateLimits } from "../access/rate-limits.js";
import type { Model } from "../catalog/model.js";
import { SANDBOX_UPSTREAM } from "../catalog/sandbox.js";
import type { Media } from "../files/media.js";
import { featuresOf } from "../safety/features.js";
import type { Safety, SafetyReport } from "../safety/safety.js";
import type { Receipt } from "./receipt.js";

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

export interface AdmissionRequest {
  readonly caller: KeyCaller | SessionCaller;
  readonly model: Model;
  /** Everything that the caller wrote and the model will read. */
  readonly texts: readonly string[];
  /** The caller's `safe` parameter: `true`, or features separated by commas. */
  readonly safe: string | null;
}

export interface Admitted {
  /** As many as were given, rewritten where something was redacted: only these may go to an upstream. */
  readonly texts: readonly string[];
  /** Null when no feature applies. */
  readonly safety: SafetyReport | null;
}

/** Is told of each generation that is over. */
export interface GenerationCounter {
  generationOver(asked: Pick<Model, "id" | "isCommunity">, receipt: Receipt): void;
}

export class Admission {
  readonly childCosts = new ChildCosts();

  constructor(
    private readonly limits: RateLimits,
    private readonly safety: Safety,
    /** What is named for an upstream to fetch passes it. */
    readonly addresses: NamedAddresses,
    private readonly metrics: GenerationCounter,
  ) {}

  /** Throws RATE_LIMITED, CONTENT_BLOCKED, BAD_REQUEST (an unknown feature) or SERVICE_UNAVAILABLE (a check that does not answer). */
  async admit(ctx: RequestContext, request: AdmissionRequest): Promise<Admitted> {
    const features = featuresOf(request.model, request.safe);
    await this.limit(ctx, request.caller, request.model);
    if (features.length === 0) return { texts: request.texts, safety: null };
    return this.check(ctx, request);
  }

  /** The safety features alone, for who asks for the limits by itself. */
  async check(ctx: RequestContext, { model, texts, safe }: Omit<AdmissionRequest, "caller">): Promise<Admitted> {
    const features = featuresOf(model, safe);
    const checked = await this.safety.check(texts, features, ctx.signal, ctx.log);
    return { texts: checked.texts, safety: checked.report };
  }

  /** Counts the generation, which `admit` does by itself. Null when nothing limits it; rejects with RATE_LIMITED. */
  limit(ctx: RequestContext, caller: KeyCaller | SessionCaller, model: Model): Promise<void> | null {
    return this.limits.admit(ctx, caller, model);
  }

  /**
   * A generation was charged: limits by cost take it, so does the run that it is part of, and what is told of the gateway's work. Each
   * that is delivered comes here, once.
   */
  concluded(ctx: RequestContext, { caller, model }: Pick<AdmissionRequest, "caller" | "model">, receipt: Receipt): void {
    this.childCosts.add(caller, receipt.costNanocredits);
    this.limits.charged(ctx, caller, receipt.costNanocredits);
    this.metrics.generationOver(model, receipt);
    ctx.note?.finished(receipt);
  }
}

// What a caller names by its address for an upstream to fetch: pictures, films, recordings and documents of a chat. An upstream of the
// operator's own stands in a network where an address may lead to what no caller can reach, so nobody is asked to fetch one that the
// gateway itself would not: it passes the outbound guard first, whoever serves the model. `data:` URLs and the media host's own
// links name nothing elsewhere.
// What an upstream resolves a moment later is its own affair: an address whose name changes in between is held up by its network alone.

interface NamedAddress {
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
  const visit = (inner: unknown, path: string, isMessage: boolean) => {
    if (typeof inner === "string") {
      if (ADDRESS.test(inner)) found.push({ text: inner, param: path });
      return;
    }
    if (typeof inner !== "object" || inner === null) return;
    for (const [name, part] of Object.entries(inner)) {
      const isText = TEXTS.has(name) || (isMessage && name === "content" && typeof part === "string");
      if (!isText) visit(part, `${path}.${name}`, false);
    }
  };
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) if (typeof item === "object") visit(item, `${param}.${index}`, true);
  } else if (typeof value === "object") visit(value, param, false);
  return found;
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
