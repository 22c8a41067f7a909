import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ownValue, setOwnValue, withFields, withoutFields } from "../../src/lib/own-values.js";

/** Names that every object inherits, and common ones that may repeat. */
const name = fc.oneof(
  fc.constantFrom("__proto__", "constructor", "toString", "hasOwnProperty", "valueOf", "__defineGetter__", "", "0", "a"),
  fc.string(),
);
const fields = fc.array(fc.tuple(name, fc.jsonValue()), { maxLength: 6 });

/** An object as JSON from outside is parsed: each name is an own field. */
function parsed(entries: readonly (readonly [string, unknown])[]): Record<string, unknown> {
  return Object.fromEntries(entries);
}

/** All own fields in order, and that nothing else was inherited. */
function entriesOf(object: object): [string, unknown][] {
  expect(Object.getPrototypeOf(object)).toBe(Object.prototype);
  return Object.entries(object);
}

describe("a value by a name from outside", () => {
  it("is the own one, and never an inherited one", () => {
    fc.assert(
      fc.property(fields, name, (entries, wanted) => {
        expect(ownValue(parsed(entries), wanted)).toEqual(new Map(entries).get(wanted));
      }),
    );
  });

  it("is found again after it was set", () => {
    fc.assert(
      fc.property(fields, name, fc.jsonValue(), (entries, chosen, value) => {
        const object = parsed(entries);

        setOwnValue(object, chosen, value);

        expect(ownValue(object, chosen)).toEqual(value);
        expect(new Map(entriesOf(object))).toEqual(new Map([...entries, [chosen, value]]));
      }),
    );
  });

  it("is a plain field after it was set twice", () => {
    const object: Record<string, unknown> = {};
    setOwnValue(object, "__proto__", 1);
    setOwnValue(object, "__proto__", 2);

    expect(Object.getOwnPropertyDescriptor(object, "__proto__")).toEqual({
      value: 2,
      writable: true,
      enumerable: true,
      configurable: true,
    });
  });
});

describe("a copy with more fields", () => {
  it("has the fields of both, the added ones in place of those of the same name", () => {
    fc.assert(
      fc.property(fields, fields, (base, more) => {
        const object = parsed(base);

        const copy = withFields(object, parsed(more));

        expect(new Map(entriesOf(copy))).toEqual(new Map([...base, ...more]));
        expect(new Map(Object.entries(object))).toEqual(new Map(base));
      }),
      { numRuns: 500 },
    );
  });

  it("takes an added __proto__ for a field", () => {
    const copy = withFields({ a: 1 }, JSON.parse('{"__proto__":{"b":2}}'));

    expect(JSON.stringify(copy)).toBe('{"a":1,"__proto__":{"b":2}}');
    expect(entriesOf(copy)).toHaveLength(2);
  });
});

describe("a copy without known fields", () => {
  it("has the other own fields with a value, in their order", () => {
    const names = fc.uniqueArray(name, { maxLength: 4 });
    fc.assert(
      fc.property(fields, names, (base, known) => {
        const object = parsed(base);
        const others = Object.entries(object).filter(([each]) => !known.includes(each));

        expect(entriesOf(withoutFields(object, new Set(known)))).toEqual(others);
      }),
    );
  });

  it("drops values that are undefined, and those that are not to be kept", () => {
    const object = { a: undefined, b: null, c: 0, d: "", e: false, model: "m" };

    expect(withoutFields(object, new Set(["model"]))).toEqual({ b: null, c: 0, d: "", e: false });
    expect(Object.keys(withoutFields(object, new Set(["model"]), (value) => value !== null))).toEqual(["c", "d", "e"]);
  });
});
