/** Common inputs of generations: `safe`, and `extra`, body fields that the schema does not name, with their wire names. */
import { invalidInput, wrongField } from "../errors.js";
import type { SafetyFeature } from "../services/catalog/model.js";

export const EXTRA_DESCRIPTION =
  "An object of additional fields with their wire names. They are passed to the upstream unchanged, except for fields that affect the price, which are rejected (400).";
export const MAX_COST_DESCRIPTION =
  "The highest charge in credits, like `max_cost` in REST. Answers of text are cut where they reach it; other generations that cost more, and prompts that do, fail with MAX_COST_EXCEEDED. For an agent, the limit covers all generations that it makes; it defaults to a tenth of the caller's available credits.";
export const SAFE_DESCRIPTION = "Safety checks of the input, in addition to those that the model requires. Defaults to none.";

export function toSafeText(features: readonly SafetyFeature[] | null | undefined): string | undefined {
  return features && features.length > 0 ? features.join(",") : undefined;
}

/**
 * Merges the stated fields with `extra`. Throws BAD_REQUEST when `extra` is not an object, or contains one of `fields` or of those
 * that the operation sets itself.
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
