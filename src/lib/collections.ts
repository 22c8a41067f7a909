/** Groups items by key, in order. Node 20 lacks Map.groupBy. */
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

/** The result of `read` for each, or its error. */
export async function eachOf<Value>(
  ids: readonly string[],
  read: (id: string) => Promise<Value>,
): Promise<ReadonlyMap<string, Value | Error>> {
  const answers = await Promise.allSettled(ids.map(read));
  return new Map(
    answers.map((answer, index) => [ids[index] as string, answer.status === "fulfilled" ? answer.value : (answer.reason as Error)]),
  );
}

/** Appends any number of items; `push(...items)` overflows the stack with a hundred thousand. */
export function append<Item>(list: Item[], items: Iterable<Item>): void {
  for (const item of items) list.push(item);
}

/** The least number; infinity for none. */
export function least(numbers: Iterable<number>): number {
  let found = Number.POSITIVE_INFINITY;
  for (const number of numbers) if (number < found) found = number;
  return found;
}

/** The greatest number, at least `floor`. */
export function greatest(numbers: Iterable<number>, floor: number): number {
  let found = floor;
  for (const number of numbers) if (number > found) found = number;
  return found;
}
