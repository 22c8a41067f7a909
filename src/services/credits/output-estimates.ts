/**
 * How much a model writes: what is held for a request that states no max_tokens (docs/spec/credits.md#holds). Moving means in memory;
 * a process that has just started assumes.
 *
 * Each account has a mean of its own with each model. What others were answered only says where an account begins: it counts as a few
 * answers, every account as one voice, and within bounds, so that nobody's answers decide what is held for somebody else.
 */
import { LRUCache } from "lru-cache";
import { entriesMax } from "../../lib/bounded.js";
import { OUTPUT_TOKENS_ASSUMED } from "../../limits.js";

const MODELS_MAX = 10_000;
const ACCOUNT_MODELS_MAX = 100_000;
/** Accounts whose means make the model's: of more the ones longest unheard are forgotten. */
const VOICES_MAX = 64;
/** The weight of the newest answer. */
const SMOOTHING = 0.1;
/** What the model's mean counts for beside an account's own answers, in answers. */
const PRIOR_ANSWERS = 3;
/** The model's mean is believed between these parts of what is assumed of an unknown model. */
const PRIOR_MIN = OUTPUT_TOKENS_ASSUMED / 4;
const PRIOR_MAX = OUTPUT_TOKENS_ASSUMED * 4;
/** Unspecified: how long an upstream's refusal of a length is remembered. */
const LIMIT_MS = 60 * 60_000;

interface OwnMean {
  readonly mean: number;
  /** As far as it matters. */
  readonly answers: number;
}

export class OutputEstimates {
  private readonly own = new LRUCache<string, OwnMean>(entriesMax(ACCOUNT_MODELS_MAX));
  private readonly voices = new LRUCache<string, LRUCache<string, number>>(entriesMax(MODELS_MAX));
  private readonly limits = new LRUCache<string, number>({ ...entriesMax(ACCOUNT_MODELS_MAX), ttl: LIMIT_MS });

  /** Output tokens of one answer, rounded up. */
  meanOf(accountId: string, model: string): number {
    const { mean, answers } = this.own.get(keyOf(accountId, model)) ?? { mean: 0, answers: 0 };
    if (answers === PRIOR_ANSWERS) return Math.ceil(mean);
    return Math.ceil((mean * answers + this.priorOf(model) * (PRIOR_ANSWERS - answers)) / PRIOR_ANSWERS);
  }

  learn(accountId: string, model: string, outputTokens: number): void {
    const key = keyOf(accountId, model);
    const known = this.own.get(key) ?? { mean: 0, answers: 0 };
    const weight = known.answers < PRIOR_ANSWERS ? 1 / (known.answers + 1) : SMOOTHING;
    const mean = known.mean + weight * (outputTokens - known.mean);
    this.own.set(key, { mean, answers: Math.min(known.answers + 1, PRIOR_ANSWERS) });
    const voices = this.voices.get(model) ?? new LRUCache<string, number>({ max: VOICES_MAX });
    voices.set(accountId, mean);
    this.voices.set(model, voices);
  }

  /** The most output tokens that the model's upstream was found to take as a cap from this account; null: none was refused. */
  limitOf(accountId: string, model: string): number | null {
    return this.limits.get(keyOf(accountId, model)) ?? null;
  }

  learnLimit(accountId: string, model: string, outputTokens: number): void {
    this.limits.set(keyOf(accountId, model), outputTokens);
  }

  private priorOf(model: string): number {
    const voices = this.voices.get(model);
    if (!voices || voices.size === 0) return OUTPUT_TOKENS_ASSUMED;
    let sum = 0;
    for (const mean of voices.values()) sum += mean;
    return Math.min(PRIOR_MAX, Math.max(PRIOR_MIN, sum / voices.size));
  }
}

/** No id of an account holds a space. */
function keyOf(accountId: string, model: string): string {
  return `${accountId} ${model}`;
}
