/** The safety features (docs/spec/safety.md): input checks, in the order in which they are declared. */
import type { Logger } from "pino";
import { AppError } from "../../errors.js";
import type { SafetyFeature } from "../catalog/model.js";
import { isBlocking, type Moderation, triggeredBy } from "./moderation.js";
import { type Detect, redactAll } from "./redaction.js";

export interface SafetyReport {
  readonly applied: readonly SafetyFeature[];
  /** Those that changed the texts. */
  readonly redacted: readonly SafetyFeature[];
}

export interface CheckedTexts {
  /** As many as were given, rewritten where something was redacted. */
  readonly texts: readonly string[];
  readonly report: SafetyReport;
}

/** Loaded when a request first needs them: numbering plans and rule sets are large. */
const DETECTORS: Readonly<Record<Exclude<SafetyFeature, "sexual" | "violence" | "shield">, () => Promise<Detect>>> = {
  privacy: async () => (await import("./personal-data.js")).findPersonalData,
  secrets: async () => (await import("./secrets.js")).findSecrets,
};

export class Safety {
  constructor(private readonly moderation: Moderation) {}

  /**
   * Throws CONTENT_BLOCKED with every blocking feature that was triggered, or SERVICE_UNAVAILABLE when a check does not answer.
   * The moderation model is asked once, with the texts as the features before it have left them.
   */
  async check(texts: readonly string[], features: readonly SafetyFeature[], signal: AbortSignal, log: Logger): Promise<CheckedTexts> {
    const blocking = features.filter(isBlocking);
    const redacted: SafetyFeature[] = [];
    let checked = texts;
    let isJudged = false;
    for (const feature of features) {
      if (!isBlocking(feature)) {
        const rewritten = await redactAll(checked, await DETECTORS[feature]());
        if (rewritten.some((text, index) => text !== checked[index])) redacted.push(feature);
        checked = rewritten;
      } else if (!isJudged) {
        isJudged = true;
        const triggered = triggeredBy(await this.moderation.flaggedCategories(checked, signal, log), blocking);
        if (triggered.length > 0) throw blocked(triggered);
      }
    }
    return { texts: checked, report: { applied: features, redacted } };
  }
}

function blocked(triggered: readonly SafetyFeature[]): AppError {
  return new AppError("CONTENT_BLOCKED", `The input was blocked by the safety feature ${triggered.join(", ")}.`, {
    details: { triggered },
  });
}
