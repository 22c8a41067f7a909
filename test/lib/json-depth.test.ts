import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { jsonDepthExceeds } from "../../src/lib/json.js";

function exceeds(text: string, max: number): boolean {
  return jsonDepthExceeds(Buffer.from(text), max);
}

function depthOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

describe("jsonDepthExceeds", () => {
  it("tells the bound from one past it", () => {
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

      expect(jsonDepthExceeds(text, 100)).toBe(unit === "[");
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
