/** The safety features of a request (docs/spec/safety.md#features). */
import { z } from "zod";
import type { KeyCaller, SessionCaller } from "../../context.js";
import { invalidInput } from "../../errors.js";
import { type Model, SAFETY_FEATURES, type SafetyFeature } from "../catalog/model.js";

/** The features of `safe=true`. */
const SAFE_FEATURES: readonly SafetyFeature[] = ["privacy", "secrets", "sexual", "violence"];
const ON = ["true", "1"];
const OFF = ["", "false", "0"];
/** Unspecified: characters of a client's own text in an error message. */
const QUOTED_CHARS_MAX = 50;

const ONE_FEATURE = `(?:${SAFETY_FEATURES.join("|")})`;
/** The description of `safe` as text; names are checked on use. */
export const SAFE_PATTERN = `^\\s*(?:true|1|false|0|${ONE_FEATURE}(?:\\s*,\\s*${ONE_FEATURE})*)?\\s*$`;

/** `safe` in a body: true, or features as a list or separated by commas. Names are checked on use. */
export const safeInput = z
  .union([
    z.boolean(),
    z.string().max(1_000).meta({ pattern: SAFE_PATTERN }),
    z
      .array(
        z
          .string()
          .max(100)
          .meta({ id: "SafetyFeature", enum: [...SAFETY_FEATURES] }),
      )
      .max(100),
  ])
  .meta({ id: "SafetyChecks" })
  .nullish();
export type SafeInput = z.output<typeof safeInput>;

/** In the form of a query parameter, which admission takes; null: no features. */
export function toSafeText(safe: SafeInput): string | null {
  if (safe === undefined || safe === null || safe === false) return null;
  if (safe === true) return "true";
  const text = (typeof safe === "string" ? safe : safe.join(",")).trim();
  return OFF.includes(text) ? null : text;
}

/** Candidates that may get a text checked for these features: those that require no other one. */
export function servable<Candidate extends { readonly model: Pick<Model, "requiredSafetyFeatures"> }>(
  candidates: readonly Candidate[],
  applied: readonly SafetyFeature[] | undefined,
): readonly Candidate[] {
  if (candidates.length === 1) return candidates;
  return candidates.filter(({ model: { requiredSafetyFeatures } }) =>
    requiredSafetyFeatures.every((feature) => applied?.includes(feature)),
  );
}

/** The caller; an agent run continues with the features of its own generation. */
type Requester = Pick<KeyCaller | SessionCaller, "run">;

/** True when there is anything to check; takes no time. */
export function isChecked({ run }: Requester, model: Model, safe: SafeInput): boolean {
  return model.requiredSafetyFeatures.length > 0 || toSafeText(safe) !== null || (run?.safetyFeatures?.length ?? 0) > 0;
}

/**
 * The features that the model requires, in its order, then those of the agent run, then the request's. Throws BAD_REQUEST for an unknown
 * name.
 */
export function featuresOf({ run }: Requester, model: Model, safe: SafeInput): readonly SafetyFeature[] {
  const ofAgent = run?.safetyFeatures ? SAFETY_FEATURES.filter((feature) => run.safetyFeatures?.includes(feature)) : [];
  return [...new Set([...model.requiredSafetyFeatures, ...ofAgent, ...addedFeatures(toSafeText(safe))])];
}

function addedFeatures(safe: string | null): readonly SafetyFeature[] {
  if (safe === null) return [];
  if (ON.includes(safe)) return SAFE_FEATURES;
  return safe.split(",").map((name) => toFeature(name.trim()));
}

function toFeature(name: string): SafetyFeature {
  const feature = SAFETY_FEATURES.find((known) => known === name);
  if (feature) return feature;
  const quoted = JSON.stringify(name.slice(0, QUOTED_CHARS_MAX));
  throw invalidInput(`There is no safety feature ${quoted}: give true, or some of ${SAFETY_FEATURES.join(", ")}.`, "safe");
}
