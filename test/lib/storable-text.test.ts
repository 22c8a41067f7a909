import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BIDI_CONTROL, findUnstorable, toShown, toStorable, UNICODE_ESCAPE, unstorableIn } from "../../src/lib/storable-text.js";

const HALVES = ["\ud83d", "\ude00"];
/** Text with faults: a NUL, halves of a pair in any order, and characters near them. */
const anyText = fc.string({ unit: fc.constantFrom("a", "\0", ...HALVES, "\u0001", "\uffff", "語", "🎉", "\u202e", "\u2066") });

describe("a text for the store", () => {
  it.each(["", "a", "\u0001\t\n\u007f", "語", "🎉", "\ufffd", "\uffff", "e\u0301"])("may be %j", (text) => {
    expect(unstorableIn(text)).toBeNull();
    expect(toStorable(text)).toBe(text);
  });

  it("must not hold a NUL character", () => {
    for (const text of ["\0", "a\0", "\0a"]) expect(unstorableIn(text)).toMatch(/NUL/);
    expect(toStorable("a\0b\0")).toBe("a\ufffdb\ufffd");
  });

  it("must not hold half of a surrogate pair", () => {
    for (const text of [...HALVES, "a\ud83d", "\ude00\ud83d"]) expect(unstorableIn(text)).toMatch(/surrogate pair/);
    expect(toStorable("a\ud83db\ude00🎉")).toBe("a\ufffdb\ufffd🎉");
  });

  it("is stored as it is or replaced character by character, and is the same after UTF-8", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const stored = toStorable(text);

        expect(unstorableIn(stored)).toBeNull();
        expect(stored).toHaveLength(text.length);
        expect(Buffer.from(stored).toString()).toBe(stored);
        expect(stored).not.toContain("\0");
        if (unstorableIn(text) === null) expect(stored).toBe(text);
        expect(unstorableIn(text) === null).toBe(Buffer.from(text).toString() === text && !text.includes("\0"));
      }),
      { numRuns: 300 },
    );
  });
});

describe("a shown name", () => {
  it("has no characters that change the direction of text", () => {
    const controls = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069";

    for (const control of controls) expect(BIDI_CONTROL.test(control)).toBe(true);
    expect(toShown(`${controls}gpj.${controls}exe${controls}`)).toBe("gpj.exe");
    expect(toShown("שלום, مرحبا 👨‍👩‍👧")).toBe("שלום, مرحبا 👨‍👩‍👧");
  });

  it("can be stored and is the same when it is cleaned again, for any text", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const shown = toShown(text);

        expect([unstorableIn(shown), BIDI_CONTROL.test(shown), toShown(shown)]).toEqual([null, false, shown]);
      }),
    );
  });
});

describe("the first unstorable text of a JSON value", () => {
  it.each<[string, string, string]>([
    ["a text alone", '"\\u0000"', ""],
    ["a field", '{"a":"ok","b":"\\u0000"}', "b"],
    ["an item of an array", '["ok","\\ud83d"]', "1"],
    ["a text far within", '{"messages":[{"content":"ok"},{"content":[{"text":"\\ude00"}]}]}', "messages.1.content.0.text"],
    ["a name", '{"a":{"x\\u0000":1}}', "a.x\0"],
    ["a field with a name that objects inherit", '{"__proto__":{"constructor":"\\u0000"}}', "__proto__.constructor"],
    ["the first of several", '{"a":{"b":"\\ud83d"},"c":"\\u0000"}', "a.b"],
  ])("is found as %s", (_what, json, path) => {
    expect(findUnstorable(JSON.parse(json))?.path).toBe(path);
  });

  it("is reported with a path that can itself be encoded", () => {
    expect(findUnstorable(JSON.parse('{"a\\ud83d":1}'))).toEqual({
      path: "a\ufffd",
      problem: unstorableIn("\ud83d"),
    });
  });

  it("is absent from values that can be stored, and from those without text", () => {
    for (const value of [null, undefined, 1, true, {}, [], "語🎉", { a: [1, null, { b: "c" }] }]) expect(findUnstorable(value)).toBeNull();
  });

  it("is there exactly when a text or a name of the document has a fault, and then the document has an escape", () => {
    const document = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 3 },
        anyText,
        fc.constant(null),
        fc.array(tie("value"), { maxLength: 3 }),
        fc.dictionary(anyText, tie("value"), { maxKeys: 3 }),
      ),
    })).value;
    fc.assert(
      fc.property(document, (value) => {
        const json = JSON.stringify(value);
        const texts: string[] = [];
        JSON.parse(json, (name, each) => {
          texts.push(name);
          if (typeof each === "string") texts.push(each);
          return each;
        });
        const isFaulty = texts.some((text) => unstorableIn(text) !== null);

        expect(findUnstorable(JSON.parse(json)) !== null).toBe(isFaulty);
        if (isFaulty) expect(json).toContain(UNICODE_ESCAPE);
      }),
      { numRuns: 300 },
    );
  });
});
