import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cutTexts, decodeBase64, isBase64 } from "../../src/lib/json.js";

const long = "QUJD".repeat(300);

/** Cut, parsed, and put together again: what JSON.parse makes of the whole. */
function throughCut(json: string): unknown {
  const { rest, texts } = cutTexts(Buffer.from(json), "b64_json");
  return JSON.parse(rest.toString(), (name, value) => (name === "b64_json" && typeof value === "number" ? String(texts[value]) : value));
}

describe("cutting texts out of JSON", () => {
  it("leaves a small document and the texts", () => {
    const { rest, texts } = cutTexts(
      Buffer.from(`{"data":[{"b64_json":"${long}"},{ "b64_json" :\n"${long}AA=="}],"usage":{"a":1}}`),
      "b64_json",
    );

    expect(rest.toString()).toBe('{"data":[{"b64_json":0},{ "b64_json" :\n1}],"usage":{"a":1}}');
    expect(texts.map(String)).toEqual([long, `${long}AA==`]);
  });

  it.each([
    ["short texts", { b64_json: "QUJD" }],
    ["texts with escapes", { b64_json: `${long}"\\\n` }],
    ["values of other types", { b64_json: null, data: [{ b64_json: {} }, { b64_json: [long] }] }],
    ["the name as a value", { type: "b64_json", other: long }],
    ["the name inside of a text", { revised_prompt: `"b64_json":"${long}"`, b64_json: long }],
    ["the name after a backslash", { revised_prompt: `\\"b64_json":"${long}"`, b64_json: long }],
    ["nothing at all", {}],
  ])("changes nothing about %s", (_what, value) => {
    expect(throughCut(JSON.stringify(value))).toEqual(value);
  });

  it("never changes the value of a document", () => {
    const text = fc.oneof(
      fc.string(),
      fc.constant(long),
      fc.constant(`"b64_json":"${long}"`),
      fc.string().map((said) => long + said),
    );
    const item = fc.dictionary(
      fc.constantFrom("b64_json", "url", 'b64_json"', '\\"b64_json'),
      fc.oneof(text, fc.boolean(), fc.array(text)),
    );
    fc.assert(
      fc.property(fc.array(item), fc.constantFrom(undefined, 2), (items, indent) => {
        expect(throughCut(JSON.stringify(items, null, indent))).toEqual(JSON.parse(JSON.stringify(items)));
      }),
      { numRuns: 200 },
    );
  });

  it.each(['{"b64_json":"', '{"b64_json":', `{"b64_json":"${long}`, ""])("accepts text that is not JSON (%#)", (text) => {
    const { rest } = cutTexts(Buffer.from(text), "b64_json");

    expect(() => JSON.parse(rest.toString())).toThrow();
  });
});

describe("base64", () => {
  it("is recognized in text of any length, padded or not", () => {
    for (const size of [1, 2, 3, 4, 24_575, 24_576, 24_577, 100_000]) {
      const bytes = Buffer.alloc(size, 0xa5);
      for (const text of [bytes.toString("base64"), bytes.toString("base64").replace(/=+$/, "")]) {
        expect(isBase64(Buffer.from(text))).toBe(true);
        expect(decodeBase64(Buffer.from(text)).equals(bytes)).toBe(true);
      }
    }
  });

  it("knows every character of both alphabets and no other, at every position", () => {
    for (let byte = 0; byte < 256; byte += 1) {
      for (const at of [0, 15, 16, 63, 64, 65_535, 65_536, 65_599]) {
        const text = Buffer.alloc(65_600, "Q");
        text[at] = byte;
        const isLastPadding = byte === 0x3d && at === text.length - 1;

        expect([byte, at, isBase64(text)]).toEqual([byte, at, isLastPadding || /[\w+/-]/.test(String.fromCharCode(byte))]);
      }
    }
  });

  it.each(["", "=", "====", "QUJ*", "QU JD", "QUJD\n", `${long}!`, `${"QUJD".repeat(9_000)}<QUJD`, "data:image/png;base64,QUJD"])(
    "excludes other text (%#)",
    (text) => {
      expect(isBase64(Buffer.from(text))).toBe(false);
    },
  );
});
