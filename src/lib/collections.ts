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
