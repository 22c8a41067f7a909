/**
 * Fields that upstreams refused, by upstream and model: a refusal that names a field which the gateway added itself, or may leave out, is
 * asked again once without it, and later requests of the model do not send it. Remembered in memory, for a bounded time and number of
 * models, after the second request was not refused for the same field.
 */
import type { ChatDialect } from "../../formats/openai-chat/dialect.js";
import { isRefusal, type Refusable, type RefusedFields, withRefused } from "../../formats/openai-chat/refused-fields.js";
import { ProviderError } from "../../formats/upstream-error.js";
import { type Clock, systemClock } from "../../lib/clock.js";

/** Unspecified: models with such fields; the one learned first is forgotten. */
export const LEARNED_MODELS_MAX = 1_000;
/** Unspecified: after it an upstream is sent the field again, because servers are updated. */
export const LEARNED_MS = 24 * 60 * 60 * 1_000;

const OTHER_CAP: ReadonlyMap<Refusable, Refusable> = new Map([
  ["max_tokens", "max_completion_tokens"],
  ["max_completion_tokens", "max_tokens"],
]);

/** A field that an upstream does not get. */
export interface LearnedField {
  /** Null: of a registered model. */
  readonly upstreamId: string | null;
  /** The upstream's name of the model; null for a registered one, whose owner alone knows it. */
  readonly upstreamModel: string | null;
  readonly field: Refusable;
  readonly learnedAt: Date;
  readonly expiresAt: Date;
}

interface Entry {
  readonly source: LearnedSource;
  readonly upstreamModel: string;
  /** Time in milliseconds, by field. */
  readonly fields: Map<Refusable, number>;
  /** The dialects that follow from them, each by the dialect that it changes. */
  readonly dialects: WeakMap<ChatDialect, ChatDialect>;
}

export interface LearnedSource {
  readonly id: string;
  /** Registered by an account. */
  readonly isRegistered: boolean;
}

export class LearnedFields {
  private readonly models = new Map<string, Entry>();

  constructor(
    private readonly clock: Clock = systemClock,
    /** Receives each field when it is learned. */
    private readonly onLearned?: (source: LearnedSource, upstreamModel: string, field: Refusable) => void,
  ) {}

  /** Of one upstream. */
  at(source: LearnedSource): UpstreamFields {
    return new UpstreamFields(this, source);
  }

  has(source: LearnedSource, upstreamModel: string, field: Refusable): boolean {
    return this.entry(source, upstreamModel)?.fields.has(field) ?? false;
  }

  dialectOf(source: LearnedSource, upstreamModel: string, base: ChatDialect): ChatDialect {
    // On the path of every chat: most gateways have learned nothing.
    const entry = this.models.size === 0 ? null : this.entry(source, upstreamModel);
    if (!entry) return base;
    const known = entry.dialects.get(base);
    if (known) return known;
    const dialect = withRefused(base, entry.fields.keys());
    entry.dialects.set(base, dialect);
    return dialect;
  }

  learn(source: LearnedSource, upstreamModel: string, fields: readonly Refusable[]): void {
    const known = this.entry(source, upstreamModel)?.fields;
    const now = this.clock.now().getTime();
    const all = new Map(known);
    for (const field of fields) {
      // Each name of the cap stands for the other.
      const other = OTHER_CAP.get(field);
      if (other !== undefined) all.delete(other);
      all.delete(field);
      all.set(field, now);
    }
    this.models.set(keyOf(source, upstreamModel), { source, upstreamModel, fields: all, dialects: new WeakMap() });
    const [oldest] = this.models.keys();
    if (this.models.size > LEARNED_MODELS_MAX && oldest !== undefined) this.models.delete(oldest);
    for (const field of fields) if (!known?.has(field)) this.onLearned?.(source, upstreamModel, field);
  }

  /** Newest first. */
  read(): LearnedField[] {
    const now = this.clock.now().getTime();
    const learned = [...this.models.values()].flatMap(({ source, upstreamModel, fields }) =>
      [...fields]
        .filter(([, at]) => at + LEARNED_MS > now)
        .map(([field, at]) => ({
          upstreamId: source.isRegistered ? null : source.id,
          upstreamModel: source.isRegistered ? null : upstreamModel,
          field,
          learnedAt: new Date(at),
          expiresAt: new Date(at + LEARNED_MS),
        })),
    );
    return learned.sort((one, other) => Number(other.learnedAt) - Number(one.learnedAt));
  }

  private entry(source: LearnedSource, upstreamModel: string): Entry | null {
    const key = keyOf(source, upstreamModel);
    const entry = this.models.get(key);
    if (!entry) return null;
    const oldest = this.clock.now().getTime() - LEARNED_MS;
    let isFresh = true;
    for (const at of entry.fields.values()) if (at <= oldest) isFresh = false;
    if (isFresh) return entry;
    const fields = new Map([...entry.fields].filter(([, at]) => at > oldest));
    if (fields.size === 0) {
      this.models.delete(key);
      return null;
    }
    const renewed = { ...entry, fields, dialects: new WeakMap<ChatDialect, ChatDialect>() };
    this.models.set(key, renewed);
    return renewed;
  }
}

function keyOf({ id }: LearnedSource, upstreamModel: string): string {
  return `${id} ${upstreamModel}`;
}

/** The learned fields of one upstream. */
export class UpstreamFields {
  constructor(
    private readonly all: LearnedFields,
    private readonly source: LearnedSource,
  ) {}

  has(upstreamModel: string, field: Refusable): boolean {
    return this.all.has(this.source, upstreamModel, field);
  }

  dialectOf(upstreamModel: string, base: ChatDialect): ChatDialect {
    return this.all.dialectOf(this.source, upstreamModel, base);
  }

  /**
   * Asks again without the refused fields, once; they are remembered unless the upstream refuses them again. A second refusal is thrown.
   */
  async askAgain<Answer>(upstreamModel: string, refused: readonly Refusable[], ask: () => Promise<Answer>): Promise<Answer> {
    try {
      const answer = await ask();
      this.all.learn(this.source, upstreamModel, refused);
      return answer;
    } catch (error) {
      // The request went further than before, so the next one need not go the same way.
      const { refusedFields, isRefusedInWords } = refusalIn(error);
      // Words may be the caller's.
      const isOtherRefusal = refusedFields.length > 0 && !isRefusedInWords;
      if (isOtherRefusal && !refused.some((field) => refusedFields.includes(field))) {
        this.all.learn(this.source, upstreamModel, refused);
      }
      throw error;
    }
  }
}

/** The refused fields of an upstream's refusal; none for any other error. */
export function refusalIn(error: unknown): RefusedFields {
  if (!(error instanceof ProviderError) || !isRefusal(error.status)) return { refusedFields: [], isRefusedInWords: false };
  return { refusedFields: error.refusedFields as readonly Refusable[], isRefusedInWords: error.isRefusedInWords };
}
