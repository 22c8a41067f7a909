import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Base64Decoder, Base64Error } from "../../src/lib/base64-decoder.js";

/** The bytes of a text that arrives in these pieces. */
function decode(pieces: readonly string[]): Buffer {
  const decoder = new Base64Decoder();
  return Buffer.concat([...pieces.map((piece) => decoder.push(piece)), decoder.end()]);
}

/** Cuts a text at these places. */
function cutAt(text: string, places: readonly number[]): string[] {
  const cuts = [0, ...places.map((place) => place % (text.length + 1)).sort((one, other) => one - other), text.length];
  return cuts.slice(1).map((to, index) => text.slice(cuts[index], to));
}

const places = fc.array(fc.nat(), { maxLength: 8 });
const bytes = fc.uint8Array({ maxLength: 100 });

function isRefused(pieces: readonly string[]): boolean {
  try {
    decode(pieces);
    return false;
  } catch (error) {
    expect(error).toBeInstanceOf(Base64Error);
    return true;
  }
}

describe("base64 in pieces", () => {
  it("is decoded to its bytes, wherever it is cut", () => {
    fc.assert(
      fc.property(bytes, places, (content, cuts) => {
        const text = Buffer.from(content).toString("base64");

        expect(decode(cutAt(text, cuts))).toEqual(Buffer.from(content));
      }),
    );
  });

  it("may be empty, and may have empty pieces", () => {
    expect(decode([])).toHaveLength(0);
    expect(decode(["", "aGk", "", "=", ""]).toString()).toBe("hi");
  });

  it("is decoded while it arrives, but for the quad that may be the last", () => {
    const decoder = new Base64Decoder();

    expect(decoder.push("YWJjZGVm")).toHaveLength(3);
    expect(decoder.push("Z2hp")).toHaveLength(3);
    expect(decoder.end()).toHaveLength(3);
  });

  it.each([
    ["no padding", "aGk"],
    ["padding of one character too few", "aA="],
    ["one character left over", "YWJjZ"],
    ["bits left over before one character of padding", "aGl="],
    ["bits left over before two characters of padding", "aB=="],
    ["padding alone", "===="],
    ["three characters of padding", "a==="],
    ["padding before the end", "aGk=YWJj"],
    ["padding after a whole quad", "YWJj===="],
    ["padding inside of a quad", "a=k="],
    ["a line break", "YWJj\nZGVm"],
    ["a space at the end", "YWJj "],
    ["the alphabet of URLs", "-_-_"],
    ["a character above ASCII", "YWJä"],
    ["a NUL", "YWJ\0"],
  ])("is refused with %s, wherever it is cut", (_what, text) => {
    expect(isRefused([text])).toBe(true);
    expect(isRefused([...text])).toBe(true);
    for (let at = 1; at < text.length; at += 1) expect(isRefused([text.slice(0, at), text.slice(at)])).toBe(true);
  });

  it("is accepted only in the one form that its bytes have", () => {
    const text = fc.string({ unit: fc.constantFrom("A", "Q", "g", "w", "/", "+", "=", "-", " "), maxLength: 12 });
    fc.assert(
      fc.property(text, places, (each, cuts) => {
        const isCanonical = Buffer.from(each, "base64").toString("base64") === each;

        expect(isRefused(cutAt(each, cuts))).toBe(!isCanonical);
      }),
      { numRuns: 1_000 },
    );
  });
});
