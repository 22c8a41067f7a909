/** What the inputs of generations have in common: `safe`, and `extra`, fields of a body that the schema does not name, by their wire names. */
import { invalidInput, wrongField } from "../errors.js";
import type { SafetyFeature } from "../services/catalog/model.js";

export const EXTRA_DESCRIPTION =
  "An object of further fields, by their wire names; they reach the upstream as they are, but for those that are billed (400).";
export const MAX_COST_DESCRIPTION =
  "The credits that this may be charged at most, as `max_cost` says in REST: MAX_COST_EXCEEDED when more must be set aside. Of an agent that asks others, what all that it asks for may cost; omitted, a tenth of what the caller can spend.";
export const SAFE_DESCRIPTION = "Safety features that the input goes through, beside those that the model requires. Omitted: none.";

/** As the services take it. */
export function toSafeText(features: readonly SafetyFeature[] | null | undefined): string | undefined {
  return features && features.length > 0 ? features.join(",") : undefined;
}

/**
 * The fields that were stated, and the further ones. Throws BAD_REQUEST when `extra` is no object, or names one of `fields` or of those
 * that the operation decides by itself.
 */
export function withExtra(
  fields: Readonly<Record<string, unknown>>,
  extra: unknown,
  reserved: readonly string[] = [],
): Record<string, unknown> {
  const stated = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));
  if (extra === undefined || extra === null) return stated;
  if (typeof extra !== "object" || Array.isArray(extra)) throw wrongField("extra", "expected an object");
  const taken = Object.keys(extra).find((name) => reserved.includes(name) || Object.hasOwn(fields, name));
  if (taken === undefined) return { ...extra, ...stated };
  const reason = reserved.length > 0 ? "is set by the operation itself or by a field of its own" : "has a field of its own";
  throw invalidInput(`${taken} ${reason}.`, `extra.${taken}`);
}
