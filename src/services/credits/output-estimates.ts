/**
 * Estimates output tokens for holds of requests without max_tokens (docs/spec/credits.md#holds). Moving averages in memory; a new process
 * starts with assumptions.
 *
 * Each account has an average per model. Answers to other accounts only set its starting value: they count as a few answers, with one vote
 * per account and within bounds, so that no account's answers decide another one's holds.
 */
import { LRUCache } from "lru-cache";
import { entriesMax } from "../../lib/bounded.js";
import { OUTPUT_TOKENS_ASSUMED } from "../../limits.js";

const MODELS_MAX = 10_000;
const ACCOUNT_MODELS_MAX = 100_000;
/** Accounts that count for a model's average. */
const VOICES_MAX = 64;
/** The weight of the newest answer. */
const SMOOTHING = 0.1;
/** The weight of the model's average against an account's own answers, in answers. */
const PRIOR_ANSWERS = 3;
/** Bounds on the model's average, relative to the assumption for an unknown model. */
const PRIOR_MIN = OUTPUT_TOKENS_ASSUMED / 4;
const PRIOR_MAX = OUTPUT_TOKENS_ASSUMED * 4;
/** Unspecified: how long an upstream's refusal of a length is remembered. */
const LIMIT_MS = 60 * 60_000;

interface OwnMean {
  readonly mean: number;
  readonly answers: number;
}

const UNHEARD: OwnMean = { mean: 0, answers: 0 };

/** Models that have reported clearly more output than was visible, and so have hidden reasoning. */
class HiddenOutputs {
  private readonly models = new LRUCache<string, true>(entriesMax(MODELS_MAX));

  has(model: string): boolean {
    return this.models.size > 0 && this.models.get(model) === true;
  }

  learn(model: string): void {
    this.models.set(model, true);
  }
}

export class OutputEstimates {
  readonly hidden = new HiddenOutputs();
  private readonly own = new LRUCache<string, OwnMean>(entriesMax(ACCOUNT_MODELS_MAX));
  /** By model, then by account. */
  private readonly voices = new LRUCache<string, LRUCache<string, number>>(entriesMax(MODELS_MAX));
  private readonly limits = new LRUCache<string, number>({ ...entriesMax(ACCOUNT_MODELS_MAX), ttl: LIMIT_MS });

  /** Account ids contain no space. */
  of(accountId: string, model: string): OutputEstimate {
    return new OutputEstimate(`${accountId} ${model}`, model, this.own, this.voices, this.limits, this.hidden);
  }
}

export class OutputEstimate {
  constructor(
    private readonly key: string,
    private readonly model: string,
    private readonly own: LRUCache<string, OwnMean>,
    private readonly voices: LRUCache<string, LRUCache<string, number>>,
    private readonly limits: LRUCache<string, number>,
    private readonly hidden: HiddenOutputs,
  ) {}

  /** Output tokens, rounded up. */
  get mean(): number {
    const { mean, answers } = this.own.get(this.key) ?? UNHEARD;
    if (answers === PRIOR_ANSWERS) return Math.ceil(mean);
    return Math.ceil((mean * answers + this.prior() * (PRIOR_ANSWERS - answers)) / PRIOR_ANSWERS);
  }

  /** The largest token cap that the upstream accepted from this account after a refusal; null: none was refused. */
  get limit(): number | null {
    return this.limits.get(this.key) ?? null;
  }

  learn(outputTokens: number): void {
    const known = this.own.get(this.key) ?? UNHEARD;
    const weight = known.answers < PRIOR_ANSWERS ? 1 / (known.answers + 1) : SMOOTHING;
    const mean = known.mean + weight * (outputTokens - known.mean);
    this.own.set(this.key, { mean, answers: Math.min(known.answers + 1, PRIOR_ANSWERS) });
    const voices = this.voices.get(this.model) ?? new LRUCache<string, number>({ max: VOICES_MAX });
    voices.set(this.key, mean);
    this.voices.set(this.model, voices);
  }

  /** `model`: the one that answered, which may be a fallback. */
  learnHidden(model: string): void {
    this.hidden.learn(model);
  }

  learnLimit(outputTokens: number): void {
    this.limits.set(this.key, outputTokens);
  }

  private prior(): number {
    const voices = this.voices.get(this.model);
    if (!voices || voices.size === 0) return OUTPUT_TOKENS_ASSUMED;
    let sum = 0;
    for (const mean of voices.values()) sum += mean;
    return Math.min(PRIOR_MAX, Math.max(PRIOR_MIN, sum / voices.size));
  }
}
