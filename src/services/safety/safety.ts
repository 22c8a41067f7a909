/** The safety features (docs/spec/safety.md): checks of the input, in their declared order. */
import type { Logger } from "pino";
import { AppError } from "../../errors.js";
import type { SafetyFeature } from "../catalog/model.js";
import { type BlockingFeature, isBlocking, type Moderation, triggeredBy } from "./moderation.js";
import { type Passage, Passages, Unredactable } from "./passages.js";
import { type Detect, findAll } from "./redaction.js";

export interface SafetyReport {
  readonly applied: readonly SafetyFeature[];
  /** Features that changed the texts. */
  readonly redacted: readonly SafetyFeature[];
}

/** Reads the passages from a copy of the request, into which redactions are written. */
export type ReadPassages = (into: Passages) => void;

type RedactingFeature = Exclude<SafetyFeature, BlockingFeature>;

/** Loaded on first use: numbering plans and rule sets are large. */
const DETECTORS: Readonly<Record<RedactingFeature, () => Promise<Detect>>> = {
  privacy: async () => (await import("./personal-data.js")).findPersonalData,
  secrets: async () => (await import("./secrets.js")).findSecrets,
};

export class Safety {
  constructor(private readonly moderation: Moderation) {}

  /**
   * Throws CONTENT_BLOCKED with every blocking feature that was triggered, or with the redacting one that found something in a name;
   * SERVICE_UNAVAILABLE when a check does not answer. The moderation model is called once, after the redacting features before it.
   */
  async check(read: ReadPassages, features: readonly SafetyFeature[], signal: AbortSignal, log: Logger): Promise<SafetyReport> {
    const blocking = features.filter(isBlocking);
    const redacted: SafetyFeature[] = [];
    let passages = passagesOf(read);
    let isJudged = false;
    for (const feature of features) {
      if (!isBlocking(feature)) {
        if (!(await this.redact(passages, feature))) continue;
        redacted.push(feature);
        passages = passagesOf(read);
      } else if (!isJudged) {
        isJudged = true;
        const texts = passages.map(({ judgedText }) => judgedText);
        const triggered = triggeredBy(await this.moderation.flaggedCategories(texts, signal, log), blocking);
        if (triggered.length > 0) throw blocked(triggered);
      }
    }
    return { applied: features, redacted };
  }

  /** Returns whether anything was redacted. */
  private async redact(passages: readonly Passage[], feature: RedactingFeature): Promise<boolean> {
    const found = await findAll(
      passages.map(({ text }) => text),
      await DETECTORS[feature](),
    );
    for (const [index, findings] of found.entries()) {
      try {
        passages[index]?.redact(findings);
      } catch (error) {
        throw error instanceof Unredactable ? unredactable(error, feature) : error;
      }
    }
    return found.some((findings) => findings.length > 0);
  }
}

function passagesOf(read: ReadPassages): readonly Passage[] {
  const passages = new Passages();
  read(passages);
  return passages.all;
}

function unredactable({ param }: Unredactable, feature: RedactingFeature): AppError {
  const message = `${param}: the safety feature ${feature} found something in a name or an id, and those are not rewritten. Take it out.`;
  return new AppError("CONTENT_BLOCKED", message, { param, details: { triggered: [feature] } });
}

function blocked(triggered: readonly SafetyFeature[]): AppError {
  return new AppError("CONTENT_BLOCKED", `The input was blocked by the safety feature ${triggered.join(", ")}.`, {
    details: { triggered },
  });
}
