/** Which of the names that there are somebody who wrote another one may have meant. */
import { distance } from "fastest-levenshtein";

export interface ClosestOptions<Item> {
  /** A thing that goes by several names is as near as its nearest. */
  readonly namesOf: (item: Item) => readonly string[];
  /** How many are answered. */
  readonly count: number;
  /** What is longer than every name is compared by its beginning, so that no request makes this expensive. */
  readonly charsMax: number;
}

/** The items whose names are the fewest edits from `wanted`, nearest first; case does not count. */
export function closest<Item>(items: readonly Item[], wanted: string, { namesOf, count, charsMax }: ClosestOptions<Item>): readonly Item[] {
  const compared = wanted.slice(0, charsMax).toLowerCase();
  return items
    .map((item) => ({ item, edits: Math.min(...namesOf(item).map((name) => distance(compared, name.toLowerCase()))) }))
    .sort((one, other) => one.edits - other.edits)
    .slice(0, count)
    .map(({ item }) => item);
}
