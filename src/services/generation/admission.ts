/**
 * What stands between a caller and a model beside money: limits, and the safety features that the model requires or the
 * caller asks for (docs/spec/rate-limits.md, docs/spec/safety.md). Looked at before anything is held.
 */
import type { KeyCaller, RequestContext, SessionCaller } from "../../context.js";
import type { RateLimits } from "../access/rate-limits.js";
import type { Model } from "../catalog/model.js";
import { featuresOf } from "../safety/features.js";
import type { Safety, SafetyReport } from "../safety/safety.js";
import { ChildCosts } from "./child-costs.js";
import type { NamedAddresses } from "./named-addresses.js";
import type { Receipt } from "./receipt.js";

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
