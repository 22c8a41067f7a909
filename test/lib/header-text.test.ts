import { validateHeaderValue } from "node:http";
import { describe, expect, it } from "vitest";
import { type HeaderPlace, headerText, isHeaderToken, toDisposition } from "../../src/lib/header-text.js";

/** Every kind of character that some header has no place for, each between two letters. */
const CHARACTERS = [
  '"',
  "\\",
  "%",
  "/",
  "'",
  "(",
  "*",
  ";",
  ",",
  "\0",
  "\t",
  "\r",
  "\n",
  "\r\nX-Cost: 0",
  "\x1f",
  "\x7f",
  "\x80",
  "é",
  "日",
  "😀",
  "\ud83d",
  "\ude00",
];
const HOSTILE = CHARACTERS.map((character) => `a${character}b`);

const TAKEN: Readonly<Record<HeaderPlace, RegExp>> = {
  value: /^[\x20-\x7e]*$/,
  userAgent: /^[\x20-\x7e]*$/,
  // RFC 6750, 3: %x20-21 / %x23-5B / %x5D-7E.
  quoted: /^[\x20-\x21\x23-\x5b\x5d-\x7e]*$/,
  fileName: /^[ !#$&-.0-[\]-~]*$/,
  // RFC 8187, 3.2.1: pct-encoded / attr-char.
  extended: /^(?:%[0-9A-F]{2}|[\w!#$&+.^`|~-])*$/,
};

describe.each(Object.entries(TAKEN) as [HeaderPlace, RegExp][])("a text in the place %s", (place, taken) => {
  it.each([...HOSTILE, HOSTILE.join(""), ""])("is of its alphabet: %j", (text) => {
    const written = headerText(place, text);

    expect(written).toMatch(taken);
    expect(() => validateHeaderValue("X", written)).not.toThrow();
  });

  it("stays as it is where it may", () => {
    expect(headerText(place, "report-2.final_v1")).toBe("report-2.final_v1");
  });
});

describe("the name of a file", () => {
  it.each(HOSTILE)("has a full form beside its ASCII form: %j", (name) => {
    const [, plain = "", extended] =
      /^attachment; filename="([^"\\]*)"(?:; filename\*=UTF-8''(\S+))?$/.exec(toDisposition("attachment", name)) ?? [];

    expect(plain).toMatch(TAKEN.fileName);
    expect(extended === undefined ? plain : decodeURIComponent(extended)).toBe(name.toWellFormed());
  });
});

describe("an identifier of a peer", () => {
  it.each(["", "a b", ...HOSTILE.filter((text) => !/^[\x21-\x7e]*$/.test(text))])("is not sent back: %j", (text) => {
    expect(isHeaderToken(text, 100)).toBe(false);
  });

  it("is sent back up to its longest", () => {
    expect([isHeaderToken("a".repeat(100), 100), isHeaderToken("a".repeat(101), 100)]).toEqual([true, false]);
  });
});
