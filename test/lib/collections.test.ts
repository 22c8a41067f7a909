import { describe, expect, it } from "vitest";
import { append, eachOf, greatest, groupBy, least } from "../../src/lib/collections.js";

/** More than the stack holds as arguments. */
const MANY = 300_000;

function* upTo(count: number): Generator<number> {
  for (let number = 1; number <= count; number += 1) yield number;
}

describe("groups", () => {
  it("have each item under its key, in the order in which they came", () => {
    const groups = groupBy(upTo(7), (number) => number % 3);

    expect([...groups]).toEqual([
      [1, [1, 4, 7]],
      [2, [2, 5]],
      [0, [3, 6]],
    ]);
  });

  it("may have keys of any type, names of inherited fields among them", () => {
    const owner = {};
    const items = [
      { key: "__proto__", n: 1 },
      { key: "constructor", n: 2 },
      { key: owner, n: 3 },
      { key: null, n: 4 },
      { key: "__proto__", n: 5 },
    ];

    expect([...groupBy(items, ({ key }) => key).entries()].map(([key, all]) => [key, all.map(({ n }) => n)])).toEqual([
      ["__proto__", [1, 5]],
      ["constructor", [2]],
      [owner, [3]],
      [null, [4]],
    ]);
    expect(groupBy([], String).size).toBe(0);
  });
});

describe("reading each of several ids", () => {
  it("has an answer or an error for each, in the order of the ids", async () => {
    const missing = new Error("missing");

    const answers = await eachOf(["a", "b", "c"], async (id) => {
      if (id === "b") throw missing;
      return id.toUpperCase();
    });

    expect([...answers]).toEqual([
      ["a", "A"],
      ["b", missing],
      ["c", "C"],
    ]);
  });

  it("reads all at once", async () => {
    const answer = new Map<string, (value: string) => void>();

    const answers = eachOf(["a", "b"], (id) => new Promise<string>((resolve) => answer.set(id, resolve)));

    expect([...answer.keys()]).toEqual(["a", "b"]);
    answer.get("b")?.("second");
    answer.get("a")?.("first");
    expect([...(await answers)]).toEqual([
      ["a", "first"],
      ["b", "second"],
    ]);
  });

  it("reads nothing without ids", async () => {
    const answers = await eachOf([], () => Promise.reject(new Error("Nothing was to be read.")));

    expect(answers.size).toBe(0);
  });
});

describe("appending", () => {
  it("keeps what the list has, and takes any number of items", () => {
    const list = [0];

    append(list, upTo(MANY));

    expect(list).toHaveLength(MANY + 1);
    expect([list[0], list[1], list.at(-1)]).toEqual([0, 1, MANY]);
  });
});

describe("bounds of numbers", () => {
  it("finds the least, which is infinity for none", () => {
    expect(least([3, -1, 2])).toBe(-1);
    expect(least(upTo(MANY))).toBe(1);
    expect(least([])).toBe(Number.POSITIVE_INFINITY);
  });

  it("finds the greatest, which is never below the floor", () => {
    expect(greatest([3, -1, 2], 0)).toBe(3);
    expect(greatest(upTo(MANY), 0)).toBe(MANY);
    expect(greatest([3, -1, 2], 4)).toBe(4);
    expect(greatest([], 4)).toBe(4);
  });
});
