/** What is done with many things at once. */

/** The items by what `keyOf` says of each, in their order. Map.groupBy, which Node 20 lacks. */
export function groupBy<Item, Key>(items: Iterable<Item>, keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}

/** What `read` answers for each, or why it does not. */
export async function eachOf<Value>(
  ids: readonly string[],
  read: (id: string) => Promise<Value>,
): Promise<ReadonlyMap<string, Value | Error>> {
  const answers = await Promise.allSettled(ids.map(read));
  return new Map(
    answers.map((answer, index) => [ids[index] as string, answer.status === "fulfilled" ? answer.value : (answer.reason as Error)]),
  );
}

/** Adds the items to the end of the list, however many there are: `push(...items)` has no room for a hundred thousand. */
export function append<Item>(list: Item[], items: Iterable<Item>): void {
  for (const item of items) list.push(item);
}

/** The least of the numbers; infinite without any. */
export function least(numbers: Iterable<number>): number {
  let found = Number.POSITIVE_INFINITY;
  for (const number of numbers) if (number < found) found = number;
  return found;
}

/** The greatest of the numbers, and at least `floor`. */
export function greatest(numbers: Iterable<number>, floor: number): number {
  let found = floor;
  for (const number of numbers) if (number > found) found = number;
  return found;
}
