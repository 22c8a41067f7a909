import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BoundedJson, JsonExcessError, JsonScan, jsonExcess } from "../../src/lib/json-bounds.js";

const UNBOUND = {
  depthMax: Number.MAX_SAFE_INTEGER,
  keysMax: Number.MAX_SAFE_INTEGER,
  valuesMax: Number.MAX_SAFE_INTEGER,
  textsMax: Number.MAX_SAFE_INTEGER,
  bracketsMax: Number.MAX_SAFE_INTEGER,
};

function exceeds(text: string, max: number): boolean {
  return jsonExcess(Buffer.from(text), { ...UNBOUND, depthMax: max }) !== null;
}

function depthOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

describe("the depth of JSON", () => {
  it("distinguishes the bound from one past it", () => {
    expect(exceeds(`${"[".repeat(100)}${"]".repeat(100)}`, 100)).toBe(false);
    expect(exceeds(`${"[".repeat(101)}${"]".repeat(101)}`, 100)).toBe(true);
    expect(exceeds(`${'{"a":'.repeat(100)}1${"}".repeat(100)}`, 100)).toBe(false);
    expect(exceeds(`${'{"a":['.repeat(51)}`, 100)).toBe(true);
  });

  it("counts depth, not brackets", () => {
    expect(exceeds(`[${"[],{},".repeat(1000)}1]`, 2)).toBe(false);
  });

  it("ignores brackets in strings and believes escapes", () => {
    expect(exceeds(`"${"[".repeat(1000)}"`, 1)).toBe(false);
    expect(exceeds(`["${'\\"['.repeat(1000)}"]`, 1)).toBe(false);
    expect(exceeds(`["\\\\",[["x"]]]`, 2)).toBe(true);
    expect(exceeds(`["${"x".repeat(100)}\\\\",[["x"]]]`, 2)).toBe(true);
    expect(exceeds(`["${"x".repeat(100)}\\\\\\"[[[[",["x"]]`, 2)).toBe(false);
  });

  it("meets an escape that straddles the place where long strings are searched", () => {
    for (let length = 40; length < 60; length += 1) {
      expect(exceeds(`["${"x".repeat(length)}\\"[[[[", 1]`, 1)).toBe(false);
      expect(exceeds(`["${"x".repeat(length)}\\\\", [1]]`, 1)).toBe(true);
    }
  });

  it("survives a string without end and text that is not JSON", () => {
    expect(exceeds(`["${"[".repeat(1000)}`, 1)).toBe(false);
    expect(exceeds(`["${"x".repeat(100)}\\`, 1)).toBe(false);
    expect(exceeds(`${"]".repeat(1000)}[[[`, 2)).toBe(false);
  });

  it("gets through 8 MB of brackets, quotes or backslashes", () => {
    for (const unit of ["[", '"', "\\", '"\\', '"["', "{}"]) {
      const text = Buffer.alloc(8 * 1024 * 1024, unit);

      expect(jsonExcess(text, { ...UNBOUND, depthMax: 100 }) !== null).toBe(unit === "[");
    }
  });

  it("agrees with the parsed value", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 8 }), fc.nat(10), (value, max) => {
        expect(exceeds(JSON.stringify(value), max)).toBe(depthOf(value) > max);
      }),
    );
  });

  it("agrees for strings of quotes, backslashes and brackets of any length", () => {
    const awkward = fc.string({ unit: fc.constantFrom('"', "\\", "[", "]", "x", "{"), maxLength: 120 });
    fc.assert(
      fc.property(fc.array(fc.oneof(awkward, fc.array(awkward))), fc.nat(3), (value, max) => {
        expect(exceeds(JSON.stringify(value), max)).toBe(depthOf(value) > max);
      }),
    );
  });
});

interface Counts {
  readonly keys: number;
  readonly values: number;
  readonly texts: number;
}

/** As the scan counts them. */
function countsOf(json: string, pieceBytes = json.length): Counts {
  const bytes = Buffer.from(json);
  const scan = new JsonScan(bytes, UNBOUND);
  for (let to = 0; to < bytes.length; to += pieceBytes) scan.advance(Math.min(to + pieceBytes, bytes.length));
  scan.advance(bytes.length);
  return { keys: scan.keys, values: scan.values, texts: scan.texts };
}

function countsOfValue(value: unknown): Counts {
  if (typeof value !== "object" || value === null) return { keys: 0, values: 1, texts: typeof value === "string" ? 1 : 0 };
  const inner = Object.values(value).map(countsOfValue);
  const own = Array.isArray(value) ? 0 : inner.length;
  return inner.reduce((sum, each) => ({ keys: sum.keys + each.keys, values: sum.values + each.values, texts: sum.texts + each.texts }), {
    keys: own,
    values: 1,
    texts: own,
  });
}

