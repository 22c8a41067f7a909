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
  Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
}
