import { describe, expect, it } from "vitest";
import { selectRange } from "../../src/lib/byte-range.js";

const ETAG = '"v1"';

function select(range: string | undefined, sizeBytes = 9, more: { method?: string; ifRange?: string } = {}) {
  const { method = "GET", ifRange } = more;
  const selected = selectRange({ method, range, ifRange }, sizeBytes, ETAG);
  return selected !== null && typeof selected === "object" ? `${selected.start}-${selected.end}` : selected;
}

describe("a range of a file of 9 bytes", () => {
  it.each([
    ["bytes=0-0", "0-0"],
    ["bytes=0-8", "0-8"],
    ["bytes=0-9", "0-8"],
    ["bytes=3-", "3-8"],
    ["bytes=8-", "8-8"],
    ["bytes=8-8", "8-8"],
    ["bytes=2-99999999999999999999999999", "2-8"],
    ["bytes=-1", "8-8"],
    ["bytes=-9", "0-8"],
    ["bytes=-10", "0-8"],
    ["bytes=-99999", "0-8"],
    ["bytes=-99999999999999999999999999", "0-8"],
    ["BYTES=0-1", "0-1"],
    ["bytes=0-1,", "0-1"],
    ["bytes=, 0-1", "0-1"],
    ["bytes=0-1, 9-", "0-1"],
    ["bytes=007-8", "7-8"],
  ])("%s is %s", (range, selected) => {
    expect(select(range)).toBe(selected);
  });

  it.each([["bytes=9-"], ["bytes=9-9"], ["bytes=99999999999999999999999999-"], ["bytes=-0"], ["bytes=9-10, 20-30, -0"]])(
    "%s has no byte of it",
    (range) => {
      expect(select(range)).toBe("unsatisfiable");
    },
  );

  it.each([
    [undefined],
    ["bytes=0-1, 4-5"],
    ["bytes=0-1, -1"],
    ["bytes=5-4"],
    ["bytes=0-1, 5-4"],
    ["bytes=-"],
    ["bytes="],
    ["bytes=,"],
    ["bytes=x"],
    ["bytes=0x0-0x1"],
    ["bytes=1.5-2"],
    ["bytes=+0-1"],
    ["bytes=--1"],
    ["bytes=0 - 1"],
    ["bytes =0-1"],
    ["bytes:0-1"],
    ["bytes=0-1, bytes=2-3"],
    ["lines=0-1"],
    ["0-1"],
    [""],
  ])("%s is the whole", (range) => {
    expect(select(range)).toBeNull();
  });
});

describe("a condition", () => {
  it("holds for the strong tag of the file, and for nothing else", () => {
    expect(select("bytes=0-1", 9, { ifRange: ETAG })).toBe("0-1");
    for (const ifRange of ['"v2"', 'W/"v1"', "v1", "*", "", "Sat, 26 Nov 2039 08:49:37 GMT"]) {
      expect(select("bytes=0-1", 9, { ifRange }), ifRange).toBeNull();
      expect(select("bytes=9-", 9, { ifRange }), ifRange).toBeNull();
    }
  });
});

it("knows ranges of GET alone", () => {
  expect(select("bytes=0-1", 9, { method: "HEAD" })).toBeNull();
  expect(select("bytes=9-", 9, { method: "HEAD" })).toBeNull();
});

it("gives the end of an empty file whole, and finds no first byte in it", () => {
  expect(select("bytes=-5", 0)).toBeNull();
  expect(select("bytes=0-", 0)).toBe("unsatisfiable");
  expect(select("bytes=0-0", 0)).toBe("unsatisfiable");
});