describe("the keys and values of JSON", () => {
  it.each([
    ["5", 0, 1, 0],
    ["[]", 0, 1, 0],
    ["{ }", 0, 1, 0],
    ["[ [ ] , { } ]", 0, 3, 0],
    ['[1,"a,b:c",{"d:":[]}]', 1, 5, 2],
    ['{"a":{"b":1},"a":2}', 3, 4, 3],
  ])("counts those of %s", (json, keys, values, texts) => {
    expect(countsOf(json)).toEqual({ keys, values, texts });
  });

  it("agrees with the parsed value, at once and in pieces of any size", () => {
    const awkward = fc.string({ unit: fc.constantFrom('"', "\\", "[", ",", ":", "x"), maxLength: 120 });
    const json = fc.letrec((tie) => ({
      value: fc.oneof(fc.integer(), awkward, fc.array(tie("value")), fc.dictionary(awkward, tie("value"))),
    })).value;
    fc.assert(
      fc.property(json, fc.constantFrom(undefined, 1, "\t"), fc.integer({ min: 1, max: 50 }), (value, indent, pieceBytes) => {
        const text = JSON.stringify(value, null, indent);
        expect(countsOf(text)).toEqual(countsOfValue(value));
        expect(countsOf(text, pieceBytes)).toEqual(countsOfValue(value));
      }),
    );
  });

  it.each([10, 30_000])("distinguishes %i keys and values from one more", (max) => {
    const bounds = { depthMax: 100, keysMax: max, valuesMax: 2 * max, textsMax: 3 * max, bracketsMax: 4 * max };
    const keys = (count: number) =>
      Buffer.from(JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, index]))));
    const values = (count: number) => Buffer.from(JSON.stringify(Array(count - 1).fill([])));

    expect(jsonExcess(keys(max), bounds)).toBeNull();
    expect(jsonExcess(keys(max + 1), bounds)).toBe(`has more than ${max} keys`);
    expect(jsonExcess(values(2 * max), bounds)).toBeNull();
    expect(jsonExcess(values(2 * max + 1), bounds)).toBe(`has more than ${2 * max} values`);
    const texts = (count: number) => Buffer.from(JSON.stringify(Array(count).fill("")));
    expect(jsonExcess(texts(3 * max), { ...bounds, valuesMax: 4 * max })).toBeNull();
    expect(jsonExcess(texts(3 * max + 1), { ...bounds, valuesMax: 4 * max })).toBe(`has more than ${3 * max} texts and names of fields`);
    const brackets = (count: number) => Buffer.from(JSON.stringify(Array(count - 1).fill({})));
    expect(jsonExcess(brackets(4 * max), { ...bounds, valuesMax: 8 * max })).toBeNull();
    expect(jsonExcess(brackets(4 * max + 1), { ...bounds, valuesMax: 8 * max })).toBe(`has more than ${4 * max} objects and lists`);
  });

  it("leaves colons, commas and brackets of a long text alone", () => {
    const text = Buffer.from(JSON.stringify({ text: ':,[]{}\\"'.repeat(100_000) }));

    expect(jsonExcess(text, { depthMax: 1, keysMax: 1, valuesMax: 2, textsMax: 2, bracketsMax: 1 })).toBeNull();
  });
});

describe("JSON texts within bounds together", () => {
  const bounds = { depthMax: 3, keysMax: 4, valuesMax: 8, textsMax: 8, bracketsMax: 8 };

  it("parses as long as they keep to them", () => {
    const json = new BoundedJson(bounds);

    expect(json.parse('{"a":1}')).toEqual({ a: 1 });
    expect(json.parse(Buffer.from('{"é":[1]}'))).toEqual({ é: [1] });
    expect(() => json.parse('{"a":1,"b":2,"c":3}')).toThrow(
      "has, with those before it, more than 4 keys, 8 values, 8 texts or 8 objects and lists",
    );
    expect(json.parse("1")).toBe(1);
  });

  it("names the exceeded bound", () => {
    expect(() => new BoundedJson(bounds).parse("[[[[]]]]")).toThrow(new JsonExcessError("is nested more than 3 levels deep"));
    expect(() => new BoundedJson({ ...bounds, bracketsMax: 1 }).parse("[[]]")).toThrow("has more than 1 objects and lists");
    expect(() => new BoundedJson(bounds).parse("[1,2,3,4,5,6,7,8]")).toThrow(new JsonExcessError("has more than 8 values"));
  });

  it("throws the parser's error for invalid JSON", () => {
    expect(() => new BoundedJson(bounds).parse("{")).toThrow(SyntaxError);
  });
});
