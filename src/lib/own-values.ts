/**
 * Objects with names from outside. Every object inherits `constructor` and `__proto__`, so such a name is looked up here, in a Map, or in a
 * union known to the compiler: never by `in`, and never in plain brackets (test/contract/outside-names.test.ts).
 */

/** The object's own value of that name. */
export function ownValue<Value>(object: { readonly [name: string]: Value }, name: string): Value | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

/** Sets an own value under any name. */
export function setOwnValue<Value>(object: { [name: string]: Value }, name: string, value: Value): void {
  // Only `__proto__` has an inherited setter; assignment is ten times as fast.
  if (name !== "__proto__") object[name] = value;
  else Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
}

/**
 * Copies an object with these fields added or replaced. A spread with added fields takes ten times as long (docs/decisions/garbage.md);
 * `Object.assign` alone would take an own `__proto__` for the prototype.
 */
export function withFields<Fields extends object, More extends object>(object: Fields, more: More): Omit<Fields, keyof More> & More {
  const isPlain = !Object.hasOwn(object, "__proto__") && !Object.hasOwn(more, "__proto__");
  return isPlain ? Object.assign({}, object, more) : { ...object, ...more };
}

/** Copies the other fields that have a value: for thousands of fields in a third of the time of `{ known, ...others }`. */
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
