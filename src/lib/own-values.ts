/**
 * Objects by names that somebody else chose. Every object has a `constructor` and a `__proto__` that nobody put there, so a name from
 * outside is looked up here, in a Map, or in a union that the compiler knows: never by `in`, and never in plain brackets
 * (test/contract/outside-names.test.ts).
 */

/** What the object itself has by that name. */
export function ownValue<Value>(object: { readonly [name: string]: Value }, name: string): Value | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

/** Gives the object a value of its own, whatever it is called. */
export function setOwnValue<Value>(object: { [name: string]: Value }, name: string, value: Value): void {
  // No other name has a setter that every object inherits, and to assign is ten times as fast.
  if (name !== "__proto__") object[name] = value;
  else Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
}

/**
 * A copy with these fields beside or instead of its own. Whoever spreads an object and adds fields to it waits ten times as long for it
 * (docs/decisions/garbage.md); `Object.assign` alone would take a `__proto__` of the object's for its prototype.
 */
export function withFields<Fields extends object, More extends object>(object: Fields, more: More): Omit<Fields, keyof More> & More {
  return Object.hasOwn(object, "__proto__") ? { ...object, ...more } : Object.assign({}, object, more);
}

/**
 * A copy of the other fields that have a value: of an object with thousands of them in a third of the time that taking it apart by
 * `{ known, ...others }` takes.
 */
export function withoutFields(
  object: object,
  names: ReadonlySet<string>,
  isKept: (value: unknown) => boolean = () => true,
): Record<string, unknown> {
  const others: Record<string, unknown> = {};
  const fields = object as Record<string, unknown>;
  for (const name of Object.keys(fields)) {
    const value = names.has(name) ? undefined : ownValue(fields, name);
    if (value === undefined || !isKept(value)) continue;
    setOwnValue(others, name, value);
  }
  return others;
}
