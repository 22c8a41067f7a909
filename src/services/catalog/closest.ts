/** Which models a mistyped name may have meant. */
import { distance } from "fastest-levenshtein";
import type { Model } from "./model.js";

/** Ids are not longer; a name that is gets compared by its beginning, so that no request makes this expensive. */
const COMPARED_CHARS_MAX = 253;

/** The ids of the models whose id or alias is nearest to `wanted`, nearest first. */
export function closestIds(models: readonly Model[], wanted: string, count: number): readonly string[] {
  const compared = wanted.slice(0, COMPARED_CHARS_MAX).toLowerCase();
  return models
    .map((model) => ({
      id: model.id,
      edits: Math.min(...[model.id, ...model.aliases].map((name) => distance(compared, name.toLowerCase()))),
    }))
    .sort((one, other) => one.edits - other.edits)
    .slice(0, count)
    .map(({ id }) => id);
}
